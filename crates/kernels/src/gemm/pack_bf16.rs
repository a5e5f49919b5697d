//! Vectorized packing of bf16: pairs of rows are interleaved, as bf16 dot-product instructions expect the right-hand
//! operand.

#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{
    __m512bh, __m512i, _mm512_cvtne2ps_pbh, _mm512_loadu_si512, _mm512_maskz_loadu_epi16,
    _mm512_maskz_loadu_ps, _mm512_permutex2var_epi16, _mm512_permutexvar_epi16, _mm512_setzero_ps,
    _mm512_setzero_si512, _mm512_storeu_si512,
};

use half::bf16;

use super::pack_copy::{PackRegion, copy_avx512, zero_padding};
use crate::data_movement::{StridedLoop, TransposeKernel};

/// Columns of a vector of pairs.
const PAIRS: usize = 16;

/// Packs a region of bf16.
///
/// # Safety
///
/// As for [`PackFn`](super::pack_copy::PackFn); the CPU has AVX-512 with bf16.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(super) unsafe fn pack_bf16(region: &PackRegion) {
    if !rows_are_contiguous(region) {
        // SAFETY: guaranteed by the caller.
        return unsafe {
            if pairs_are_contiguous(region) { transposed(region) } else { copy_avx512::<bf16, bf16>(region) }
        };
    }
    const ORDERS: [[u16; 32]; 2] = [order(0, 32), order(PAIRS as u16, 32)];
    // SAFETY: guaranteed by the caller; masked elements are not touched.
    unsafe {
        let [low, high] = [0, 1].map(|half| _mm512_loadu_si512(ORDERS[half].as_ptr().cast()));
        for_each_pair(region, 2, |upper, lower, column, to| {
            let row = |row: Option<*const u8>, first: usize| match row {
                Some(row) => {
                    let count = region.columns.saturating_sub(first).min(2 * PAIRS);
                    let mask = ((1u64 << count) - 1) as u32;
                    _mm512_maskz_loadu_epi16(mask, row.cast::<i16>().add(first.min(region.columns)))
                }
                None => _mm512_setzero_si512(),
            };
            let (upper, lower) = (row(upper, column), row(lower, column));
            _mm512_storeu_si512(to.cast(), _mm512_permutex2var_epi16(upper, low, lower));
            if column + PAIRS < region.columns_written {
                let second = _mm512_permutex2var_epi16(upper, high, lower);
                _mm512_storeu_si512(to.add(64).cast(), second);
            }
        });
    }
}

/// Packs a region of f32, rounded to bf16.
///
/// # Safety
///
/// As for [`pack_bf16`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(super) unsafe fn pack_f32(region: &PackRegion) {
    if !rows_are_contiguous(region) {
        // SAFETY: guaranteed by the caller.
        return unsafe { copy_avx512::<f32, bf16>(region) };
    }
    // The elements of the lower row follow the sixteen of the upper row.
    const ORDER: [u16; 32] = order(0, PAIRS as u16);
    // SAFETY: guaranteed by the caller; masked elements are not touched.
    unsafe {
        let order = _mm512_loadu_si512(ORDER.as_ptr().cast());
        for_each_pair(region, 4, |upper, lower, column, to| {
            for half in 0..2 {
                let first = column + half * PAIRS;
                if first >= region.columns_written {
                    break;
                }
                let count = region.columns.saturating_sub(first).min(PAIRS);
                let mask = ((1u32 << count) - 1) as u16;
                let row = |row: Option<*const u8>| match row {
                    Some(row) => {
                        _mm512_maskz_loadu_ps(mask, row.cast::<f32>().add(first.min(region.columns)))
                    }
                    None => _mm512_setzero_ps(),
                };
                let both: __m512bh = _mm512_cvtne2ps_pbh(row(lower), row(upper));
                let both = _mm512_permutexvar_epi16(order, std::mem::transmute::<__m512bh, __m512i>(both));
                _mm512_storeu_si512(to.add(half * 64).cast(), both);
            }
        });
    }
}

/// Whether the two elements of each pair are contiguous in the source.
fn pairs_are_contiguous(region: &PackRegion) -> bool {
    region.group == 2
        && region.row_stride == 1
        && region.first_row.is_multiple_of(2)
        && region.rows.is_multiple_of(2)
}

/// Packs contiguous pairs, blocks of which are transposed in registers.
unsafe fn transposed(region: &PackRegion) {
    const SIZE: usize = 2 * size_of::<bf16>();
    let bytes = |elements: usize| (elements * size_of::<bf16>()) as isize;
    let rows =
        StridedLoop { size: region.rows / 2, source: SIZE as isize, target: bytes(region.target_stride) };
    let columns =
        StridedLoop { size: region.columns, source: bytes(region.column_stride), target: SIZE as isize };
    let target = region.target.wrapping_offset(bytes(region.first_row / 2 * region.target_stride));
    // SAFETY: guaranteed by the caller; the part's pairs are those of the block.
    unsafe {
        TransposeKernel::best(SIZE).transpose_block(SIZE, (rows, columns), region.source, target, false);
        zero_padding::<bf16, bf16>(region);
    }
}

/// Whether the rows of each pair are contiguous in the source.
fn rows_are_contiguous(region: &PackRegion) -> bool {
    region.group == 2
        && region.column_stride == 1
        && region.first_row.is_multiple_of(2)
        && region.rows_written.is_multiple_of(2)
        && region.columns_written.is_multiple_of(PAIRS)
}

/// The source index of each element of a vector of pairs, for the columns from `first` on; elements of the lower row
/// start at `lower`.
const fn order(first: u16, lower: u16) -> [u16; 32] {
    let mut order = [0; 32];
    let mut at = 0;
    while at < order.len() {
        order[at] = first + at as u16 / 2 + at as u16 % 2 * lower;
        at += 1;
    }
    order
}

/// Calls `pair` for each pair of rows and each 32 columns with the row pointers (none for missing rows), the column,
/// and the target.
#[inline(always)]
unsafe fn for_each_pair(
    region: &PackRegion,
    bytes: usize,
    pair: impl Fn(Option<*const u8>, Option<*const u8>, usize, *mut u8),
) {
    for row in (0..region.rows_written).step_by(2) {
        let address = |row: usize| {
            (row < region.rows).then(|| region.source.wrapping_add(row * region.row_stride * bytes))
        };
        let to = region.target.wrapping_add((region.first_row + row) / 2 * region.target_stride * 2);
        for column in (0..region.columns_written).step_by(2 * PAIRS) {
            pair(address(row), address(row + 1), column, to.wrapping_add(column * 4));
        }
    }
}
