//! GEMMs on tensor cores with mma: tiles of 128 by 128, loaded by a multi-stage cp.async pipeline.

use warpforge_fusion::cluster::Contraction;

use super::epilogue::Store;
use super::geometry::Geometry;
use super::tile::{Loaded, PADDING, Tile};
use crate::builder::{KernelBuilder, Launch};
use crate::index::{index_type, sum};
use crate::kernel::{Emitted, Request, Unsupported};

/// Tile size in M and N, and in K.
const SIDE: usize = 128;
const DEPTH: usize = 32;

/// Pipeline stages.
const STAGES: usize = 4;

/// Eight warps, four by two: each computes 32 rows and 64 columns.
const THREADS: usize = 256;

pub(super) fn emit(
    request: Request<'_>,
    contraction: &Contraction,
    geometry: &Geometry,
    ty: &'static str,
) -> Result<Emitted, Unsupported> {
    let Request { graph, cluster, options } = request;
    let Geometry { batch, m, n, k, lhs, rhs, .. } = geometry;
    let store = Store::new(contraction, cluster.output, *n);
    let mut builder = KernelBuilder::new(graph, options);
    let index = index_type(geometry.max_index.max(store.max_index(&builder)));
    let (across, down, deep) = (n.div_ceil(SIDE), m.div_ceil(SIDE), k.div_ceil(DEPTH).max(1));
    let pointers = [builder.read(lhs.value)?, builder.read(rhs.value)?];
    builder.salt().begin(&mut builder.text);
    // Tile lines run along K where K is contiguous.
    let sides = [
        (lhs, 0, lhs.row, lhs.column, *m, "first", lhs.row != 1 || lhs.column == 1),
        (rhs, 1, rhs.column, rhs.row, *n, "begin", rhs.column != 1 || rhs.row == 1),
    ];
    let sizes = sides.map(|side| if side.6 { SIDE * (DEPTH + PADDING) } else { DEPTH * (SIDE + PADDING) });
    let text = &mut builder.text;
    text.line("WF_DYNAMIC_SHARED(room);");
    text.line(format!("{ty}* const left = ({ty}*)room;"));
    text.line(format!("{ty}* const right = left + {};", STAGES * sizes[0]));
    text.line("const int warp = WF_THREAD / 32, lane = WF_THREAD % 32;");
    text.line(format!("const {index} batch = WF_BLOCK / {};", across * down));
    tile_order(text, "WF_BLOCK", [down, across], [SIDE, SIDE], GROUP);
    batch.split(text, "batch", "x", index);
    for ((side, view, ..), name) in sides.iter().zip(["pa", "pb"]) {
        let place = sum(&[side.offset.to_string(), batch.linear_index(*view, "x")]);
        text.line(format!("const {index} {name} = {place};"));
    }
    let load = |builder: &mut KernelBuilder<'_>, stage: &str, depth: &str| {
        for (at, &(side, view, along, across, size, from, by_depth)) in sides.iter().enumerate() {
            let (lines, elements) =
                if by_depth { ((along, size), (across, *k)) } else { ((across, *k), (along, size)) };
            let tile = Tile { side, batch, view, along: lines.0, across: elements.0, size: elements.1 };
            let to = format!("({} + ({stage}) * {})", ["left", "right"][at], sizes[at]);
            let (from, across_from) = if by_depth { (from, depth) } else { (depth, from) };
            let (count, padded) = if by_depth { (SIDE, DEPTH) } else { (DEPTH, SIDE) };
            let pointer = &pointers[at];
            let place = ["pa", "pb"][at];
            let (to, limit) = (&to, lines.1);
            tile.emit(
                builder,
                &Loaded { pointer, place, to, from, across_from, padded, count, limit, threads: THREADS, ty },
            );
        }
    };
    builder.text.line("float sums[2][8][4] = {};");
    builder.text.open(format!("for (int stage = 0; stage < {}; ++stage)", STAGES - 1));
    builder.text.open(format!("if (stage < {deep})"));
    load(&mut builder, "stage", &format!("stage * {DEPTH}"));
    builder.text.close();
    builder.text.line("wf_copies_end();");
    builder.text.close();
    builder.text.open(format!("for (int j = 0; j < {deep}; ++j)"));
    builder.text.line(format!("wf_copies_wait<{}>();", STAGES - 2));
    builder.text.line("wf_sync();");
    builder.text.open(format!("if (j + {} < {deep})", STAGES - 1));
    load(
        &mut builder,
        &format!("(j + {}) % {STAGES}", STAGES - 1),
        &format!("(j + {}) * {DEPTH}", STAGES - 1),
    );
    builder.text.close();
    builder.text.line("wf_copies_end();");
    multiply(&mut builder, ty, sizes, [sides[0].6, sides[1].6]);
    builder.text.close();
    let text = &mut builder.text;
    text.line("wf_copies_wait<0>();");
    text.unrolled("p", 2);
    text.unrolled("h", 2);
    text.line("const int own = first + warp % 4 * 32 + p * 16 + lane / 4 + h * 8;");
    text.open(format!("if (own < {m})"));
    text.line(format!("const {index} row = batch * {m} + own;"));
    store.row(&mut builder, "row", index);
    builder.text.unrolled("c", 8);
    builder.text.line("const int pair = begin + warp / 4 * 64 + c * 8 + lane % 4 * 2;");
    store_pair(&mut builder, &store, *n, "sums[p][c][h * 2 + e]", index)?;
    for _ in 0..4 {
        builder.text.close();
    }
    builder.salt().end(&mut builder.text);
    let mut launch = Launch::new(geometry.batches() * across * down, THREADS);
    launch.shared = STAGES * (sizes[0] + sizes[1]) * 2;
    launch.resident = 2;
    let title = format!("gemm {}x{m}x{n}x{k} on tensor cores", geometry.batches());
    let kernel = builder.finish("dot", title, &launch, cluster.cost(graph))?;
    Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
}

