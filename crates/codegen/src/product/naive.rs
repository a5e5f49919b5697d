//! Products of any type and any strides, an element of the result for each thread.

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{Cluster, Contraction};

use super::epilogue::{Store, sums};
use super::geometry::Geometry;
use super::taken;
use crate::draft::{Draft, Launch};
use crate::index::{int, sum};
use crate::kernel::{Emitted, Unsupported};
use crate::options::Options;
use crate::steps::loaded;

const THREADS: usize = 256;

pub(super) fn emit(
    graph: &Graph,
    cluster: &Cluster,
    product: &Contraction,
    options: &Options,
) -> Result<Emitted, Unsupported> {
    let geometry = Geometry::new(graph, product)?;
    let Geometry { batch, m, n, k, lhs, rhs, .. } = &geometry;
    let store = Store::new(product, cluster.output, *n);
    let mut draft = Draft::new(graph, options);
    let index = int(geometry.reach.max(store.reach(&draft)));
    let len = geometry.batches() * m * n;
    let acc = sums(graph.node(product.node).element)?;
    let (a, b) = (draft.read(lhs.value)?, draft.read(rhs.value)?);
    draft.salt().begin(&mut draft.text);
    let text = &mut draft.text;
    text.line(format!("const {index} e = ({index})WF_BLOCK * {THREADS} + WF_THREAD;"));
    text.open(format!("if (e < {len})"));
    text.line(format!("const {index} column = e % {n};"));
    text.line(format!("const {index} row = e / {n};"));
    text.line(format!("const {index} own = row % {m};"));
    batch.split(text, &format!("(row / {m})"), "b", index);
    let places = [(lhs, 0, "own", lhs.row), (rhs, 1, "column", rhs.column)];
    for (name, (side, number, along, stride)) in ["pa", "pb"].iter().zip(places) {
        let place = sum(&[side.offset.to_string(), batch.place(number, "b"), format!("{along} * {stride}")]);
        text.line(format!("const {index} {name} = {place};"));
    }
    text.line(format!("{acc} sum = 0;"));
    text.open(format!("for (int k = 0; k < {k}; ++k)"));
    let left = taken(lhs.element, options.products, loaded(&a, &format!("pa + k * {}", lhs.column)));
    let right = taken(rhs.element, options.products, loaded(&b, &format!("pb + k * {}", rhs.row)));
    let (left, right) = (format!("wf_convert<{acc}>({left})"), format!("wf_convert<{acc}>({right})"));
    text.line(format!("sum = wf_add(sum, wf_mul({left}, {right}));"));
    text.close();
    store.row(&mut draft, "row", index);
    store.element(&mut draft, "column", "sum", index)?;
    draft.text.close();
    draft.salt().end(&mut draft.text);
    let title = format!("product {}x{m}x{n}x{k}, naive", geometry.batches());
    let launch = Launch::new(len.div_ceil(THREADS), THREADS);
    let kernel = draft.finish("dot", title, &launch, cluster.cost(graph))?;
    Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
}
