//! Convolutions by the DNN library: channels last, with a chain of pointwise operations.

use warpforge_codegen::{ComputePrecision, Options};
use warpforge_fusion::cluster::{BodyOp, Contraction, Epilogue, Operand};
use warpforge_fusion::graph::Conv;
use warpforge_fusion::{Graph, NodeId, Op, View};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatType, Tensor};

use super::call::{ChainOp, ChainOperand, ConvCall};
use super::operands::Operands;
use super::task::Task;
use crate::dnn::{ConvPass, ConvWindow, Pointwise};
use crate::vendor::Vendor;

/// Whether a vendor's library may support this convolution.
pub(super) fn supported(graph: &Graph, contraction: &Contraction, vendor: Vendor) -> bool {
    let node = graph.node(contraction.node);
    let Op::Conv(conv) = &node.op else { return false };
    let [input, weights] = &contraction.operands;
    let (input, weights) = (graph.node(input.value).element, graph.node(weights.value).element);
    let plain = conv.base_dilation.iter().all(|&dilation| dilation == 1)
        && conv.padding.iter().all(|&(low, high)| low >= 0 && high >= 0);
    plain
        && (1..=3).contains(&conv.strides.len())
        && input == weights
        && is_narrow(input)
        && is_narrow(node.element)
        && (vendor == Vendor::Cuda || is_for_miopen(conv, (input, node.element)))
}

/// Whether libraries convolve elements of a type.
pub(super) fn is_narrow(element: ElementType) -> bool {
    matches!(element, ElementType::Float(FloatType::F32 | FloatType::F16 | FloatType::Bf16))
}

/// MIOpen has equal input and output types and symmetric padding.
fn is_for_miopen(conv: &Conv, (input, output): (ElementType, ElementType)) -> bool {
    input == output && conv.padding.iter().all(|&(low, high)| low == high)
}

/// Whether a function can stand in a chain behind a convolution.
pub(super) fn is_in_chains(function: Function) -> bool {
    matches!(
        function,
        Function::Add | Function::Subtract | Function::Multiply | Function::Maximum | Function::Convert
    )
}

/// Products that an element of the result sums, from which on widened operands are faster.
const MANY_PRODUCTS: usize = 1024;

/// Whether a convolution of 16 bits is faster on operands that are widened to f32 and multiplied in tf32, which holds them exactly: where cuDNN 9.19
/// writes results of f32, its engines for 16 bits divide neither the sum of a result nor groups among multiprocessors, and want channels in eights.
fn pays_to_widen(conv: &Conv, [own, output]: [ElementType; 2], weights: &[usize]) -> bool {
    let (products, channels) = (&weights[..weights.len() - 1], weights[weights.len() - 2]);
    own != ElementType::F32
        && output == ElementType::F32
        && (conv.groups > 1
            || !channels.is_multiple_of(8)
            || products.iter().product::<usize>() >= MANY_PRODUCTS)
}

/// Whether the tensor cores of a GPU of NVIDIA multiply in tf32: from Ampere on.
fn has_tf32(options: &Options) -> bool {
    options.compute_capability().is_some_and(|capability| capability >= 80)
}

/// Whether the library has only a slow engine for a convolution with something behind it: in 16 bits, cuDNN 9.19 takes twenty times as long for groups of
/// four channels with a bias as without.
fn is_slow_with_chain(conv: &Conv, own: ElementType, weights: &[usize]) -> bool {
    own != ElementType::F32 && conv.groups > 1 && !weights[weights.len() - 2].is_multiple_of(8)
}

/// A convolution query.
pub(super) struct ConvQuery<'a> {
    pub(super) contraction: &'a Contraction,
    /// The output.
    pub(super) output: NodeId,
    /// The vendor.
    pub(super) vendor: Option<Vendor>,
}

/// Whether MIOpen fusion plans support a chain: bias, ReLU, or both. The algorithm of a plan is unknown, so exact f32
/// excludes them.
fn is_fused_by_miopen(
    graph: &Graph,
    chain: &[ChainOp],
    element: ElementType,
    output: NodeId,
    exact: bool,
) -> bool {
    let is_bias = |link: &ChainOp| match (link.op, link.of, link.with) {
        (Pointwise::Add, ChainOperand::Result, Some(ChainOperand::PerChannel(id))) => {
            graph.node(id).element == element
        }
        _ => false,
    };
    let is_relu = |link: &ChainOp| link.op == Pointwise::Relu;
    let known = match chain {
        [] => return true,
        [one] => is_bias(one) || is_relu(one),
        [first, second] => is_bias(first) && is_relu(second),
        _ => false,
    };
    known && !exact && graph.node(output).element == element
}

