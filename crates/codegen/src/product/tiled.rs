//! Products in f32: tiles of 128 by 128 in shared memory, eight by eight sums in the registers of each thread.

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{Cluster, Product};
use warpforge_tensor::{ElementType, FloatType};

use super::epilogue::Store;
use super::geometry::{Geometry, Side};
use super::{taken, tensor};
use crate::draft::{Draft, Launch};
use crate::index::{int, sum};
use crate::kernel::{Emitted, Unsupported};
use crate::options::Options;
use crate::steps::loaded;
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

/// One operand as a kernel reads it.
struct Operand<'a> {
    side: &'a Side,
    pointer: String,
    /// The names of its place, of its first row or column, of its tile in shared memory.
    place: &'static str,
    first: &'static str,
    tile: &'static str,
    /// Between its rows or columns, and between the elements that are summed.
    along: isize,
    deep: isize,
    size: usize,
    /// Whether four elements that are read at once lie along the sums.
    by_depth: bool,
    /// Whether four elements may be read at once.
    vectors: bool,
}

pub(super) fn emit(
    graph: &Graph,
    cluster: &Cluster,
    product: &Product,
    geometry: &Geometry,
    options: &Options,
) -> Result<Emitted, Unsupported> {
    let Geometry { batch, m, n, k, lhs, rhs, .. } = geometry;
    let store = Store::new(product, cluster.output, *n);
    let mut draft = Draft::new(graph, options);
    let index = int(geometry.reach.max(store.reach(&draft)));
    let (across, down, deep) = (n.div_ceil(SIDE), m.div_ceil(SIDE), k.div_ceil(DEPTH).max(1));
    let operand = |draft: &mut Draft<'_>, view: usize| -> Result<Operand<'_>, Unsupported> {
        let (side, size) = if view == 0 { (lhs, *m) } else { (rhs, *n) };
        let (along, deep) = if view == 0 { (side.row, side.column) } else { (side.column, side.row) };
        let by_depth = along != 1 || deep == 1;
        let (outer, run) = if by_depth { (along, *k) } else { (deep, size) };
        let four = |stride: isize| stride % 4 == 0;
        let vectors = (if by_depth { deep } else { along }) == 1
            && four(outer)
            && run.is_multiple_of(4)
            && four(side.offset)
            && batch.strides[view].iter().all(|&stride| four(stride));
        Ok(Operand {
            side,
            pointer: draft.read(side.value)?,
            place: ["pa", "pb"][view],
            first: ["first", "begin"][view],
            tile: ["left", "right"][view],
            along,
            deep,
            size,
            by_depth,
            vectors,
        })
    };
    let operands = [operand(&mut draft, 0)?, operand(&mut draft, 1)?];
    draft.salt().begin(&mut draft.text);
    let text = &mut draft.text;
    text.line(format!("alignas(16) WF_SHARED float left[2][{}], right[2][{}];", DEPTH * LINE, DEPTH * LINE));
    text.line("const int warp = WF_THREAD / 32, lane = WF_THREAD % 32;");
    text.line("const int high = warp % 4 * 32 + lane / 8 * 4, wide = warp / 4 * 64 + lane % 8 * 4;");
    text.line(format!("const {index} batch = WF_BLOCK / {};", across * down));
    text.open("");
    tensor::tile_order(text, across, down);
    batch.split(text, "batch", "x", index);
    for (view, operand) in operands.iter().enumerate() {
        let place = sum(&[operand.side.offset.to_string(), batch.place(view, "x")]);
        text.line(format!("const {index} {} = {place};", operand.place));
    }
    text.line("float sums[8][8] = {};");
    text.line("float next[2][2][4];");
    fetch(&mut draft, &operands, "0", *k, options)?;
    keep(&mut draft, &operands, "0");
    draft.text.line("wf_sync();");
    draft.text.open(format!("for (int j = 0; j < {deep}; ++j)"));
    draft.text.open(format!("if (j + 1 < {deep})"));
    fetch(&mut draft, &operands, &format!("(j + 1) * {DEPTH}"), *k, options)?;
    draft.text.close();
    multiply(&mut draft);
    draft.text.open(format!("if (j + 1 < {deep})"));
    keep(&mut draft, &operands, "(j + 1) % 2");
    draft.text.close();
    draft.text.line("wf_sync();");
    draft.text.close();
    let text = &mut draft.text;
    text.unrolled("y", 8);
    text.line("const int own = first + high + y / 4 * 16 + y % 4;");
    text.open(format!("if (own < {m})"));
    text.line(format!("const {index} row = batch * {m} + own;"));
    store.row(&mut draft, "row", index);
    draft.text.unrolled("x", 8);
    draft.text.line("const int column = begin + wide + x / 4 * 32 + x % 4;");
    draft.text.open(format!("if (column < {n})"));
    store.element(&mut draft, "column", "sums[y][x]", index)?;
    for _ in 0..5 {
        draft.text.close();
    }
    draft.salt().end(&mut draft.text);
    let mut launch = Launch::new(geometry.batches() * across * down, THREADS);
    launch.resident = 2;
    let title = format!("product {}x{m}x{n}x{k} in tiles", geometry.batches());
    let kernel = draft.finish("dot", title, &launch, cluster.cost(graph))?;
    Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
}

