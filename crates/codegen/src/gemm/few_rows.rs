//! Products of few rows with quantized weights on tensor cores: each code is read once, in the type that it is stored in.
//!
//! Weights are the left operand of `mma`, so that a warp has 16 or 8 columns of the result, and rows of activations fill its tiles of 8
//! columns. The warps of a block share the depth. Lanes read codes as they lie: the order of the depth inside a step is free where both
//! operands have the same. Codes of 4 bits are multiplied as numbers that lie above a power of two, and the sums of the activations, which
//! offsets need too, put that right.

use warpforge_fusion::cluster::Contraction;
use warpforge_fusion::precision::quantize::{QuantizedWeights, WeightGroups};
use warpforge_tensor::{ElementType, FloatType};

use super::epilogue::Store;
use super::geometry::Geometry;
use crate::builder::{KernelBuilder, Launch};
use crate::index::{index_type, sum};
use crate::kernel::{Emitted, Request, Unsupported};
use crate::options::{Dialect, Effort};
use crate::text::Text;
use crate::types::tensor_core_type;

/// The most rows: with more, widening the weights costs less than multiplying so many tiles.
const MOST_ROWS: usize = 64;

/// Rows of a tile.
const TILE: usize = 8;

/// Warps that keep the memory of a device busy.
const BUSY_WARPS: usize = 3584;

/// Threads that a multiprocessor should have room for.
const RESIDENT: usize = 1024;

/// Most blocks that it is asked to have room for.
const MOST_RESIDENT: usize = 8;

/// Blocks that a device should have.
const BUSY_BLOCKS: usize = 256;

/// Most warps of a block.
const MOST_WARPS: usize = 16;

/// Bytes of activations that lie in shared memory, at most. From the first-level cache they would come behind the codes, which come from main
/// memory.
const SHARED_ROWS: usize = 64 << 10;

/// Elements between the rows of activations in shared memory, so that lanes read other banks.
const PADDING: usize = 8;

/// Bytes of codes that a lane loads at once, at most.
const LANE_BYTES: usize = 16;

/// Lanes that share a line of codes.
const LANES: usize = 4;

/// How weights are stored.
#[derive(Debug, Clone, Copy)]
enum Codes {
    /// Words of eight codes of 4 bits, above zero by eight.
    Grouped(WeightGroups),
    I8,
    F8,
}

impl Codes {
    fn of(element: ElementType, groups: Option<WeightGroups>) -> Result<Self, Unsupported> {
        match (element, groups) {
            (ElementType::U32, Some(groups)) => Ok(Self::Grouped(groups)),
            (ElementType::I8, None) => Ok(Self::I8),
            (ElementType::Float(FloatType::F8E4M3Fn), None) => Ok(Self::F8),
            _ => Err(Unsupported::new(format!("weights stored as {element}"))),
        }
    }

    /// Codes of a word of 32 bits.
    fn per_word(self) -> usize {
        if matches!(self, Self::Grouped(_)) { 8 } else { 4 }
    }

    /// Words that a lane loads at once: as many as fit where a step of all lanes lies in one group.
    fn words(self, depth: usize) -> Option<usize> {
        let whole = match self {
            Self::Grouped(groups) => groups.size,
            _ => depth * LANES,
        };
        let most = LANE_BYTES / 4;
        let fits = |words: &usize| {
            let codes = words * self.per_word();
            whole.is_multiple_of(codes * LANES) && depth.is_multiple_of(codes)
        };
        [most, most / 2, most / 4].into_iter().find(|words| fits(words) && words * self.per_word() >= 8)
    }
}

/// The sizes of the kernel.
struct Plan {
    codes: Codes,
    words: usize,
    /// Tiles of rows of activations.
    tiles: usize,
    /// Halves of the 16 columns that a block has.
    halves: usize,
    warps: usize,
    /// Steps of the depth.
    steps: usize,
    /// Whether the activations lie in shared memory.
    shares_rows: bool,
}

