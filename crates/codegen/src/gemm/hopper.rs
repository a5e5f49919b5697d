//! GEMMs of bf16 and f16 for sm_90: tiles of 128 by 256, loaded by TMA and multiplied by two consumer warp groups
//! with wgmma; one thread of a producer warp group issues the copies.
//!
//! The kernel is persistent: one block per multiprocessor, so that copies for the next tile overlap with the store of
//! the last.

use warpforge_fusion::cluster::Contraction;

use super::epilogue::Store;
use super::geometry::{Geometry, Side};
use super::tensor_core::{store_pair, tile_order};
use crate::builder::{KernelBuilder, Launch};
use crate::index::index_type;
use crate::kernel::{Emitted, Request, TensorMap, Unsupported};
use crate::options::{MULTIPROCESSORS, Options};

/// Tile size in M, N and K; a K step is a line of 128 bytes.
const ROWS: usize = 128;
const COLUMNS: usize = 256;
const DEPTH: usize = 64;

/// Pipeline stages.
const STAGES: usize = 4;

/// One producer and two consumer warp groups.
const THREADS: usize = 384;

/// Persistent blocks.
const BLOCKS: usize = MULTIPROCESSORS;

/// Rows of tiles in a rasterisation group.
const GROUP: usize = 16;

/// Smallest M, N and K for which tiles are not mostly empty.
const MIN_SIZE: usize = 64;

/// Whether the GEMM is supported: an sm_90 device and 16-bit operands that TMA can read.
pub(super) fn supports(geometry: &Geometry, options: &Options) -> bool {
    let Geometry { batch, m, n, k, lhs, rhs, .. } = geometry;
    options.architecture == "sm_90"
        && [m, n, k].into_iter().all(|&size| size >= MIN_SIZE)
        && batch.dims.len() <= 1
        && batch.strides.iter().flatten().all(|&stride| stride > 0 && stride % 8 == 0)
        && [lhs, rhs].into_iter().all(readable)
}

/// Whether TMA can read an operand: contiguous lines with 16-byte aligned starts.
fn readable(side: &Side) -> bool {
    let [inner, outer] = if side.column == 1 { [side.column, side.row] } else { [side.row, side.column] };
    inner == 1 && outer > 1 && outer % 8 == 0 && side.offset >= 0 && side.offset % 8 == 0
}

/// An operand loaded by TMA.
struct TmaOperand {
    map: TensorMap,
    /// Whether the operand is contiguous along M or N instead of K.
    transposed: bool,
    /// TMA copies per tile.
    boxes: usize,
    /// Names of the tensor map, of the tiles, and of the first row or column.
    name: String,
    tiles: &'static str,
    first: &'static str,
}

impl TmaOperand {
    fn new(builder: &mut KernelBuilder<'_>, geometry: &Geometry, view: usize) -> Self {
        let left = view == 0;
        let (side, size, across) =
            if left { (&geometry.lhs, geometry.m, ROWS) } else { (&geometry.rhs, geometry.n, COLUMNS) };
        let (along, deep) = if left { (side.row, side.column) } else { (side.column, side.row) };
        let transposed = deep != 1;
        let (inner, lines, stride) =
            if transposed { (size, geometry.k, deep) } else { (geometry.k, size, along) };
        let boxes = if transposed { across / DEPTH } else { 1 };
        let apart = geometry.batch.strides[view].first().copied().unwrap_or(stride * lines as isize);
        let map = TensorMap {
            value: side.value,
            offset: side.offset as u64 * 2,
            dims: [inner as u64, lines as u64, geometry.batches() as u64],
            strides: [stride as u64 * 2, apart as u64 * 2],
            lines: if transposed { DEPTH } else { across } as u32,
        };
        let name = builder.map(map);
        let (tiles, first) = if left { ("left", "first") } else { ("right", "begin") };
        Self { map, transposed, boxes, name, tiles, first }
    }

    fn bytes(&self) -> usize {
        self.boxes * self.map.lines as usize * DEPTH * 2
    }

    /// Emits the copies of a pipeline stage.
    fn issue_copies(&self, builder: &mut KernelBuilder<'_>) {
        for at in 0..self.boxes {
            let Self { name, tiles, first, .. } = self;
            let (x, y) = if self.transposed {
                (format!("{first} + {}", at * DEPTH), format!("j * {DEPTH}"))
            } else {
                (format!("j * {DEPTH}"), (*first).to_owned())
            };
            let to = format!("{tiles} + stage * {} + {}", self.bytes(), at * DEPTH * 128);
            builder.text.line(format!("wf_tensor_map_copy({to}, {name}, {x}, {y}, batch, full + stage);"));
        }
    }

    /// The wgmma matrix descriptor of K step `d`.
    fn matrix(&self, from: &str) -> String {
        let step = if self.transposed { 16 * 128 } else { 32 };
        format!("wf_matrix_at({from} + d * {step}, {})", DEPTH * 128)
    }
}

