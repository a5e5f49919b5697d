//! Masks that a loop computes from indices and constants, evaluated for every row and column.

use std::collections::HashMap;

use warpforge_fusion::cluster::{Body, BodyOp, Epilogue};
use warpforge_fusion::{Graph, View};
use warpforge_ir::OpKind;
use warpforge_ir::attr::ComparisonDirection;
use warpforge_tensor::{ElementType, Tensor};

/// What a mask lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Everything.
    All,
    /// A row the columns up to its own number.
    UpToItself,
    /// Something else.
    Other,
}

/// What is let through where `at` says so for every row and column.
pub(crate) fn seen([rows, columns]: [usize; 2], mut at: impl FnMut(usize, usize) -> bool) -> Seen {
    let (mut all, mut up_to_itself) = (true, true);
    for row in 0..rows {
        for column in 0..columns {
            let visible = at(row, column);
            all &= visible;
            up_to_itself &= visible == (column <= row);
            if !all && !up_to_itself {
                return Seen::Other;
            }
        }
    }
    // One row of one column is both.
    if all { Seen::All } else { Seen::UpToItself }
}

/// Masks that were evaluated, by what they are.
#[derive(Default)]
pub(super) struct Predicates {
    known: HashMap<String, Seen>,
}

impl Predicates {
    /// What a step of a loop over scores lets through; nothing where it depends on more than rows and columns.
    pub(super) fn of(&mut self, graph: &Graph, weights: &Epilogue, step: usize) -> Option<Seen> {
        let predicate = Predicate::new(graph, weights, step)?;
        let name = format!("{:?} {:?}", predicate.dims, predicate.steps);
        if let Some(&known) = self.known.get(&name) {
            return Some(known);
        }
        let found = predicate.seen()?;
        self.known.insert(name, found);
        Some(found)
    }
}

/// The steps of a mask, each from earlier ones.
struct Predicate {
    dims: [usize; 2],
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Number(i128),
    /// offset + row · stride + column · stride
    Index(Line),
    /// An element of a constant.
    Element(Tensor, Line),
    Add(usize, usize),
    Subtract(usize, usize),
    And(usize, usize),
    Or(usize, usize),
    Not(usize),
    Same(usize),
    Compare(ComparisonDirection, usize, usize),
}

#[derive(Debug, Clone, Copy)]
struct Line {
    offset: isize,
    row: isize,
    column: isize,
}

impl Line {
    fn at(self, row: usize, column: usize) -> isize {
        self.offset + self.row * row as isize + self.column * column as isize
    }
}

impl Predicate {
    fn new(graph: &Graph, weights: &Epilogue, step: usize) -> Option<Self> {
        let body = &weights.body;
        let last = body.dims.len().checked_sub(1)?;
        let row = last.checked_sub(1).filter(|_| weights.rows == last)?;
        let mut made = Self { dims: [body.dims[row], body.dims[last]], steps: Vec::new() };
        let mut places: HashMap<usize, usize> = HashMap::new();
        for at in needed(body, step) {
            let of = &body.steps[at];
            let input = |which: usize| of.inputs.get(which).and_then(|input| places.get(input).copied());
            let whole = of.element.is_int() || of.element == ElementType::Bool;
            let next = match &of.op {
                _ if !whole => return None,
                BodyOp::Constant(number) => Step::Number(integer(number, 0)?),
                BodyOp::Iota(view) => Step::Index(line(view, row)?),
                BodyOp::Load(load) => {
                    let load = &body.loads[*load];
                    Step::Element(graph.constant(load.value)?.clone(), line(&load.view, row)?)
                }
                BodyOp::Elementwise(OpKind::Add) => Step::Add(input(0)?, input(1)?),
                BodyOp::Elementwise(OpKind::Subtract) => Step::Subtract(input(0)?, input(1)?),
                BodyOp::Elementwise(OpKind::And) => Step::And(input(0)?, input(1)?),
                BodyOp::Elementwise(OpKind::Or) => Step::Or(input(0)?, input(1)?),
                BodyOp::Elementwise(OpKind::Not) if of.element == ElementType::Bool => Step::Not(input(0)?),
                BodyOp::Elementwise(OpKind::Convert) => Step::Same(input(0)?),
                BodyOp::Compare(direction, _) => Step::Compare(*direction, input(0)?, input(1)?),
                _ => return None,
            };
            places.insert(at, made.steps.len());
            made.steps.push(next);
        }
        Some(made)
    }

    fn seen(&self) -> Option<Seen> {
        let mut values = vec![0i128; self.steps.len()];
        let mut outside = false;
        let found = seen(self.dims, |row, column| {
            for (at, step) in self.steps.iter().enumerate() {
                values[at] = match step {
                    Step::Number(number) => *number,
                    Step::Index(line) => line.at(row, column) as i128,
                    Step::Element(tensor, line) => {
                        let place = usize::try_from(line.at(row, column)).ok();
                        let element = place.and_then(|place| integer(tensor, place));
                        outside |= element.is_none();
                        element.unwrap_or(0)
                    }
                    Step::Add(a, b) => values[*a].wrapping_add(values[*b]),
                    Step::Subtract(a, b) => values[*a].wrapping_sub(values[*b]),
                    Step::And(a, b) => values[*a] & values[*b],
                    Step::Or(a, b) => values[*a] | values[*b],
                    Step::Not(a) => i128::from(values[*a] == 0),
                    Step::Same(a) => values[*a],
                    Step::Compare(direction, a, b) => {
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

/// A step and all that it is computed from, in order.
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

/// A view that only rows and columns move.
fn line(view: &View, row: usize) -> Option<Line> {
    let still = (0..row).all(|at| view.dims[at] == 1 || view.strides[at] == 0);
    still.then(|| Line { offset: view.offset, row: view.strides[row], column: view.strides[row + 1] })
}

fn integer(tensor: &Tensor, at: usize) -> Option<i128> {
    (at < tensor.len()).then(|| tensor.get(at).to_i128())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_mask_lets_through_has_a_name() {
        assert_eq!(seen([3, 4], |_, _| true), Seen::All);
        assert_eq!(seen([3, 4], |row, column| column <= row), Seen::UpToItself);
        assert_eq!(seen([3, 4], |row, column| column < row), Seen::Other);
    }
}
