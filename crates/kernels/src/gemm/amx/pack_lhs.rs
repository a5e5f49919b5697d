//! Packing of left-hand rows into blocks of tiles: 32 rows of 64 bytes per step along the depth.

use std::arch::x86_64::{
    __m512, __m512bh, __m512i, _mm512_cvtne2ps_pbh, _mm512_loadu_ps, _mm512_storeu_si512,
};

use warpforge_tensor::ElementType;

use super::super::convert::Convert;
use super::{BLOCK_ROWS, ROW_BYTES};
use half::{bf16, f16};

/// A block of rows and its packed copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct LhsBlock<'a> {
    /// Addresses of the rows: for each tap `count`.
    pub(super) table: &'a [*const u8],
    /// Number of rows, at most 32; the others are zero.
    pub(super) count: usize,
    /// How many runs a row has.
    pub(super) taps: usize,
    /// Elements of each run.
    pub(super) run: usize,
    /// Steps along the depth.
    pub(super) steps: usize,
    /// The packed block: 2 KiB per step.
    pub(super) target: *mut u8,
}

/// Packs a block of rows of this type.
///
/// # Safety
///
/// The pointers are valid for a run each, the target for all steps. the CPU has AVX-512 with bf16.
pub(super) unsafe fn pack_block(block: &LhsBlock<'_>, element: ElementType) {
    let whole = |elements: usize| block.run.is_multiple_of(elements);
    // SAFETY: guaranteed by the caller.
    unsafe {
        match element {
            ElementType::F32 if whole(32) => round_lines(block),
            ElementType::BF16 if whole(32) => lines(block, 64, |from, to| copy_line(from, to)),
            ElementType::I8 if whole(64) => lines(block, 64, |from, to| copy_line(from, to)),
            ElementType::F32 => elements::<f32, bf16>(block),
            ElementType::F16 => elements::<f16, bf16>(block),
            ElementType::BF16 => elements::<bf16, bf16>(block),
            _ => elements::<i8, i8>(block),
        }
    }
}

/// Packs runs that are whole rows of tiles, each of `bytes` bytes in the source.
#[inline(always)]
unsafe fn lines(block: &LhsBlock<'_>, bytes: usize, line: impl Fn(*const u8, *mut u8)) {
    let in_run = block.steps / block.taps.max(1);
    for tap in 0..block.taps {
        let table = &block.table[tap * block.count..][..block.count];
        for at in 0..in_run {
            let to = block.target.wrapping_add((tap * in_run + at) * BLOCK_ROWS * ROW_BYTES);
            for (row, from) in table.iter().enumerate() {
                line(from.wrapping_add(at * bytes), to.wrapping_add(row * ROW_BYTES));
            }
            // SAFETY: the block has that many rows.
            unsafe {
                to.wrapping_add(block.count * ROW_BYTES)
                    .write_bytes(0, (BLOCK_ROWS - block.count) * ROW_BYTES);
            };
        }
    }
}

/// Packs runs of whole rows of f32, rounded to bf16.
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn round_lines(block: &LhsBlock<'_>) {
    let line = |from: *const u8, to: *mut u8| {
        let from = from.cast::<f32>();
        // SAFETY: the caller guarantees the pointers.
        unsafe {
            let (low, high): (__m512, __m512) = (_mm512_loadu_ps(from), _mm512_loadu_ps(from.add(16)));
            let rounded: __m512bh = _mm512_cvtne2ps_pbh(high, low);
            _mm512_storeu_si512(to.cast(), std::mem::transmute::<__m512bh, __m512i>(rounded));
        }
    };
    // SAFETY: guaranteed by the caller.
    unsafe { lines(block, 128, line) }
}

/// Copies 64 bytes.
#[inline(always)]
unsafe fn copy_line(from: *const u8, to: *mut u8) {
    // SAFETY: the caller guarantees the pointers.
    unsafe { to.copy_from_nonoverlapping(from, ROW_BYTES) }
}

/// Packs runs of any length: each row contiguously first, then in lines.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn elements<S: Copy, T: Convert<S>>(block: &LhsBlock<'_>) {
    let in_line = ROW_BYTES / size_of::<T>();
    let mut line = vec![T::ZERO; block.steps * in_line];
    for row in 0..BLOCK_ROWS {
        if row < block.count && block.run > 0 {
            for (tap, to) in line.chunks_exact_mut(block.run).take(block.taps).enumerate() {
                let from = block.table[tap * block.count + row].cast::<S>();
                // SAFETY: the caller guarantees that the pointer is valid for a run.
                let from = unsafe { std::slice::from_raw_parts(from, block.run) };
                for (to, from) in to.iter_mut().zip(from) {
                    *to = T::convert(*from);
                }
            }
        } else {
            line.fill(T::ZERO);
        }
        for (step, line) in line.chunks_exact(in_line).enumerate() {
            let to = block.target.wrapping_add((step * BLOCK_ROWS + row) * ROW_BYTES);
            // SAFETY: the block has this line.
            unsafe { copy_line(line.as_ptr().cast(), to) };
        }
    }
}
