//! Products on tensor cores: tiles of 128 by 128, several of them on their way into shared memory at once.

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{Cluster, Contraction};
use warpforge_tensor::{ElementType, FloatType};

use super::epilogue::Store;
use super::geometry::Geometry;
use super::tile::{APART, Loaded, Tile};
use crate::draft::{Draft, Launch};
use crate::index::{int, sum};
use crate::kernel::{Emitted, Unsupported};
use crate::options::{Options, Products};

/// Rows and columns of a tile, and elements that are summed at a time.
const SIDE: usize = 128;
const DEPTH: usize = 32;

/// Tiles on their way.
const STAGES: usize = 4;

/// Eight warps, four by two: each has 32 rows and 64 columns.
const THREADS: usize = 256;

/// The type that tensor cores take for a product, where they take it.
pub(super) fn narrow(geometry: &Geometry, products: Products) -> Option<&'static str> {
    let of = |element: ElementType| match (element, products) {
        (ElementType::Float(FloatType::Bf16), _) | (ElementType::Float(FloatType::F32), Products::Bf16) => {
            Some("wf_bf16")
        }
        (ElementType::Float(FloatType::F16), _) | (ElementType::Float(FloatType::F32), Products::F16) => {
            Some("wf_f16")
        }
        _ => None,
    };
    of(geometry.lhs.element).filter(|ty| of(geometry.rhs.element) == Some(ty))
}

pub(super) fn emit(
    graph: &Graph,
    cluster: &Cluster,
    product: &Contraction,
    geometry: &Geometry,
    ty: &'static str,
    options: &Options,
) -> Result<Emitted, Unsupported> {
    let Geometry { batch, m, n, k, lhs, rhs, .. } = geometry;
    let store = Store::new(product, cluster.output, *n);
    let mut draft = Draft::new(graph, options);
    let index = int(geometry.reach.max(store.reach(&draft)));
    let (across, down, deep) = (n.div_ceil(SIDE), m.div_ceil(SIDE), k.div_ceil(DEPTH).max(1));
    let pointers = [draft.read(lhs.value)?, draft.read(rhs.value)?];
    draft.salt().begin(&mut draft.text);
    // Lines of a tile run along the summed elements where these lie side by side.
    let sides = [
        (lhs, 0, lhs.row, lhs.column, *m, "first", lhs.row != 1 || lhs.column == 1),
        (rhs, 1, rhs.column, rhs.row, *n, "begin", rhs.column != 1 || rhs.row == 1),
    ];
    let sizes = sides.map(|side| if side.6 { SIDE * (DEPTH + APART) } else { DEPTH * (SIDE + APART) });
    let text = &mut draft.text;
    text.line("WF_DYNAMIC_SHARED(room);");
    text.line(format!("{ty}* const left = ({ty}*)room;"));
    text.line(format!("{ty}* const right = left + {};", STAGES * sizes[0]));
    text.line("const int warp = WF_THREAD / 32, lane = WF_THREAD % 32;");
    text.line(format!("const {index} batch = WF_BLOCK / {};", across * down));
    tile_order(text, "WF_BLOCK", [down, across], [SIDE, SIDE], GROUP);
    batch.split(text, "batch", "x", index);
    for ((side, view, ..), name) in sides.iter().zip(["pa", "pb"]) {
        let place = sum(&[side.offset.to_string(), batch.place(*view, "x")]);
        text.line(format!("const {index} {name} = {place};"));
    }
    let load = |draft: &mut Draft<'_>, stage: &str, depth: &str| {
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
                draft,
                &Loaded { pointer, place, to, from, across_from, padded, count, limit, threads: THREADS, ty },
            );
        }
    };
    draft.text.line("float sums[2][8][4] = {};");
    draft.text.open(format!("for (int stage = 0; stage < {}; ++stage)", STAGES - 1));
    draft.text.open(format!("if (stage < {deep})"));
    load(&mut draft, "stage", &format!("stage * {DEPTH}"));
    draft.text.close();
    draft.text.line("wf_copies_end();");
    draft.text.close();
    draft.text.open(format!("for (int j = 0; j < {deep}; ++j)"));
    draft.text.line(format!("wf_copies_wait<{}>();", STAGES - 2));
    draft.text.line("wf_sync();");
    draft.text.open(format!("if (j + {} < {deep})", STAGES - 1));
    load(&mut draft, &format!("(j + {}) % {STAGES}", STAGES - 1), &format!("(j + {}) * {DEPTH}", STAGES - 1));
    draft.text.close();
    draft.text.line("wf_copies_end();");
    multiply(&mut draft, ty, sizes, [sides[0].6, sides[1].6]);
    draft.text.close();
    let text = &mut draft.text;
    text.line("wf_copies_wait<0>();");
    text.unrolled("p", 2);
    text.unrolled("h", 2);
    text.line("const int own = first + warp % 4 * 32 + p * 16 + lane / 4 + h * 8;");
    text.open(format!("if (own < {m})"));
    text.line(format!("const {index} row = batch * {m} + own;"));
    store.row(&mut draft, "row", index);
    draft.text.unrolled("c", 8);
    draft.text.line("const int pair = begin + warp / 4 * 64 + c * 8 + lane % 4 * 2;");
    store_pair(&mut draft, &store, *n, "sums[p][c][h * 2 + e]", index)?;
    for _ in 0..4 {
        draft.text.close();
    }
    draft.salt().end(&mut draft.text);
    let mut launch = Launch::new(geometry.batches() * across * down, THREADS);
    launch.shared = STAGES * (sizes[0] + sizes[1]) * 2;
    launch.resident = 2;
    let title = format!("product {}x{m}x{n}x{k} on tensor cores", geometry.batches());
    let kernel = draft.finish("dot", title, &launch, cluster.cost(graph))?;
    Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
}

