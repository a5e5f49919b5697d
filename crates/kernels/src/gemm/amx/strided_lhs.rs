//! GEMMs of rows with a constant stride, from which tiles are loaded directly: nothing is packed.

use std::arch::asm;
use std::ops::Range;

use super::multiply::{L2_RHS_BYTES, SUM_BYTES};
use super::{Amx, ROW_BYTES, ROWS, TileConfig};
use crate::buffer::{AllocationError, BufferPool};
use crate::gemm::drive::GemmTarget;
use crate::gemm::packed::PackedView;
use crate::output_block::OutputBlock;
use crate::pool::Pool;
use crate::prefetch::prefetch_l2;
use crate::shared_ptr::SharedPtr;

/// Approximate rows of a task.
const TASK_ROWS: usize = 128;
/// Approximate number of tasks, for load balance.
const MIN_TASKS: usize = 16;
/// Maximum bytes of the sums of a task, so that they are in cache when they reach the sink.
const RESULT_BYTES: usize = 512 << 10;

/// A left-hand operand of bf16: pixels of images under a convolution window. All of its addresses are readable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StridedLhs<'a> {
    /// The first row's first element.
    pub(crate) data: *const u8,
    /// From one row to the next, in bytes.
    pub(crate) row_bytes: usize,
    /// Where the runs of a row begin, in bytes from the row.
    pub(crate) taps: &'a [usize],
    /// Length of a run, in steps of 64 bytes.
    pub(crate) steps: usize,
    /// How many images there are.
    pub(crate) images: usize,
    /// From one image to the next, in bytes.
    pub(crate) image_bytes: usize,
    /// Lines of rows in an image.
    pub(crate) lines: usize,
    /// Rows of a line that are rows of the output.
    pub(crate) valid: usize,
    /// Rows from one line to the next. Those beyond `valid` are computed and discarded.
    pub(crate) pitch: usize,
}

// SAFETY: the caller guarantees that nothing writes to them during the call.
unsafe impl Sync for StridedLhs<'_> {}

impl StridedLhs<'_> {
    /// Whether there are enough rows for a tile.
    pub(crate) fn fills_a_tile(&self) -> bool {
        self.lines > 0 && self.rows(self.lines) >= ROWS && self.steps > 0
    }

    /// Rows from the first to the last valid one of `lines` lines.
    fn rows(&self, lines: usize) -> usize {
        (lines.max(1) - 1) * self.pitch + self.valid
    }
}

/// The partition, which depends on the sizes alone: lines of an image times panels.
struct StridedPartition {
    /// Tasks along the lines of each image, and along the panels.
    tasks: (usize, usize),
    lines: usize,
    panels: usize,
}

impl StridedPartition {
    fn new(strided: &StridedLhs<'_>, panels: usize) -> Self {
        let valid = (TASK_ROWS / strided.pitch).max(ROWS.div_ceil(strided.pitch) + 1);
        let down = (strided.lines / valid).clamp(1, MIN_TASKS);
        let rows = strided.rows(strided.lines.div_ceil(down));
        let most = (RESULT_BYTES / (rows * 2 * ROWS * SUM_BYTES)).max(1);
        let across = (MIN_TASKS / (down * strided.images)).max(panels.div_ceil(most)).clamp(1, panels);
        Self { tasks: (down, across), lines: strided.lines, panels }
    }

    fn part(at: usize, of: usize, whole: usize) -> Range<usize> {
        at * whole / of..(at + 1) * whole / of
    }

    /// The image, lines and panels of a task. Consecutive tasks share panels.
    fn task(&self, at: usize, images: usize) -> (usize, Range<usize>, Range<usize>) {
        let (down, across) = self.tasks;
        let (row, panel) = (at % (images * down), at / (images * down));
        (row / down, Self::part(row % down, down, self.lines), Self::part(panel, across, self.panels))
    }
}

/// Multiplies the rows by the packed operand, task by task.
///
/// # Safety
///
/// All pointers of the rows and the target are valid for the given sizes; nothing else uses the target during the call.
/// The rows fill a tile.
pub(crate) unsafe fn drive(
    pool: &Pool,
    buffers: &BufferPool,
    tiles: Amx,
    strided: &StridedLhs<'_>,
    rhs: PackedView<'_>,
    target: GemmTarget<'_>,
) -> Result<(), AllocationError> {
    let partition = StridedPartition::new(strided, rhs.panels());
    let (down, across) = partition.tasks;
    let rows = strided.rows(strided.lines.div_ceil(down));
    let each = rows * rhs.panels().div_ceil(across) * 2 * ROWS * SUM_BYTES;
    let memory = buffers.take(each * pool.threads())?;
    let scratch_spaces = SharedPtr::new(memory.as_ptr());
    pool.run(strided.images * down * across, &|at, worker| {
        let (image, lines, panels) = partition.task(at, strided.images);
        // SAFETY: each worker has its own scratch space; the rest is guaranteed by the caller.
        unsafe {
            let scratch_space = scratch_spaces.get().add(worker * each);
            task(tiles, strided, rhs, &target, image, lines, panels, scratch_space, worker);
        }
    });
    Ok(())
}