/// Lines that read a thread's part of the next tiles into registers.
fn fetch(
    draft: &mut Draft<'_>,
    operands: &[Operand<'_>; 2],
    depth: &str,
    k: usize,
    options: &Options,
) -> Result<(), Unsupported> {
    for (at, operand) in operands.iter().enumerate() {
        let Operand { side, pointer, place, first, along, deep, size, .. } = operand;
        let text = &mut draft.text;
        text.unrolled("u", 2);
        let (line, element) = spots(operand);
        text.line(format!("const int line = {line}, element = {element};"));
        let (row, sum) = if operand.by_depth { ("line", "element") } else { ("element", "line") };
        text.line(format!("const int row = {first} + {row}, sum = {depth} + {sum};"));
        let source = format!("{place} + row * {along} + sum * {deep}");
        if operand.vectors {
            let ty = format!("wf_vec<{}, 4>", stored(side.element)?);
            text.open(format!("if (row < {size} && sum < {k})"));
            text.line(format!("const {ty} four = *(const {ty}*)({pointer} + {source});"));
            text.unrolled("e", 4);
            let value = taken(side.element, options.products, "wf_get(four.x[e])".to_owned());
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
            let (r, s, step) =
                if operand.by_depth { ("row", "sum + e", deep) } else { ("row + e", "sum", along) };
            let value = loaded(pointer, &format!("{source} + e * {step}"));
            let value = taken(side.element, options.products, value);
            text.line(format!("next[{at}][u][e] = {r} < {size} && {s} < {k} ? {value} : 0.0f;"));
            text.close();
        }
        text.close();
    }
    Ok(())
}

/// Which line of a tile a thread reads in its turn `u`, and its first element there.
fn spots(operand: &Operand<'_>) -> (String, String) {
    if operand.by_depth {
        // 128 lines of 16 elements.
        ("WF_THREAD / 4 + u * 64".to_owned(), "WF_THREAD % 4 * 4".to_owned())
    } else {
        // 16 lines of 128 elements.
        ("WF_THREAD / 32 + u * 8".to_owned(), "WF_THREAD % 32 * 4".to_owned())
    }
}

/// Lines that put what was read into shared memory, summed elements line by line.
fn keep(draft: &mut Draft<'_>, operands: &[Operand<'_>; 2], stage: &str) {
    for (at, operand) in operands.iter().enumerate() {
        let text = &mut draft.text;
        let (line, element) = spots(operand);
        text.unrolled("u", 2);
        text.line(format!("const int line = {line}, element = {element};"));
        let tile = operand.tile;
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
