//! Convolutions as the vendors' libraries take them: channels last, and a chain of operations on the result.

use warpforge_codegen::{Options, Products as Rounding};
use warpforge_fusion::cluster::{BodyOp, Contraction, Epilogue, Kind, Operand};
use warpforge_fusion::graph::Conv;
use warpforge_fusion::{Graph, NodeId, Op, View};
use warpforge_ir::OpKind;
use warpforge_tensor::{ElementType, FloatType, Tensor};

use super::Task;
use super::epilogue::{converted, is_like_tile, is_per_column, is_whole, number};
use super::operands::Operands;
use crate::library::Vendor;
use crate::networks::{Pointwise, Windows};

/// What an operation of the chain takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Taken {
    /// The convolution's result.
    Result,
    /// What an earlier operation of the chain gave.
    Link(usize),
    /// A number for each channel.
    Channels(NodeId),
    /// An element for each of the result's.
    Like(NodeId),
    /// A number.
    Number(f32),
}

/// An operation of the chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Link {
    pub(crate) op: Pointwise,
    pub(crate) of: Taken,
    pub(crate) with: Option<Taken>,
}

/// A convolution by a library.
#[derive(Debug, Clone)]
pub(crate) struct ConvCall {
    pub(crate) input: NodeId,
    /// Sizes of the input: batch, spatial, channels.
    pub(crate) input_dims: Vec<usize>,
    /// Output channels first, input channels last, dense.
    pub(crate) weights: NodeId,
    pub(crate) weights_dims: Vec<usize>,
    /// Sizes of the result: batch, spatial, channels.
    pub(crate) output_dims: Vec<usize>,
    pub(crate) output: NodeId,
    pub(crate) windows: Windows,
    pub(crate) chain: Vec<Link>,
    /// Whether operands may not be rounded further than their type does.
    pub(crate) exact: bool,
}

impl ConvCall {
    /// A cluster that reads and gives what the call does, for the plan of the memory.
    pub(super) fn as_single(&self) -> Kind {
        let taken = |taken: Taken| match taken {
            Taken::Channels(id) | Taken::Like(id) => Some(id),
            _ => None,
        };
        let others =
            self.chain.iter().flat_map(|link| [Some(link.of), link.with]).flatten().filter_map(taken);
        let all = [self.input, self.weights].into_iter().chain(others);
        Kind::Unfused(all.map(|value| Operand { value, view: View::dense(&[]) }).collect())
    }
}

/// Whether a vendor's library may have this convolution.
pub(super) fn supported(graph: &Graph, product: &Contraction, vendor: Vendor, options: &Options) -> bool {
    let node = graph.node(product.node);
    let Op::Conv(conv) = &node.op else { return false };
    let narrow =
        |element| matches!(element, ElementType::Float(FloatType::F32 | FloatType::F16 | FloatType::Bf16));
    let [input, weights] = &product.operands;
    let (input, weights) = (graph.node(input.value).element, graph.node(weights.value).element);
    let plain = conv.base_dilation.iter().all(|&dilation| dilation == 1)
        && conv.padding.iter().all(|&(low, high)| low >= 0 && high >= 0);
    plain
        && (1..=3).contains(&conv.strides.len())
        && input == weights
        && narrow(input)
        && narrow(node.element)
        && (vendor == Vendor::Cuda || is_for_miopen(conv, (input, node.element), options))
}

/// MIOpen gives what it takes, and pads both sides alike.
fn is_for_miopen(conv: &Conv, (input, output): (ElementType, ElementType), options: &Options) -> bool {
    let rounded = input == ElementType::F32 && matches!(options.products, Rounding::Bf16 | Rounding::F16);
    input == output && !rounded && conv.padding.iter().all(|&(low, high)| low == high)
}

/// A convolution that a library is asked for.
pub(super) struct Convolution<'a> {
    pub(super) product: &'a Contraction,
    /// Where the result goes.
    pub(super) output: NodeId,
    /// Whose library.
    pub(super) vendor: Option<Vendor>,
}

/// Whether MIOpen's fusion plans have a chain: a number for each channel is added, nothing below zero is left, or both.
/// Which algorithm a plan takes is not known, so that where f32 must be f32 it has none.
fn is_fused_by_miopen(
    graph: &Graph,
    chain: &[Link],
    element: ElementType,
    output: NodeId,
    exact: bool,
) -> bool {
    let is_bias = |link: &Link| match (link.op, link.of, link.with) {
        (Pointwise::Add, Taken::Result, Some(Taken::Channels(id))) => graph.node(id).element == element,
        _ => false,
    };
    let is_relu = |link: &Link| link.op == Pointwise::Relu;
    let known = match chain {
        [] => return true,
        [one] => is_bias(one) || is_relu(one),
        [first, second] => is_bias(first) && is_relu(second),
        _ => false,
    };
    known && !exact && graph.node(output).element == element
}

