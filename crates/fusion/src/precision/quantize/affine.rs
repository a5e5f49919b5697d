//! Constants that a module restores from codes: `(codes - zeros) · scales + offsets`, each factor of a row or of a group of a row.
//!
//! The steps may be in any float type and between conversions, zero points may be subtracted from integers or from floats, and each step
//! may be missing: what exporters of quantized models write in many ways is one form here.

use warpforge_interp::{Interpreter, Options, Value};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatType, Tensor};

use crate::graph::{Graph, Node, NodeId, Op, evaluate};
use crate::view::LayoutOp;

/// The elements of factors that are looked at, at most: those of codes are many more.
const MOST_FACTORS: usize = 1 << 26;

/// The operations that codes are behind, at most.
const MOST_UNPACKING: usize = 64;

/// The parts of a restored constant. Factors are f32, with one element for each index of the dimensions `along`.
#[derive(Debug, Clone)]
pub(super) struct Affine {
    /// Integers, or floats of 8 bits.
    pub(super) codes: Tensor,
    pub(super) zeros: Option<Tensor>,
    pub(super) scales: Option<Tensor>,
    pub(super) offsets: Option<Tensor>,
    /// The dimensions of the codes that factors have elements for.
    pub(super) along: Vec<usize>,
}

pub(super) fn is_float(element: ElementType) -> bool {
    matches!(element, ElementType::F32 | ElementType::BF16 | ElementType::F16)
}

/// What a value was before it was converted from one float type to another.
pub(super) fn before_rounding(graph: &Graph, mut id: NodeId) -> NodeId {
    while let (Op::Elementwise(Function::Convert), &[input]) =
        (&graph.node(id).op, graph.node(id).inputs.as_slice())
        && is_float(graph.node(id).element)
        && is_float(graph.node(input).element)
    {
        id = input;
    }
    id
}

impl Affine {
    /// The parts of a value whose factors have elements for some of its dimensions.
    pub(super) fn of(graph: &Graph, id: NodeId, along: &[usize]) -> Option<Self> {
        let mut at = before_rounding(graph, id);
        let mut factor = |function: Function| {
            let (value, factor) = step(graph, at, function, along)?;
            at = before_rounding(graph, value);
            Some(factor)
        };
        let offsets = factor(Function::Add);
        let scales = factor(Function::Multiply);
        let mut zeros = factor(Function::Subtract);
        let mut codes = widened(graph, at)?;
        if zeros.is_none()
            && let Some((value, factor)) = step(graph, codes, Function::Subtract, along)
        {
            (codes, zeros) = (value, Some(factor));
            // Integers are widened before they are subtracted.
            if let (Op::Elementwise(Function::Convert), &[input]) =
                (&graph.node(codes).op, graph.node(codes).inputs.as_slice())
            {
                codes = input;
            }
        }
        let codes = unpacked(graph, codes, &mut { MOST_UNPACKING })?;
        let kept = match codes.element_type() {
            ElementType::Int(_) => true,
            ElementType::Float(float) => float == FloatType::F8E4M3Fn && zeros.is_none(),
            _ => false,
        };
        kept.then(|| Self { codes, zeros, scales, offsets, along: along.to_vec() })
    }

    /// The codes with their zero points subtracted, where bytes hold all of them.
    pub(super) fn distances(&self) -> Option<Vec<i8>> {
        let dims = self.codes.dims();
        let (outer, inner) = match self.along.as_slice() {
            // Factors of the last dimension alternate; the others are those of consecutive codes.
            &[last] if last + 1 == dims.len() && last > 0 => (dims[last], 1),
            along => {
                let groups: usize = along.iter().map(|&at| dims[at]).product();
                (groups, self.codes.len() / groups.max(1))
            }
        };
        let zeros: Option<&[f32]> = match &self.zeros {
            Some(zeros) => Some(zeros.as_slice().ok()?),
            None => None,
        };
        if !matches!(self.codes.element_type(), ElementType::Int(_))
            || zeros.is_some_and(|zeros| zeros.iter().any(|zero| zero.fract() != 0.0))
        {
            return None;
        }
        let zero = |at: usize| zeros.map_or(0, |zeros| zeros[at / inner.max(1) % outer.max(1)] as i128);
        let distance = |at: usize| i8::try_from(self.codes.get(at).to_i128().checked_sub(zero(at))?).ok();
        (0..self.codes.len()).map(distance).collect()
    }
}

