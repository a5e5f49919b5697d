//! Multiplies rows by panels, in parts of the depth that stay in the L1 cache.

use std::arch::x86_64::{
    __m256i, __m512, _CMP_UNORD_Q, _mm512_add_epi32, _mm512_and_si512, _mm512_castps_si512,
    _mm512_castsi256_si512, _mm512_cmp_ps_mask, _mm512_cvtepi32_epi16, _mm512_inserti64x4, _mm512_load_ps,
    _mm512_load_si512, _mm512_mask_mov_epi32, _mm512_or_si512, _mm512_set1_epi32, _mm512_srli_epi32,
    _mm512_stream_si512,
};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::null_mut;

use half::bf16;

use super::kernel::{PREFETCH_BYTES, TileKernelArgs, tile};
use super::lhs::TileLhs;
use super::{BLOCK_ROWS, ROW_BYTES, ROWS, TileConfig};
use crate::data_movement::store_fence;
use crate::gemm::convert::to_bf16;
use crate::gemm::packed::{PackedView, Panel};
use crate::prefetch::prefetch_l2;

/// Bytes of a sum.
pub(super) const SUM_BYTES: usize = 4;
/// Bytes of a right-hand operand that fits into an L2 cache: its panels need no prefetch.
pub(super) const L2_RHS_BYTES: usize = 1 << 20;
/// Steps of a panel that stay in the L1 cache while the rows of a task are multiplied by them.
const STEPS_PER_PASS: usize = 16;
/// Blocks of rows whose sums are buffered until the last steps of a panel.
pub(super) const BUFFERED_BLOCKS: usize = 8;
/// Elements of a block of two by two output tiles.
const BLOCK_ELEMENTS: usize = BLOCK_ROWS * BLOCK_ROWS;

/// Buffered sums of some blocks of rows; their rows start at cache lines.
#[repr(align(64))]
struct AccumulatorBlocks(
    #[allow(dead_code, reason = "used by address")] [u32; BLOCK_ELEMENTS * BUFFERED_BLOCKS],
);

/// The output: the element of the first row and column, and how sums are stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct TileOutput {
    pub(super) out: *mut u8,
    /// From one row to the next, in elements.
    pub(super) stride: usize,
    pub(super) mode: StoreMode,
    /// Whether whole cache lines are written with non-temporal stores.
    pub(super) nontemporal: bool,
}

/// How sums are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreMode {
    /// They overwrite the output.
    Overwrite,
    /// They are added to the output.
    Accumulate,
    /// They are rounded to bf16.
    RoundToBf16,
}

impl StoreMode {
    /// Bytes of an element of the result.
    pub(super) fn bytes(self) -> usize {
        if self == Self::RoundToBf16 { size_of::<bf16>() } else { SUM_BYTES }
    }
}

/// Multiplies rows by some panels. The first column of the output is that of the first panel.
///
/// # Safety
///
/// The pointers are valid for these rows and panels; nothing else uses the output during the call. Only f32 sums are
/// rounded.
pub(super) unsafe fn multiply(
    config: &TileConfig,
    lhs_source: &TileLhs,
    rows: Range<usize>,
    steps: usize,
    rhs: PackedView<'_>,
    panels: Range<usize>,
    output: TileOutput,
) {
    let first_column = rhs.panel(panels.start).0.first;
    let prefetches = rhs.packed_layout.bytes(rhs.k, rhs.n).is_none_or(|bytes| bytes > L2_RHS_BYTES);
    let mut accumulators = MaybeUninit::<AccumulatorBlocks>::uninit();
    let TileOutput { out, stride, mode, nontemporal } = output;
    let nontemporal = nontemporal && starts_with_cache_lines(out, stride * mode.bytes());
    let context = PanelContext { config, lhs_source, steps, prefetches, stride, mode, nontemporal };
    for at in panels {
        let (panel, data) = rhs.panel(at);
        let out = out.wrapping_add((panel.first - first_column) * mode.bytes());
        for first in (0..rows.len()).step_by(BUFFERED_BLOCKS * BLOCK_ROWS) {
            let count = (BUFFERED_BLOCKS * BLOCK_ROWS).min(rows.len() - first);
            let out = out.wrapping_add(first * stride * mode.bytes());
            let rows = rows.start + first..rows.start + first + count;
            // SAFETY: guaranteed by the caller.
            unsafe { context.multiply(rows, &panel, data, out, accumulators.as_mut_ptr().cast()) };
        }
    }
    if nontemporal {
        store_fence();
    }
}

