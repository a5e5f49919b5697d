//! The one matcher of epilogues that libraries of matrix products have too.

use warpforge_ir::attr::ComparisonType;
use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use super::body::{Body, BodyOp, Load};
use super::contraction::{Activation, Epilogue, EpilogueForm, ReluMask};
use crate::graph::{Graph, NodeId};
use crate::view::View;

impl Epilogue {
    /// Whether a load has one element per column.
    #[must_use]
    pub fn is_per_column(&self, graph: &Graph, load: &Load) -> bool {
        let View { dims, strides, offset } = &load.view;
        let columns =
            View { offset: 0, dims: dims[self.rows..].to_vec(), strides: strides[self.rows..].to_vec() };
        let rows_repeat =
            dims[..self.rows].iter().zip(strides).all(|(&dim, &stride)| dim == 1 || stride == 0);
        *offset == 0 && rows_repeat && columns.is_dense() && graph.node(load.value).len() == columns.len()
    }

    /// Whether a load has the shape and order of the tile.
    #[must_use]
    pub fn is_like_tile(&self, graph: &Graph, load: &Load) -> bool {
        let tile = &self.body.loads[self.tile];
        load.view == tile.view && graph.node(load.value).len() == graph.node(tile.value).len()
    }

    /// Whether a step is the tile, but for conversions between floats.
    fn is_tile(&self, at: usize) -> bool {
        let step = self.body.before_conversions(at).map(|at| &self.body.steps[at].op);
        matches!(step, Some(BodyOp::Load(load)) if *load == self.tile)
    }
}

/// The form of an epilogue that writes its whole output in order.
pub(super) fn form(graph: &Graph, epilogue: &Epilogue, output: NodeId) -> Option<EpilogueForm> {
    let body = &epilogue.body;
    if !body.is_whole(graph, output) {
        return None;
    }
    let last = body.before_conversions(body.steps.len().checked_sub(1)?)?;
    let gradient = relu_gradient(graph, epilogue, last).or_else(|| gelu_gradient(graph, epilogue, last));
    if gradient.is_some() {
        return Some(EpilogueForm { bias: None, residual: None, activation: gradient });
    }
    match activation(body, last) {
        Some((activation, at)) => sum(graph, epilogue, at, Some(activation)),
        None => sum(graph, epilogue, last, None),
    }
}

/// The activation that a step is, and the step that it is of.
fn activation(body: &Body, at: usize) -> Option<(Activation, usize)> {
    if let (BodyOp::Elementwise(Function::Maximum), &[left, right]) =
        (&body.steps[at].op, body.steps[at].inputs.as_slice())
    {
        let of = if body.is_zero(left) { right } else { left };
        return (body.is_zero(left) || body.is_zero(right)).then_some((Activation::Relu, of));
    }
    operands(body, at, Function::GeluTanh).map(|[x]| (Activation::GeluTanh, x))
}

/// The tile, and what else is a term of a sum with it.
fn sum(
    graph: &Graph,
    epilogue: &Epilogue,
    at: usize,
    activation: Option<Activation>,
) -> Option<EpilogueForm> {
    let body = &epilogue.body;
    let mut form = EpilogueForm { bias: None, residual: None, activation };
    let mut terms = vec![at];
    let mut tile = false;
    while let Some(at) = terms.pop() {
        let step = &body.steps[body.before_conversions(at)?];
        match &step.op {
            BodyOp::Elementwise(Function::Add) => terms.extend(&step.inputs),
            // A zero bias, as in untrained models.
            BodyOp::Constant(_) if body.is_zero(at) => {}
            // The tile is one of the terms, once.
            BodyOp::Load(load) if *load == epilogue.tile => {
                if std::mem::replace(&mut tile, true) {
                    return None;
                }
            }
            BodyOp::Load(load) => {
                let load = &body.loads[*load];
                if epilogue.is_per_column(graph, load) && form.bias.is_none() {
                    form.bias = Some(load.value);
                } else if epilogue.is_like_tile(graph, load) && form.residual.is_none() {
                    form.residual = Some(load.value);
                } else {
                    return None;
                }
            }
            _ => return None,
        }
    }
    tile.then_some(form)
}

/// The operands of a step, where it is this function of f32.
fn operands<const N: usize>(body: &Body, at: usize, function: Function) -> Option<[usize; N]> {
    let step = &body.steps[at];
    let is = matches!(step.op, BodyOp::Elementwise(known) if known == function)
        && step.element == ElementType::F32;
    step.inputs.clone().try_into().ok().filter(|_| is)
}

/// The tile times the slope of GELU at a value of its shape.
fn gelu_gradient(graph: &Graph, epilogue: &Epilogue, at: usize) -> Option<Activation> {
    let body = &epilogue.body;
    let [given, x] = operands(body, at, Function::GeluTanhGradient)?;
    let BodyOp::Load(load) = body.steps[body.before_conversions(x)?].op else { return None };
    let fits = epilogue.is_like_tile(graph, &body.loads[load]) && epilogue.is_tile(given);
    fits.then(|| Activation::GeluTanhGradient { x: body.loads[load].value })
}

/// The tile where a value of its shape compares with zero in some way, else zero.
fn relu_gradient(graph: &Graph, epilogue: &Epilogue, at: usize) -> Option<Activation> {
    let body = &epilogue.body;
    let (BodyOp::Elementwise(Function::Select), &[condition, yes, no]) =
        (&body.steps[at].op, body.steps[at].inputs.as_slice())
    else {
        return None;
    };
    let passes = match (epilogue.is_tile(yes), epilogue.is_tile(no)) {
        (true, false) if body.is_zero(no) => true,
        (false, true) if body.is_zero(yes) => false,
        _ => return None,
    };
    let (&BodyOp::Compare(direction, order), &[left, right]) =
        (&body.steps[condition].op, body.steps[condition].inputs.as_slice())
    else {
        return None;
    };
    let zero_first = body.is_zero(left);
    let (zero, compared) = if zero_first { (left, right) } else { (right, left) };
    let BodyOp::Load(load) = body.steps[before_widening(body, compared)].op else { return None };
    let fits = body.is_zero(zero)
        // The total order distinguishes zeros by sign.
        && order != ComparisonType::TotalOrder
        && load != epilogue.tile
        && epilogue.is_like_tile(graph, &body.loads[load]);
    let mask = ReluMask { of: body.loads[load].value, direction, order, zero_first, passes };
    fits.then_some(Activation::ReluGradient(mask))
}

/// The step before conversions to f32, which compares with zero alike.
fn before_widening(body: &Body, mut at: usize) -> usize {
    while let (BodyOp::Elementwise(Function::Convert), &[input]) =
        (&body.steps[at].op, body.steps[at].inputs.as_slice())
        && body.steps[at].element == ElementType::F32
        && body.before_conversions(at).is_some_and(|before| before != at)
    {
        at = input;
    }
    at
}
