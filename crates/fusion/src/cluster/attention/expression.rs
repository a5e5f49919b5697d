//! Values of a loop over the scores as expressions of row and column.
//!
//! A step of the loop and a node of the graph that it reads are seen alike: a node is followed into its operands, with the
//! index of each of its dimensions as a line of row and column. So it does not matter where a mask was cut into clusters.

use std::collections::HashMap;

use warpforge_ir::attr::{ComparisonDirection, ComparisonType};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar, Tensor};

use crate::cluster::{BodyOp, Epilogue};
use crate::graph::{Graph, NodeId, Op, evaluate};
use crate::view::{LayoutOp, View, dense_strides};

/// Nodes with up to so many elements are evaluated whole where they are no functions of the index.
const EVALUATED_ELEMENTS: usize = 1 << 22;

/// Most sources that are looked at to see whether one varies with the row.
const MOST_SOURCES: usize = 256;

/// constant + row · row index + column · column index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Line {
    pub(super) constant: isize,
    pub(super) row: isize,
    pub(super) column: isize,
    /// Whether it varies with the batch, which is not said how.
    pub(super) batch: bool,
}

impl Line {
    fn scaled(self, by: isize) -> Self {
        Self { constant: self.constant * by, row: self.row * by, column: self.column * by, ..self }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            constant: self.constant + other.constant,
            row: self.row + other.row,
            column: self.column + other.column,
            batch: self.batch || other.batch,
        }
    }
}

/// A step of the loop, or a node of the graph with the index of each dimension.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Source {
    Step(usize),
    Node(NodeId, Vec<Line>),
}

/// What a source is.
pub(super) enum Form {
    /// The product of queries and keys.
    Scores,
    /// The same number everywhere.
    Number(Scalar),
    /// An index.
    Index(Line),
    /// The element of a tensor that is known when compiling, at a position in row-major order.
    Element(NodeId, Line),
    /// A function of each element.
    Function(Function, Vec<Source>),
    /// A comparison.
    Compare(ComparisonDirection, ComparisonType, Vec<Source>),
    /// Known at run time only.
    Data {
        /// Whether it varies with the row.
        by_row: bool,
    },
}

/// A loop over the scores, a row of queries and a column of keys at a time.
#[derive(Clone, Copy)]
pub(super) struct ScoreLoop<'a> {
    pub(super) graph: &'a Graph,
    pub(super) weights: &'a Epilogue,
    /// Which values depend on nothing but constants.
    pub(super) constant: &'a [bool],
    /// Queries of a batch.
    pub(super) queries: usize,
    /// Which dimension of the loop has them; none where there is one query.
    pub(super) row: Option<usize>,
}