/// Whether all rows begin with a cache line.
fn starts_with_cache_lines(first: *const u8, row_bytes: usize) -> bool {
    first.addr().is_multiple_of(ROW_BYTES) && row_bytes.is_multiple_of(ROW_BYTES)
}

/// The context that blocks of rows share when they are multiplied by a panel.
struct PanelContext<'a> {
    config: &'a TileConfig,
    lhs_source: &'a TileLhs,
    steps: usize,
    prefetches: bool,
    stride: usize,
    mode: StoreMode,
    nontemporal: bool,
}

impl PanelContext<'_> {
    /// Multiplies up to [`BUFFERED_BLOCKS`] blocks of rows by a panel, one part of the depth after another.
    /// `accumulators` has space for the sums of each block.
    unsafe fn multiply(
        &self,
        rows: Range<usize>,
        panel: &Panel,
        data: *const u8,
        out: *mut u8,
        accumulators: *mut u32,
    ) {
        let blocks = rows.len().div_ceil(BLOCK_ROWS);
        let parts = if blocks == 1 { 1 } else { self.steps.div_ceil(STEPS_PER_PASS).max(1) };
        let step_bytes = ROWS * panel.width * SUM_BYTES;
        let two_columns = panel.width > ROWS;
        for part in 0..parts {
            let steps = part * self.steps / parts..(part + 1) * self.steps / parts;
            let here = data.wrapping_add(steps.start * step_bytes);
            let bytes = steps.len() * step_bytes;
            for block in 0..blocks {
                let row = block * BLOCK_ROWS;
                let count = BLOCK_ROWS.min(rows.len() - row);
                let whole = count.is_multiple_of(ROWS) && panel.columns == panel.width;
                let in_place = whole && self.mode != StoreMode::RoundToBf16 && !self.nontemporal;
                let nontemporal = self.nontemporal && panel.columns == BLOCK_ROWS;
                let out = out.wrapping_add(row * self.stride * self.mode.bytes());
                let (lhs, lhs_stride, lhs_step) = self.lhs_source.block(rows.start + row);
                let accumulator = (accumulators.wrapping_add(block * BLOCK_ELEMENTS), BLOCK_ROWS);
                let result = (out.cast::<u32>(), self.stride);
                let (first, last) = (part == 0, part + 1 == parts);
                // Sums are buffered until the last part, and where the output has no full tiles for them.
                let from = match (first, self.mode) {
                    (true, StoreMode::Overwrite | StoreMode::RoundToBf16) => (null_mut(), 0),
                    (true, StoreMode::Accumulate) if in_place => result,
                    _ => accumulator,
                };
                let to = if last && in_place { result } else { accumulator };
                let args = TileKernelArgs {
                    lhs: lhs.wrapping_add(steps.start * lhs_step),
                    lhs_stride,
                    lhs_step,
                    rhs: here,
                    rhs_stride: panel.width * SUM_BYTES,
                    steps: steps.len(),
                    out: to.0.cast(),
                    out_stride: to.1 * SUM_BYTES,
                    from: from.0.cast(),
                    from_stride: from.1 * SUM_BYTES,
                    // The next part follows, or the next panel.
                    prefetch: if self.prefetches {
                        here.wrapping_add(bytes + bytes / blocks * block)
                    } else {
                        here
                    },
                };
                if self.prefetches {
                    let fetched = if count > ROWS && two_columns { steps.len() * PREFETCH_BYTES } else { 0 };
                    for at in (fetched..bytes / blocks).step_by(ROW_BYTES) {
                        prefetch_l2(args.prefetch.wrapping_add(at));
                    }
                }
                // SAFETY: the pointers are valid for these rows and columns; the accumulator buffer does not overlap
                // the output.
                unsafe {
                    if first && self.mode == StoreMode::Accumulate && !in_place {
                        copy_rows(result.0, result.1, accumulator.0, accumulator.1, count, panel.columns);
                    }
                    tile(self.config, &args, count > ROWS);
                    match self.mode {
                        _ if !last || in_place => {}
                        StoreMode::RoundToBf16 if nontemporal => {
                            store_lines_as_bf16(accumulator.0.cast(), out, self.stride, count);
                        }
                        StoreMode::RoundToBf16 => {
                            store_rows_as_bf16(
                                accumulator.0,
                                accumulator.1,
                                out.cast(),
                                self.stride,
                                count,
                                panel.columns,
                            );
                        }
                        StoreMode::Overwrite | StoreMode::Accumulate if nontemporal => {
                            stream_lines(accumulator.0, out, self.stride, count);
                        }
                        StoreMode::Overwrite | StoreMode::Accumulate => {
                            copy_rows(accumulator.0, accumulator.1, result.0, result.1, count, panel.columns);
                        }
                    }
                }
            }
        }
    }
}

