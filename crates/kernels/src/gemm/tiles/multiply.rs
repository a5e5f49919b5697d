//! Rows times panels: parts of the depth of a panel, each while it is in the first-level cache.

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

use super::kernel::{AHEAD, Call, tile};
use super::left::Left;
use super::{BLOCK_ROWS, Configured, ROW_BYTES, ROWS};
use crate::gemm::convert::to_bf16;
use crate::gemm::kernel::fetch;
use crate::gemm::packed::{PackedView, Panel};
use crate::movement::fence;

/// Bytes of a sum.
pub(super) const SUM: usize = 4;
/// Bytes of a right operand that stays in a second-level cache: its panels need not be fetched ahead.
pub(super) const NEAR_BYTES: usize = 1 << 20;
/// Steps of a panel that stay in the first-level cache while the rows of a piece are multiplied with them.
const STEPS_AT_ONCE: usize = 16;
/// Blocks of rows whose sums are kept beside until a panel's last steps.
pub(super) const BLOCKS_BESIDE: usize = 8;
/// Elements of a square of two by two tiles of the result.
const SQUARE: usize = BLOCK_ROWS * BLOCK_ROWS;

/// Sums of some blocks of rows; their rows begin at lines of cache.
#[repr(align(64))]
struct Squares(#[allow(dead_code, reason = "used by address")] [u32; SQUARE * BLOCKS_BESIDE]);

/// Where products go: the first row's first column, and what happens to them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) out: *mut u8,
    /// From one row to the next, in elements.
    pub(super) stride: usize,
    pub(super) mode: Mode,
    /// Whether whole lines are written past the caches.
    pub(super) past: bool,
}

/// What happens to sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// They are the result.
    Write,
    /// They are added to what is there.
    Add,
    /// They are written as the nearest bf16.
    Round,
}

impl Mode {
    /// Bytes of an element of the result.
    pub(super) fn bytes(self) -> usize {
        if self == Self::Round { size_of::<bf16>() } else { SUM }
    }
}

/// Multiplies rows with some panels. The place's first column is the first panel's.
///
/// # Safety
///
/// The addresses are good for these rows and panels; nobody else uses the place meanwhile. Only sums of f32 are rounded.
pub(super) unsafe fn multiply(
    configured: &Configured,
    left: &Left,
    rows: Range<usize>,
    steps: usize,
    rhs: PackedView<'_>,
    panels: Range<usize>,
    place: Place,
) {
    let first_column = rhs.panel(panels.start).0.first;
    let far = rhs.arrangement.bytes(rhs.k, rhs.n).is_none_or(|bytes| bytes > NEAR_BYTES);
    let mut beside = MaybeUninit::<Squares>::uninit();
    let Place { out, stride, mode, past } = place;
    let past = past && lines(out, stride * mode.bytes());
    let together = Together { configured, left, steps, far, stride, mode, past };
    for at in panels {
        let (panel, data) = rhs.panel(at);
        let out = out.wrapping_add((panel.first - first_column) * mode.bytes());
        for first in (0..rows.len()).step_by(BLOCKS_BESIDE * BLOCK_ROWS) {
            let count = (BLOCKS_BESIDE * BLOCK_ROWS).min(rows.len() - first);
            let out = out.wrapping_add(first * stride * mode.bytes());
            let rows = rows.start + first..rows.start + first + count;
            // SAFETY: as the caller promises.
            unsafe { together.multiply(rows, &panel, data, out, beside.as_mut_ptr().cast()) };
        }
    }
    if past {
        fence();
    }
}

/// Whether all rows begin with a line of cache.
fn lines(first: *const u8, row_bytes: usize) -> bool {
    first.addr().is_multiple_of(ROW_BYTES) && row_bytes.is_multiple_of(ROW_BYTES)
}

/// What blocks of rows that are multiplied with a panel have in common.
struct Together<'a> {
    configured: &'a Configured,
    left: &'a Left,
    steps: usize,
    far: bool,
    stride: usize,
    mode: Mode,
    past: bool,
}

