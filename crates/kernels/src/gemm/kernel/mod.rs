//! The innermost loops: a few rows of the left operand times one panel of the packed right operand.

mod avx2;
mod avx512;
mod portable;
mod tile;
mod vector;

pub(crate) use tile::{AHEAD, fetch};

use crate::isa::Isa;

/// One call of a kernel. Rows of the left operand are given by address, so that they may lie anywhere: in a matrix, or
/// at the pixels of an image that a window covers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    /// For each tap `pitch` addresses of rows, of which the kernel uses the first ones.
    pub(crate) rows: *const *const u8,
    /// The distance of the taps in `rows`.
    pub(crate) pitch: usize,
    /// How many runs of elements make up a row.
    pub(crate) taps: usize,
    /// Elements of a run to skip.
    pub(crate) skip: usize,
    /// Elements of a run to use.
    pub(crate) run: usize,
    /// The panel's rows for these elements, without gaps.
    pub(crate) rhs: *const u8,
    /// What will be read soon after this call: 16 bytes for each element of a row are brought nearer.
    pub(crate) ahead: *const u8,
    /// The first element of the result.
    pub(crate) out: *mut u8,
    /// The distance of the result's rows, in elements.
    pub(crate) out_stride: usize,
    /// How many of the panel's columns are columns of the result: more than all vectors but the last hold.
    pub(crate) columns: usize,
    /// Whether the sums begin with what the result holds.
    pub(crate) accumulate: bool,
}

/// A kernel for a fixed number of rows and vectors.
///
/// # Safety
///
/// The processor has the family's instructions; all addresses of the call are good for what it says.
pub(crate) type Kernel = unsafe fn(&Call);

/// The kernels of one instruction set for one type of elements.
#[derive(Debug)]
pub(crate) struct Family {
    /// The most rows that a kernel does at once.
    pub(crate) rows: usize,
    /// Elements of a vector.
    pub(crate) lanes: usize,
    /// The most vectors in a panel.
    pub(crate) vectors: usize,
    /// Bytes of an element.
    pub(crate) bytes: usize,
    /// Kernels by rows, then by vectors, each counted from 1.
    kernels: &'static [&'static [Kernel]],
}

impl Family {
    /// The kernel for so many rows and vectors.
    pub(crate) fn kernel(&self, rows: usize, vectors: usize) -> Kernel {
        self.kernels[rows - 1][vectors - 1]
    }

    /// The kernels for products of f32.
    pub(crate) fn f32(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::F32,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::F32,
            _ => &portable::F32,
        }
    }

    /// The kernels for products of f64.
    pub(crate) fn f64(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::F64,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::F64,
            _ => &portable::F64,
        }
    }

    /// The kernels for products of i32, for 8-bit integers on machines that have no tiles.
    pub(crate) fn i32(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::I32,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::I32,
            _ => &portable::I32,
        }
    }
}

/// The table of a family's kernels: `$kernel::<rows, vectors>` for the rows and vectors named.
macro_rules! kernels {
    ($kernel:ident, [$($rows:literal)*], $vectors:tt) => {
        &[$(kernels!(@row $kernel, $rows, $vectors)),*]
    };
    (@row $kernel:ident, $rows:literal, [$($vectors:literal)*]) => {
        &[$($kernel::<$rows, $vectors> as super::Kernel),*]
    };
}
pub(crate) use kernels;
