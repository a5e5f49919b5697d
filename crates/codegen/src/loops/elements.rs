//! Loops without reductions: each thread computes some neighbouring elements of the result.

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{Body, BodyOp, Cluster};

use super::access::{Access, Chunk, InChunk, in_vectors, iotas, read, vector_store, width};
use super::{title, views};
use crate::draft::{Draft, Launch};
use crate::index::{Space, int, reach, sum};
use crate::kernel::{Emitted, Unsupported};
use crate::options::{Effort, Options};
use crate::steps::{expression, packed};
use crate::types::{computed, stored};

/// Threads of a block.
const THREADS: usize = 256;

/// Blocks from which on a thread computes several chunks, so that more loads are under way.
const MANY_BLOCKS: usize = 4096;

/// The kernel of a loop without reductions.
pub(super) fn emit(
    graph: &Graph,
    cluster: &Cluster,
    body: &Body,
    options: &Options,
) -> Result<Emitted, Unsupported> {
    let views = views(body);
    let all: Vec<usize> = (0..body.dims.len()).collect();
    let space = Space::new(&body.dims, &all, &views);
    let output = graph.node(cluster.output).element;
    let at_output = body.loads.len();
    let mut seen: Vec<(usize, &warpforge_fusion::View, usize)> = body
        .loads
        .iter()
        .enumerate()
        .map(|(at, load)| (at, &load.view, graph.node(load.value).element.byte_width()))
        .collect();
    seen.push((at_output, &body.output, output.byte_width()));
    let width = match options.effort {
        Effort::Fast => width(&space, &seen, Some(at_output)),
        Effort::Naive => 1,
    };
    let chunk = Chunk { space: &space, prefix: "i", width };
    let len = space.len();
    let index = int(reach(&views));
    let chunks = len / width;
    let repeats = match chunks.div_ceil(THREADS) {
        blocks if blocks >= MANY_BLOCKS && options.effort == Effort::Fast => 2,
        _ => 1,
    };

    let mut draft = Draft::new(graph, options);
    let salt = draft.salt();
    salt.begin(&mut draft.text);
    if repeats > 1 {
        draft.text.unrolled("u", repeats);
    } else {
        draft.text.line("const int u = 0;");
        draft.text.open("");
    }
    let thread = format!("(({index})WF_BLOCK * {repeats} + u) * {THREADS} + WF_THREAD");
    draft.text.line(format!("const {index} n = ({thread}) * {width};"));
    draft.text.open(format!("if (n < {len})"));
    space.split(&mut draft.text, "n", "i", index);
    let mut accesses: Vec<Option<Access>> = Vec::new();
    for at in 0..body.loads.len() {
        let base = body.loads[at].view.offset.to_string();
        accesses.push(Some(read(&mut draft, body, at, chunk, &base)?));
    }
    let iotas = iotas(body, &|_, view| view.offset.to_string());
    let pointer = draft.write(cluster.output)?;
    let place = sum(&[body.output.offset.to_string(), space.place(at_output, "i")]);
    let stores_vector = in_vectors(chunk, at_output, &body.output);
    let text = &mut draft.text;
    if stores_vector {
        text.line(format!("wf_vec<{}, {width}> r;", stored(output)?));
    }
    if width > 1 {
        text.unrolled("v", width);
    }
    let names = |at: usize| format!("s{at}");
    let around = InChunk { chunk, accesses: &accesses, iotas: &iotas, names: &names };
    for (at, step) in body.steps.iter().enumerate() {
        let value = expression(body, at, &around)?;
        text.line(format!("const {} s{at} = {value};", computed(step.element)?));
    }
    let last = body.steps.len().checked_sub(1).ok_or_else(|| Unsupported::new("an empty loop"))?;
    let value = packed(output, &format!("s{last}"))?;
    salt.wrote(text, &format!("s{last}"), output.byte_width());
    if stores_vector {
        text.line(format!("r.x[v] = {value};"));
    } else {
        text.line(format!("{pointer}[{place}] = {value};"));
    }
    if width > 1 {
        text.close();
    }
    if stores_vector {
        text.line(vector_store(&pointer, output, width, &place, "r")?);
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
    let kernel = draft.finish(what, title(body), &Launch::new(blocks, THREADS), cluster.cost(graph))?;
    Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
}