impl ScoreLoop<'_> {
    /// Queries and keys of a batch.
    pub(super) fn dims(&self) -> [usize; 2] {
        [self.queries, self.weights.body.dims[self.weights.rows]]
    }

    /// The dimensions of the loop that are neither row nor column and along which a view moves.
    fn batches<'v>(&'v self, view: &'v View) -> impl Iterator<Item = usize> + 'v {
        let others = (0..self.weights.rows).filter(|at| Some(*at) != self.row);
        others.filter(|&at| view.dims[at] != 1 && view.strides[at] != 0)
    }

    /// The type of a source.
    pub(super) fn element(&self, source: &Source) -> ElementType {
        match source {
            Source::Step(at) => self.weights.body.steps[*at].element,
            Source::Node(id, _) => self.graph.node(*id).element,
        }
    }

    /// The number that a source is everywhere.
    pub(super) fn number(&self, source: &Source) -> Option<f64> {
        match self.form(source, &mut HashMap::new()) {
            Form::Number(number) => Some(number.to_f64()),
            _ => None,
        }
    }

    /// Whether sources vary with the row.
    pub(super) fn varies_by_row(&self, sources: &[&Source]) -> bool {
        let mut pending: Vec<Source> = sources.iter().map(|&source| source.clone()).collect();
        let mut visited = 0;
        while let Some(source) = pending.pop() {
            visited += 1;
            match self.form(&source, &mut HashMap::new()) {
                Form::Scores => return true,
                Form::Number(_) => {}
                Form::Index(line) | Form::Element(_, line) if line.row == 0 => {}
                Form::Function(_, operands) | Form::Compare(_, _, operands) if visited < MOST_SOURCES => {
                    pending.extend(operands);
                }
                Form::Data { by_row: false } => {}
                _ => return true,
            }
        }
        false
    }

    /// What a source is. Tensors that had to be evaluated are put into `tensors`.
    pub(super) fn form(&self, source: &Source, tensors: &mut HashMap<NodeId, Tensor>) -> Form {
        match source {
            Source::Step(at) => self.step_form(*at, tensors),
            Source::Node(id, index) => self.node_form(*id, index, tensors),
        }
    }

    fn step_form(&self, at: usize, tensors: &mut HashMap<NodeId, Tensor>) -> Form {
        let body = &self.weights.body;
        let step = &body.steps[at];
        let inputs = || step.inputs.iter().map(|&input| Source::Step(input)).collect();
        match &step.op {
            BodyOp::Load(load) if *load == self.weights.tile => Form::Scores,
            BodyOp::Load(load) => {
                let load = &body.loads[*load];
                let dims = &self.graph.node(load.value).dims;
                match self.indices(&load.view, dims) {
                    Some(index) => self.node_form(load.value, &index, tensors),
                    None => Form::Data { by_row: true },
                }
            }
            BodyOp::Constant(tensor) if tensor.is_empty() => Form::Data { by_row: false },
            BodyOp::Constant(tensor) => Form::Number(tensor.get(0)),
            BodyOp::Iota(view) => Form::Index(self.line(view)),
            BodyOp::Elementwise(function) => Form::Function(*function, inputs()),
            BodyOp::Compare(direction, order) => Form::Compare(*direction, *order, inputs()),
            BodyOp::Reduce(_) => Form::Data { by_row: true },
        }
    }

    fn node_form(&self, id: NodeId, index: &[Line], tensors: &mut HashMap<NodeId, Tensor>) -> Form {
        let node = self.graph.node(id);
        let inputs =
            || node.inputs.iter().map(|&input| Source::Node(input, index.to_vec())).collect::<Vec<_>>();
        let data = Form::Data { by_row: index.iter().any(|line| line.row != 0) };
        match &node.op {
            Op::Constant(tensor) if tensor.is_empty() => data,
            Op::Constant(tensor) if tensor.len() == 1 => Form::Number(tensor.get(0)),
            Op::Constant(tensor) => Form::Element(id, linear(&node.dims, &without_batch(tensor, index))),
            Op::Iota(dimension) => Form::Index(index[*dimension]),
            Op::Elementwise(function) => Form::Function(*function, inputs()),
            Op::Compare(direction, order) => Form::Compare(*direction, *order, inputs()),
            Op::Layout(step) => {
                let input = node.inputs[0];
                match self.before_layout(step, &node.dims, &self.graph.node(input).dims, index) {
                    Some(index) => self.node_form(input, &index, tensors),
                    None => data,
                }
            }
            _ if self.constant[id.index()] && self.evaluated(id, tensors) => match tensors.get(&id) {
                Some(tensor) => Form::Element(id, linear(&node.dims, &without_batch(tensor, index))),
                None => data,
            },
            _ => data,
        }
    }

    /// Evaluates a node and what it depends on; whether that was possible.
    fn evaluated(&self, id: NodeId, tensors: &mut HashMap<NodeId, Tensor>) -> bool {
        if tensors.contains_key(&id) || self.graph.constant(id).is_some() {
            return true;
        }
        let node = self.graph.node(id);
        if node.len() > EVALUATED_ELEMENTS || !node.inputs.iter().all(|&input| self.evaluated(input, tensors))
        {
            return false;
        }
        let inputs: Option<Vec<Tensor>> =
            node.inputs.iter().map(|&input| self.tensor(input, tensors).cloned()).collect();
        let found = inputs.and_then(|inputs| evaluate(&node.op, &inputs, node.element, &node.dims));
        found.map(|tensor| tensors.insert(id, tensor)).is_some()
    }

    /// The tensor of [`Form::Element`].
    pub(super) fn tensor<'t>(
        &'t self,
        id: NodeId,
        tensors: &'t HashMap<NodeId, Tensor>,
    ) -> Option<&'t Tensor> {
        self.graph.constant(id).or_else(|| tensors.get(&id))
    }

    /// A view over the loop's domain as a line of row and column.
    fn line(&self, view: &View) -> Line {
        let stride = |at: usize| if view.dims[at] == 1 { 0 } else { view.strides[at] };
        Line {
            constant: view.offset,
            row: self.row.map_or(0, stride),
            column: stride(self.weights.rows),
            batch: self.batches(view).next().is_some(),
        }
    }

    /// The index of each dimension of an array that a view over the loop's domain sees.
    fn indices(&self, view: &View, dims: &[usize]) -> Option<Vec<Line>> {
        let mut index = self.digits(Line { batch: false, ..self.line(view) }, dims)?;
        for at in self.batches(view) {
            let along = quotients(view.strides[at], dims)?;
            index.iter_mut().zip(along).for_each(|(line, step)| line.batch |= step != 0);
        }
        Some(index)
    }

    /// A position in row-major order as the index of each dimension, where none overflows into the next.
    fn digits(&self, position: Line, dims: &[usize]) -> Option<Vec<Line>> {
        let parts = [position.constant, position.row, position.column].map(|part| quotients(part, dims));
        let [Some(constant), Some(row), Some(column)] = parts else { return None };
        let [rows, columns] = self.dims().map(|size| size.saturating_sub(1) as isize);
        let lines = (0..dims.len()).map(|at| {
            let line = Line { constant: constant[at], row: row[at], column: column[at], batch: false };
            let most = line.constant + line.row * rows + line.column * columns;
            (most < dims[at] as isize).then_some(line)
        });
        lines.collect()
    }

    /// The index of a layout's operand.
    fn before_layout(
        &self,
        step: &LayoutOp,
        dims: &[usize],
        operand: &[usize],
        index: &[Line],
    ) -> Option<Vec<Line>> {
        Some(match step {
            LayoutOp::Transpose(permutation) => {
                let mut before = vec![Line::default(); operand.len()];
                permutation.iter().zip(index).for_each(|(&at, &line)| before[at] = line);
                before
            }
            LayoutOp::Broadcast { map, .. } => map.iter().map(|&at| index[at]).collect(),
            LayoutOp::Slice { starts, steps, .. } => {
                let moved = |((&line, &start), &step): ((&Line, &usize), &usize)| {
                    let first = Line { constant: start as isize, ..Line::default() };
                    line.scaled(step as isize).plus(first)
                };
                index.iter().zip(starts).zip(steps).map(moved).collect()
            }
            LayoutOp::Reverse(axes) => {
                let mut before = index.to_vec();
                for &axis in axes {
                    let last = Line { constant: dims[axis].saturating_sub(1) as isize, ..Line::default() };
                    before[axis] = before[axis].scaled(-1).plus(last);
                }
                before
            }
            // The batch is told apart from row and column by its dimensions only.
            LayoutOp::Reshape(_) if index.iter().any(|line| line.batch) => {
                let mut kept = index.iter().zip(dims).filter(|(_, dim)| **dim != 1);
                let same = operand.iter().map(|&dim| match dim {
                    1 => Some(Line::default()),
                    _ => kept.next().filter(|(_, own)| **own == dim).map(|(&line, _)| line),
                });
                same.collect::<Option<Vec<_>>>()?
            }
            LayoutOp::Reshape(_) => self.digits(linear(dims, index), operand)?,
        })
    }
}

