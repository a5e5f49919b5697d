//! The innermost kernel of a matrix product: one small tile of the result.

use super::element::Element;

/// Computes a tile of `ROWS` by `COLUMNS` numbers of the result from two packed panels.
///
/// A value of the type proves that the processor has the instructions.
pub(super) trait MicroKernel: Copy + Send + Sync + 'static {
    /// The type of number in the inputs.
    type Input: Element;
    /// What a thread must hold while it runs tiles.
    type Session;

    /// Rows of a tile.
    const ROWS: usize;
    /// Columns of a tile.
    const COLUMNS: usize;
    /// Consecutive elements of a row that lie together in a panel of the left matrix; [`super::pack`] says how.
    const LEFT_GROUP: usize = 1;
    /// Consecutive elements of a column that lie together in a panel of the right matrix. It divides `LEFT_GROUP`.
    const RIGHT_GROUP: usize = 1;
    /// Bytes of the part of a right panel that every tile of a block reads again: most of an L1 cache, less the part
    /// of a left panel that is read beside it.
    const RIGHT_BLOCK_BYTES: usize = 32 << 10;

    /// The kernel, where it can run.
    fn detect() -> Option<Self>;

    /// Makes the calling thread ready for tiles.
    fn session(self) -> Self::Session;

    /// Adds the product of the panels to a tile of the result, whose rows are `stride` apart.
    ///
    /// # Panics
    /// If the panels are not of one depth, or the tile does not fit `result`.
    fn add_tile(
        self,
        session: &Self::Session,
        left: &[Self::Input],
        right: &[Self::Input],
        result: &mut [Sum<Self>],
        stride: usize,
    );

    /// Checks what [`Self::add_tile`] demands, and gives the depth of the panels.
    fn depth(left: &[Self::Input], right: &[Self::Input], result: &[Sum<Self>], stride: usize) -> usize {
        let depth = left.len() / Self::ROWS;
        assert_eq!(left.len(), depth * Self::ROWS, "the left panel is not whole");
        assert_eq!(right.len(), depth * Self::COLUMNS, "the panels differ in depth");
        assert_eq!(depth % Self::LEFT_GROUP, 0, "the depth is not padded");
        assert!(stride >= Self::COLUMNS, "rows of the tile overlap");
        assert!(
            result.len() >= (Self::ROWS - 1) * stride + Self::COLUMNS,
            "the tile does not fit the result"
        );
        depth
    }
}

/// The type of number in the result of a kernel.
pub(super) type Sum<K> = <<K as MicroKernel>::Input as Element>::Sum;

/// Defines a kernel that multiplies vectors of the right panel by single numbers of the left one, with the
/// accumulators of the whole tile in registers.
macro_rules! fma_kernel {
    (
        $(#[$doc:meta])*
        struct $name:ident, $tile:ident;
        tile $rows:literal by $vectors:literal of $vector:ty = [$element:ty; $lanes:literal];
        detect $detect:expr;
        $(#[$feature:meta])?
        |$x:ident, $scalar:ident, $y:ident| $step:expr; add |$old:ident, $new:ident| $add:expr
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        struct $name(());

        impl $crate::cpu::gemm::kernel::MicroKernel for $name {
            type Input = $element;
            type Session = ();
            const ROWS: usize = $rows;
            const COLUMNS: usize = $vectors * $lanes;

            fn detect() -> Option<Self> {
                $detect.then_some(Self(()))
            }

            fn session(self) {}

            fn add_tile(
                self,
                (): &(),
                left: &[$element],
                right: &[$element],
                result: &mut [$element],
                stride: usize,
            ) {
                Self::depth(left, right, result, stride);
                // SAFETY: `self` proves that the processor has the features.
                #[allow(unused_unsafe)]
                unsafe {
                    $tile(left, right, result, stride);
                }
            }
        }

        $(#[$feature])?
        fn $tile(left: &[$element], right: &[$element], result: &mut [$element], stride: usize) {
            use $crate::cpu::register::{load, store};
            let zero: $vector = load(&[<$element>::default(); $lanes]);
            let mut acc = [[zero; $vectors]; $rows];
            let (left, _) = left.as_chunks::<$rows>();
            let (right, _) = right.as_chunks::<$lanes>();
            for (scalars, vectors) in left.iter().zip(right.as_chunks::<$vectors>().0) {
                let vectors: [$vector; $vectors] = vectors.each_ref().map(|lanes| load(lanes));
                for (row, &$scalar) in acc.iter_mut().zip(scalars) {
                    for ($x, $y) in row.iter_mut().zip(vectors) {
                        *$x = $step;
                    }
                }
            }
            for (row, acc) in result.chunks_mut(stride).zip(acc) {
                for (lanes, $new) in row.as_chunks_mut::<$lanes>().0.iter_mut().zip(acc) {
                    let $old: $vector = load(lanes);
                    store::<$vector, _, _>($add, lanes);
                }
            }
        }
    };
}
pub(super) use fma_kernel;
