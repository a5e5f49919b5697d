//! Direct convolution of any element type, one output element per thread.

use warpforge_fusion::Op;
use warpforge_fusion::cluster::Contraction;
use warpforge_fusion::view::dense_strides;

use super::epilogue::{Store, accumulator};
use super::rounding::rounded_operand;
use crate::builder::{KernelBuilder, Launch};
use crate::index::{IndexSpace, index_type, max_index, sum};
use crate::kernel::{Emitted, Request, Unsupported};
use crate::steps::load_expr;

const THREADS: usize = 256;

/// A direct convolution kernel.
pub(super) fn emit(request: Request<'_>, contraction: &Contraction) -> Result<Emitted, Unsupported> {
    let Request { graph, cluster, options } = request;
    let node = graph.node(contraction.node);
    let Op::Conv(conv) = &node.op else { return Err(Unsupported::new("a node that is not a convolution")) };
    let [input, weights] = &contraction.operands;
    let rank = conv.strides.len();
    let outputs = *node.dims.last().ok_or_else(|| Unsupported::new("a convolution without channels"))?;
    let channels = weights.view.dims[rank];
    let store = Store::new(contraction, cluster.output, outputs);
    let mut builder = KernelBuilder::new(graph, options);
    let index = index_type(max_index(&[&input.view, &weights.view]).max(store.max_index(&builder)));
    let acc = accumulator(node.element)?;
    let (from, by) = (builder.read(input.value)?, builder.read(weights.value)?);
    let elements = [input.value, weights.value].map(|id| graph.node(id).element);
    builder.salt().begin(&mut builder.text);
    let text = &mut builder.text;
    text.line(format!("const {index} e = ({index})WF_BLOCK * {THREADS} + WF_THREAD;"));
    text.open(format!("if (e < {})", node.len()));
    let space = IndexSpace { dims: node.dims.clone(), strides: Vec::new() };
    space.split(text, "e", "i", index);
    let last = rank + 1;
    let group = format!("i{last} / {}", (outputs / conv.groups.max(1)).max(1));
    text.line(format!("const {index} first = {group} * {channels};"));
    text.line(format!("{acc} sum = 0;"));
    let strides = dense_strides(&input.view.dims);
    let mut places = vec![format!("i0 * {}", strides[0])];
    let mut taps =
        vec![weights.view.offset.to_string(), format!("i{last} * {}", weights.view.strides[rank + 1])];
    for at in 0..rank {
        let (stride, dilation) = (conv.strides[at], conv.window_dilation[at]);
        let (base, low, size) = (conv.base_dilation[at], conv.padding[at].0, input.view.dims[at + 1]);
        text.open(format!("for (int w{at} = 0; w{at} < {}; ++w{at})", weights.view.dims[at]));
        text.line(format!("const {index} t{at} = i{} * {stride} + w{at} * {dilation} - ({low});", at + 1));
        text.line(format!("const {index} x{at} = t{at} / {base};"));
        let between = if base > 1 { format!(" || t{at} % {base} != 0") } else { String::new() };
        text.line(format!("if (t{at} < 0 || x{at} >= {size}{between}) continue;"));
        places.push(format!("x{at} * {}", strides[at + 1]));
        taps.push(format!("w{at} * {}", weights.view.strides[at]));
    }
    text.open(format!("for (int c = 0; c < {channels}; ++c)"));
    places.push("first + c".to_owned());
    taps.push(format!("c * {}", weights.view.strides[rank]));
    let left = rounded_operand(elements[0], options.compute_precision, load_expr(&from, &sum(&places)));
    let right = rounded_operand(elements[1], options.compute_precision, load_expr(&by, &sum(&taps)));
    text.line(format!("sum = wf_add(sum, wf_mul(wf_convert<{acc}>({left}), wf_convert<{acc}>({right})));"));
    for _ in 0..=rank {
        text.close();
    }
    text.line(format!("const {index} row = e / {outputs};"));
    store.row(&mut builder, "row", index);
    store.element(&mut builder, &format!("i{last}"), "sum", index)?;
    builder.text.close();
    builder.salt().end(&mut builder.text);
    let sizes: Vec<String> = node.dims.iter().map(ToString::to_string).collect();
    let title = format!("convolution to {}, naive", sizes.join("x"));
    let launch = Launch::new(node.len().div_ceil(THREADS), THREADS);
    let kernel = builder.finish("conv", title, &launch, cluster.cost(graph))?;
    Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
}
