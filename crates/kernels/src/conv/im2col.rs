//! im2col for bf16 windows over few channels: the taps of each output pixel are copied contiguously, and AMX tiles are
//! loaded from the copy.

use std::arch::x86_64::{_mm512_maskz_loadu_epi16, _mm512_setzero_si512, _mm512_storeu_si512};

use super::ConvError;
use super::tap_rows::TapRows;
use crate::gemm::drive::GemmTarget;
use crate::gemm::rows::LhsRows;
use crate::gemm::{Gemm, PackedView, StridedLhs};
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// Maximum elements of a run: a vector of bf16.
pub(super) const MAX_RUN: usize = 32;
/// Bytes of a vector, and of a row of a tile.
const LINE: usize = 64;
/// Pixels of a task.
const PIXELS_PER_TASK: usize = 64;

/// Multiplies `m` bf16 rows with runs of at most [`MAX_RUN`] elements; returns false, without computing, where there
/// are too few rows.
///
/// # Safety
///
/// As for [`Gemm::multiply`]; the CPU has AVX-512 for words.
pub(super) unsafe fn multiply(
    gemm: &Gemm,
    pool: &Pool,
    m: usize,
    rows: &TapRows<'_>,
    weights: PackedView<'_>,
    target: GemmTarget<'_>,
) -> Result<bool, ConvError> {
    let (taps, run) = (rows.taps(), rows.run());
    let steps = (taps * run).div_ceil(MAX_RUN);
    // The last run is written as a full vector.
    let row_bytes = (taps.saturating_sub(1) * run * 2 + LINE).next_multiple_of(LINE).max(steps * LINE);
    let strided = StridedLhs {
        data: std::ptr::null(),
        row_bytes,
        taps: &[0],
        steps,
        images: 1,
        image_bytes: 0,
        lines: m,
        valid: 1,
        pitch: 1,
    };
    if !strided.fills_a_tile() {
        return Ok(false);
    }
    let memory = gemm.scratch_buffer(m.saturating_mul(row_bytes))?;
    let to = SharedPtr::new(memory.as_ptr());
    pool.run(m.div_ceil(PIXELS_PER_TASK), &|at, _| {
        let first = at * PIXELS_PER_TASK;
        let count = PIXELS_PER_TASK.min(m - first);
        let mut table = vec![std::ptr::null(); taps * count];
        rows.addresses(first, count, &mut table);
        for row in 0..count {
            let runs = table[row..].iter().step_by(count).copied();
            // SAFETY: tasks do not overlap; the buffer has space for all rows; the rest is guaranteed by the caller.
            unsafe { copy_runs(runs, run, to.get().add((first + row) * row_bytes), row_bytes) };
        }
    });
    let strided = StridedLhs { data: memory.as_ptr(), ..strided };
    // SAFETY: guaranteed by the caller; all rows have been written.
    unsafe { gemm.multiply_strided(pool, &strided, weights, target)? };
    Ok(true)
}

/// Copies runs of bf16 contiguously, followed by zeros.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn copy_runs(runs: impl Iterator<Item = *const u8>, run: usize, to: *mut u8, bytes: usize) {
    let mask = u32::MAX.checked_shr((MAX_RUN - run) as u32).unwrap_or(0);
    // SAFETY: the row has that many bytes, at least a vector after the start of each run; only the elements of a run
    // are read. Each vector writes zeros into the next run, which is written later.
    unsafe {
        _mm512_storeu_si512(to.add(bytes - LINE).cast(), _mm512_setzero_si512());
        for (at, from) in runs.enumerate() {
            let elements = _mm512_maskz_loadu_epi16(mask, from.cast());
            _mm512_storeu_si512(to.add(at * run * 2).cast(), elements);
        }
    }
}
