//! Products in f32: tiles of 128 by 128 in shared memory, eight by eight sums in the registers of each thread.

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{Cluster, Kind, Product};
use warpforge_tensor::{ElementType, FloatType};

use super::epilogue::Store;
use super::geometry::Geometry;
use super::{taken, tensor};
use crate::draft::{Draft, Launch};
use crate::index::{int, sum};
use crate::kernel::{Emitted, Unsupported};
use crate::options::Options;
use crate::steps::loaded;
use crate::text::Text;
use crate::types::stored;

/// Rows and columns of a tile, and elements that are summed at a time.
const SIDE: usize = 128;
const DEPTH: usize = 16;

/// From one line of a tile to the next in shared memory.
const LINE: usize = SIDE + 4;

/// Eight warps, four by two: each has 32 rows and 64 columns, its lanes four by eight.
const THREADS: usize = 256;

/// Whether products of this type are summed in f32.
pub(super) fn takes(graph: &Graph, product: &Product, geometry: &Geometry) -> bool {
    let float = |element: ElementType| {
        matches!(element, ElementType::Float(FloatType::F32 | FloatType::F16 | FloatType::Bf16))
    };
    float(graph.node(product.node).element) && float(geometry.lhs.element) && float(geometry.rhs.element)
}

/// One operand as a kernel reads it: rows of the left, columns of the right, each with the elements that are summed.
pub(super) struct Operand {
    pub(super) element: ElementType,
    pub(super) pointer: String,
    /// Rows or columns.
    pub(super) size: usize,
    /// Whether four elements that are read together lie along the sums.
    pub(super) by_depth: bool,
    /// Whether they may be read at once.
    pub(super) vectors: bool,
    /// Lines that find out where the element `sum` of `row` is.
    pub(super) lines: Vec<String>,
    /// Whether there is such an element, where that is not known otherwise, and its place.
    pub(super) exists: Option<String>,
    pub(super) place: String,
}

/// The names of an operand's first row or column, and of its tile in shared memory.
const NAMES: [(&str, &str); 2] = [("first", "left"), ("begin", "right")];

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
    product: &Product,
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
    kernel(draft, cluster, &store, &operands, &sizes, &places.finish(), title)
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
        lines: Vec::new(),
        exists: None,
        place: format!("{} + row * {along} + sum * {deep}", ["pa", "pb"][view]),
    })
}

/// The kernel of a product in tiles; `places` are lines before everything else, once for each block.
pub(super) fn kernel(
    mut draft: Draft<'_>,
    cluster: &Cluster,
    store: &Store<'_>,
    operands: &[Operand; 2],
    sizes: &Sizes,
    places: &str,
    title: String,
) -> Result<Emitted, Unsupported> {
    let Sizes { batches, m, n, k } = *sizes;
    let (across, down, deep) = (n.div_ceil(SIDE), m.div_ceil(SIDE), k.div_ceil(DEPTH).max(1));
    let index = int(store.reach(&draft).max(batches * m));
    draft.salt().begin(&mut draft.text);
    let text = &mut draft.text;
    text.line(format!("alignas(16) WF_SHARED float left[2][{}], right[2][{}];", DEPTH * LINE, DEPTH * LINE));
    text.line("const int warp = WF_THREAD / 32, lane = WF_THREAD % 32;");
    text.line("const int high = warp % 4 * 32 + lane / 8 * 4, wide = warp / 4 * 64 + lane % 8 * 4;");
    text.line(format!("const {index} batch = WF_BLOCK / {};", across * down));
    tensor::tile_order(text, across, down);
    places.lines().for_each(|line| text.line(line));
    text.line("float sums[8][8] = {};");
    text.line("float next[2][2][4];");
    fetch(&mut draft, operands, "0", k)?;
    keep(&mut draft, operands, "0");
    draft.text.line("wf_sync();");
    draft.text.open(format!("for (int j = 0; j < {deep}; ++j)"));
    draft.text.open(format!("if (j + 1 < {deep})"));
    fetch(&mut draft, operands, &format!("(j + 1) * {DEPTH}"), k)?;
    draft.text.close();
    multiply(&mut draft);
    draft.text.open(format!("if (j + 1 < {deep})"));
    keep(&mut draft, operands, "(j + 1) % 2");
    draft.text.close();
    draft.text.line("wf_sync();");
    draft.text.close();
    let text = &mut draft.text;
    text.unrolled("y", 8);
    text.line("const int own = first + high + y / 4 * 16 + y % 4;");
    text.open(format!("if (own < {m})"));
    text.line(format!("const {index} row = batch * {m} + own;"));
    store.row(&mut draft, "row", index);
    if store.in_runs(4) {
        draft.text.unrolled("x", 2);
        draft.text.line("const int column = begin + wide + x * 32;");
        draft.text.open(format!("if (column < {n})"));
        store.run(&mut draft, "column", 4, "sums[y][x * 4 + e]", index)?;
    } else {
        draft.text.unrolled("x", 8);
        draft.text.line("const int column = begin + wide + x / 4 * 32 + x % 4;");
        draft.text.open(format!("if (column < {n})"));
        store.element(&mut draft, "column", "sums[y][x]", index)?;
    }
    for _ in 0..4 {
        draft.text.close();
    }
    draft.salt().end(&mut draft.text);
    let mut launch = Launch::new(batches * across * down, THREADS);
    launch.resident = 2;
    let cost = cluster.cost(draft.graph);
    let what = if matches!(cluster.kind, Kind::Conv(_)) { "conv" } else { "dot" };
    Ok(Emitted { kernels: vec![draft.finish(what, title, &launch, cost)?], scratch: Vec::new() })
}

