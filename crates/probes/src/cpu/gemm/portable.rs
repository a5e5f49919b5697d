//! Kernels for any processor, as the compiler makes them of plain code.

use super::Gemm;
use super::kernel::MicroKernel;
use crate::cpu::Dtype;

macro_rules! portable_kernel {
    ($name:ident, $element:ty) => {
        #[derive(Debug, Clone, Copy)]
        struct $name;

        impl MicroKernel for $name {
            type Input = $element;
            type Session = ();
            const ROWS: usize = 4;
            const COLUMNS: usize = 8;

            fn detect() -> Option<Self> {
                Some(Self)
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
                let mut acc = [[0.0; Self::COLUMNS]; Self::ROWS];
                let (left, _) = left.as_chunks::<{ Self::ROWS }>();
                let (right, _) = right.as_chunks::<{ Self::COLUMNS }>();
                for (scalars, lanes) in left.iter().zip(right) {
                    for (row, scalar) in acc.iter_mut().zip(scalars) {
                        for (x, y) in row.iter_mut().zip(lanes) {
                            *x += scalar * y;
                        }
                    }
                }
                for (row, acc) in result.chunks_mut(stride).zip(acc) {
                    row.iter_mut().zip(acc).for_each(|(old, new)| *old += new);
                }
            }
        }
    };
}

portable_kernel!(PortableF32, f32);
portable_kernel!(PortableF64, f64);

/// The products that any processor can run.
pub(super) fn gemms() -> impl Iterator<Item = Gemm> {
    [Gemm::of::<PortableF64>(Dtype::F64, "portable"), Gemm::of::<PortableF32>(Dtype::F32, "portable")]
        .into_iter()
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::super::blocked::check;
    use super::*;

    #[test]
    fn products_are_right() {
        check::<PortableF32>();
        check::<PortableF64>();
    }
}