/// The call of a convolution; `None` where its epilogue is not a chain.
pub(super) fn call(
    operands: &mut Operands,
    tasks: &mut Vec<Task>,
    options: &Options,
    &ConvQuery { contraction, output, vendor }: &ConvQuery<'_>,
) -> Result<Option<ConvCall>, String> {
    let graph = &operands.graph;
    let Op::Conv(conv) = graph.node(contraction.node).op.clone() else { return Ok(None) };
    let mut chain = match &contraction.epilogue {
        None => Vec::new(),
        Some(epilogue) => match chain(graph, epilogue, output) {
            Some(chain) => chain,
            None => return Ok(None),
        },
    };
    let stored = graph.node(contraction.operands[0].value).element;
    let types = [stored, graph.node(output).element];
    let weights_dims = &contraction.operands[1].view.dims;
    if vendor == Some(Vendor::Cuda)
        && contraction.epilogue.is_some()
        && is_slow_with_chain(&conv, stored, weights_dims)
    {
        return Ok(None);
    }
    let widens =
        vendor == Some(Vendor::Cuda) && has_tf32(options) && pays_to_widen(&conv, types, weights_dims);
    let own = if widens { ElementType::F32 } else { stored };
    let exact =
        stored == own && own == ElementType::F32 && options.compute_precision == ComputePrecision::Model;
    if vendor == Some(Vendor::Hip) && !is_fused_by_miopen(graph, &chain, own, output, exact) {
        return Ok(None);
    }
    let output_dims = graph.node(contraction.node).dims.clone();
    if vendor == Some(Vendor::Cuda) && output_dims.last() == Some(&1) {
        scalars_to_memory(operands, &mut chain)?;
    }
    if vendor == Some(Vendor::Cuda) && own == ElementType::F32 {
        bias_before_relu(operands, &mut chain, output_dims.last().copied().unwrap_or(1))?;
    }
    if vendor == Some(Vendor::Cuda) && exact && begins_with_residual(&chain) {
        return Ok(None);
    }
    let [input, weights] = &contraction.operands;
    let input_dims = input.view.dims.clone();
    let input = if widens { operands.dense(tasks, options, input, own)?.value } else { input.value };
    let spatial = conv.strides.len();
    // [spatial…, in, out] becomes [out, spatial…, in].
    let order: Vec<usize> = std::iter::once(spatial + 1).chain(0..=spatial).collect();
    let view = View {
        offset: weights.view.offset,
        dims: order.iter().map(|&at| weights.view.dims[at]).collect(),
        strides: order.iter().map(|&at| weights.view.strides[at]).collect(),
    };
    let weights_dims = view.dims.clone();
    let weights = operands.dense(tasks, options, &Operand { value: weights.value, view }, own)?.value;
    let window = window(&conv);
    let pass = ConvPass::Forward;
    Ok(Some(ConvCall {
        pass,
        input,
        input_dims,
        weights,
        weights_dims,
        output_dims,
        output,
        window,
        chain,
        exact,
    }))
}

/// Turns host scalars in a chain on a single-channel result into device constants. With one channel they have the
/// shape of a bias, and cuDNN 9.19 reads the host address on the device.
fn scalars_to_memory(operands: &mut Operands, chain: &mut [ChainOp]) -> Result<(), String> {
    for taken in chain.iter_mut().filter_map(|link| link.with.as_mut()) {
        if let ChainOperand::Scalar(number) = *taken {
            let tensor = Tensor::from_slice(&[1], &[number]).map_err(|error| error.to_string())?;
            *taken = ChainOperand::PerChannel(operands.constant(tensor)?);
        }
    }
    Ok(())
}

/// Whether a chain begins with a tensor of the result's shape. Where operands must not be rounded, cuDNN 9.19 has only an engine for it that
/// takes ten times as long as both apart.
fn begins_with_residual(chain: &[ChainOp]) -> bool {
    chain.first().is_some_and(|link| matches!(link.with, Some(ChainOperand::Full(_))))
}