/// Rows of tiles in a rasterisation group.
pub(super) const GROUP: usize = 8;

/// Emits the tile coordinates of a tile index. Tiles are grouped so that concurrent blocks share operands in the L2
/// cache.
pub(super) fn tile_order(
    text: &mut crate::text::Text,
    number: &str,
    [down, across]: [usize; 2],
    sides: [usize; 2],
    group: usize,
) {
    text.line(format!("const int tile = {number} % {};", across * down));
    text.line(format!("const int group = tile / {} * {group};", group * across));
    text.line(format!("const int tall = {down} - group < {group} ? {down} - group : {group};"));
    text.line(format!("const int first = (group + tile % {} % tall) * {};", group * across, sides[0]));
    text.line(format!("const int begin = tile % {} / tall * {};", group * across, sides[1]));
}

/// Emits the store of a lane's two adjacent elements from column `pair`; `value` is that of element `e`.
pub(crate) fn store_pair(
    builder: &mut KernelBuilder<'_>,
    store: &Store<'_>,
    columns: usize,
    value: &str,
    index: &str,
) -> Result<(), Unsupported> {
    if store.stores_vectors(2) {
        builder.text.open(format!("if (pair < {columns})"));
        store.vector(builder, "pair", 2, value, index)?;
        builder.text.close();
        return Ok(());
    }
    builder.text.unrolled("e", 2);
    builder.text.line("const int column = pair + e;");
    builder.text.open(format!("if (column < {columns})"));
    store.element(builder, "column", value, index)?;
    builder.text.close();
    builder.text.close();
    Ok(())
}

/// Emits the multiplication of a stage's tiles.
fn multiply(builder: &mut KernelBuilder<'_>, ty: &str, sizes: [usize; 2], by_depth: [bool; 2]) {
    let text = &mut builder.text;
    text.line(format!("const {ty}* const l = left + j % {STAGES} * {};", sizes[0]));
    text.line(format!("const {ty}* const r = right + j % {STAGES} * {};", sizes[1]));
    text.unrolled("d", DEPTH / 16);
    text.line("unsigned a[2][4];");
    text.unrolled("p", 2);
    if by_depth[0] {
        let line = "(warp % 4 * 32 + p * 16 + lane % 16)";
        text.line(format!(
            "wf_load_matrices<false>(a[p], l + {line} * {} + d * 16 + lane / 16 * 8);",
            DEPTH + PADDING
        ));
    } else {
        let line = "(d * 16 + lane / 16 * 8 + lane % 8)";
        text.line(format!(
            "wf_load_matrices<true>(a[p], l + {line} * {} + warp % 4 * 32 + p * 16 + lane / 8 % 2 * 8);",
            SIDE + PADDING
        ));
    }
    text.close();
    text.unrolled("c", 4);
    text.line("unsigned b[4];");
    if by_depth[1] {
        let line = "(warp / 4 * 64 + c * 16 + lane / 16 * 8 + lane % 8)";
        text.line(format!(
            "wf_load_matrices<false>(b, r + {line} * {} + d * 16 + lane / 8 % 2 * 8);",
            DEPTH + PADDING
        ));
    } else {
        text.line(format!(
            "wf_load_matrices<true>(b, r + (d * 16 + lane % 16) * {} + warp / 4 * 64 + c * 16 + lane / 16 * 8);",
            SIDE + PADDING
        ));
    }
    text.unrolled("p", 2);
    text.line(format!("wf_mma(sums[p][2 * c], a[p], b[0], b[1], ({ty}*)0);"));
    text.line(format!("wf_mma(sums[p][2 * c + 1], a[p], b[2], b[3], ({ty}*)0);"));
    text.close();
    text.close();
    text.close();
}
