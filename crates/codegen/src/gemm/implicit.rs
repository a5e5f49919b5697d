//! Convolutions as implicit GEMMs: rows are output positions, columns are output channels. No im2col buffer is
//! written.

use warpforge_fusion::cluster::{Contraction, Operand as Value};
use warpforge_fusion::graph::Conv;
use warpforge_fusion::view::dense_strides;
use warpforge_fusion::{Graph, Op};
use warpforge_tensor::{ElementType, FloatType};

use super::epilogue::Store;
use super::staged::{Addressing, Operand};
use super::tiled::{GemmSize, kernel};
use crate::builder::KernelBuilder;
use crate::index::{IndexSpace, index_type, linear_index, max_index, sum};
use crate::kernel::{Emitted, Request, Unsupported};
use crate::text::Text;

/// Smallest number of output channels for which tiles are not mostly empty.
const MIN_CHANNELS: usize = 16;

/// Whether a convolution is one GEMM with f32 accumulation.
pub(super) fn supports(graph: &Graph, contraction: &Contraction) -> bool {
    let node = graph.node(contraction.node);
    let Op::Conv(conv) = &node.op else { return false };
    let float = |element: ElementType| {
        matches!(element, ElementType::Float(FloatType::F32 | FloatType::F16 | FloatType::Bf16))
    };
    let values = contraction.operands.iter().all(|operand| float(graph.node(operand.value).element));
    let channels = node.dims.last().is_some_and(|&channels| channels >= MIN_CHANNELS);
    conv.groups == 1 && channels && values && float(node.element)
}

pub(super) fn emit(request: Request<'_>, contraction: &Contraction) -> Result<Emitted, Unsupported> {
    let Request { graph, cluster, options } = request;
    let node = graph.node(contraction.node);
    let Op::Conv(conv) = &node.op else { return Err(Unsupported::new("a node that is not a convolution")) };
    let [input, weights] = &contraction.operands;
    let (spots, outputs) = node.dims.split_at(node.dims.len() - 1);
    let outputs = outputs.first().copied().unwrap_or(1);
    let rank = conv.strides.len();
    // K runs over the window, then over the channels.
    let summed = IndexSpace { dims: weights.view.dims[..=rank].to_vec(), strides: Vec::new() };
    let sizes = GemmSize { batches: 1, m: spots.iter().product(), n: outputs, k: summed.len() };
    let store = Store::new(contraction, cluster.output, outputs);
    let mut builder = KernelBuilder::new(graph, options);
    let index = index_type(max_index(&[&input.view, &weights.view]).max(store.max_index(&builder)));
    let operands = [
        windows(&mut builder, conv, input, spots, &summed, index)?,
        taps(&mut builder, weights, rank, &summed, index)?,
    ];
    let dims: Vec<String> = node.dims.iter().map(ToString::to_string).collect();
    let title = format!("convolution to {} in tiles", dims.join("x"));
    kernel(builder, cluster, &store, &operands, &sizes, ("", index), title)
}

/// The windows of the input as the left operand.
fn windows(
    builder: &mut KernelBuilder<'_>,
    conv: &Conv,
    input: &Value,
    spots: &[usize],
    summed: &IndexSpace,
    index: &str,
) -> Result<Operand, Unsupported> {
    let rank = conv.strides.len();
    let mut text = Text::default();
    IndexSpace { dims: spots.to_vec(), strides: Vec::new() }.split(&mut text, "row", "r", index);
    summed.split(&mut text, "sum", "k", index);
    let strides = dense_strides(&input.view.dims);
    let mut exists = Vec::new();
    let mut terms = vec![format!("r0 * {}", strides[0]), format!("k{rank}")];
    for at in 0..rank {
        let (stride, dilation, low) = (conv.strides[at], conv.window_dilation[at], conv.padding[at].0);
        let (base, size) = (conv.base_dilation[at], input.view.dims[at + 1]);
        text.line(format!("const {index} t{at} = r{} * {stride} + k{at} * {dilation} - ({low});", at + 1));
        exists.push(format!("t{at} >= 0 && t{at} / {base} < {size}"));
        if base > 1 {
            exists.push(format!("t{at} % {base} == 0"));
        }
        terms.push(format!("t{at} / {base} * {}", strides[at + 1]));
    }
    let channels = input.view.dims.last().copied().unwrap_or(1);
    Ok(Operand {
        element: builder.graph.node(input.value).element,
        pointer: builder.read(input.value)?,
        size: spots.iter().product(),
        by_depth: true,
        vectors: channels.is_multiple_of(4),
        addressing: Addressing::Computed(
            text.finish().lines().map(str::to_owned).collect(),
            (!exists.is_empty()).then(|| exists.join(" && ")),
            sum(&terms),
        ),
    })
}

/// The weights as the right operand.
fn taps(
    builder: &mut KernelBuilder<'_>,
    weights: &Value,
    rank: usize,
    summed: &IndexSpace,
    index: &str,
) -> Result<Operand, Unsupported> {
    let view = &weights.view;
    let outputs = view.dims.last().copied().unwrap_or(1);
    let (sums, column) = (&view.strides[..=rank], view.strides.last().copied().unwrap_or(0));
    let by_depth = column != 1;
    let four = |stride: isize| stride % 4 == 0;
    let vectors = if by_depth {
        // Four channels of one window position.
        sums[rank] == 1
            && view.dims[rank].is_multiple_of(4)
            && four(column)
            && sums[..rank].iter().all(|&s| four(s))
    } else {
        outputs.is_multiple_of(4) && sums.iter().all(|&stride| four(stride))
    };
    let mut text = Text::default();
    summed.split(&mut text, "sum", "k", index);
    Ok(Operand {
        element: builder.graph.node(weights.value).element,
        pointer: builder.read(weights.value)?,
        size: outputs,
        by_depth,
        vectors: vectors && four(view.offset),
        addressing: Addressing::Computed(
            text.finish().lines().map(str::to_owned).collect(),
            None,
            sum(&[view.offset.to_string(), linear_index(sums, "k"), format!("row * {column}")]),
        ),
    })
}