/// Puts a bias of zero between a convolution of f32 and its ReLU. cuDNN has fast engines for the three together; for the two, where
/// operands must not be rounded, cuDNN 9.19 has only one that takes ten times as long as both apart.
fn bias_before_relu(
    operands: &mut Operands,
    chain: &mut Vec<ChainOp>,
    channels: usize,
) -> Result<(), String> {
    if !matches!(chain[..], [ChainOp { op: Pointwise::Relu, of: ChainOperand::Result, .. }]) {
        return Ok(());
    }
    let zeros =
        Tensor::from_slice(&[channels], &vec![0.0f32; channels]).map_err(|error| error.to_string())?;
    let bias = ChainOperand::PerChannel(operands.constant(zeros)?);
    *chain = vec![
        ChainOp { op: Pointwise::Add, of: ChainOperand::Result, with: Some(bias) },
        ChainOp { op: Pointwise::Relu, of: ChainOperand::Op(0), with: None },
    ];
    Ok(())
}

/// Windows with at least two spatial dimensions.
fn window(conv: &Conv) -> ConvWindow {
    ConvWindow {
        strides: padded(1, conv.strides.iter().map(|&stride| stride as i64)),
        before: padded(0, conv.padding.iter().map(|&(low, _)| low as i64)),
        after: padded(0, conv.padding.iter().map(|&(_, high)| high as i64)),
        dilations: padded(1, conv.window_dilation.iter().map(|&dilation| dilation as i64)),
    }
}

/// The values of at least two spatial dimensions.
pub(super) fn padded(fill: i64, values: impl ExactSizeIterator<Item = i64>) -> Vec<i64> {
    let missing = 2usize.saturating_sub(values.len());
    std::iter::repeat_n(fill, missing).chain(values).collect()
}

/// An epilogue as a chain of pointwise operations.
fn chain(graph: &Graph, epilogue: &Epilogue, output: NodeId) -> Option<Vec<ChainOp>> {
    let body = &epilogue.body;
    if !body.is_whole(graph, output) {
        return None;
    }
    let mut chain = Vec::new();
    let mut taken: Vec<Option<ChainOperand>> = Vec::new();
    for (at, step) in body.steps.iter().enumerate() {
        let input = |which: usize| taken[*step.inputs.get(which)?];
        let given = match &step.op {
            BodyOp::Load(load) if *load == epilogue.tile => Some(ChainOperand::Result),
            BodyOp::Load(load) => {
                let load = &body.loads[*load];
                if epilogue.is_like_tile(graph, load) {
                    Some(ChainOperand::Full(load.value))
                } else if epilogue.is_per_column(graph, load) {
                    Some(ChainOperand::PerChannel(load.value))
                } else {
                    return None;
                }
            }
            BodyOp::Constant(_) => body.number(at).map(|number| ChainOperand::Scalar(number as f32)),
            BodyOp::Elementwise(Function::Convert) => {
                body.before_conversions(at)?;
                input(0)
            }
            BodyOp::Elementwise(kind) => {
                let (of, with) = (input(0)?, input(1)?);
                let zero = |one: ChainOperand| one == ChainOperand::Scalar(0.0);
                let link = match kind {
                    Function::Add => ChainOp { op: Pointwise::Add, of, with: Some(with) },
                    Function::Subtract => ChainOp { op: Pointwise::Subtract, of, with: Some(with) },
                    Function::Multiply => ChainOp { op: Pointwise::Multiply, of, with: Some(with) },
                    Function::Maximum if zero(with) => ChainOp { op: Pointwise::Relu, of, with: None },
                    Function::Maximum if zero(of) => ChainOp { op: Pointwise::Relu, of: with, with: None },
                    _ => return None,
                };
                // Operations that do not involve the result are left to a generated kernel.
                if !matches!(link.of, ChainOperand::Result | ChainOperand::Op(_)) {
                    let commutes = matches!(link.op, Pointwise::Add | Pointwise::Multiply);
                    let other = link.with.filter(|with| {
                        commutes && matches!(with, ChainOperand::Result | ChainOperand::Op(_))
                    })?;
                    chain.push(ChainOp { op: link.op, of: other, with: Some(link.of) });
                } else {
                    chain.push(link);
                }
                Some(ChainOperand::Op(chain.len() - 1))
            }
            _ => return None,
        };
        taken.push(given);
    }
    let is_whole = match taken.last().copied().flatten() {
        // Nothing but roundings.
        Some(ChainOperand::Result) => chain.is_empty(),
        Some(ChainOperand::Op(last)) => last + 1 == chain.len(),
        _ => false,
    };
    is_whole.then_some(chain)
}
