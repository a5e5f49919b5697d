//! Attention by cuDNN: 16-bit operands and a softmax of scaled scores, causal or not masked.

use warpforge_fusion::cluster::{Attention, BodyOp, Contraction, Epilogue, Kind, Operand};
use warpforge_fusion::graph::Dot;
use warpforge_fusion::view::LayoutOp;
use warpforge_fusion::{Graph, NodeId, Op, View};
use warpforge_tensor::{ElementType, FloatType};

use super::call::{AttentionCall, Heads};
use super::task::{Lowering, Task};

/// The call of a cluster, where cuDNN may support it. `in_memory` says which values are materialised.
pub(super) fn call(
    graph: &Graph,
    attention: &Attention,
    output: NodeId,
    in_memory: &[bool],
) -> Option<AttentionCall> {
    let Attention { scores, values, softmax, .. } = attention;
    let softmax = softmax.as_ref()?;
    let (scale, causal) = (softmax.scale? as f32, softmax.mask.is_causal());
    if !causal && !softmax.mask.is_none() {
        return None;
    }
    let element = graph.node(scores.operands[0].value).element;
    let narrow = matches!(element, ElementType::Float(FloatType::Bf16 | FloatType::F16));
    let same =
        [&scores.operands[1], &values.operands[1]].iter().all(|of| graph.node(of.value).element == element);
    if !narrow || !same || graph.node(output).element != element {
        return None;
    }
    let Epilogue { body, tile, .. } = values.epilogue.as_ref()?;
    let last = body.before_conversions(body.steps.len().checked_sub(1)?)?;
    let plain_result = body.output.len() == graph.node(output).len()
        && matches!(body.steps[last].op, BodyOp::Load(load) if load == *tile);
    let (tile, written) = (&body.loads[*tile].view, &body.output);
    let queries = heads(graph, scores, 0)?;
    let [keys, values] =
        without_repeats(graph, [heads(graph, scores, 1)?.transposed(), heads(graph, values, 1)?], in_memory);
    let given = [queries.dims[0], queries.dims[1], queries.dims[2], values.dims[3]];
    let output_strides = permuted_strides(given, tile, written)?;
    let columns = [queries.dims[3], values.dims[3]];
    let fits = columns.iter().all(|&width| width % 8 == 0 && width <= 128);
    let contiguous = queries.strides[3] == 1 && keys.strides[3] == 1 && values.strides[3] == 1;
    let found = AttentionCall { queries, keys, values, scale, causal, element, output, output_strides };
    (plain_result && fits && contiguous).then_some(found)
}

fn dense([_, heads, rows, columns]: [usize; 4]) -> [usize; 4] {
    [heads * rows * columns, rows * columns, columns, 1]
}

/// Keys and values without a broadcast of their heads, where both are in memory without it.
fn without_repeats(graph: &Graph, repeated: [Heads; 2], in_memory: &[bool]) -> [Heads; 2] {
    match repeated.each_ref().map(|heads| heads.before_repeats(graph, in_memory)) {
        [Some(keys), Some(values)] if keys.dims[1] == values.dims[1] => [keys, values],
        _ => repeated,
    }
}

impl Heads {
    fn before_repeats(&self, graph: &Graph, in_memory: &[bool]) -> Option<Self> {
        let [batch, heads, rows, columns] = self.dims;
        let node = graph.node(self.value);
        let (Op::Layout(LayoutOp::Broadcast { dims, map }), &[source]) = (&node.op, node.inputs.as_slice())
        else {
            return None;
        };
        let &[_, groups, repeats, _, _] = dims.as_slice() else { return None };
        let whole = self.offset == 0 && self.strides == dense(self.dims);
        if !whole
            || map.as_slice() != [0, 1, 3, 4]
            || dims.as_slice() != [batch, groups, repeats, rows, columns]
            || groups * repeats != heads
        {
            return None;
        }
        let (value, view) = view_source(graph, source, in_memory)?;
        let strides: Vec<usize> =
            view.strides.iter().map(|&stride| usize::try_from(stride).ok()).collect::<Option<_>>()?;
        Some(Self {
            value,
            offset: usize::try_from(view.offset).ok()?,
            dims: view.dims.try_into().ok()?,
            strides: strides.try_into().ok()?,
        })
    }
}

/// The materialised value that a value is a view of.
fn view_source(graph: &Graph, id: NodeId, in_memory: &[bool]) -> Option<(NodeId, View)> {
    let mut steps = Vec::new();
    let mut at = id;
    while !in_memory[at.index()] {
        let node = graph.node(at);
        let (Op::Layout(step), &[input]) = (&node.op, node.inputs.as_slice()) else { return None };
        steps.push(step);
        at = input;
    }
    let view = View::dense(&graph.node(at).dims).after_all(steps.into_iter().rev())?;
    Some((at, view))
}