impl Plan {
    fn new(geometry: &Geometry, codes: Codes) -> Result<Self, Unsupported> {
        let Geometry { m, n, k, .. } = *geometry;
        let words = codes.words(k).ok_or_else(|| Unsupported::new("groups that lanes do not share"))?;
        let steps = k.div_ceil(words * codes.per_word() * LANES);
        let halves = if n.div_ceil(2 * TILE) >= BUSY_BLOCKS { 2 } else { 1 };
        let blocks = n.div_ceil(halves * TILE);
        let warps = BUSY_WARPS.div_ceil(blocks).next_power_of_two().clamp(4, MOST_WARPS);
        let warps = warps.min(steps.next_power_of_two());
        let tiles = m.div_ceil(TILE);
        let shares_rows = m * (k + PADDING) * 2 <= SHARED_ROWS;
        Ok(Self { codes, words, tiles, halves, warps, steps, shares_rows })
    }

    /// Codes of a line in a step.
    fn step(&self) -> usize {
        self.lane_codes() * LANES
    }

    fn lane_codes(&self) -> usize {
        self.words * self.codes.per_word()
    }

    /// Columns of the result that a block has.
    fn columns(&self) -> usize {
        self.halves * TILE
    }
}

pub(super) fn emit(
    request: Request<'_>,
    contraction: &Contraction,
    weights: &QuantizedWeights,
) -> Result<Emitted, Unsupported> {
    let Request { graph, cluster, options } = request;
    let geometry = Geometry::new(graph, contraction)?;
    let Geometry { m, n, k, lhs, rhs, .. } = &geometry;
    let ty = tensor_core_type(&[lhs.element])
        .filter(|_| options.dialect == Dialect::Cuda && options.effort == Effort::Fast)
        .ok_or_else(|| Unsupported::new("quantized weights without tensor cores"))?;
    let aligned = |stride: isize| stride >= 0 && stride % 8 == 0;
    if *m > MOST_ROWS || lhs.column != 1 || !aligned(lhs.offset) || (*m > 1 && !aligned(lhs.row)) {
        return Err(Unsupported::new("quantized weights by many rows, or by rows that are not aligned"));
    }
    let plan = Plan::new(&geometry, Codes::of(rhs.element, weights.groups)?)?;
    let store = Store::new(contraction, cluster.output, *n);
    let mut builder = KernelBuilder::new(graph, options);
    let index = index_type(geometry.max_index.max(store.max_index(&builder)));
    let (rows, codes) = (builder.read(lhs.value)?, builder.read(rhs.value)?);
    builder.salt().begin(&mut builder.text);
    let (threads, columns, across) = (plan.warps * 32, plan.columns(), plan.tiles * TILE);
    let text = &mut builder.text;
    text.line(format!("WF_SHARED float parts[{}];", plan.warps * columns * across));
    text.line("const int warp = WF_THREAD / 32, line = WF_THREAD % 32 / 4, part = WF_THREAD % 4;");
    for half in 0..plan.halves {
        let column = format!("WF_BLOCK * {columns} + {} + line", half * TILE);
        text.line(format!("const {index} n{half} = {column} < {n} ? {column} : {};", n - 1));
        text.line(format!(
            "const unsigned* const w{half} = (const unsigned*){codes} + n{half} * {};",
            k / plan.codes.per_word()
        ));
    }
    text.line(format!("const {ty}* const x = {};", sum(&[rows, lhs.offset.to_string()])));
    text.line(format!("float sums[{}][4] = {{}};", plan.tiles));
    plan.load(&mut builder, "", "warp", *k)?;
    if plan.shares_rows {
        plan.share_rows(&mut builder.text, &geometry, ty, index);
    }
    builder.text.open(format!("for (int step = warp; step < {}; step += {})", plan.steps, plan.warps));
    // While these are multiplied, the next ones are on their way.
    plan.load(&mut builder, "next_", &format!("(step + {})", plan.warps), *k)?;
    builder.text.line(format!("const int at = {};", plan.place("step")));
    plan.multiply(&mut builder, &geometry, ty, index);
    let text = &mut builder.text;
    for half in 0..plan.halves {
        for name in plan.loaded() {
            text.line(format!("{name}{half} = next_{name}{half};"));
        }
    }
    text.close();
    text.unrolled("t", plan.tiles);
    text.unrolled("e", plan.halves * 2);
    let line = format!("warp * {columns} + e / 2 * {TILE} + line");
    text.line(format!("parts[({line}) * {across} + t * {TILE} + part * 2 + e % 2] = sums[t][e];"));
    text.close();
    text.close();
    text.line("wf_sync();");
    text.open(format!("for (int at = WF_THREAD; at < {}; at += {threads})", m * columns));
    text.line(format!("const {index} row = at / {columns};"));
    text.line(format!("const {index} column = WF_BLOCK * {columns} + at % {columns};"));
    text.open(format!("if (column < {n})"));
    text.line("float sum = 0;");
    text.unrolled("w", plan.warps);
    text.line(format!("sum += parts[(w * {columns} + at % {columns}) * {across} + row];"));
    text.close();
    store.row(&mut builder, "row", index);
    store.element(&mut builder, "column", "sum", index)?;
    builder.text.close();
    builder.text.close();
    builder.salt().end(&mut builder.text);
    let mut launch = Launch::new(n.div_ceil(columns), threads);
    launch.shared = if plan.shares_rows { m * (k + PADDING) * 2 } else { 0 };
    launch.resident = if plan.tiles <= 2 { (RESIDENT / threads).min(MOST_RESIDENT) } else { 0 };
    let bits = if plan.codes.per_word() == 8 { 4 } else { 8 };
    let title = format!("gemm {m}x{n}x{k} with weights of {bits} bits");
    let kernel = builder.finish("dot", title, &launch, cluster.cost(graph))?;
    Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
}