/// Multiplies some lines of an image by some panels and passes them to the sink.
#[allow(clippy::too_many_arguments, reason = "a task of a GEMM")]
unsafe fn task(
    tiles: Amx,
    strided: &StridedLhs<'_>,
    rhs: PackedView<'_>,
    target: &GemmTarget<'_>,
    image: usize,
    lines: Range<usize>,
    panels: Range<usize>,
    scratch_space: *mut u8,
    worker: usize,
) {
    let (first, last) = (rhs.panel(panels.start).0, rhs.panel(panels.end - 1).0);
    let columns = first.first..last.first + last.columns;
    let stride = last.first + last.width - first.first;
    let rows = strided.rows(lines.len());
    let data = strided
        .data
        .wrapping_add(image * strided.image_bytes + lines.start * strided.pitch * strided.row_bytes);
    let config = tiles.configure();
    let prefetches = rhs.packed_layout.bytes(rhs.k, rhs.n).is_none_or(|bytes| bytes > L2_RHS_BYTES);
    let blocks = rows.div_ceil(2 * ROWS);
    for panel in panels {
        let (panel, rhs) = rhs.panel(panel);
        let out = scratch_space.wrapping_add((panel.first - columns.start) * SUM_BYTES);
        let bytes = strided.taps.len() * strided.steps * ROWS * panel.width * SUM_BYTES;
        // Each block of rows prefetches its part of the next panel.
        let part = bytes / blocks;
        let mut next = rhs.wrapping_add(bytes);
        let mut row = 0;
        while row < rows {
            // Full tiles only: the last tile starts early enough to be full, and recomputes a few rows.
            let (at, two) = match rows - row {
                32.. => (row, true),
                17.. if rows >= 2 * ROWS => (rows - 2 * ROWS, true),
                16.. => (row, false),
                _ => (rows - ROWS, false),
            };
            let args = StridedKernelArgs {
                lhs: data.wrapping_add(at * strided.row_bytes),
                below: ROWS * strided.row_bytes,
                steps: strided.steps,
                out: out.wrapping_add(at * stride * SUM_BYTES),
                out_below: ROWS * stride * SUM_BYTES,
                out_stride: stride * SUM_BYTES,
                lhs_stride: strided.row_bytes,
                rhs,
                prefetch: if prefetches { next } else { rhs },
            };
            let two_columns = panel.width == 2 * ROWS;
            if prefetches {
                let fetched =
                    if two && two_columns { strided.taps.len() * strided.steps * PREFETCH_BYTES } else { 0 };
                (fetched..part).step_by(ROW_BYTES).for_each(|at| prefetch_l2(next.wrapping_add(at)));
                next = next.wrapping_add(part);
            }
            row = at + if two { 2 * ROWS } else { ROWS };
            // SAFETY: the pointers are valid for whole tiles.
            unsafe { tile(&config, &args, strided.taps, two, two_columns) };
        }
    }
    drop(config);
    let context = if strided.pitch == strided.valid { lines.len() } else { 1 };
    for line in lines.clone().step_by(context.max(1)) {
        let first = (image * strided.lines + line) * strided.valid;
        let rows = first..first + context * strided.valid;
        let from = scratch_space.wrapping_add((line - lines.start) * strided.pitch * stride * SUM_BYTES);
        let (data, stride) = match target.out {
            Some(out) => {
                for (at, row) in rows.clone().enumerate() {
                    let to = out.wrapping_add((row * target.stride + columns.start) * SUM_BYTES);
                    // SAFETY: the output and the scratch space have this row.
                    unsafe {
                        to.copy_from_nonoverlapping(
                            from.add(at * stride * SUM_BYTES),
                            columns.len() * SUM_BYTES,
                        );
                    }
                }
                (out.wrapping_add((first * target.stride + columns.start) * SUM_BYTES), target.stride)
            }
            None => (from, stride),
        };
        if let Some(sink) = target.sink {
            let rows = rows.start + target.origin.0..rows.end + target.origin.0;
            let columns = columns.start + target.origin.1..columns.end + target.origin.1;
            sink(&OutputBlock { rows, columns, data, stride, worker });
        }
    }
}

/// The arguments of a kernel. The assembly below depends on the order of the fields.
#[repr(C)]
struct StridedKernelArgs {
    /// The first row.
    lhs: *const u8,
    /// From the first tile of rows to the second, in bytes.
    below: usize,
    /// Lines of 64 bytes of each run.
    steps: usize,
    /// The result's first element.
    out: *mut u8,
    /// From the first tile of the result to the one below, in bytes.
    out_below: usize,
    /// From one row of the result to the next, in bytes.
    out_stride: usize,
    /// From one row to the next, in bytes.
    lhs_stride: usize,
    /// The panel.
    rhs: *const u8,
    /// Data after the panel: 2x2-tile kernels prefetch [`PREFETCH_BYTES`] of it per step.
    prefetch: *const u8,
}

/// Bytes that a step of a 2x2-tile kernel prefetches.
const PREFETCH_BYTES: usize = 512;