impl Together<'_> {
    /// Multiplies up to [`BLOCKS_BESIDE`] blocks of rows with a panel, a part of its depth after another. `beside` has room
    /// for a square for each block.
    unsafe fn multiply(
        &self,
        rows: Range<usize>,
        panel: &Panel,
        data: *const u8,
        out: *mut u8,
        beside: *mut u32,
    ) {
        let blocks = rows.len().div_ceil(BLOCK_ROWS);
        let parts = if blocks == 1 { 1 } else { self.steps.div_ceil(STEPS_AT_ONCE).max(1) };
        let step_bytes = ROWS * panel.width * SUM;
        let two_columns = panel.width > ROWS;
        for part in 0..parts {
            let steps = part * self.steps / parts..(part + 1) * self.steps / parts;
            let here = data.wrapping_add(steps.start * step_bytes);
            let bytes = steps.len() * step_bytes;
            for block in 0..blocks {
                let row = block * BLOCK_ROWS;
                let count = BLOCK_ROWS.min(rows.len() - row);
                let whole = count.is_multiple_of(ROWS) && panel.columns == panel.width;
                let in_place = whole && self.mode != Mode::Round && !self.past;
                let past = self.past && panel.columns == BLOCK_ROWS;
                let out = out.wrapping_add(row * self.stride * self.mode.bytes());
                let (lhs, lhs_stride, lhs_step) = self.left.block(rows.start + row);
                let square = (beside.wrapping_add(block * SQUARE), BLOCK_ROWS);
                let result = (out.cast::<u32>(), self.stride);
                let (first, last) = (part == 0, part + 1 == parts);
                // Sums are kept beside the result until the last part, and where the result has no whole tiles of them.
                let from = match (first, self.mode) {
                    (true, Mode::Write | Mode::Round) => (null_mut(), 0),
                    (true, Mode::Add) if in_place => result,
                    _ => square,
                };
                let to = if last && in_place { result } else { square };
                let call = Call {
                    lhs: lhs.wrapping_add(steps.start * lhs_step),
                    lhs_stride,
                    lhs_step,
                    rhs: here,
                    rhs_stride: panel.width * SUM,
                    steps: steps.len(),
                    out: to.0.cast(),
                    out_stride: to.1 * SUM,
                    from: from.0.cast(),
                    from_stride: from.1 * SUM,
                    // What follows the part is the next one, or the next panel.
                    ahead: if self.far { here.wrapping_add(bytes + bytes / blocks * block) } else { here },
                };
                if self.far {
                    let fetched = if count > ROWS && two_columns { steps.len() * AHEAD } else { 0 };
                    for at in (fetched..bytes / blocks).step_by(ROW_BYTES) {
                        fetch(call.ahead.wrapping_add(at));
                    }
                }
                // SAFETY: the addresses are good for these rows and columns; the square is where the result is not.
                unsafe {
                    if first && self.mode == Mode::Add && !in_place {
                        copy_rows(result.0, result.1, square.0, square.1, count, panel.columns);
                    }
                    tile(self.configured, &call, count > ROWS);
                    match self.mode {
                        _ if !last || in_place => {}
                        Mode::Round if past => round_lines(square.0.cast(), out, self.stride, count),
                        Mode::Round => {
                            round_rows(square.0, square.1, out.cast(), self.stride, count, panel.columns);
                        }
                        Mode::Write | Mode::Add if past => copy_lines(square.0, out, self.stride, count),
                        Mode::Write | Mode::Add => {
                            copy_rows(square.0, square.1, result.0, result.1, count, panel.columns);
                        }
                    }
                }
            }
        }
    }
}

/// Copies a rectangle of sums. The result need not be aligned.
unsafe fn copy_rows(
    from: *const u32,
    from_stride: usize,
    to: *mut u32,
    to_stride: usize,
    rows: usize,
    columns: usize,
) {
    for row in 0..rows {
        // SAFETY: both have so many rows and columns.
        unsafe {
            let (from, to) = (from.add(row * from_stride), to.add(row * to_stride));
            to.cast::<u8>().copy_from_nonoverlapping(from.cast(), columns * SUM);
        }
    }
}

/// Copies rows of a square to rows that begin with a line of cache, past the caches.
#[target_feature(enable = "avx512f")]
unsafe fn copy_lines(square: *const u32, to: *mut u8, to_stride: usize, rows: usize) {
    for row in 0..rows {
        // SAFETY: both have such a row, which begins with a line.
        unsafe {
            let (from, to) = (square.add(row * BLOCK_ROWS), to.add(row * to_stride * SUM));
            _mm512_stream_si512(to.cast(), _mm512_load_si512(from.cast()));
            _mm512_stream_si512(to.add(ROW_BYTES).cast(), _mm512_load_si512(from.add(ROWS).cast()));
        }
    }
}

/// The bits of the nearest bf16, ties to even, as [`to_bf16`] has them.
#[target_feature(enable = "avx512f")]
fn nearest(values: __m512) -> __m256i {
    let bits = _mm512_castps_si512(values);
    let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
    let rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    let quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x40_0000));
    let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(values, values);
    let either = _mm512_mask_mov_epi32(rounded, nan, quiet);
    _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(either))
}

/// Writes rows of a square as the nearest bf16 to rows that begin with a line of cache, past the caches.
#[target_feature(enable = "avx512f")]
unsafe fn round_lines(square: *const f32, to: *mut u8, to_stride: usize, rows: usize) {
    for row in 0..rows {
        // SAFETY: both have such a row, which begins with a line.
        unsafe {
            let from = square.add(row * BLOCK_ROWS);
            let (low, high) = (nearest(_mm512_load_ps(from)), nearest(_mm512_load_ps(from.add(ROWS))));
            let line = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
            _mm512_stream_si512(to.add(row * to_stride * size_of::<bf16>()).cast(), line);
        }
    }
}

/// Writes a rectangle of sums of f32 as the nearest bf16.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn round_rows(
    from: *const u32,
    from_stride: usize,
    to: *mut bf16,
    to_stride: usize,
    rows: usize,
    columns: usize,
) {
    for row in 0..rows {
        // SAFETY: both have so many rows and columns, and nothing else uses them meanwhile.
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

#[cfg(test)]
mod tests {
    use std::arch::x86_64::_mm512_loadu_ps;

    use super::*;

    #[test]
    fn sixteen_numbers_are_rounded_as_each_of_them() {
        if !is_x86_feature_detected!("avx512f") {
            eprintln!("skipped: this processor has no AVX-512");
            return;
        }
        let mut random = fastrand::Rng::with_seed(3);
        let special = [f32::NAN, f32::INFINITY, f32::MAX, f32::MIN_POSITIVE / 2.0, -0.0, 1.001_953_1];
        for round in 0..1000 {
            let mut values: [f32; ROWS] = std::array::from_fn(|_| f32::from_bits(random.u32(..)));
            if let Some(special) = special.get(round) {
                values[round] = *special;
            }
            let mut got = [0u16; ROWS];
            // SAFETY: the processor has the instructions; both are 16 numbers.
            unsafe {
                let rounded = nearest(_mm512_loadu_ps(values.as_ptr()));
                got.as_mut_ptr().cast::<__m256i>().write_unaligned(rounded);
            }
            assert_eq!(got, values.map(|value| to_bf16(value).to_bits()), "{values:?}");
        }
    }
}