/// Copies a block of sums. The output need not be aligned.
unsafe fn copy_rows(
    from: *const u32,
    from_stride: usize,
    to: *mut u32,
    to_stride: usize,
    rows: usize,
    columns: usize,
) {
    for row in 0..rows {
        // SAFETY: both have that many rows and columns.
        unsafe {
            let (from, to) = (from.add(row * from_stride), to.add(row * to_stride));
            to.cast::<u8>().copy_from_nonoverlapping(from.cast(), columns * SUM_BYTES);
        }
    }
}

/// Copies rows of a block to cache-line-aligned rows with non-temporal stores.
#[target_feature(enable = "avx512f")]
unsafe fn stream_lines(accumulator: *const u32, to: *mut u8, to_stride: usize, rows: usize) {
    for row in 0..rows {
        // SAFETY: both have such a row, which begins with a line.
        unsafe {
            let (from, to) = (accumulator.add(row * BLOCK_ROWS), to.add(row * to_stride * SUM_BYTES));
            _mm512_stream_si512(to.cast(), _mm512_load_si512(from.cast()));
            _mm512_stream_si512(to.add(ROW_BYTES).cast(), _mm512_load_si512(from.add(ROWS).cast()));
        }
    }
}

/// Rounds to bf16 bits, ties to even, as [`to_bf16`] does.
#[target_feature(enable = "avx512f")]
fn round_to_bf16(values: __m512) -> __m256i {
    let bits = _mm512_castps_si512(values);
    let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
    let rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    let quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x40_0000));
    let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(values, values);
    let either = _mm512_mask_mov_epi32(rounded, nan, quiet);
    _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(either))
}

/// Rounds rows of a block to bf16 and writes them to cache-line-aligned rows with non-temporal stores.
#[target_feature(enable = "avx512f")]
unsafe fn store_lines_as_bf16(accumulator: *const f32, to: *mut u8, to_stride: usize, rows: usize) {
    for row in 0..rows {
        // SAFETY: both have such a row, which begins with a line.
        unsafe {
            let from = accumulator.add(row * BLOCK_ROWS);
            let (low, high) =
                (round_to_bf16(_mm512_load_ps(from)), round_to_bf16(_mm512_load_ps(from.add(ROWS))));
            let line = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
            _mm512_stream_si512(to.add(row * to_stride * size_of::<bf16>()).cast(), line);
        }
    }
}

/// Rounds a block of f32 sums to bf16.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn store_rows_as_bf16(
    from: *const u32,
    from_stride: usize,
    to: *mut bf16,
    to_stride: usize,
    rows: usize,
    columns: usize,
) {
    for row in 0..rows {
        // SAFETY: both have that many rows and columns, and nothing else uses them during the call.
        let (from, to) = unsafe {
            let from = from.cast::<f32>().add(row * from_stride);
            (
                std::slice::from_raw_parts(from, columns),
                std::slice::from_raw_parts_mut(to.add(row * to_stride), columns),
            )
        };
        for (to, &from) in to.iter_mut().zip(from) {
            *to = to_bf16(from);
        }
    }
}
