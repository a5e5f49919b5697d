//! Transposes of square tiles in registers.

use super::nontemporal::store_fence;
use super::strided;
use super::strided_loop::StridedLoop;
#[cfg(target_arch = "x86_64")]
use crate::isa::Isa;
use crate::prefetch::{prefetch_for_write, prefetch_l2};

/// The bytes of a cache line.
const LINE: usize = 64;

/// Transposes a tile: contiguous rows at one byte stride become contiguous columns at another.
type Transpose = unsafe fn(*const u8, isize, *mut u8, isize);

/// A transpose kernel for elements of one size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TransposeKernel {
    /// Elements along a side; it divides 64.
    side: usize,
    transpose: Transpose,
    /// The same with non-temporal stores, where available: all rows are aligned to cache lines.
    stream: Option<Transpose>,
}

impl TransposeKernel {
    fn new(side: usize, transpose: Transpose) -> Self {
        Self { side, transpose, stream: None }
    }

    /// The best kernel for elements of 1, 2, 4, 8 or 16 bytes.
    pub(crate) fn best(size: usize) -> Self {
        #[cfg(target_arch = "x86_64")]
        match (Isa::best(), size) {
            (Isa::Avx512, 4) => {
                let stream = Some(x86::sixteen_of_four::<true> as Transpose);
                return Self { side: 16, transpose: x86::sixteen_of_four::<false>, stream };
            }
            (Isa::Avx512, 8) => return Self::new(8, x86::eight_of_eight),
            (_, 4) => return Self::new(4, x86::four_of_four),
            (_, 2) => return Self::new(8, x86::eight_of_two),
            (_, 1) => return Self::new(16, x86::sixteen_of_one),
            _ => {}
        }
        match size {
            1 => Self::new(8, portable::<u8, 8>),
            2 => Self::new(8, portable::<u16, 8>),
            4 => Self::new(4, portable::<u32, 4>),
            8 => Self::new(4, portable::<u64, 4>),
            _ => Self::new(2, portable::<u128, 2>),
        }
    }

    /// Copies a block whose rows are contiguous in the source and whose columns are contiguous in the target; with
    /// non-temporal stores if it is part of a large output.
    ///
    /// # Safety
    ///
    /// All elements may be read and written, and none of the target's is one of the source's. The size is the one that
    /// this tile is for.
    pub(crate) unsafe fn transpose_block(
        self,
        size: usize,
        (rows, columns): (StridedLoop, StridedLoop),
        source: *const u8,
        target: *mut u8,
        nontemporal: bool,
    ) {
        let whole = (rows.size / self.side * self.side, columns.size / self.side * self.side);
        let lines = target.addr().is_multiple_of(LINE) && rows.target.unsigned_abs().is_multiple_of(LINE);
        let stream = self.stream.filter(|_| nontemporal && lines);
        let transpose = stream.unwrap_or(self.transpose);
        // SAFETY: `row` and `column` are inside the block; the remainders are what is left beside the full tiles.
        unsafe {
            let place = |row: usize, column: usize| {
                let (row, column) = (row as isize, column as isize);
                let from = source.offset(row * rows.source + column * columns.source);
                (from, target.offset(row * rows.target + column * columns.target))
            };
            for row in (0..whole.0).step_by(self.side) {
                for column in (0..whole.1).step_by(self.side) {
                    let (from, to) = place(row, column);
                    // Rows at power-of-two strides map to few cache sets, and hardware prefetchers do not follow them.
                    for line in 0..self.side as isize {
                        let next = from.wrapping_offset((line + self.side as isize) * columns.source);
                        prefetch_l2(next);
                        if stream.is_none() {
                            prefetch_for_write(to.wrapping_offset(line * rows.target).wrapping_add(LINE));
                        }
                    }
                    transpose(from, columns.source, to, rows.target);
                }
            }
            if stream.is_some() {
                store_fence();
            }
            if whole.1 < columns.size {
                let (from, to) = place(0, whole.1);
                let columns = StridedLoop { size: columns.size - whole.1, ..columns };
                strided::elements(size, StridedLoop { size: whole.0, ..rows }, columns, from, to);
            }
            if whole.0 < rows.size {
                let (from, to) = place(whole.0, 0);
                strided::elements(size, StridedLoop { size: rows.size - whole.0, ..rows }, columns, from, to);
            }
        }
    }
}