/// A value and a factor of a function of the two, where the factor is known and repeats along the other dimensions.
fn step(graph: &Graph, id: NodeId, function: Function, along: &[usize]) -> Option<(NodeId, Tensor)> {
    let node = graph.node(id);
    let (Op::Elementwise(own), &[left, right]) = (&node.op, node.inputs.as_slice()) else { return None };
    let ordered =
        if function == Function::Subtract { &[(left, right)][..] } else { &[(left, right), (right, left)] };
    (*own == function).then_some(())?;
    ordered.iter().find_map(|&(value, factor)| Some((value, repeated(graph, factor, along)?)))
}

/// The elements of a known value that repeats along all dimensions but some.
fn repeated(graph: &Graph, id: NodeId, along: &[usize]) -> Option<Tensor> {
    let id = before_rounding(graph, id);
    let Op::Layout(LayoutOp::Broadcast { dims, map }) = &graph.node(id).op else { return None };
    let source = graph.node(id).inputs[0];
    let wanted: Vec<usize> = along.iter().map(|&at| dims[at]).collect();
    if wanted.iter().product::<usize>() > MOST_FACTORS {
        return None;
    }
    let known = as_f32(&known(graph, source)?)?;
    // Dimensions that the source does not have repeat as well.
    let map: Option<Vec<usize>> = map.iter().map(|at| along.iter().position(|own| own == at)).collect();
    let op = Op::Layout(LayoutOp::Broadcast { dims: wanted.clone(), map: map? });
    evaluate(&op, &[known], ElementType::F32, &wanted)
}

/// A constant behind operations of one operand.
fn known(graph: &Graph, id: NodeId) -> Option<Tensor> {
    let (mut at, mut steps) = (id, Vec::new());
    let constant = loop {
        let node = graph.node(at);
        match (&node.op, node.inputs.as_slice()) {
            (Op::Constant(tensor), _) => break tensor.clone(),
            (Op::Layout(_) | Op::Elementwise(_), &[input]) => {
                steps.push(node);
                at = input;
            }
            _ => return None,
        }
    };
    let next = |value: Tensor, node: &&Node| evaluate(&node.op, &[value], node.element, &node.dims);
    steps.iter().rev().try_fold(constant, next)
}

fn as_f32(tensor: &Tensor) -> Option<Tensor> {
    if tensor.element_type() == ElementType::F32 {
        return Some(tensor.clone());
    }
    let values: Vec<f32> = tensor.iter().map(|value| value.to_f64() as f32).collect();
    Tensor::from_slice(tensor.dims(), &values).ok()
}

/// Codes that are a constant behind layouts, and behind operations on integers that take them out of bytes: so many operations as are left.
fn unpacked(graph: &Graph, id: NodeId, left: &mut usize) -> Option<Tensor> {
    *left = left.checked_sub(1)?;
    let node = graph.node(id);
    let takes = match &node.op {
        Op::Constant(tensor) => return Some(tensor.clone()),
        Op::Result(0) => return moved_apart(graph, node.inputs[0], left),
        Op::Layout(_) => true,
        Op::Concat(_) | Op::Elementwise(_) => matches!(node.element, ElementType::Int(_)),
        _ => false,
    };
    if !takes {
        return None;
    }
    let inputs = node.inputs.iter().map(|&input| unpacked(graph, input, left)).collect::<Option<Vec<_>>>()?;
    evaluate(&node.op, &inputs, node.element, &node.dims)
}

/// The same of elements that no engine has: their constants and layouts are operations of their own.
fn moved_apart(graph: &Graph, id: NodeId, left: &mut usize) -> Option<Tensor> {
    let (node, Op::Opaque(part)) = (graph.node(id), &graph.node(id).op) else { return None };
    if !["constant", "transpose", "reshape"].contains(&node.op.name().as_str()) {
        return None;
    }
    let inputs = node.inputs.iter().map(|&input| unpacked(graph, input, left).map(Value::Tensor));
    let inputs = inputs.collect::<Option<Vec<_>>>()?;
    let given = Interpreter::new(&part.slice.module, Options::default()).run(&part.function, inputs).ok()?;
    given.first()?.as_tensor().ok().cloned()
}

/// What a value was before it was converted to a float from what is none, or from a float of 8 bits. Where no engine has elements of that
/// type, the conversion is an operation of its own, which gives the value.
fn widened(graph: &Graph, id: NodeId) -> Option<NodeId> {
    let node = graph.node(id);
    let &[input] = node.inputs.as_slice() else { return None };
    if !is_float(node.element) {
        return None;
    }
    match &node.op {
        Op::Elementwise(Function::Convert) => Some(input),
        Op::Result(0) => {
            let part = graph.node(input);
            let converts = matches!(part.op, Op::Opaque(_)) && part.op.name() == "convert";
            (converts && part.inputs.len() == 1).then(|| part.inputs[0])
        }
        _ => None,
    }
}