/// The index without the batch, along dimensions in which the tensor repeats.
fn without_batch(tensor: &Tensor, index: &[Line]) -> Vec<Line> {
    let of_batch = Line { batch: true, ..Line::default() };
    let repeats = |along: usize| {
        let inner = tensor.dims()[along + 1..].iter().product::<usize>() * tensor.element_type().byte_width();
        let mut slices = tensor.bytes().chunks_exact((inner * tensor.dims()[along]).max(1));
        slices.all(|slice| slice.chunks_exact(inner.max(1)).all(|part| part == &slice[..inner]))
    };
    let line = |(along, &line): (usize, &Line)| match line == of_batch && repeats(along) {
        true => Line::default(),
        false => line,
    };
    index.iter().enumerate().map(line).collect()
}

/// The position in row-major order.
fn linear(dims: &[usize], index: &[Line]) -> Line {
    let terms = dense_strides(dims).into_iter().zip(index).map(|(stride, line)| line.scaled(stride));
    terms.fold(Line::default(), Line::plus)
}

/// How far along each dimension a distance in row-major order leads; none for negative ones.
fn quotients(distance: isize, dims: &[usize]) -> Option<Vec<isize>> {
    let mut rest = usize::try_from(distance).ok()? as isize;
    let steps = dense_strides(dims).into_iter().zip(dims).map(|(stride, &dim)| {
        if dim == 1 {
            return 0;
        }
        let steps = rest / stride.max(1);
        rest %= stride.max(1);
        steps
    });
    let steps: Vec<isize> = steps.collect();
    (rest == 0).then_some(steps)
}
