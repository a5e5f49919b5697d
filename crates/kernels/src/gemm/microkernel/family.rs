//! What all micro-kernels take, and the kernels of one instruction set.

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
    /// Elements of a step, where kernels take several at once; runs and what is skipped are counted in steps.
    pub(crate) unit: usize,
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
    /// The output of the next call, to be prefetched where it is added to. Null for none.
    pub(crate) next_out: *const u8,
}

/// A kernel for a fixed number of rows and vectors.
///
/// # Safety
///
/// The CPU has the family's instructions; all pointers of the arguments are valid.
pub(crate) type MicroKernel = unsafe fn(&KernelArgs);

/// Widens so many steps of a panel of few bits to rows of f32: from the panel, of `unit` rows and `width` columns each.
///
/// # Safety
///
/// As for [`MicroKernel`]; the panel and the memory have these sizes.
pub(crate) type WidenFn = unsafe fn(from: *const u8, steps: usize, unit: usize, width: usize, to: *mut f32);

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
    pub(super) kernels: &'static [&'static [MicroKernel]],
}

impl KernelFamily {
    /// The kernel for that many rows and vectors.
    pub(crate) fn kernel(&self, rows: usize, vectors: usize) -> MicroKernel {
        self.kernels[rows - 1][vectors - 1]
    }
}

/// The table of a family's kernels: `$kernel::<rows, vectors>` for the rows and vectors named.
macro_rules! kernels {
    ($kernel:ident, [$($rows:literal)*], $vectors:tt) => {
        &[$(kernels!(@row $kernel, $rows, $vectors)),*]
    };
    (@row $kernel:ident, $rows:literal, [$($vectors:literal)*]) => {
        &[$($kernel::<$rows, $vectors> as super::family::MicroKernel),*]
    };
}
pub(super) use kernels;
