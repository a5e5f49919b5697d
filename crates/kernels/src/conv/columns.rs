//! Windows over few channels in bf16: the taps of each output pixel are copied side by side, and tiles loaded from there.

use std::arch::x86_64::{_mm512_maskz_loadu_epi16, _mm512_setzero_si512, _mm512_storeu_si512};

use super::ConvError;
use super::taps::Taps;
use crate::gemm::drive::{Shared, Target};
use crate::gemm::rows::Rows;
use crate::gemm::{Even, Gemm, PackedRhs};
use crate::pool::Pool;

/// The most elements of a run: a vector of bf16.
pub(super) const MOST: usize = 32;
/// Bytes of such a vector, and of a row of a tile.
const LINE: usize = 64;
/// Pixels whose taps are copied as one piece.
const TOGETHER: usize = 64;

/// Computes the product of `m` rows of bf16 with runs of at most [`MOST`] elements; false where there are too few rows, and
/// nothing was done.
///
/// # Safety
///
/// As for [`Gemm::product`]; the processor has AVX-512 for words.
pub(super) unsafe fn product(
    gemm: &Gemm,
    pool: &Pool,
    m: usize,
    rows: &Taps<'_>,
    weights: &PackedRhs,
    target: Target<'_>,
) -> Result<bool, ConvError> {
    let (taps, run) = (rows.taps(), rows.run());
    let steps = (taps * run).div_ceil(MOST);
    // The last run is written as a whole vector.
    let row_bytes = (taps.saturating_sub(1) * run * 2 + LINE).next_multiple_of(LINE).max(steps * LINE);
    let even = Even {
        data: std::ptr::null(),
        row_bytes,
        taps: &[0],
        steps,
        images: 1,
        image_bytes: 0,
        lines: m,
        wanted: 1,
        pitch: 1,
    };
    if !even.fills_a_tile() {
        return Ok(false);
    }
    let memory = gemm.lend(m.saturating_mul(row_bytes))?;
    let to = Shared(memory.as_ptr());
    pool.run(m.div_ceil(TOGETHER), &|at, _| {
        let first = at * TOGETHER;
        let count = TOGETHER.min(m - first);
        let mut table = vec![std::ptr::null(); taps * count];
        rows.addresses(first, count, &mut table);
        for row in 0..count {
            let runs = table[row..].iter().step_by(count).copied();
            // SAFETY: pieces do not overlap; the memory has room for all rows; the rest is as the caller promises.
            unsafe { side_by_side(runs, run, to.get().add((first + row) * row_bytes), row_bytes) };
        }
    });
    let even = Even { data: memory.as_ptr(), ..even };
    // SAFETY: as the caller promises; all rows have been written.
    unsafe { gemm.even_product(pool, &even, weights.view(), target)? };
    Ok(true)
}

/// Copies runs of bf16 side by side, and zeros behind them.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn side_by_side(runs: impl Iterator<Item = *const u8>, run: usize, to: *mut u8, bytes: usize) {
    let mask = u32::MAX.checked_shr((MOST - run) as u32).unwrap_or(0);
    // SAFETY: the row has so many bytes, at least a vector behind the beginning of each run; of a run only its own elements
    // are read. Each vector writes zeros over the place of the next run, which comes later.
    unsafe {
        _mm512_storeu_si512(to.add(bytes - LINE).cast(), _mm512_setzero_si512());
        for (at, from) in runs.enumerate() {
            let elements = _mm512_maskz_loadu_epi16(mask, from.cast());
            _mm512_storeu_si512(to.add(at * run * 2).cast(), elements);
        }
    }
}
