//! Pairs of rows side by side, as instructions for bf16 want the right operand: packed by vectors.

#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{
    __m512bh, __m512i, _mm512_cvtne2ps_pbh, _mm512_loadu_si512, _mm512_maskz_loadu_epi16,
    _mm512_maskz_loadu_ps, _mm512_permutex2var_epi16, _mm512_permutexvar_epi16, _mm512_setzero_ps,
    _mm512_setzero_si512, _mm512_storeu_si512,
};

use half::bf16;

use super::pack::{Part, copy_avx512, zero_the_rest};
use crate::movement::{Loop, Tile};

/// Columns of a vector of pairs.
const PAIRS: usize = 16;

/// Copies a part of bf16.
///
/// # Safety
///
/// As for [`Copy`](super::pack::Copy); the processor has AVX-512 with bf16.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(super) unsafe fn same(part: &Part) {
    if !in_pairs(part) {
        // SAFETY: as the caller promises.
        return unsafe { if beside(part) { turned(part) } else { copy_avx512::<bf16, bf16>(part) } };
    }
    const ORDERS: [[u16; 32]; 2] = [order(0, 32), order(PAIRS as u16, 32)];
    // SAFETY: as the caller promises; masked elements are not touched.
    unsafe {
        let [low, high] = [0, 1].map(|half| _mm512_loadu_si512(ORDERS[half].as_ptr().cast()));
        each_pair(part, 2, |upper, lower, column, to| {
            let row = |row: Option<*const u8>, first: usize| match row {
                Some(row) => {
                    let count = part.columns.saturating_sub(first).min(2 * PAIRS);
                    let mask = ((1u64 << count) - 1) as u32;
                    _mm512_maskz_loadu_epi16(mask, row.cast::<i16>().add(first.min(part.columns)))
                }
                None => _mm512_setzero_si512(),
            };
            let (upper, lower) = (row(upper, column), row(lower, column));
            _mm512_storeu_si512(to.cast(), _mm512_permutex2var_epi16(upper, low, lower));
            if column + PAIRS < part.columns_written {
                let second = _mm512_permutex2var_epi16(upper, high, lower);
                _mm512_storeu_si512(to.add(64).cast(), second);
            }
        });
    }
}

/// Copies a part of f32, rounded to bf16.
///
/// # Safety
///
/// As for [`same`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(super) unsafe fn rounded(part: &Part) {
    if !in_pairs(part) {
        // SAFETY: as the caller promises.
        return unsafe { copy_avx512::<f32, bf16>(part) };
    }
    // The lower row's elements follow the upper row's sixteen.
    const ORDER: [u16; 32] = order(0, PAIRS as u16);
    // SAFETY: as the caller promises; masked elements are not touched.
    unsafe {
        let order = _mm512_loadu_si512(ORDER.as_ptr().cast());
        each_pair(part, 4, |upper, lower, column, to| {
            for half in 0..2 {
                let first = column + half * PAIRS;
                if first >= part.columns_written {
                    break;
                }
                let count = part.columns.saturating_sub(first).min(PAIRS);
                let mask = ((1u32 << count) - 1) as u16;
                let row = |row: Option<*const u8>| match row {
                    Some(row) => _mm512_maskz_loadu_ps(mask, row.cast::<f32>().add(first.min(part.columns))),
                    None => _mm512_setzero_ps(),
                };
                let both: __m512bh = _mm512_cvtne2ps_pbh(row(lower), row(upper));
                let both = _mm512_permutexvar_epi16(order, std::mem::transmute::<__m512bh, __m512i>(both));
                _mm512_storeu_si512(to.add(half * 64).cast(), both);
            }
        });
    }
}

/// Whether the elements of each pair of rows lie side by side in the source.
fn beside(part: &Part) -> bool {
    part.group == 2 && part.row_stride == 1 && part.first_row.is_multiple_of(2) && part.rows.is_multiple_of(2)
}

/// Copies pairs as they lie, squares of them turned in registers.
unsafe fn turned(part: &Part) {
    const SIZE: usize = 2 * size_of::<bf16>();
    let bytes = |elements: usize| (elements * size_of::<bf16>()) as isize;
    let rows = Loop { size: part.rows / 2, source: SIZE as isize, target: bytes(part.target_stride) };
    let columns = Loop { size: part.columns, source: bytes(part.column_stride), target: SIZE as isize };
    let target = part.target.wrapping_offset(bytes(part.first_row / 2 * part.target_stride));
    // SAFETY: as the caller promises; the part's pairs are those of the block.
    unsafe {
        Tile::best(SIZE).block(SIZE, (rows, columns), part.source, target, false);
        zero_the_rest::<bf16, bf16>(part);
    }
}

/// Whether a part is made of pairs of rows whose elements lie side by side.
fn in_pairs(part: &Part) -> bool {
    part.group == 2
        && part.column_stride == 1
        && part.first_row.is_multiple_of(2)
        && part.rows_written.is_multiple_of(2)
        && part.columns_written.is_multiple_of(PAIRS)
}

/// Where the elements of a vector of pairs come from, of the columns from `first` on: those of the lower row are counted
/// from `lower` on.
const fn order(first: u16, lower: u16) -> [u16; 32] {
    let mut order = [0; 32];
    let mut at = 0;
    while at < order.len() {
        order[at] = first + at as u16 / 2 + at as u16 % 2 * lower;
        at += 1;
    }
    order
}

/// Calls `pair` with the addresses of each two rows of elements of so many bytes, a column, and where 32 columns of
/// pairs from it on go. Rows that there are none of are none.
#[inline(always)]
unsafe fn each_pair(
    part: &Part,
    bytes: usize,
    pair: impl Fn(Option<*const u8>, Option<*const u8>, usize, *mut u8),
) {
    for row in (0..part.rows_written).step_by(2) {
        let address =
            |row: usize| (row < part.rows).then(|| part.source.wrapping_add(row * part.row_stride * bytes));
        let to = part.target.wrapping_add((part.first_row + row) / 2 * part.target_stride * 2);
        for column in (0..part.columns_written).step_by(2 * PAIRS) {
            pair(address(row), address(row + 1), column, to.wrapping_add(column * 4));
        }
    }
}
