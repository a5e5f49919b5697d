//! Products in f32: tiles in shared memory, eight by sixteen sums in the registers of each thread.
//!
//! A multiprocessor multiplies as fast as it reads shared memory only where each number that is read serves many sums,
//! hence so many of them. Tiles come into shared memory while others are multiplied; what is multiplied next is read
//! into registers before the last of it is.

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{Cluster, Contraction, Kind};
use warpforge_tensor::{ElementType, FloatType};

use super::epilogue::Store;
use super::geometry::Geometry;
use super::staged::{Operand, Place, Staged};
use super::tensor;
use crate::draft::{Draft, Launch};
use crate::index::{int, sum};
use crate::kernel::{Emitted, Unsupported};
use crate::options::{Dialect, Options};
use crate::text::Text;

/// Rows of a tile, and elements that are summed at a time.
const SIDE: usize = 128;
const DEPTH: usize = 16;

/// Sums of a thread: rows and columns, in runs of four.
const ROWS: usize = 8;
const COLUMNS: usize = 16;

/// A warp has 64 rows and columns, its lanes eight by four: from one run of a thread's rows or columns to the next.
const ROWS_APART: usize = 32;
const COLUMNS_APART: usize = 16;

/// Multiprocessors that large tiles must suffice for.
const PROCESSORS: usize = 132;

/// How a product is cut into tiles: two warps down, and some across.
#[derive(Clone, Copy)]
struct Cut {
    across: usize,
    /// Tiles in shared memory: one is multiplied, the others are on their way.
    stages: usize,
}

impl Cut {
    /// Tiles of 256 columns where there is enough to do for them, of 128 elsewhere.
    fn new(sizes: &Sizes, dialect: Dialect) -> Self {
        let large =
            sizes.n > 128 && sizes.batches * sizes.m.div_ceil(SIDE) * sizes.n.div_ceil(256) >= PROCESSORS;
        // A multiprocessor of the other dialect's devices has 64 KiB of shared memory.
        Self { across: if large { 4 } else { 2 }, stages: if dialect == Dialect::Hip { 2 } else { 3 } }
    }

    fn columns(self) -> usize {
        self.across * 64
    }

    fn threads(self) -> usize {
        self.across * 64
    }
}

/// Whether products of this type are summed in f32.
pub(super) fn takes(graph: &Graph, product: &Contraction, geometry: &Geometry) -> bool {
    let float = |element: ElementType| {
        matches!(element, ElementType::Float(FloatType::F32 | FloatType::F16 | FloatType::Bf16))
    };
    float(graph.node(product.node).element) && float(geometry.lhs.element) && float(geometry.rhs.element)
}

/// Sizes of a product in tiles.
pub(super) struct Sizes {
    pub(super) batches: usize,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
}

pub(super) fn emit(
    graph: &Graph,
    cluster: &Cluster,
    product: &Contraction,
    geometry: &Geometry,
    options: &Options,
) -> Result<Emitted, Unsupported> {
    let Geometry { batch, m, n, k, .. } = geometry;
    let store = Store::new(product, cluster.output, *n);
    let mut draft = Draft::new(graph, options);
    let index = int(geometry.reach.max(store.reach(&draft)));
    let operands = [operand(&mut draft, geometry, 0)?, operand(&mut draft, geometry, 1)?];
    let mut places = Text::default();
    batch.split(&mut places, "batch", "x", index);
    for (view, name) in ["pa", "pb"].into_iter().enumerate() {
        let offset = if view == 0 { geometry.lhs.offset } else { geometry.rhs.offset };
        let place = sum(&[offset.to_string(), batch.place(view, "x")]);
        places.line(format!("const {index} {name} = {place};"));
    }
    let sizes = Sizes { batches: geometry.batches(), m: *m, n: *n, k: *k };
    let title = format!("product {}x{m}x{n}x{k} in tiles", sizes.batches);
    kernel(draft, cluster, &store, &operands, &sizes, (&places.finish(), index), title)
}