/// # Safety
///
/// `N` rows of `N` elements may be read and written at those steps.
unsafe fn portable<T: Copy, const N: usize>(source: *const u8, from: isize, target: *mut u8, to: isize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let rows: [[T; N]; N] =
            std::array::from_fn(|row| source.offset(row as isize * from).cast::<[T; N]>().read_unaligned());
        let columns: [[T; N]; N] = std::array::from_fn(|column| std::array::from_fn(|row| rows[row][column]));
        for (row, values) in columns.into_iter().enumerate() {
            target.offset(row as isize * to).cast::<[T; N]>().write_unaligned(values);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Tiles in x86 registers: each step interleaves pairs of rows, with elements twice as wide each time.

    use std::arch::x86_64::*;

    /// Reads rows of a register each.
    macro_rules! rows {
        ($source:ident, $from:ident, $load:ident, $zero:ident, $n:literal) => {{
            let mut rows = [$zero(); $n];
            for (at, row) in rows.iter_mut().enumerate() {
                // SAFETY: the caller guarantees every row.
                *row = unsafe { $load($source.offset(at as isize * $from).cast()) };
            }
            rows
        }};
    }

    /// # Safety
    ///
    /// 16 rows of 16 elements of 4 bytes may be read and written at those strides; the CPU has AVX-512. For
    /// non-temporal stores, rows are aligned to cache lines.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn sixteen_of_four<const NONTEMPORAL: bool>(
        source: *const u8,
        from: isize,
        target: *mut u8,
        to: isize,
    ) {
        let mut a = rows!(source, from, _mm512_loadu_si512, _mm512_setzero_si512, 16);
        let mut b = a;
        for pair in (0..16).step_by(2) {
            b[pair] = _mm512_unpacklo_epi32(a[pair], a[pair + 1]);
            b[pair + 1] = _mm512_unpackhi_epi32(a[pair], a[pair + 1]);
        }
        for four in (0..16).step_by(4) {
            a[four] = _mm512_unpacklo_epi64(b[four], b[four + 2]);
            a[four + 1] = _mm512_unpackhi_epi64(b[four], b[four + 2]);
            a[four + 2] = _mm512_unpacklo_epi64(b[four + 1], b[four + 3]);
            a[four + 3] = _mm512_unpackhi_epi64(b[four + 1], b[four + 3]);
        }
        // Quarter q of a[4 i + j] now has column 4 q + j of rows 4 i to 4 i + 3.
        for j in 0..4 {
            let [first, second, third, fourth] = quarters(a[j], a[4 + j], a[8 + j], a[12 + j]);
            for (quarter, value) in [first, second, third, fourth].into_iter().enumerate() {
                // SAFETY: the caller guarantees every row.
                unsafe {
                    let row = target.offset((4 * quarter + j) as isize * to).cast();
                    if NONTEMPORAL {
                        _mm512_stream_si512(row, value);
                    } else {
                        _mm512_storeu_si512(row.cast(), value);
                    }
                }
            }
        }
    }

    /// # Safety
    ///
    /// 8 rows of 8 elements of 8 bytes may be read and written at those steps; the CPU has AVX-512.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn eight_of_eight(source: *const u8, from: isize, target: *mut u8, to: isize) {
        let a = rows!(source, from, _mm512_loadu_si512, _mm512_setzero_si512, 8);
        let mut b = a;
        for pair in (0..8).step_by(2) {
            b[pair] = _mm512_unpacklo_epi64(a[pair], a[pair + 1]);
            b[pair + 1] = _mm512_unpackhi_epi64(a[pair], a[pair + 1]);
        }
        for j in 0..2 {
            let columns = quarters(b[j], b[2 + j], b[4 + j], b[6 + j]);
            for (quarter, value) in columns.into_iter().enumerate() {
                // SAFETY: the caller guarantees every row.
                unsafe { _mm512_storeu_si512(target.offset((2 * quarter + j) as isize * to).cast(), value) };
            }
        }
    }

    /// Transposes quarters of registers.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn quarters(a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> [__m512i; 4] {
        let (even, odd) = (_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0xdd>(a, b));
        let (more_even, more_odd) = (_mm512_shuffle_i32x4::<0x88>(c, d), _mm512_shuffle_i32x4::<0xdd>(c, d));
        [
            _mm512_shuffle_i32x4::<0x88>(even, more_even),
            _mm512_shuffle_i32x4::<0x88>(odd, more_odd),
            _mm512_shuffle_i32x4::<0xdd>(even, more_even),
            _mm512_shuffle_i32x4::<0xdd>(odd, more_odd),
        ]
    }

    /// Transposes rows of 16 bytes: each step interleaves a row of the first half with one of the second.
    macro_rules! interleaving {
        ($name:ident, $n:literal rows of $bytes:literal bytes, $steps:literal steps, $low:ident, $high:ident) => {
            #[doc = concat!("# Safety\n\n", $n, " rows of ", $n, " elements of ", $bytes, " bytes may be read and written.")]
            #[target_feature(enable = "sse2")]
            pub(super) unsafe fn $name(source: *const u8, from: isize, target: *mut u8, to: isize) {
                let mut rows = rows!(source, from, _mm_loadu_si128, _mm_setzero_si128, $n);
                for _ in 0..$steps {
                    let mut next = rows;
                    for row in 0..$n / 2 {
                        next[2 * row] = $low(rows[row], rows[row + $n / 2]);
                        next[2 * row + 1] = $high(rows[row], rows[row + $n / 2]);
                    }
                    rows = next;
                }
                for (row, value) in rows.into_iter().enumerate() {
                    // SAFETY: the caller guarantees every row.
                    unsafe { _mm_storeu_si128(target.offset(row as isize * to).cast(), value) };
                }
            }
        };
    }

    interleaving!(four_of_four, 4 rows of 4 bytes, 2 steps, _mm_unpacklo_epi32, _mm_unpackhi_epi32);
    interleaving!(eight_of_two, 8 rows of 2 bytes, 3 steps, _mm_unpacklo_epi16, _mm_unpackhi_epi16);
    interleaving!(sixteen_of_one, 16 rows of 1 bytes, 4 steps, _mm_unpacklo_epi8, _mm_unpackhi_epi8);
}
