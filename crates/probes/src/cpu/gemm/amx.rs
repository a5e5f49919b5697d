//! Kernels for the matrix tiles of x86-64: a square of two by two tiles of the result.

// Tiles are used by inline assembly.
#![allow(unsafe_code)]

use std::arch::asm;

use super::Gemm;
use super::kernel::{MicroKernel, Sum};
use crate::cpu::Dtype;
use crate::cpu::amx::{Configured, ROW_BYTES, ROWS, Tiles};
use crate::cpu::bf16::Bf16;

macro_rules! tile_kernel {
    ($(#[$doc:meta])* $name:ident, $input:ty, $tiles:ident, group $group:literal, $product:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        struct $name(Tiles);

        impl MicroKernel for $name {
            type Input = $input;
            type Session = Configured;
            const ROWS: usize = 2 * ROWS;
            const COLUMNS: usize = 2 * ROW_BYTES / 4;
            const LEFT_GROUP: usize = ROW_BYTES / size_of::<$input>();
            const RIGHT_GROUP: usize = $group;
            // The part of the left panel is as large; together they fit an L1 cache of 48 KiB.
            const RIGHT_BLOCK_BYTES: usize = 20 << 10;

            fn detect() -> Option<Self> {
                Tiles::$tiles().map(Self)
            }

            fn session(self) -> Configured {
                self.0.configure()
            }

            fn add_tile(
                self,
                _: &Configured,
                left: &[$input],
                right: &[$input],
                result: &mut [Sum<Self>],
                stride: usize,
            ) {
                let steps = Self::depth(left, right, result, stride) / Self::LEFT_GROUP;
                if steps == 0 {
                    return;
                }
                let lower = &raw mut result[ROWS * stride];
                // SAFETY: the session proves that the tiles are configured to 16 rows of 64 bytes. `depth` has
                // checked that two by two tiles lie within `result`, and that the panels hold `steps` times 2,048
                // bytes each: 32 rows of 64 bytes on the left, 16 rows of 128 bytes on the right.
                unsafe {
                    asm!(
                        "tileloadd tmm0, [{upper} + {stride}]",
                        "tileloadd tmm1, [{upper} + {stride} + 64]",
                        "tileloadd tmm2, [{lower} + {stride}]",
                        "tileloadd tmm3, [{lower} + {stride} + 64]",
                        "2:",
                        "tileloadd tmm4, [{left} + {left_stride}]",
                        "tileloadd tmm6, [{right} + {right_stride}]",
                        "tileloadd tmm7, [{right} + {right_stride} + 64]",
                        concat!($product, " tmm0, tmm4, tmm6"),
                        "tileloadd tmm5, [{left} + {left_stride} + 1024]",
                        concat!($product, " tmm1, tmm4, tmm7"),
                        concat!($product, " tmm2, tmm5, tmm6"),
                        concat!($product, " tmm3, tmm5, tmm7"),
                        "add {left}, 2048",
                        "add {right}, 2048",
                        "dec {steps}",
                        "jnz 2b",
                        "tilestored [{upper} + {stride}], tmm0",
                        "tilestored [{upper} + {stride} + 64], tmm1",
                        "tilestored [{lower} + {stride}], tmm2",
                        "tilestored [{lower} + {stride} + 64], tmm3",
                        upper = in(reg) result.as_mut_ptr(),
                        lower = in(reg) lower,
                        stride = in(reg) stride * 4,
                        left = inout(reg) left.as_ptr() => _,
                        left_stride = in(reg) ROW_BYTES,
                        right = inout(reg) right.as_ptr() => _,
                        right_stride = in(reg) 2 * ROW_BYTES,
                        steps = inout(reg) steps => _,
                        out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                        out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                        options(nostack),
                    );
                }
            }
        }
    };
}

tile_kernel! {
    /// bf16, summed in f32.
    AmxBf16, Bf16, with_bf16, group 2, "tdpbf16ps"
}
tile_kernel! {
    /// 8-bit integers, summed in 32 bits.
    AmxInt8, i8, with_int8, group 4, "tdpbssd"
}

/// The products that this processor and this kernel allow.
pub(super) fn gemms() -> impl Iterator<Item = Gemm> {
    [Gemm::of::<AmxBf16>(Dtype::Bf16, "amx"), Gemm::of::<AmxInt8>(Dtype::Int8, "amx")].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::super::blocked::check;
    use super::*;

    #[test]
    fn products_are_right() {
        check::<AmxBf16>();
        check::<AmxInt8>();
    }
}
