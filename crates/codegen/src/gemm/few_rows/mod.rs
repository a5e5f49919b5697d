//! Products of few rows with quantized weights on tensor cores: each code is read once, in the type that it is stored in.
//!
//! Weights are the left operand of `mma`, so that a warp has 16 or 8 columns of the result, and rows of activations fill its tiles of 8
//! columns. The warps of a block share the depth. Lanes read codes as they lie: the order of the depth inside a step is free where both
//! operands have the same. Codes of 4 bits are multiplied as numbers that lie above a power of two, and the sums of the activations, which
//! offsets need too, put that right.
//!
//! Each lane copies its own codes into shared memory, some steps before it multiplies them. Blocks go from tile to tile of the columns, so
//! that copies for the next tile are on their way while a tile ends.

mod copy;
mod multiply;
mod plan;
mod product;

use warpforge_fusion::cluster::Contraction;
use warpforge_fusion::precision::quantize::QuantizedWeights;

use self::copy::Copies;
use self::plan::{Codes, Plan, STAGES, TILE};
use self::product::Product;
use super::epilogue::Store;
use super::geometry::Geometry;
use crate::builder::{KernelBuilder, Launch};
use crate::index::{index_type, sum};
use crate::kernel::{Emitted, Request, Unsupported};
use crate::options::{Dialect, Effort};
use crate::text::Text;
use crate::types::tensor_core_type;

/// The most rows: with more, widening the weights costs less than multiplying so many tiles.
const MOST_ROWS: usize = 32;

/// The first compute capability that multiplies tiles of bf16 and copies behind the program's back.
const FIRST_CAPABILITY: u32 = 80;

/// Threads that a multiprocessor should have room for.
const RESIDENT: usize = 1024;

/// Most blocks that it is asked to have room for.
const MOST_RESIDENT: usize = 8;

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
        .filter(|_| options.compute_capability().is_some_and(|capability| capability >= FIRST_CAPABILITY))
        .ok_or_else(|| Unsupported::new("quantized weights without tensor cores: they are widened first"))?;
    let aligned = |stride: isize| stride >= 0 && stride % 8 == 0;
    if *m > MOST_ROWS || lhs.column != 1 || !aligned(lhs.offset) || (*m > 1 && !aligned(lhs.row)) {
        let what = "quantized weights by many rows, or by rows that are not aligned: they are widened first";
        return Err(Unsupported::new(what));
    }
    let codes = Codes::of(rhs.element, weights.groups)?;
    let plan = Plan::new([*m, *n, *k], codes, options.shared_of_block())?;
    let store = Store::new(contraction, cluster.output, *n);
    let mut builder = KernelBuilder::new(graph, options);
    let index = index_type(geometry.max_index.max(store.max_index(&builder)));
    let product = Product { plan, geometry: &geometry, ty, index };
    let plan = &product.plan;
    let (rows, codes) = (builder.read(lhs.value)?, builder.read(rhs.value)?);
    let copies = Copies::new(&product, codes);
    builder.salt().begin(&mut builder.text);
    let text = &mut builder.text;
    text.line("const int warp = WF_THREAD / 32, line = WF_THREAD % 32 / 4, part = WF_THREAD % 4;");
    text.line(format!("const {ty}* const x = {};", sum(&[rows, lhs.offset.to_string()])));
    product.rooms(text);
    copies.begin(&mut builder)?;
    builder.text.line("int turn = 0, place = 0;");
    let (tiles, blocks) = (plan.tiles, plan.blocks);
    builder.text.open(format!("for (int tile = WF_BLOCK; tile < {tiles}; tile += {blocks}, place ^= 1)"));
    if plan.is_persistent() {
        builder.text.open(format!("if (tile + {blocks} < {tiles})"));
        copies.factors(&mut builder, &format!("(tile + {blocks})"), "(place ^ 1)")?;
        builder.text.close();
    }
    product.multiply_tile(&mut builder.text, &copies);
    product.store_tile(&mut builder, &store)?;
    builder.text.close();
    builder.text.line("wf_copies_wait<0>();");
    builder.salt().end(&mut builder.text);
    let mut launch = Launch::new(blocks, plan.threads());
    launch.shared = plan.shared_bytes();
    launch.resident = if plan.row_tiles <= 2 { (RESIDENT / plan.threads()).min(MOST_RESIDENT) } else { 0 };
    let bits = if plan.codes.per_word() == 8 { 4 } else { 8 };
    let title = format!("gemm {m}x{n}x{k} with weights of {bits} bits");
    let kernel = builder.finish("dot", title, &launch, cluster.cost(graph))?;
    Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
}

impl Product<'_> {
    /// Emits the products of a tile, and the sums of each warp.
    fn multiply_tile(&self, text: &mut Text, copies: &Copies<'_>) {
        let plan = &self.plan;
        text.line(format!("float sums[{}][4] = {{}};", plan.row_tiles));
        text.open(format!("for (int count = 0; count < {}; ++count, ++turn)", plan.turns()));
        copies.take(text);
        copies.next(text, &format!("(turn + {}) % {STAGES}", STAGES - 1));
        text.line(format!("const int step = warp + count * {};", plan.warps));
        if !plan.is_even() {
            text.open(format!("if (step < {})", plan.steps));
        }
        self.multiply(text);
        if !plan.is_even() {
            text.close();
        }
        text.close();
    }

    /// Emits the sums of all warps, and what is done to them.
    fn store_tile(&self, builder: &mut KernelBuilder<'_>, store: &Store<'_>) -> Result<(), Unsupported> {
        let Self { plan, geometry, index, .. } = self;
        let (m, n, columns, across) = (geometry.m, geometry.n, plan.columns(), plan.row_tiles * TILE);
        let text = &mut builder.text;
        text.line(format!("float* const sums_of_tile = parts + place * {};", plan.parts()));
        text.unrolled("t", plan.row_tiles);
        text.unrolled("e", plan.halves * 2);
        let line = format!("warp * {columns} + e / 2 * {TILE} + line");
        text.line(format!("sums_of_tile[({line}) * {across} + t * {TILE} + part * 2 + e % 2] = sums[t][e];"));
        text.close();
        text.close();
        if plan.is_persistent() && plan.turns() < STAGES {
            // The factors of the next tile are among the latest copies.
            text.line("wf_copies_wait<0>();");
        }
        text.line("wf_sync();");
        text.open(format!("for (int at = WF_THREAD; at < {}; at += {})", m * columns, plan.threads()));
        text.line(format!("const {index} row = at / {columns};"));
        text.line(format!("const {index} column = ({index})tile * {columns} + at % {columns};"));
        text.open(format!("if (column < {n})"));
        text.line("float sum = 0;");
        text.unrolled("w", plan.warps);
        text.line(format!("sum += sums_of_tile[(w * {columns} + at % {columns}) * {across} + row];"));
        text.close();
        store.row(builder, "row", index);
        store.element(builder, "column", "sum", index)?;
        builder.text.close();
        builder.text.close();
        Ok(())
    }
}
