//! GEMMs in f32: shared-memory tiles, 8 by 16 accumulators per thread.
//!
//! FMA throughput exceeds shared-memory bandwidth, so each loaded element must feed many accumulators. Tiles are
//! prefetched into shared memory while others are multiplied, and fragments are double-buffered in registers.

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{Cluster, Contraction, Kind};
use warpforge_tensor::{ElementType, FloatType};

use super::epilogue::Store;
use super::geometry::Geometry;
use super::staged::{Addressing, Operand, Staged};
use super::tensor_core;
use crate::builder::{KernelBuilder, Launch};
use crate::index::{index_type, sum};
use crate::kernel::{Emitted, Request, Unsupported};
use crate::options::Dialect;
use crate::text::Text;

/// Tile size in M, and in K.
const SIDE: usize = 128;
const DEPTH: usize = 16;

/// Accumulators per thread in M and N, in vectors of four.
const ROWS: usize = 8;
const COLUMNS: usize = 16;

/// Distance between a thread's vectors in M and N: a warp computes 64 by 64, with lanes 8 by 4.
const ROW_STEP: usize = 32;
const COLUMN_STEP: usize = 16;

/// Multiprocessors that must be occupied before large tiles are used.
const PROCESSORS: usize = 132;

/// The tiling: two warps in M, two or four in N.
#[derive(Clone, Copy)]
struct Tiling {
    across: usize,
    /// Pipeline stages.
    stages: usize,
}

impl Tiling {
    /// Tiles of 256 columns where they occupy the device, otherwise 128.
    fn new(sizes: &GemmSize, dialect: Dialect) -> Self {
        let large =
            sizes.n > 128 && sizes.batches * sizes.m.div_ceil(SIDE) * sizes.n.div_ceil(256) >= PROCESSORS;
        // AMD compute units have 64 KiB of shared memory.
        Self { across: if large { 4 } else { 2 }, stages: if dialect == Dialect::Hip { 2 } else { 3 } }
    }

    fn columns(self) -> usize {
        self.across * 64
    }

    fn threads(self) -> usize {
        self.across * 64
    }
}

/// Whether the GEMM accumulates in f32.
pub(super) fn supports(graph: &Graph, contraction: &Contraction, geometry: &Geometry) -> bool {
    let float = |element: ElementType| {
        matches!(element, ElementType::Float(FloatType::F32 | FloatType::F16 | FloatType::Bf16))
    };
    float(graph.node(contraction.node).element) && float(geometry.lhs.element) && float(geometry.rhs.element)
}

/// GEMM sizes.
pub(super) struct GemmSize {
    pub(super) batches: usize,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
}

pub(super) fn emit(
    request: Request<'_>,
    contraction: &Contraction,
    geometry: &Geometry,
) -> Result<Emitted, Unsupported> {
    let Request { graph, cluster, options } = request;
    let Geometry { batch, m, n, k, .. } = geometry;
    let store = Store::new(contraction, cluster.output, *n);
    let mut builder = KernelBuilder::new(graph, options);
    let index = index_type(geometry.max_index.max(store.max_index(&builder)));
    let operands = [operand(&mut builder, geometry, 0)?, operand(&mut builder, geometry, 1)?];
    let mut places = Text::default();
    batch.split(&mut places, "batch", "x", index);
    for (view, name) in ["pa", "pb"].into_iter().enumerate() {
        let offset = if view == 0 { geometry.lhs.offset } else { geometry.rhs.offset };
        let place = sum(&[offset.to_string(), batch.linear_index(view, "x")]);
        places.line(format!("const {index} {name} = {place};"));
    }
    let sizes = GemmSize { batches: geometry.batches(), m: *m, n: *n, k: *k };
    let title = format!("gemm {}x{m}x{n}x{k} in tiles", sizes.batches);
    kernel(builder, cluster, &store, &operands, &sizes, (&places.finish(), index), title)
}

