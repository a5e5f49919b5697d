//! Convolutions of any type, an element of the result for each thread.

use warpforge_fusion::cluster::{Cluster, Contraction};
use warpforge_fusion::view::dense_strides;
use warpforge_fusion::{Graph, Op};

use super::epilogue::{Store, sums};
use super::taken;
use crate::draft::{Draft, Launch};
use crate::index::{Space, int, reach, sum};
use crate::kernel::{Emitted, Unsupported};
use crate::options::Options;
use crate::steps::loaded;

const THREADS: usize = 256;

/// The kernel of a convolution, an element of the result for each thread.
pub(super) fn emit(
    graph: &Graph,
    cluster: &Cluster,
    product: &Contraction,
    options: &Options,
) -> Result<Emitted, Unsupported> {
    let node = graph.node(product.node);
    let Op::Conv(conv) = &node.op else { return Err(Unsupported::new("a convolution that is none")) };
    let [input, weights] = &product.operands;
    let rank = conv.strides.len();
    let outputs = *node.dims.last().ok_or_else(|| Unsupported::new("a convolution without channels"))?;
    let channels = weights.view.dims[rank];
    let store = Store::new(product, cluster.output, outputs);
    let mut draft = Draft::new(graph, options);
    let index = int(reach(&[&input.view, &weights.view]).max(store.reach(&draft)));
    let acc = sums(node.element)?;
    let (from, by) = (draft.read(input.value)?, draft.read(weights.value)?);
    let elements = [input.value, weights.value].map(|id| graph.node(id).element);
    draft.salt().begin(&mut draft.text);
    let text = &mut draft.text;
    text.line(format!("const {index} e = ({index})WF_BLOCK * {THREADS} + WF_THREAD;"));
    text.open(format!("if (e < {})", node.len()));
    let space = Space { dims: node.dims.clone(), strides: Vec::new() };
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
    let left = taken(elements[0], options.products, loaded(&from, &sum(&places)));
    let right = taken(elements[1], options.products, loaded(&by, &sum(&taps)));
    text.line(format!("sum = wf_add(sum, wf_mul(wf_convert<{acc}>({left}), wf_convert<{acc}>({right})));"));
    for _ in 0..=rank {
        text.close();
    }
    text.line(format!("const {index} row = e / {outputs};"));
    store.row(&mut draft, "row", index);
    store.element(&mut draft, &format!("i{last}"), "sum", index)?;
    draft.text.close();
    draft.salt().end(&mut draft.text);
    let sizes: Vec<String> = node.dims.iter().map(ToString::to_string).collect();
    let title = format!("convolution to {}, naive", sizes.join("x"));
    let launch = Launch::new(node.len().div_ceil(THREADS), THREADS);
    let kernel = draft.finish("conv", title, &launch, cluster.cost(graph))?;
    Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
}