/// Lets attention write its output in the layout of a following copy, where that is its only use.
pub(super) fn fuse_output_copies(graph: &Graph, tasks: &mut Vec<Task>, outputs: &[Operand]) {
    let mut at = 0;
    while at < tasks.len() {
        if let Some((copy, output, strides)) = copy_after(graph, tasks, at, outputs) {
            tasks.remove(copy);
            if let Lowering::Attention(call) = &mut tasks[at].lowering {
                (call.output, call.output_strides) = (output, strides);
            }
            tasks[at].cluster.output = output;
        }
        at += 1;
    }
}

/// The copy that is the only use of an attention output, its output, and its strides.
fn copy_after(
    graph: &Graph,
    tasks: &[Task],
    at: usize,
    outputs: &[Operand],
) -> Option<(usize, NodeId, [usize; 4])> {
    let Lowering::Attention(call) = &tasks[at].lowering else { return None };
    let [batch, heads, rows, _] = call.queries.dims;
    let dims = [batch, heads, rows, call.values.dims[3]];
    if call.output_strides != permuted_strides(dims, &View::dense(&dims), &View::dense(&dims))? {
        return None;
    }
    let mut readers =
        tasks.iter().enumerate().filter(|(_, task)| task.cluster.reads().contains(&call.output));
    let (copy, task) = readers.next()?;
    let read_by_others = readers.next().is_some() || outputs.iter().any(|output| output.value == call.output);
    let Kind::Loop(body) = &task.cluster.kind else { return None };
    let only_load = matches!(body.steps.as_slice(), [step] if matches!(step.op, BodyOp::Load(0)));
    let whole = body.output.is_dense() && body.output.len() == graph.node(call.output).len();
    if read_by_others || !only_load || !whole {
        return None;
    }
    let strides = permuted_strides(dims, &body.loads[0].view, &body.output)?;
    Some((copy, task.cluster.output, strides))
}

/// Output strides where a loop reads dense batch, head, row, column by one view and writes by another; columns stay
/// contiguous.
fn permuted_strides(dims: [usize; 4], read: &View, written: &View) -> Option<[usize; 4]> {
    let mut strides = [0; 4];
    for (dim, from) in dense(dims).into_iter().enumerate() {
        if dims[dim] == 1 {
            strides[dim] = dims.iter().product();
            continue;
        }
        let same = |&at: &usize| read.dims[at] == dims[dim] && read.strides[at] == from as isize;
        let at = (0..read.dims.len()).find(same)?;
        strides[dim] = usize::try_from(written.strides[at]).ok()?;
    }
    (strides[3] == 1 && read.offset == 0 && written.offset == 0).then_some(strides)
}

/// An operand's dimensions as batch, head, row, column.
fn heads(graph: &Graph, contraction: &Contraction, side: usize) -> Option<Heads> {
    let Op::Dot(Dot { lhs_batch, rhs_batch, lhs_contract, rhs_contract, .. }) =
        &graph.node(contraction.node).op
    else {
        return None;
    };
    let Operand { value, view } = &contraction.operands[side];
    let (batch, contract) = if side == 0 { (lhs_batch, lhs_contract) } else { (rhs_batch, rhs_contract) };
    let free: Vec<usize> =
        (0..view.dims.len()).filter(|at| !batch.contains(at) && !contract.contains(at)).collect();
    let (rows, columns) = if side == 0 { (&free, contract) } else { (contract, &free) };
    let group = |dims: &[usize]| -> Option<(usize, usize)> {
        let stride = usize::try_from(warpforge_fusion::cluster::single_stride(view, dims)?).ok()?;
        Some((dims.iter().map(|&at| view.dims[at]).product(), stride))
    };
    let one = |at: usize| Some((view.dims[at], usize::try_from(view.strides[at]).ok()?));
    let [batch, head] = match batch[..] {
        [] => [(1, 0), (1, 0)],
        [head] => [(1, 0), one(head)?],
        [batch, head] => [one(batch)?, one(head)?],
        _ => return None,
    };
    let all = [batch, head, group(rows)?, group(columns)?];
    let whole: usize = view.dims.iter().product();
    Some(Heads {
        value: *value,
        offset: usize::try_from(view.offset).ok()?,
        dims: all.map(|(size, _)| size),
        // A dimension of size one may have any stride.
        strides: all.map(|(size, stride)| if size == 1 && stride == 0 { whole } else { stride }),
    })
}