/// Computes one or two tiles of rows times one or two tiles of columns.
///
/// # Safety
///
/// The pointers are valid for whole tiles; there is a tap and a step.
unsafe fn tile(
    _configured: &TileConfig,
    args: &StridedKernelArgs,
    taps: &[usize],
    two_rows: bool,
    two_columns: bool,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match (two_rows, two_columns) {
            (true, true) => two_by_two(args, taps),
            (false, true) => one_by_two(args, taps),
            (true, false) => {
                one_by_one(args, taps);
                let (lhs, out) = (args.lhs.wrapping_add(args.below), args.out.wrapping_add(args.out_below));
                one_by_one(&StridedKernelArgs { lhs, out, ..*args }, taps);
            }
            (false, false) => one_by_one(args, taps),
        }
    }
}

/// A kernel: its prologue, step, panel stride per step, and epilogue.
macro_rules! kernel {
    ($name:ident, [$($first:literal)*], [$($step:literal)*], $panel_step:literal, [$($last:literal)*]) => {
        unsafe fn $name(args: &StridedKernelArgs, taps: &[usize]) {
            let taps = taps.as_ptr_range();
            // SAFETY: the tiles are configured, and the pointers are valid for whole tiles.
            unsafe {
                asm!(
                    $($first,)*
                    "2:",
                    "mov {lhs}, [{taps}]",
                    "add {lhs}, [{args}]",
                    "mov {lower}, {lhs}",
                    "add {lower}, [{args} + 8]",
                    "mov {steps}, [{args} + 16]",
                    "3:",
                    $($step,)*
                    "add {lhs}, 64",
                    "add {lower}, 64",
                    concat!("add {rhs}, ", $panel_step),
                    "add {prefetch}, 512",
                    "dec {steps}",
                    "jnz 3b",
                    "add {taps}, 8",
                    "cmp {taps}, {end}",
                    "jne 2b",
                    "mov {lhs}, [{args} + 24]",
                    "mov {lower}, {lhs}",
                    "add {lower}, [{args} + 32]",
                    "mov {steps}, [{args} + 40]",
                    $($last,)*
                    args = in(reg) &raw const *args,
                    taps = inout(reg) taps.start => _,
                    end = in(reg) taps.end,
                    lhs = out(reg) _,
                    lower = out(reg) _,
                    steps = out(reg) _,
                    lhs_stride = in(reg) args.lhs_stride,
                    rhs = inout(reg) args.rhs => _,
                    rhs_stride = in(reg) $panel_step / ROWS,
                    prefetch = inout(reg) args.prefetch => _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }
    };
}

kernel!(
    two_by_two,
    ["tilezero tmm0" "tilezero tmm1" "tilezero tmm2" "tilezero tmm3"],
    [
        "prefetcht1 [{prefetch}]"
        "prefetcht1 [{prefetch} + 64]"
        "prefetcht1 [{prefetch} + 128]"
        "prefetcht1 [{prefetch} + 192]"
        "prefetcht1 [{prefetch} + 256]"
        "prefetcht1 [{prefetch} + 320]"
        "prefetcht1 [{prefetch} + 384]"
        "prefetcht1 [{prefetch} + 448]"
        "tileloaddt1 tmm4, [{lhs} + {lhs_stride}]"
        "tileloadd tmm6, [{rhs} + {rhs_stride}]"
        "tdpbf16ps tmm0, tmm4, tmm6"
        "tileloadd tmm7, [{rhs} + {rhs_stride} + 64]"
        "tdpbf16ps tmm1, tmm4, tmm7"
        "tileloaddt1 tmm5, [{lower} + {lhs_stride}]"
        "tdpbf16ps tmm2, tmm5, tmm6"
        "tdpbf16ps tmm3, tmm5, tmm7"
    ],
    2048,
    [
        "tilestored [{lhs} + {steps}], tmm0"
        "tilestored [{lhs} + {steps} + 64], tmm1"
        "tilestored [{lower} + {steps}], tmm2"
        "tilestored [{lower} + {steps} + 64], tmm3"
    ]
);
kernel!(
    one_by_two,
    ["tilezero tmm0" "tilezero tmm1"],
    [
        "tileloadd tmm4, [{lhs} + {lhs_stride}]"
        "tileloadd tmm6, [{rhs} + {rhs_stride}]"
        "tileloadd tmm7, [{rhs} + {rhs_stride} + 64]"
        "tdpbf16ps tmm0, tmm4, tmm6"
        "tdpbf16ps tmm1, tmm4, tmm7"
    ],
    2048,
    ["tilestored [{lhs} + {steps}], tmm0" "tilestored [{lhs} + {steps} + 64], tmm1"]
);
kernel!(
    one_by_one,
    ["tilezero tmm0"],
    [
        "tileloadd tmm4, [{lhs} + {lhs_stride}]"
        "tileloadd tmm6, [{rhs} + {rhs_stride}]"
        "tdpbf16ps tmm0, tmm4, tmm6"
    ],
    1024,
    ["tilestored [{lhs} + {steps}], tmm0"]
);

const _: () = assert!(PREFETCH_BYTES == 512 && ROW_BYTES == 64 && ROWS == 16 && size_of::<usize>() == 8);