/// Rows of tiles that neighbours share.
pub(super) const GROUP: usize = 8;

/// Lines that say which tile a number is, of so many down and across with so many rows and columns: neighbours share rows
/// and columns, so that the cache serves them together.
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

/// Lines that store the two neighbouring elements from column `pair` on that a lane has; `value` is that of element `e`.
pub(crate) fn store_pair(
    draft: &mut Draft<'_>,
    store: &Store<'_>,
    columns: usize,
    value: &str,
    index: &str,
) -> Result<(), Unsupported> {
    if store.in_runs(2) {
        draft.text.open(format!("if (pair < {columns})"));
        store.run(draft, "pair", 2, value, index)?;
        draft.text.close();
        return Ok(());
    }
    draft.text.unrolled("e", 2);
    draft.text.line("const int column = pair + e;");
    draft.text.open(format!("if (column < {columns})"));
    store.element(draft, "column", value, index)?;
    draft.text.close();
    draft.text.close();
    Ok(())
}

/// Lines that multiply the tiles of a stage.
fn multiply(draft: &mut Draft<'_>, ty: &str, sizes: [usize; 2], by_depth: [bool; 2]) {
    let text = &mut draft.text;
    text.line(format!("const {ty}* const l = left + j % {STAGES} * {};", sizes[0]));
    text.line(format!("const {ty}* const r = right + j % {STAGES} * {};", sizes[1]));
    text.unrolled("d", DEPTH / 16);
    text.line("unsigned a[2][4];");
    text.unrolled("p", 2);
    if by_depth[0] {
        let line = "(warp % 4 * 32 + p * 16 + lane % 16)";
        text.line(format!(
            "wf_load_matrices<false>(a[p], l + {line} * {} + d * 16 + lane / 16 * 8);",
            DEPTH + APART
        ));
    } else {
        let line = "(d * 16 + lane / 16 * 8 + lane % 8)";
        text.line(format!(
            "wf_load_matrices<true>(a[p], l + {line} * {} + warp % 4 * 32 + p * 16 + lane / 8 % 2 * 8);",
            SIDE + APART
        ));
    }
    text.close();
    text.unrolled("c", 4);
    text.line("unsigned b[4];");
    if by_depth[1] {
        let line = "(warp / 4 * 64 + c * 16 + lane / 16 * 8 + lane % 8)";
        text.line(format!(
            "wf_load_matrices<false>(b, r + {line} * {} + d * 16 + lane / 8 % 2 * 8);",
            DEPTH + APART
        ));
    } else {
        text.line(format!(
            "wf_load_matrices<true>(b, r + (d * 16 + lane % 16) * {} + warp / 4 * 64 + c * 16 + lane / 16 * 8);",
            SIDE + APART
        ));
    }
    text.unrolled("p", 2);
    text.line(format!("wf_mma(sums[p][2 * c], a[p], b[0], b[1], ({ty}*)0);"));
    text.line(format!("wf_mma(sums[p][2 * c + 1], a[p], b[2], b[3], ({ty}*)0);"));
    text.close();
    text.close();
    text.close();
}