impl Plan {
    /// The first code of a lane in a step.
    fn place(&self, step: &str) -> String {
        format!("{step} * {} + part * {}", self.step(), self.lane_codes())
    }

    /// What is loaded for a step, for each half of the columns.
    fn loaded(&self) -> &'static [&'static str] {
        if matches!(self.codes, Codes::Grouped(_)) { &["codes", "scale", "offset"] } else { &["codes"] }
    }

    /// Emits the loads of a step; beyond the depth there are zeros.
    fn load(
        &self,
        builder: &mut KernelBuilder<'_>,
        prefix: &str,
        step: &str,
        k: usize,
    ) -> Result<(), Unsupported> {
        let Self { words, halves, codes, .. } = *self;
        for half in 0..halves {
            builder.text.line(format!("wf_vec<unsigned, {words}> {prefix}codes{half} = {{}};"));
            if let Codes::Grouped(_) = codes {
                // Converted where they are used: that waits for them.
                builder
                    .text
                    .line(format!("wf_bf16 {prefix}scale{half} = {{}}, {prefix}offset{half} = {{}};"));
            }
        }
        builder.text.open("");
        builder.text.line(format!("const int at = {};", self.place(step)));
        builder.text.open(format!("if (at < {k})"));
        for half in 0..halves {
            let from = format!("w{half} + at / {}", codes.per_word());
            let vector = format!("wf_vec<unsigned, {words}>");
            builder.text.line(format!("{prefix}codes{half} = *(const {vector}*)({from});"));
            if let Codes::Grouped(groups) = codes {
                let place =
                    format!("n{half} * {} + {step} * {} / {}", k / groups.size, self.step(), groups.size);
                for (name, value) in [("scale", groups.scales), ("offset", groups.offsets)] {
                    let pointer = builder.read(value)?;
                    builder.text.line(format!("{prefix}{name}{half} = {pointer}[{place}];"));
                }
            }
        }
        builder.text.close();
        builder.text.close();
        Ok(())
    }

    /// Emits the copy of the activations into shared memory.
    fn share_rows(&self, text: &mut Text, geometry: &Geometry, ty: &str, index: &str) {
        let (m, k, row) = (geometry.m, geometry.k, geometry.lhs.row);
        let vector = format!("wf_vec<{ty}, 8>");
        text.line("WF_DYNAMIC_SHARED(room);");
        text.line(format!("{ty}* const rows = ({ty}*)room;"));
        text.open(format!("for (int at = WF_THREAD * 8; at < {}; at += {})", m * k, self.warps * 32 * 8));
        text.line(format!(
            "*({vector}*)(rows + at / {k} * {} + at % {k}) = *(const {vector}*)(x + ({index})(at / {k}) * {row} + at % {k});",
            k + PADDING
        ));
        text.close();
        text.line("wf_sync();");
    }

    /// Emits the products of a step.
    fn multiply(&self, builder: &mut KernelBuilder<'_>, geometry: &Geometry, ty: &str, index: &str) {
        let grouped = matches!(self.codes, Codes::Grouped(_));
        let text = &mut builder.text;
        if grouped {
            text.line(format!("float own[{0}][4] = {{}}, given[{0}][4] = {{}};", self.tiles));
            text.line(
                "const unsigned ones[4] = {wf_ones(X), wf_ones(X), wf_ones(X), wf_ones(X)};"
                    .replace('X', &format!("({ty}*)0")),
            );
        }
        // Eight elements of the depth at a time.
        let words = 8 / self.codes.per_word();
        text.unrolled("c", self.words / words);
        for pair in 0..2 {
            text.line(format!("unsigned l{pair}[4] = {{}};"));
            for half in 0..self.halves {
                for side in 0..2 {
                    let value = self.pair(pair * 2 + side, half, words, ty);
                    text.line(format!("l{pair}[{}] = {value};", side * 2 + half));
                }
            }
        }
        text.unrolled("t", self.tiles);
        text.line("wf_vec<unsigned, 4> eight = {};");
        let (m, k) = (geometry.m, geometry.k);
        let from = match self.shares_rows {
            true => format!("rows + (t * {TILE} + line) * {} + at + c * 8", k + PADDING),
            false => format!("x + ({index})(t * {TILE} + line) * {} + at + c * 8", geometry.lhs.row),
        };
        text.line(format!(
            "if (at < {k} && t * {TILE} + line < {m}) eight = *(const wf_vec<unsigned, 4>*)({from});"
        ));
        let target = if grouped { "own" } else { "sums" };
        for pair in 0..2 {
            let sides = [0, 1].map(|side| self.right(pair * 2 + side));
            text.line(format!("wf_mma({target}[t], l{pair}, {}, {}, ({ty}*)0);", sides[0], sides[1]));
            if grouped {
                text.line(format!("wf_mma(given[t], ones, {}, {}, ({ty}*)0);", sides[0], sides[1]));
            }
        }
        text.close();
        text.close();
        if grouped {
            self.scale(text, ty);
        }
    }

    /// A register of the left operand: two elements, of those that [`Plan::right`] gives too.
    fn pair(&self, number: usize, half: usize, words: usize, ty: &str) -> String {
        let word = |at: usize| format!("codes{half}.x[{}]", sum(&[format!("c * {words}"), at.to_string()]));
        match self.codes {
            Codes::Grouped(_) => format!("wf_nibbles({}, {number}, ({ty}*)0)", word(0)),
            Codes::I8 => format!("wf_i8_pair({}, {}, ({ty}*)0)", word(number / 2), number % 2),
            Codes::F8 => format!("wf_f8_pair({}, {}, ({ty}*)0)", word(number / 2), number % 2),
        }
    }

    fn right(&self, number: usize) -> String {
        match self.codes {
            Codes::Grouped(_) => format!("wf_apart(eight, {number})"),
            _ => format!("eight.x[{number}]"),
        }
    }

    /// Emits the scale and the offset of the group that a step lies in.
    fn scale(&self, text: &mut Text, ty: &str) {
        for half in 0..self.halves {
            let zero = format!("wf_nibble_zero(({ty}*)0)");
            text.line(format!("const float by{half} = wf_get(scale{half});"));
            text.line(format!("const float moved{half} = wf_fma(-{zero}, by{half}, wf_get(offset{half}));"));
        }
        text.unrolled("t", self.tiles);
        for half in 0..self.halves {
            for element in 0..2 {
                let at = half * 2 + element;
                text.line(format!(
                    "sums[t][{at}] = wf_fma(by{half}, own[t][{at}], wf_fma(moved{half}, given[t][{element}], sums[t][{at}]));"
                ));
            }
        }
        text.close();
    }
}
