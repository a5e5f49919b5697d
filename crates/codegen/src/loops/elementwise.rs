//! Elementwise loops: each thread computes a chunk of contiguous output elements.

use warpforge_fusion::cluster::{Body, BodyOp, Stored};
use warpforge_fusion::{Graph, NodeId};
use warpforge_tensor::ElementType;

use super::access::{
    Access, Chunk, ChunkContext, held_expr, held_type, in_vectors, iotas, read, vector_store, width,
};
use super::views::{title, views};
use crate::builder::{KernelBuilder, Launch};
use crate::index::{IndexSpace, index_type, max_index, sum};
use crate::kernel::{Emitted, Request, Unsupported};
use crate::options::Effort;
use crate::salt::Salt;
use crate::steps::{expression, store_expr, stored_expression};
use crate::types::compute_type;

/// Threads per block.
const THREADS: usize = 256;

/// Number of blocks from which on a thread computes two chunks, to keep more loads in flight.
const MANY_BLOCKS: usize = 4096;

/// An elementwise kernel.
pub(super) fn emit(request: Request<'_>, body: &Body) -> Result<Emitted, Unsupported> {
    let Request { graph, cluster, options } = request;
    let views = views(body);
    let all: Vec<usize> = (0..body.dims.len()).collect();
    let space = IndexSpace::new(&body.dims, &all, &views);
    let stores = stores(graph, cluster.output, body)?;
    let at_output = body.loads.len();
    let mut seen: Vec<(usize, &warpforge_fusion::View, usize)> = body
        .loads
        .iter()
        .enumerate()
        .map(|(at, load)| (at, &load.view, graph.node(load.value).element.byte_width()))
        .collect();
    seen.extend(stores.iter().map(|store| (at_output, &body.output, store.element.byte_width())));
    let width = match options.effort {
        Effort::Fast => width(&space, &seen, Some(at_output)),
        Effort::Naive => 1,
    };
    let chunk = Chunk { space: &space, prefix: "i", width };
    let len = space.len();
    let index = index_type(max_index(&views));
    let chunks = len / width;
    let repeats = match chunks.div_ceil(THREADS) {
        blocks if blocks >= MANY_BLOCKS && options.effort == Effort::Fast => 2,
        _ => 1,
    };

    let mut builder = KernelBuilder::new(graph, options);
    let salt = builder.salt();
    salt.begin(&mut builder.text);
    if repeats > 1 {
        builder.text.unrolled("u", repeats);
    } else {
        builder.text.line("const int u = 0;");
        builder.text.open("");
    }
    let thread = format!("(({index})WF_BLOCK * {repeats} + u) * {THREADS} + WF_THREAD");
    builder.text.line(format!("const {index} n = ({thread}) * {width};"));
    builder.text.open(format!("if (n < {len})"));
    space.split(&mut builder.text, "n", "i", index);
    let mut accesses: Vec<Option<Access>> = Vec::new();
    for at in 0..body.loads.len() {
        let base = body.loads[at].view.offset.to_string();
        accesses.push(Some(read(&mut builder, body, at, chunk, &base)?));
    }
    let iotas = iotas(body, &|_, view| view.offset.to_string());
    let pointers = stores.iter().map(|store| builder.write(store.value)).collect::<Result<Vec<_>, _>>()?;
    let place = sum(&[body.output.offset.to_string(), space.linear_index(at_output, "i")]);
    let stores_vector = in_vectors(chunk, at_output, &body.output);
    let text = &mut builder.text;
    if stores_vector {
        for (at, store) in stores.iter().enumerate() {
            text.line(format!("wf_vec<{}, {width}> r{at};", held_type(store.element)?));
        }
    }
    if width > 1 {
        text.unrolled("v", width);
    }
    let names = |at: usize| format!("s{at}");
    let context = ChunkContext { chunk, accesses: &accesses, iotas: &iotas, names: &names };
    for (at, step) in body.steps.iter().enumerate() {
        let value = match salt {
            Salt::Off if stores.iter().any(|store| store.step == at) => {
                stored_expression(body, at, &context)?
            }
            _ => expression(body, at, &context)?,
        };
        text.line(format!("const {} s{at} = {value};", compute_type(step.element)?));
    }
    for (at, (store, pointer)) in stores.iter().zip(&pointers).enumerate() {
        let step = format!("s{}", store.step);
        salt.wrote(text, &step, store.element.byte_width());
        if stores_vector {
            text.line(format!("r{at}.x[v] = {};", held_expr(store.element, &step)?));
        } else {
            let value = store_expr(store.element, &step)?;
            text.line(format!("{pointer}[{place}] = {value};"));
        }
    }
    if width > 1 {
        text.close();
    }
    if stores_vector {
        for (at, (store, pointer)) in stores.iter().zip(&pointers).enumerate() {
            text.line(vector_store(pointer, store.element, width, &place, &format!("r{at}"))?);
        }
    }
    text.close();
    text.close();
    salt.end(text);
    let blocks = chunks.div_ceil(THREADS * repeats);
    let what = if matches!(body.steps.as_slice(), [only] if matches!(only.op, BodyOp::Load(_))) {
        "copy"
    } else {
        "elements"
    };
    let kernel = builder.finish(what, title(body), &Launch::new(blocks, THREADS), cluster.cost(graph))?;
    Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
}

/// A value that the loop writes.
struct Store {
    value: NodeId,
    step: usize,
    element: ElementType,
}

/// What a loop writes: the value of its last step, then the others.
fn stores(graph: &Graph, output: NodeId, body: &Body) -> Result<Vec<Store>, Unsupported> {
    let last = body.steps.len().checked_sub(1).ok_or_else(|| Unsupported::new("an empty loop"))?;
    let all = [Stored { value: output, step: last }].into_iter().chain(body.also.iter().copied());
    Ok(all.map(|Stored { value, step }| Store { value, step, element: graph.node(value).element }).collect())
}
