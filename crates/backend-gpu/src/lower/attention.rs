//! Attention as cuDNN takes it: narrow numbers, a scale, a softmax, nothing masked.

use warpforge_fusion::cluster::{Attention, BodyOp, Epilogue, Kind, Operand, Product};
use warpforge_fusion::graph::{Dot, Fold};
use warpforge_fusion::{Graph, Id, Op, View};
use warpforge_ir::OpKind;
use warpforge_tensor::{ElementType, FloatType};

use super::epilogue::{converted, is_whole, number};

/// Where the elements of an operand lie: batch, head, row, column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Heads {
    pub(crate) value: Id,
    /// In elements.
    pub(crate) offset: usize,
    pub(crate) dims: [usize; 4],
    pub(crate) strides: [usize; 4],
}

impl Heads {
    /// Rows for columns.
    fn turned(mut self) -> Self {
        self.dims.swap(2, 3);
        self.strides.swap(2, 3);
        self
    }
}

/// Attention by cuDNN.
#[derive(Debug, Clone)]
pub(crate) struct AttentionCall {
    pub(crate) queries: Heads,
    pub(crate) keys: Heads,
    pub(crate) values: Heads,
    pub(crate) scale: f32,
    pub(crate) element: ElementType,
    /// Dense.
    pub(crate) output: Id,
}

impl AttentionCall {
    /// A cluster that reads and gives what the call does, for the plan of the memory.
    pub(super) fn as_single(&self) -> Kind {
        let all = [self.queries, self.keys, self.values];
        Kind::Single(all.map(|heads| Operand { value: heads.value, view: View::dense(&[]) }).to_vec())
    }
}

/// The call of a cluster, where cuDNN may have it.
pub(super) fn call(graph: &Graph, attention: &Attention, output: Id) -> Option<AttentionCall> {
    let Attention { scores, weights, values } = attention;
    let element = graph.node(scores.operands[0].value).element;
    let narrow = matches!(element, ElementType::Float(FloatType::Bf16 | FloatType::F16));
    let same =
        [&scores.operands[1], &values.operands[1]].iter().all(|of| graph.node(of.value).element == element);
    if !narrow || !same || graph.node(output).element != element {
        return None;
    }
    let plain_result = match &values.epilogue {
        Some(Epilogue { body, tile, .. }) => {
            let last = converted(body, body.steps.len().checked_sub(1)?)?;
            is_whole(graph, body, output)
                && matches!(body.steps[last].op, BodyOp::Load(load) if load == *tile)
        }
        None => false,
    };
    let scale = softmax(weights)?;
    let queries = heads(graph, scores, 0)?;
    let keys = heads(graph, scores, 1)?.turned();
    let values = heads(graph, values, 1)?;
    let columns = [queries.dims[3], values.dims[3]];
    let fits = columns.iter().all(|&width| width % 8 == 0 && width <= 128);
    let side_by_side = queries.strides[3] == 1 && keys.strides[3] == 1 && values.strides[3] == 1;
    let found = AttentionCall { queries, keys, values, scale: scale as f32, element, output };
    (plain_result && fits && side_by_side).then_some(found)
}

/// An operand's dimensions as batch, head, row, column.
fn heads(graph: &Graph, product: &Product, side: usize) -> Option<Heads> {
    let Op::Dot(Dot { lhs_batch, rhs_batch, lhs_contract, rhs_contract }) = &graph.node(product.node).op
    else {
        return None;
    };
    let Operand { value, view } = &product.operands[side];
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
        // A dimension of one element has any stride.
        strides: all.map(|(size, stride)| if size == 1 && stride == 0 { whole } else { stride }),
    })
}

/// The scale of a loop that is a softmax of scaled scores and nothing else.
fn softmax(weights: &Epilogue) -> Option<f64> {
    let body = &weights.body;
    let kind = |at: usize| match &body.steps[at].op {
        BodyOp::Elementwise(kind) => Some(*kind),
        _ => None,
    };
    let fold = |at: usize| match &body.steps[at].op {
        BodyOp::Reduce(fold) => Some(*fold),
        _ => None,
    };
    let input = |at: usize, which: usize| converted(body, *body.steps[at].inputs.get(which)?);
    let mut root = converted(body, body.steps.len().checked_sub(1)?)?;
    // Rows with nothing in them give zeros; without a mask there are none.
    if kind(root) == Some(OpKind::Select) && number(body, input(root, 1)?) == Some(0.0) {
        root = input(root, 2)?;
    }
    let (top, sum) =
        (kind(root) == Some(OpKind::Divide)).then(|| Some((input(root, 0)?, input(root, 1)?)))??;
    if fold(sum) != Some(Fold::Add) || input(sum, 0)? != top || kind(top) != Some(OpKind::Exponential) {
        return None;
    }
    let shifted = input(top, 0)?;
    if kind(shifted) != Some(OpKind::Subtract) {
        return None;
    }
    let (scaled, most) = (input(shifted, 0)?, input(shifted, 1)?);
    if fold(most) != Some(Fold::Max) || input(most, 0)? != scaled {
        return None;
    }
    let is_tile = |at: usize| matches!(body.steps[at].op, BodyOp::Load(load) if load == weights.tile);
    if is_tile(scaled) {
        return Some(1.0);
    }
    let (left, right) = (input(scaled, 0)?, input(scaled, 1)?);
    match kind(scaled)? {
        OpKind::Multiply if is_tile(left) => number(body, right),
        OpKind::Multiply if is_tile(right) => number(body, left),
        OpKind::Divide if is_tile(left) => number(body, right).map(|by| 1.0 / by),
        _ => None,
    }
}