/// An operand with strides.
fn operand(draft: &mut Draft<'_>, geometry: &Geometry, view: usize) -> Result<Operand, Unsupported> {
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
        pointer: draft.read(side.value)?,
        size,
        by_depth,
        vectors,
        place: Place::Strides(["pa", "pb"][view], [along, deep]),
    })
}

/// The kernel of a product in tiles; `places` are lines before everything else, once for each block, and the integer type
/// of places.
pub(super) fn kernel(
    mut draft: Draft<'_>,
    cluster: &Cluster,
    store: &Store<'_>,
    operands: &[Operand; 2],
    sizes: &Sizes,
    places: (&str, &'static str),
    title: String,
) -> Result<Emitted, Unsupported> {
    let Sizes { batches, m, n, k } = *sizes;
    let cut = Cut::new(sizes, draft.options.dialect);
    let stages = cut.stages;
    let (across, down, deep) = (n.div_ceil(cut.columns()), m.div_ceil(SIDE), k.div_ceil(DEPTH).max(1));
    let index = int(store.reach(&draft).max(batches * m));
    let staged = |at: usize, side, first, tiles| Staged {
        operand: &operands[at],
        k,
        side,
        first,
        depth: DEPTH,
        tiles,
        threads: cut.threads(),
        index: places.1,
    };
    let staged = [staged(0, SIDE, "first", "left"), staged(1, cut.columns(), "begin", "right")];
    draft.salt().begin(&mut draft.text);
    let text = &mut draft.text;
    text.line("WF_DYNAMIC_SHARED(room);");
    text.line("float* const left = (float*)room;");
    text.line(format!("float* const right = left + {};", stages * staged[0].size()));
    text.line("const int warp = WF_THREAD / 32, lane = WF_THREAD % 32;");
    text.line(format!("const int high = warp / {} * 64 + lane / 4 * 4;", cut.across));
    text.line(format!("const int wide = warp % {} * 64 + lane % 4 * 4;", cut.across));
    text.line(format!("const {index} batch = WF_BLOCK / {};", across * down));
    tensor::tile_order(text, "WF_BLOCK", [down, across], [SIDE, cut.columns()], tensor::GROUP);
    places.0.lines().for_each(|line| text.line(line));
    for operand in &staged {
        operand.begin(&mut draft)?;
    }
    draft.text.line(format!("float sums[{ROWS}][{COLUMNS}] = {{}};"));
    draft.text.unrolled("stage", stages - 1);
    draft.text.open(format!("if (stage < {deep})"));
    for operand in &staged {
        operand.fetch(&mut draft, "stage")?;
        operand.keep(&mut draft, "stage");
        operand.copy(&mut draft, "stage", "stage");
    }
    draft.text.close();
    draft.text.line("wf_copies_end();");
    draft.text.close();
    arrived(&mut draft.text, stages);
    draft.text.line(format!("wf_vec<float, 4> a[2][{}], b[2][{}];", ROWS / 4, COLUMNS / 4));
    draft.text.line(format!("int from = 0, to = {};", stages - 1));
    pick(&mut draft.text, &staged, "0", "0");
    draft.text.line("#pragma unroll 1");
    draft.text.open(format!("for (int j = 0; j < {deep}; ++j)"));
    let ahead = format!("j + {}", stages - 1);
    draft.text.line(format!("const bool more = {ahead} < {deep};"));
    draft.text.open("if (more)");
    for operand in &staged {
        operand.fetch(&mut draft, &ahead)?;
    }
    draft.text.close();
    draft.text.unrolled("d", DEPTH);
    draft.text.open(format!("if (d == {})", DEPTH - 1));
    draft.text.open("if (more)");
    for operand in &staged {
        operand.keep(&mut draft, "to");
    }
    draft.text.close();
    arrived(&mut draft.text, stages);
    for stage in ["from", "to"] {
        draft.text.line(format!("{stage} = {stage} + 1 == {stages} ? 0 : {stage} + 1;"));
    }
    draft.text.close();
    pick(&mut draft.text, &staged, "(d + 1) % 2", &format!("(d + 1) % {DEPTH}"));
    draft.text.open("if (d == 0)");
    draft.text.open("if (more)");
    for operand in &staged {
        operand.copy(&mut draft, "to", &ahead);
    }
    draft.text.close();
    draft.text.line("wf_copies_end();");
    draft.text.close();
    // Column by column: the compiler then spreads the reads of the next line over the sums of this one.
    draft.text.unrolled("x", COLUMNS);
    draft.text.unrolled("y", ROWS);
    draft.text.line("sums[y][x] += a[d % 2][y / 4].x[y % 4] * b[d % 2][x / 4].x[x % 4];");
    for _ in 0..4 {
        draft.text.close();
    }
    let mut launch = Launch::new(batches * across * down, cut.threads());
    launch.resident = if cut.across == 4 { 1 } else { 2 };
    launch.shared = stages * (staged[0].size() + staged[1].size()) * 4;
    finish(draft, cluster, store, sizes, index, &launch, title)
}

/// Lines that wait for the tile that is multiplied next.
fn arrived(text: &mut Text, stages: usize) {
    text.line(format!("wf_copies_wait<{}>();", stages - 2));
    text.line("wf_sync();");
}

/// Lines that read a thread's part of a line of the tile `from` into registers.
fn pick(text: &mut Text, staged: &[Staged<'_>; 2], slot: &str, line: &str) {
    let parts = [("a", "high", ROWS, ROWS_APART), ("b", "wide", COLUMNS, COLUMNS_APART)];
    for (staged, (name, own, count, apart)) in staged.iter().zip(parts) {
        text.unrolled("h", count / 4);
        let at = format!("{} + from * {} + ({line}) * {}", staged.tiles, staged.size(), staged.line());
        text.line(format!("{name}[{slot}][h] = *(const wf_vec<float, 4>*)({at} + {own} + h * {apart});"));
        text.close();
    }
}

/// What is done to the sums, and the kernel.
fn finish(
    mut draft: Draft<'_>,
    cluster: &Cluster,
    store: &Store<'_>,
    sizes: &Sizes,
    index: &str,
    launch: &Launch,
    title: String,
) -> Result<Emitted, Unsupported> {
    let Sizes { m, n, .. } = *sizes;
    let text = &mut draft.text;
    text.line("wf_copies_wait<0>();");
    text.unrolled("y", ROWS);
    text.line(format!("const int own = first + high + y / 4 * {ROWS_APART} + y % 4;"));
    text.open(format!("if (own < {m})"));
    text.line(format!("const {index} row = batch * {m} + own;"));
    store.row(&mut draft, "row", index);
    if store.in_runs(4) {
        draft.text.unrolled("x", COLUMNS / 4);
        draft.text.line(format!("const int column = begin + wide + x * {COLUMNS_APART};"));
        draft.text.open(format!("if (column < {n})"));
        store.run(&mut draft, "column", 4, "sums[y][x * 4 + e]", index)?;
    } else {
        draft.text.unrolled("x", COLUMNS);
        draft.text.line(format!("const int column = begin + wide + x / 4 * {COLUMNS_APART} + x % 4;"));
        draft.text.open(format!("if (column < {n})"));
        store.element(&mut draft, "column", "sums[y][x]", index)?;
    }
    for _ in 0..4 {
        draft.text.close();
    }
    draft.salt().end(&mut draft.text);
    let cost = cluster.cost(draft.graph);
    let what = if matches!(cluster.kind, Kind::Conv(_)) { "conv" } else { "dot" };
    Ok(Emitted { kernels: vec![draft.finish(what, title, launch, cost)?], scratch: Vec::new() })
}
