//! GEMMs of any element type and any strides, one output element per thread.

use warpforge_fusion::cluster::Contraction;

use super::epilogue::{Store, accumulator};
use super::geometry::Geometry;
use super::rounding::rounded_operand;
use crate::builder::{KernelBuilder, Launch};
use crate::index::{index_type, sum};
use crate::kernel::{Emitted, Request, Unsupported};
use crate::steps::load_expr;

const THREADS: usize = 256;

pub(super) fn emit(request: Request<'_>, contraction: &Contraction) -> Result<Emitted, Unsupported> {
    let Request { graph, cluster, options } = request;
    let geometry = Geometry::new(graph, contraction)?;
    let Geometry { batch, m, n, k, lhs, rhs, .. } = &geometry;
    let store = Store::new(contraction, cluster.output, *n);
    let mut builder = KernelBuilder::new(graph, options);
    let index = index_type(geometry.max_index.max(store.max_index(&builder)));
    let len = geometry.batches() * m * n;
    let acc = accumulator(graph.node(contraction.node).element)?;
    let (a, b) = (builder.read(lhs.value)?, builder.read(rhs.value)?);
    builder.salt().begin(&mut builder.text);
    let text = &mut builder.text;
    text.line(format!("const {index} e = ({index})WF_BLOCK * {THREADS} + WF_THREAD;"));
    text.open(format!("if (e < {len})"));
    text.line(format!("const {index} column = e % {n};"));
    text.line(format!("const {index} row = e / {n};"));
    text.line(format!("const {index} own = row % {m};"));
    batch.split(text, &format!("(row / {m})"), "b", index);
    let places = [(lhs, 0, "own", lhs.row), (rhs, 1, "column", rhs.column)];
    for (name, (side, number, along, stride)) in ["pa", "pb"].iter().zip(places) {
        let place =
            sum(&[side.offset.to_string(), batch.linear_index(number, "b"), format!("{along} * {stride}")]);
        text.line(format!("const {index} {name} = {place};"));
    }
    text.line(format!("{acc} sum = 0;"));
    text.open(format!("for (int k = 0; k < {k}; ++k)"));
    let left = rounded_operand(
        lhs.element,
        options.compute_precision,
        load_expr(&a, &format!("pa + k * {}", lhs.column)),
    );
    let right = rounded_operand(
        rhs.element,
        options.compute_precision,
        load_expr(&b, &format!("pb + k * {}", rhs.row)),
    );
    let (left, right) = (format!("wf_convert<{acc}>({left})"), format!("wf_convert<{acc}>({right})"));
    text.line(format!("sum = wf_add(sum, wf_mul({left}, {right}));"));
    text.close();
    store.row(&mut builder, "row", index);
    store.element(&mut builder, "column", "sum", index)?;
    builder.text.close();
    builder.salt().end(&mut builder.text);
    let title = format!("gemm {}x{m}x{n}x{k}, naive", geometry.batches());
    let launch = Launch::new(len.div_ceil(THREADS), THREADS);
    let kernel = builder.finish("dot", title, &launch, cluster.cost(graph))?;
    Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
}