pub(super) fn emit(
    request: Request<'_>,
    contraction: &Contraction,
    geometry: &Geometry,
    ty: &'static str,
) -> Result<Emitted, Unsupported> {
    let Request { graph, cluster, options } = request;
    let (m, n, k, batches) = (geometry.m, geometry.n, geometry.k, geometry.batches());
    let store = Store::new(contraction, cluster.output, n);
    let mut builder = KernelBuilder::new(graph, options);
    let index = index_type(geometry.max_index.max(store.max_index(&builder)));
    let (across, down, deep) = (n.div_ceil(COLUMNS), m.div_ceil(ROWS), k.div_ceil(DEPTH));
    let jobs = batches * across * down;
    let blocks = jobs.min(BLOCKS);
    let sides = [TmaOperand::new(&mut builder, geometry, 0), TmaOperand::new(&mut builder, geometry, 1)];
    let bytes = sides[0].bytes() + sides[1].bytes();
    builder.salt().begin(&mut builder.text);
    let text = &mut builder.text;
    text.line("WF_DYNAMIC_SHARED(room);");
    text.line("unsigned char* const left = wf_from_1024(room);");
    text.line(format!("unsigned char* const right = left + {};", STAGES * sides[0].bytes()));
    text.line(format!("unsigned long long* const full = (unsigned long long*)(left + {});", STAGES * bytes));
    text.line(format!("unsigned long long* const empty = full + {STAGES};"));
    text.line("const int part = WF_THREAD / 128, lane = WF_THREAD % 32;");
    text.open("if (WF_THREAD == 0)");
    text.open(format!("for (int at = 0; at < {STAGES}; ++at)"));
    text.line("wf_barrier_begin(full + at, 1);");
    text.line("wf_barrier_begin(empty + at, 2);");
    text.close();
    text.line("wf_barriers_begun();");
    text.close();
    text.line("wf_sync();");
    text.line("int stage = 0, phase = 0;");
    text.open("if (part == 0)");
    text.line("wf_fewer_registers<40>();");
    text.open("if (WF_THREAD == 0)");
    let each_job = |builder: &mut KernelBuilder<'_>| {
        let text = &mut builder.text;
        text.open(format!("for (int job = WF_BLOCK; job < {jobs}; job += {blocks})"));
        text.line(format!("const int batch = job / {};", across * down));
        tile_order(text, "job", [down, across], [ROWS, COLUMNS], GROUP);
    };
    let step = format!("if (++stage == {STAGES}) {{ stage = 0; phase ^= 1; }}");
    each_job(&mut builder);
    builder.text.open(format!("for (int j = 0; j < {deep}; ++j)"));
    builder.text.line("wf_barrier_wait(empty + stage, phase ^ 1);");
    builder.text.line(format!("wf_barrier_expect(full + stage, {bytes});"));
    sides.iter().for_each(|side| side.issue_copies(&mut builder));
    builder.text.line(&step);
    for _ in 0..4 {
        builder.text.close();
    }
    builder.text.open("else");
    builder.text.line("wf_more_registers<232>();");
    each_job(&mut builder);
    builder.text.line("float sums[128] = {};");
    builder.text.line("int before = -1;");
    builder.text.open(format!("for (int j = 0; j < {deep}; ++j)"));
    let text = &mut builder.text;
    text.line("wf_barrier_wait(full + stage, phase);");
    text.line(format!(
        "const unsigned char* const l = left + stage * {} + (part - 1) * {};",
        sides[0].bytes(),
        64 * 128
    ));
    text.line(format!("const unsigned char* const r = right + stage * {};", sides[1].bytes()));
    text.line("wf_wgmma_fence();");
    text.unrolled("d", DEPTH / 16);
    let transposed = sides.each_ref().map(|side| i32::from(side.transposed));
    let [a, b] = [sides[0].matrix("l"), sides[1].matrix("r")];
    text.line(format!("wf_wgmma<{}, {}>(sums, {a}, {b}, ({ty}*)0);", transposed[0], transposed[1]));
    text.close();
    text.line("wf_wgmma_commit();");
    // The previous wgmma group has finished: its stage can be overwritten.
    text.open("if (before >= 0)");
    text.line("wf_wgmma_wait<1>();");
    text.line("if (WF_THREAD % 128 == 0) wf_barrier_arrive(empty + before);");
    text.close();
    text.line("before = stage;");
    text.line(&step);
    text.close();
    text.line("wf_wgmma_wait<0>();");
    text.line("if (WF_THREAD % 128 == 0) wf_barrier_arrive(empty + before);");
    text.unrolled("h", 2);
    text.line("const int own = first + (part - 1) * 64 + WF_THREAD / 32 % 4 * 16 + lane / 4 + h * 8;");
    text.open(format!("if (own < {m})"));
    text.line(format!("const {index} row = ({index})batch * {m} + own;"));
    store.row(&mut builder, "row", index);
    builder.text.unrolled("c", COLUMNS / 8);
    builder.text.line("const int pair = begin + c * 8 + lane % 4 * 2;");
    store_pair(&mut builder, &store, n, "sums[c * 4 + h * 2 + e]", index)?;
    for _ in 0..5 {
        builder.text.close();
    }
    builder.salt().end(&mut builder.text);
    let mut launch = Launch::new(blocks, THREADS);
    // Space for the barriers and for alignment to 1024 bytes.
    launch.shared = STAGES * bytes + STAGES * 16 + 1024;
    launch.resident = 1;
    let title = format!("gemm {batches}x{m}x{n}x{k} by groups of warps");
    let kernel = builder.finish("dot", title, &launch, cluster.cost(graph))?;
    Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
}
