//! Micro-kernels: a few rows of the left-hand operand times one panel of the packed right-hand operand.

mod avx2;
mod avx512;
mod body;
mod portable;
mod vector;

pub(crate) use body::{PREFETCH_BYTES, prefetch_l2};

use crate::isa::Isa;

/// The arguments of a micro-kernel. Rows of the left-hand operand are given by pointers: they may be rows of a matrix,
/// or pixels under a convolution window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelArgs {
    /// `pitch` row pointers for each tap, of which the kernel uses the first ones.
    pub(crate) rows: *const *const u8,
    /// The stride between taps in `rows`.
    pub(crate) pitch: usize,
    /// How many runs of elements make up a row.
    pub(crate) taps: usize,
    /// Elements of a run to skip.
    pub(crate) skip: usize,
    /// Elements of a run to use.
    pub(crate) run: usize,
    /// The panel's rows for these elements, without gaps.
    pub(crate) rhs: *const u8,
    /// Data to prefetch during this call, 16 bytes for each element of a row.
    pub(crate) prefetch: *const u8,
    /// The first element of the result.
    pub(crate) out: *mut u8,
    /// The row stride of the output, in elements.
    pub(crate) out_stride: usize,
    /// Columns of the panel that are columns of the output: more than all vectors but the last hold.
    pub(crate) columns: usize,
    /// Whether to add to the output.
    pub(crate) accumulate: bool,
}

/// A kernel for a fixed number of rows and vectors.
///
/// # Safety
///
/// The CPU has the family's instructions; all pointers of the arguments are valid.
pub(crate) type MicroKernel = unsafe fn(&KernelArgs);

/// The kernels of one instruction set for one type of elements.
#[derive(Debug)]
pub(crate) struct KernelFamily {
    /// Maximum rows of a kernel (MR).
    pub(crate) rows: usize,
    /// Elements of a vector.
    pub(crate) lanes: usize,
    /// Maximum vectors of a panel.
    pub(crate) vectors: usize,
    /// Bytes of an element.
    pub(crate) bytes: usize,
    /// Kernels by rows, then by vectors, each counted from 1.
    kernels: &'static [&'static [MicroKernel]],
}

impl KernelFamily {
    /// The kernel for that many rows and vectors.
    pub(crate) fn kernel(&self, rows: usize, vectors: usize) -> MicroKernel {
        self.kernels[rows - 1][vectors - 1]
    }

    /// The f32 kernels.
    pub(crate) fn f32(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::F32,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::F32,
            _ => &portable::F32,
        }
    }

    /// The f64 kernels.
    pub(crate) fn f64(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::F64,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::F64,
            _ => &portable::F64,
        }
    }

    /// The i32 kernels, for 8-bit integers on CPUs without AMX.
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
        &[$($kernel::<$rows, $vectors> as super::MicroKernel),*]
    };
}
pub(crate) use kernels;