/// Makes the call of a convolution; `None` where its epilogue is no chain.
pub(super) fn call(
    operands: &mut Operands,
    tasks: &mut Vec<Task>,
    options: &Options,
    &Convolution { product, output, vendor }: &Convolution<'_>,
) -> Result<Option<ConvCall>, String> {
    let graph = &operands.graph;
    let Op::Conv(conv) = graph.node(product.node).op.clone() else { return Ok(None) };
    let mut chain = match &product.epilogue {
        None => Vec::new(),
        Some(epilogue) => match chain(graph, epilogue, output) {
            Some(chain) => chain,
            None => return Ok(None),
        },
    };
    let own = graph.node(product.operands[0].value).element;
    let exact = own == ElementType::F32 && options.products == Rounding::Model;
    if vendor == Some(Vendor::Hip) && !is_fused_by_miopen(graph, &chain, own, output, exact) {
        return Ok(None);
    }
    let output_dims = graph.node(product.node).dims.clone();
    if vendor == Some(Vendor::Cuda) && output_dims.last() == Some(&1) {
        numbers_to_memory(operands, &mut chain)?;
    }
    let element = match (own, options.products) {
        (ElementType::Float(FloatType::F32), Rounding::Bf16) => ElementType::Float(FloatType::Bf16),
        (ElementType::Float(FloatType::F32), Rounding::F16) => ElementType::Float(FloatType::F16),
        _ => own,
    };
    let [input, weights] = &product.operands;
    let input_dims = input.view.dims.clone();
    let input =
        if element == own { input.value } else { operands.dense(tasks, options, input, element)?.value };
    let spatial = conv.strides.len();
    // [spatial…, in, out] becomes [out, spatial…, in].
    let order: Vec<usize> = std::iter::once(spatial + 1).chain(0..=spatial).collect();
    let view = View {
        offset: weights.view.offset,
        dims: order.iter().map(|&at| weights.view.dims[at]).collect(),
        strides: order.iter().map(|&at| weights.view.strides[at]).collect(),
    };
    let weights_dims = view.dims.clone();
    let weights = operands.dense(tasks, options, &Operand { value: weights.value, view }, element)?.value;
    let windows = windows(&conv);
    Ok(Some(ConvCall {
        input,
        input_dims,
        weights,
        weights_dims,
        output_dims,
        output,
        windows,
        chain,
        exact,
    }))
}

/// Makes constants of the numbers in a chain on a result of one channel, so that they lie on the device. As numbers they lie on
/// the host, but have the sizes of a bias for one channel, and cuDNN (9.19) takes them for one: a kernel of its engine for a
/// convolution with bias then reads the host's address on the device.
fn numbers_to_memory(operands: &mut Operands, chain: &mut [Link]) -> Result<(), String> {
    for taken in chain.iter_mut().filter_map(|link| link.with.as_mut()) {
        if let Taken::Number(number) = *taken {
            let tensor = Tensor::from_slice(&[1], &[number]).map_err(|error| error.to_string())?;
            *taken = Taken::Channels(operands.constant(tensor)?);
        }
    }
    Ok(())
}

/// Windows of at least two dimensions.
fn windows(conv: &Conv) -> Windows {
    let padded = |fill: i64, values: Vec<i64>| -> Vec<i64> {
        let missing = 2usize.saturating_sub(values.len());
        std::iter::repeat_n(fill, missing).chain(values).collect()
    };
    Windows {
        strides: padded(1, conv.strides.iter().map(|&stride| stride as i64).collect()),
        before: padded(0, conv.padding.iter().map(|&(low, _)| low as i64).collect()),
        after: padded(0, conv.padding.iter().map(|&(_, high)| high as i64).collect()),
        dilations: padded(1, conv.window_dilation.iter().map(|&dilation| dilation as i64).collect()),
    }
}

/// A loop over a result as a chain of operations, when it is one.
fn chain(graph: &Graph, epilogue: &Epilogue, output: NodeId) -> Option<Vec<Link>> {
    let body = &epilogue.body;
    if !is_whole(graph, body, output) {
        return None;
    }
    let mut chain = Vec::new();
    let mut taken: Vec<Option<Taken>> = Vec::new();
    for (at, step) in body.steps.iter().enumerate() {
        let input = |which: usize| taken[*step.inputs.get(which)?];
        let given = match &step.op {
            BodyOp::Load(load) if *load == epilogue.tile => Some(Taken::Result),
            BodyOp::Load(load) => {
                let load = &body.loads[*load];
                if is_like_tile(graph, epilogue, load) {
                    Some(Taken::Like(load.value))
                } else if is_per_column(graph, epilogue, load) {
                    Some(Taken::Channels(load.value))
                } else {
                    return None;
                }
            }
            BodyOp::Constant(_) => number(body, at).map(|number| Taken::Number(number as f32)),
            BodyOp::Elementwise(OpKind::Convert) => {
                converted(body, at)?;
                input(0)
            }
            BodyOp::Elementwise(kind) => {
                let (of, with) = (input(0)?, input(1)?);
                let zero = |one: Taken| one == Taken::Number(0.0);
                let link = match kind {
                    OpKind::Add => Link { op: Pointwise::Add, of, with: Some(with) },
                    OpKind::Subtract => Link { op: Pointwise::Subtract, of, with: Some(with) },
                    OpKind::Multiply => Link { op: Pointwise::Multiply, of, with: Some(with) },
                    OpKind::Maximum if zero(with) => Link { op: Pointwise::Relu, of, with: None },
                    OpKind::Maximum if zero(of) => Link { op: Pointwise::Relu, of: with, with: None },
                    _ => return None,
                };
                // Operations on other things than the result are for a kernel of ours.
                if !matches!(link.of, Taken::Result | Taken::Link(_)) {
                    let commutes = matches!(link.op, Pointwise::Add | Pointwise::Multiply);
                    let other = link
                        .with
                        .filter(|with| commutes && matches!(with, Taken::Result | Taken::Link(_)))?;
                    chain.push(Link { op: link.op, of: other, with: Some(link.of) });
                } else {
                    chain.push(link);
                }
                Some(Taken::Link(chain.len() - 1))
            }
            _ => return None,
        };
        taken.push(given);
    }
    matches!(taken.last(), Some(Some(Taken::Link(last))) if *last + 1 == chain.len()).then_some(chain)
}
