//! Masks that a loop computes from indices and constants, evaluated at compile time.

use std::collections::HashMap;

use warpforge_fusion::cluster::{Body, BodyOp, Epilogue};
use warpforge_fusion::{Graph, View};
use warpforge_ir::attr::ComparisonDirection;
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Tensor};

/// The kind of a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MaskKind {
    /// All keys are visible.
    All,
    /// Keys up to the query's index are visible.
    Causal,
    /// Something else.
    Other,
}

/// The kind of the mask `at`.
pub(crate) fn mask_kind([rows, columns]: [usize; 2], mut at: impl FnMut(usize, usize) -> bool) -> MaskKind {
    let (mut all, mut causal) = (true, true);
    for row in 0..rows {
        for column in 0..columns {
            let visible = at(row, column);
            all &= visible;
            causal &= visible == (column <= row);
            if !all && !causal {
                return MaskKind::Other;
            }
        }
    }
    // A 1x1 mask is both.
    if all { MaskKind::All } else { MaskKind::Causal }
}

/// Evaluated masks, by program.
#[derive(Default)]
pub(super) struct MaskAnalysis {
    known: HashMap<String, MaskKind>,
}

impl MaskAnalysis {
    /// The kind of a mask step; none where it depends on more than row and column.
    pub(super) fn of(&mut self, graph: &Graph, weights: &Epilogue, step: usize) -> Option<MaskKind> {
        let program = MaskProgram::new(graph, weights, step)?;
        let name = format!("{:?} {:?}", program.dims, program.steps);
        if let Some(&known) = self.known.get(&name) {
            return Some(known);
        }
        let found = program.evaluate()?;
        self.known.insert(name, found);
        Some(found)
    }
}

/// The steps of a mask.
struct MaskProgram {
    dims: [usize; 2],
    steps: Vec<MaskOp>,
}

#[derive(Debug)]
enum MaskOp {
    Number(i128),
    /// offset + row · stride + column · stride
    Index(AffineIndex),
    /// An element of a constant tensor.
    Element(Tensor, AffineIndex),
    Add(usize, usize),
    Subtract(usize, usize),
    And(usize, usize),
    Or(usize, usize),
    Not(usize),
    Same(usize),
    Compare(ComparisonDirection, usize, usize),
}

#[derive(Debug, Clone, Copy)]
struct AffineIndex {
    offset: isize,
    row: isize,
    column: isize,
}

impl AffineIndex {
    fn at(self, row: usize, column: usize) -> isize {
        self.offset + self.row * row as isize + self.column * column as isize
    }
}

impl MaskProgram {
    fn new(graph: &Graph, weights: &Epilogue, step: usize) -> Option<Self> {
        let body = &weights.body;
        let last = body.dims.len().checked_sub(1)?;
        let row = last.checked_sub(1).filter(|_| weights.rows == last)?;
        let mut made = Self { dims: [body.dims[row], body.dims[last]], steps: Vec::new() };
        let mut positions: HashMap<usize, usize> = HashMap::new();
        for at in needed(body, step) {
            let of = &body.steps[at];
            let input = |which: usize| of.inputs.get(which).and_then(|input| positions.get(input).copied());
            let integral = of.element.is_int() || of.element == ElementType::Bool;
            let next = match &of.op {
                _ if !integral => return None,
                BodyOp::Constant(number) => MaskOp::Number(integer(number, 0)?),
                BodyOp::Iota(view) => MaskOp::Index(line(view, row)?),
                BodyOp::Load(load) => {
                    let load = &body.loads[*load];
                    MaskOp::Element(graph.constant(load.value)?.clone(), line(&load.view, row)?)
                }
                BodyOp::Elementwise(Function::Add) => MaskOp::Add(input(0)?, input(1)?),
                BodyOp::Elementwise(Function::Subtract) => MaskOp::Subtract(input(0)?, input(1)?),
                BodyOp::Elementwise(Function::And) => MaskOp::And(input(0)?, input(1)?),
                BodyOp::Elementwise(Function::Or) => MaskOp::Or(input(0)?, input(1)?),
                BodyOp::Elementwise(Function::Not) if of.element == ElementType::Bool => {
                    MaskOp::Not(input(0)?)
                }
                BodyOp::Elementwise(Function::Convert) => MaskOp::Same(input(0)?),
                BodyOp::Compare(direction, _) => MaskOp::Compare(*direction, input(0)?, input(1)?),
                _ => return None,
            };
            positions.insert(at, made.steps.len());
            made.steps.push(next);
        }
        Some(made)
    }

    fn evaluate(&self) -> Option<MaskKind> {
        let mut values = vec![0i128; self.steps.len()];
        let mut outside = false;
        let found = mask_kind(self.dims, |row, column| {
            for (at, step) in self.steps.iter().enumerate() {
                values[at] = match step {
                    MaskOp::Number(number) => *number,
                    MaskOp::Index(line) => line.at(row, column) as i128,
                    MaskOp::Element(tensor, line) => {
                        let index = usize::try_from(line.at(row, column)).ok();
                        let element = index.and_then(|index| integer(tensor, index));
                        outside |= element.is_none();
                        element.unwrap_or(0)
                    }
                    MaskOp::Add(a, b) => values[*a].wrapping_add(values[*b]),
                    MaskOp::Subtract(a, b) => values[*a].wrapping_sub(values[*b]),
                    MaskOp::And(a, b) => values[*a] & values[*b],
                    MaskOp::Or(a, b) => values[*a] | values[*b],
                    MaskOp::Not(a) => i128::from(values[*a] == 0),
                    MaskOp::Same(a) => values[*a],
                    MaskOp::Compare(direction, a, b) => {
                        let order = values[*a].cmp(&values[*b]);
                        i128::from(match direction {
                            ComparisonDirection::Eq => order.is_eq(),
                            ComparisonDirection::Ne => order.is_ne(),
                            ComparisonDirection::Lt => order.is_lt(),
                            ComparisonDirection::Le => order.is_le(),
                            ComparisonDirection::Gt => order.is_gt(),
                            ComparisonDirection::Ge => order.is_ge(),
                        })
                    }
                };
            }
            values.last().is_some_and(|&value| value != 0)
        });
        (!outside).then_some(found)
    }
}

/// A step and its dependencies, in order.
fn needed(body: &Body, step: usize) -> Vec<usize> {
    let mut needed = vec![false; step + 1];
    needed[step] = true;
    for at in (0..=step).rev() {
        if needed[at] {
            body.steps[at].inputs.iter().for_each(|&input| needed[input] = true);
        }
    }
    (0..=step).filter(|&at| needed[at]).collect()
}

/// A view that varies with row and column only.
fn line(view: &View, row: usize) -> Option<AffineIndex> {
    let still = (0..row).all(|at| view.dims[at] == 1 || view.strides[at] == 0);
    still.then(|| AffineIndex { offset: view.offset, row: view.strides[row], column: view.strides[row + 1] })
}

fn integer(tensor: &Tensor, at: usize) -> Option<i128> {
    (at < tensor.len()).then(|| tensor.get(at).to_i128())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_classified() {
        assert_eq!(mask_kind([3, 4], |_, _| true), MaskKind::All);
        assert_eq!(mask_kind([3, 4], |row, column| column <= row), MaskKind::Causal);
        assert_eq!(mask_kind([3, 4], |row, column| column < row), MaskKind::Other);
    }
}