/// Lines that read a thread's part of the next tiles into registers.
fn fetch(draft: &mut Draft<'_>, operands: &[Operand; 2], depth: &str, k: usize) -> Result<(), Unsupported> {
    let products = draft.options.products;
    for (at, operand) in operands.iter().enumerate() {
        let Operand { element, pointer, size, lines, place, .. } = operand;
        let (first, _) = NAMES[at];
        let text = &mut draft.text;
        text.unrolled("u", 2);
        let (line, begin) = spots(operand);
        text.line(format!("const int line = {line}, element = {begin};"));
        let (row, sum) = if operand.by_depth { ("line", "element") } else { ("element", "line") };
        let more = operand.exists.as_ref().map_or_else(String::new, |exists| format!(" && {exists}"));
        if operand.vectors {
            text.line(format!("const int row = {first} + {row}, sum = {depth} + {sum};"));
            lines.iter().for_each(|line| text.line(line));
            let ty = format!("wf_vec<{}, 4>", stored(*element)?);
            text.open(format!("if (row < {size} && sum < {k}{more})"));
            text.line(format!("const {ty} four = *(const {ty}*)({pointer} + {place});"));
            text.unrolled("e", 4);
            let value = taken(*element, products, "wf_get(four.x[e])".to_owned());
            text.line(format!("next[{at}][u][e] = {value};"));
            text.close();
            text.close();
            text.open("else");
            text.unrolled("e", 4);
            text.line(format!("next[{at}][u][e] = 0.0f;"));
            text.close();
            text.close();
        } else {
            text.unrolled("e", 4);
            let (r, s) = if operand.by_depth { ("", " + e") } else { (" + e", "") };
            text.line(format!("const int row = {first} + {row}{r}, sum = {depth} + {sum}{s};"));
            lines.iter().for_each(|line| text.line(line));
            let value = taken(*element, products, loaded(pointer, place));
            text.line(format!("next[{at}][u][e] = row < {size} && sum < {k}{more} ? {value} : 0.0f;"));
            text.close();
        }
        text.close();
    }
    Ok(())
}

/// Which line of a tile a thread reads in its turn `u`, and its first element there.
fn spots(operand: &Operand) -> (String, String) {
    if operand.by_depth {
        // 128 lines of 16 elements.
        ("WF_THREAD / 4 + u * 64".to_owned(), "WF_THREAD % 4 * 4".to_owned())
    } else {
        // 16 lines of 128 elements.
        ("WF_THREAD / 32 + u * 8".to_owned(), "WF_THREAD % 32 * 4".to_owned())
    }
}

/// Lines that put what was read into shared memory, summed elements line by line.
fn keep(draft: &mut Draft<'_>, operands: &[Operand; 2], stage: &str) {
    for (at, operand) in operands.iter().enumerate() {
        let text = &mut draft.text;
        let (line, element) = spots(operand);
        text.unrolled("u", 2);
        text.line(format!("const int line = {line}, element = {element};"));
        let (_, tile) = NAMES[at];
        if operand.by_depth {
            text.unrolled("e", 4);
            text.line(format!("{tile}[{stage}][(element + e) * {LINE} + line] = next[{at}][u][e];"));
            text.close();
        } else {
            text.line("wf_vec<float, 4> four;");
            text.unrolled("e", 4);
            text.line(format!("four.x[e] = next[{at}][u][e];"));
            text.close();
            text.line(format!("*(wf_vec<float, 4>*)({tile}[{stage}] + line * {LINE} + element) = four;"));
        }
        text.close();
    }
}

/// Lines that multiply the tiles of a stage.
fn multiply(draft: &mut Draft<'_>) {
    let text = &mut draft.text;
    text.unrolled("d", DEPTH);
    text.line("wf_vec<float, 4> a[2], b[2];");
    text.unrolled("h", 2);
    text.line(format!("a[h] = *(const wf_vec<float, 4>*)(left[j % 2] + d * {LINE} + high + h * 16);"));
    text.line(format!("b[h] = *(const wf_vec<float, 4>*)(right[j % 2] + d * {LINE} + wide + h * 32);"));
    text.close();
    text.unrolled("y", 8);
    text.unrolled("x", 8);
    text.line("sums[y][x] += a[y / 4].x[y % 4] * b[x / 4].x[x % 4];");
    text.close();
    text.close();
    text.close();
}
