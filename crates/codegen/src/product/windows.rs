//! Convolutions as products in tiles: rows are windows, columns are channels of the result; no window is ever copied.

use warpforge_fusion::cluster::{Cluster, Contraction, Operand as Value};
use warpforge_fusion::graph::Conv;
use warpforge_fusion::view::dense_strides;
use warpforge_fusion::{Graph, Op};
use warpforge_tensor::{ElementType, FloatType};

use super::epilogue::Store;
use super::staged::{Operand, Place};
use super::tiled::{Sizes, kernel};
use crate::draft::Draft;
use crate::index::{Space, int, place, reach, sum};
use crate::kernel::{Emitted, Unsupported};
use crate::options::Options;
use crate::text::Text;

/// Least channels of the result for which tiles are not mostly empty.
const LEAST_CHANNELS: usize = 16;

/// Whether a convolution is one product, summed in f32.
pub(super) fn takes(graph: &Graph, product: &Contraction) -> bool {
    let node = graph.node(product.node);
    let Op::Conv(conv) = &node.op else { return false };
    let float = |element: ElementType| {
        matches!(element, ElementType::Float(FloatType::F32 | FloatType::F16 | FloatType::Bf16))
    };
    let values = product.operands.iter().all(|operand| float(graph.node(operand.value).element));
    let channels = node.dims.last().is_some_and(|&channels| channels >= LEAST_CHANNELS);
    conv.groups == 1 && channels && values && float(node.element)
}

pub(super) fn emit(
    graph: &Graph,
    cluster: &Cluster,
    product: &Contraction,
    options: &Options,
) -> Result<Emitted, Unsupported> {
    let node = graph.node(product.node);
    let Op::Conv(conv) = &node.op else { return Err(Unsupported::new("a convolution that is none")) };
    let [input, weights] = &product.operands;
    let (spots, outputs) = node.dims.split_at(node.dims.len() - 1);
    let outputs = outputs.first().copied().unwrap_or(1);
    let rank = conv.strides.len();
    // The sums run over the window, then over the channels.
    let summed = Space { dims: weights.view.dims[..=rank].to_vec(), strides: Vec::new() };
    let sizes = Sizes { batches: 1, m: spots.iter().product(), n: outputs, k: summed.len() };
    let store = Store::new(product, cluster.output, outputs);
    let mut draft = Draft::new(graph, options);
    let index = int(reach(&[&input.view, &weights.view]).max(store.reach(&draft)));
    let operands = [
        windows(&mut draft, conv, input, spots, &summed, index)?,
        taps(&mut draft, weights, rank, &summed, index)?,
    ];
    let dims: Vec<String> = node.dims.iter().map(ToString::to_string).collect();
    let title = format!("convolution to {} in tiles", dims.join("x"));
    kernel(draft, cluster, &store, &operands, &sizes, ("", index), title)
}

/// The windows of the input.
fn windows(
    draft: &mut Draft<'_>,
    conv: &Conv,
    input: &Value,
    spots: &[usize],
    summed: &Space,
    index: &str,
) -> Result<Operand, Unsupported> {
    let rank = conv.strides.len();
    let mut text = Text::default();
    Space { dims: spots.to_vec(), strides: Vec::new() }.split(&mut text, "row", "r", index);
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
        element: draft.graph.node(input.value).element,
        pointer: draft.read(input.value)?,
        size: spots.iter().product(),
        by_depth: true,
        vectors: channels.is_multiple_of(4),
        place: Place::Lines(
            text.finish().lines().map(str::to_owned).collect(),
            (!exists.is_empty()).then(|| exists.join(" && ")),
            sum(&terms),
        ),
    })
}

/// The weights.
fn taps(
    draft: &mut Draft<'_>,
    weights: &Value,
    rank: usize,
    summed: &Space,
    index: &str,
) -> Result<Operand, Unsupported> {
    let view = &weights.view;
    let outputs = view.dims.last().copied().unwrap_or(1);
    let (sums, column) = (&view.strides[..=rank], view.strides.last().copied().unwrap_or(0));
    let by_depth = column != 1;
    let four = |stride: isize| stride % 4 == 0;
    let vectors = if by_depth {
        // Four channels of one place of the window.
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
        element: draft.graph.node(weights.value).element,
        pointer: draft.read(weights.value)?,
        size: outputs,
        by_depth,
        vectors: vectors && four(view.offset),
        place: Place::Lines(
            text.finish().lines().map(str::to_owned).collect(),
            None,
            sum(&[view.offset.to_string(), place(sums, "k"), format!("row * {column}")]),
        ),
    })
}