/// An operand with strides.
fn operand(
    builder: &mut KernelBuilder<'_>,
    geometry: &Geometry,
    view: usize,
) -> Result<Operand, Unsupported> {
    let (side, size) = if view == 0 { (&geometry.lhs, geometry.m) } else { (&geometry.rhs, geometry.n) };
    let (along, deep) = if view == 0 { (side.row, side.column) } else { (side.column, side.row) };
    let by_depth = along != 1 || deep == 1;
    let (outer, run) = if by_depth { (along, geometry.k) } else { (deep, size) };
    let four = |stride: isize| stride % 4 == 0;
    let vectors = (if by_depth { deep } else { along }) == 1
        && four(outer)
        && run.is_multiple_of(4)
        && four(side.offset)
        && geometry.batch.strides[view].iter().all(|&stride| four(stride));
    Ok(Operand {
        element: side.element,
        pointer: builder.read(side.value)?,
        size,
        by_depth,
        vectors,
        addressing: Addressing::Strided(["pa", "pb"][view], [along, deep]),
    })
}

/// A tiled GEMM kernel. `places` are lines emitted once per block, and the integer type of indices.
pub(super) fn kernel(
    mut builder: KernelBuilder<'_>,
    cluster: &Cluster,
    store: &Store<'_>,
    operands: &[Operand; 2],
    sizes: &GemmSize,
    places: (&str, &'static str),
    title: String,
) -> Result<Emitted, Unsupported> {
    let GemmSize { batches, m, n, k } = *sizes;
    let tiling = Tiling::new(sizes, builder.options.dialect);
    let stages = tiling.stages;
    let (across, down, deep) = (n.div_ceil(tiling.columns()), m.div_ceil(SIDE), k.div_ceil(DEPTH).max(1));
    let index = index_type(store.max_index(&builder).max(batches * m));
    let staged = |at: usize, side, first, tiles| Staged {
        operand: &operands[at],
        k,
        side,
        first,
        depth: DEPTH,
        tiles,
        threads: tiling.threads(),
        index: places.1,
    };
    let staged = [staged(0, SIDE, "first", "left"), staged(1, tiling.columns(), "begin", "right")];
    builder.salt().begin(&mut builder.text);
    let text = &mut builder.text;
    text.line("WF_DYNAMIC_SHARED(room);");
    text.line("float* const left = (float*)room;");
    text.line(format!("float* const right = left + {};", stages * staged[0].size()));
    text.line("const int warp = WF_THREAD / 32, lane = WF_THREAD % 32;");
    text.line(format!("const int high = warp / {} * 64 + lane / 4 * 4;", tiling.across));
    text.line(format!("const int wide = warp % {} * 64 + lane % 4 * 4;", tiling.across));
    text.line(format!("const {index} batch = WF_BLOCK / {};", across * down));
    tensor_core::tile_order(text, "WF_BLOCK", [down, across], [SIDE, tiling.columns()], tensor_core::GROUP);
    places.0.lines().for_each(|line| text.line(line));
    for operand in &staged {
        operand.begin(&mut builder)?;
    }
    builder.text.line(format!("float sums[{ROWS}][{COLUMNS}] = {{}};"));
    builder.text.unrolled("stage", stages - 1);
    builder.text.open(format!("if (stage < {deep})"));
    for operand in &staged {
        operand.fetch(&mut builder, "stage")?;
        operand.store(&mut builder, "stage");
        operand.copy(&mut builder, "stage", "stage");
    }
    builder.text.close();
    builder.text.line("wf_copies_end();");
    builder.text.close();
    arrived(&mut builder.text, stages);
    builder.text.line(format!("wf_vec<float, 4> a[2][{}], b[2][{}];", ROWS / 4, COLUMNS / 4));
    builder.text.line(format!("int from = 0, to = {};", stages - 1));
    pick(&mut builder.text, &staged, "0", "0");
    builder.text.line("#pragma unroll 1");
    builder.text.open(format!("for (int j = 0; j < {deep}; ++j)"));
    let next_tile = format!("j + {}", stages - 1);
    builder.text.line(format!("const bool more = {next_tile} < {deep};"));
    builder.text.open("if (more)");
    for operand in &staged {
        operand.fetch(&mut builder, &next_tile)?;
    }
    builder.text.close();
    builder.text.unrolled("d", DEPTH);
    builder.text.open(format!("if (d == {})", DEPTH - 1));
    builder.text.open("if (more)");
    for operand in &staged {
        operand.store(&mut builder, "to");
    }
    builder.text.close();
    arrived(&mut builder.text, stages);
    for stage in ["from", "to"] {
        builder.text.line(format!("{stage} = {stage} + 1 == {stages} ? 0 : {stage} + 1;"));
    }
    builder.text.close();
    pick(&mut builder.text, &staged, "(d + 1) % 2", &format!("(d + 1) % {DEPTH}"));
    builder.text.open("if (d == 0)");
    builder.text.open("if (more)");
    for operand in &staged {
        operand.copy(&mut builder, "to", &next_tile);
    }
    builder.text.close();
    builder.text.line("wf_copies_end();");
    builder.text.close();
    // Column by column, so that the compiler interleaves the loads of the next fragment with this one's FMAs.
    builder.text.unrolled("x", COLUMNS);
    builder.text.unrolled("y", ROWS);
    builder.text.line("sums[y][x] += a[d % 2][y / 4].x[y % 4] * b[d % 2][x / 4].x[x % 4];");
    for _ in 0..4 {
        builder.text.close();
    }
    let mut launch = Launch::new(batches * across * down, tiling.threads());
    launch.resident = if tiling.across == 4 { 1 } else { 2 };
    launch.shared = stages * (staged[0].size() + staged[1].size()) * 4;
    finish(builder, cluster, store, sizes, index, &launch, title)
}

/// Emits the wait for the next tile.
fn arrived(text: &mut Text, stages: usize) {
    text.line(format!("wf_copies_wait<{}>();", stages - 2));
    text.line("wf_sync();");
}

/// Emits the load of a fragment of the tile `from` into registers.
fn pick(text: &mut Text, staged: &[Staged<'_>; 2], slot: &str, line: &str) {
    let parts = [("a", "high", ROWS, ROW_STEP), ("b", "wide", COLUMNS, COLUMN_STEP)];
    for (staged, (name, own, count, apart)) in staged.iter().zip(parts) {
        text.unrolled("h", count / 4);
        let at = format!("{} + from * {} + ({line}) * {}", staged.tiles, staged.size(), staged.line());
        text.line(format!("{name}[{slot}][h] = *(const wf_vec<float, 4>*)({at} + {own} + h * {apart});"));
        text.close();
    }
}

/// Emits the epilogue and finishes the kernel.
fn finish(
    mut builder: KernelBuilder<'_>,
    cluster: &Cluster,
    store: &Store<'_>,
    sizes: &GemmSize,
    index: &str,
    launch: &Launch,
    title: String,
) -> Result<Emitted, Unsupported> {
    let GemmSize { m, n, .. } = *sizes;
    let text = &mut builder.text;
    text.line("wf_copies_wait<0>();");
    text.unrolled("y", ROWS);
    text.line(format!("const int own = first + high + y / 4 * {ROW_STEP} + y % 4;"));
    text.open(format!("if (own < {m})"));
    text.line(format!("const {index} row = batch * {m} + own;"));
    store.row(&mut builder, "row", index);
    if store.stores_vectors(4) {
        builder.text.unrolled("x", COLUMNS / 4);
        builder.text.line(format!("const int column = begin + wide + x * {COLUMN_STEP};"));
        builder.text.open(format!("if (column < {n})"));
        store.vector(&mut builder, "column", 4, "sums[y][x * 4 + e]", index)?;
    } else {
        builder.text.unrolled("x", COLUMNS);
        builder.text.line(format!("const int column = begin + wide + x / 4 * {COLUMN_STEP} + x % 4;"));
        builder.text.open(format!("if (column < {n})"));
        store.element(&mut builder, "column", "sums[y][x]", index)?;
    }
    for _ in 0..4 {
        builder.text.close();
    }
    builder.salt().end(&mut builder.text);
    let cost = cluster.cost(builder.graph);
    let what = if matches!(cluster.kind, Kind::Conv(_)) { "conv" } else { "dot" };
    Ok(Emitted { kernels: vec![builder.finish(what, title, launch, cost)?], scratch: Vec::new() })
}
