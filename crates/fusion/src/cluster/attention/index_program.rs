//! Expressions of row and column alone, evaluated row by row.

use std::collections::HashMap;

use warpforge_interp::scalar::{self, Kernel};
use warpforge_ir::attr::{ComparisonDirection, ComparisonType};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar, Tensor};

use super::expression::{Form, Line, ScoreLoop, Source};
use super::row_values::RowValues;
use crate::graph::NodeId;

/// Most steps of a program.
const MOST_STEPS: usize = 256;

/// The steps that give a value.
#[derive(Default)]
pub(super) struct IndexProgram {
    steps: Vec<Step>,
    /// The step of each source.
    known: HashMap<Source, usize>,
    /// Tensors that had to be evaluated.
    tensors: HashMap<NodeId, Tensor>,
}

struct Step {
    op: IndexOp,
    inputs: Vec<usize>,
    element: ElementType,
}

enum IndexOp {
    Number(Scalar),
    Index(Line),
    Element(NodeId, Line),
    Function(Function, Kernel),
    Compare(ComparisonDirection, ComparisonType),
}

impl IndexProgram {
    /// The step that gives a source; none where it depends on more than row and column.
    pub(super) fn add(&mut self, of: ScoreLoop<'_>, source: &Source) -> Option<usize> {
        if let Some(&step) = self.known.get(source) {
            return Some(step);
        }
        if self.steps.len() >= MOST_STEPS {
            return None;
        }
        let element = of.element(source);
        let (op, inputs) = match of.form(source, &mut self.tensors) {
            Form::Number(number) => (IndexOp::Number(number), Vec::new()),
            Form::Index(line) if !line.batch => (IndexOp::Index(line), Vec::new()),
            Form::Element(id, line) if !line.batch => (IndexOp::Element(id, line), Vec::new()),
            Form::Function(function, sources) => {
                let inputs = self.add_all(of, &sources)?;
                let elements: Vec<ElementType> =
                    inputs.iter().map(|&input| self.steps[input].element).collect();
                let kernel = scalar::of_function(function, &elements, element)?;
                (IndexOp::Function(function, kernel), inputs)
            }
            Form::Compare(direction, order, sources) => {
                (IndexOp::Compare(direction, order), self.add_all(of, &sources)?)
            }
            Form::Scores | Form::Data { .. } | Form::Index(_) | Form::Element(..) => return None,
        };
        self.steps.push(Step { op, inputs, element });
        self.known.insert(source.clone(), self.steps.len() - 1);
        Some(self.steps.len() - 1)
    }

    fn add_all(&mut self, of: ScoreLoop<'_>, sources: &[Source]) -> Option<Vec<usize>> {
        sources.iter().map(|source| self.add(of, source)).collect()
    }

    /// The values of all steps along a row; none where an element is read that does not exist.
    pub(super) fn row(&self, of: ScoreLoop<'_>, row: usize) -> Option<Vec<RowValues>> {
        let [_, columns] = of.dims();
        let mut values: Vec<RowValues> = Vec::with_capacity(self.steps.len());
        for Step { op, inputs, element } in &self.steps {
            let operands: Vec<&RowValues> = inputs.iter().map(|&input| &values[input]).collect();
            let owned = || operands.iter().map(|&operand| operand.clone()).collect::<Vec<_>>();
            let next = match op {
                IndexOp::Number(number) => RowValues::uniform(*number, columns),
                IndexOp::Index(line) => {
                    let start = line.constant + line.row * row as isize;
                    let index = RowValues::Affine { start: start as i128, step: line.column as i128 };
                    match element {
                        ElementType::Int(_) => index,
                        _ => RowValues::map(vec![index], columns, |x| x[0].rounded_to(*element)),
                    }
                }
                IndexOp::Element(id, line) => {
                    let tensor = of.tensor(*id, &self.tensors)?;
                    let start = line.constant + line.row * row as isize;
                    let last = start + line.column * columns.saturating_sub(1) as isize;
                    let exists = |at: isize| usize::try_from(at).is_ok_and(|at| at < tensor.len());
                    if !exists(start) || !exists(last) {
                        return None;
                    }
                    let position = |column: usize| (start + line.column * column as isize) as usize;
                    match line.column {
                        0 => RowValues::uniform(tensor.get(position(0)), columns),
                        _ => RowValues::collect((0..columns).map(|column| tensor.get(position(column)))),
                    }
                }
                IndexOp::Function(function, kernel) => {
                    RowValues::affine(*function, *element, &operands, columns)
                        .unwrap_or_else(|| RowValues::map(owned(), columns, kernel))
                }
                IndexOp::Compare(direction, order) => {
                    let total = *order == ComparisonType::TotalOrder;
                    let lines = <[&RowValues; 2]>::try_from(operands.as_slice()).ok();
                    lines.and_then(|lines| RowValues::compared(*direction, lines, columns)).unwrap_or_else(
                        || {
                            RowValues::map(owned(), columns, |x| {
                                Scalar::Bool(scalar::compare(*direction, total, x[0], x[1]))
                            })
                        },
                    )
                }
            };
            values.push(next);
        }
        Some(values)
    }
}
