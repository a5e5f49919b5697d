//! Micro-kernels: a few rows of the left-hand operand times one panel of the packed right-hand operand.

mod avx2;
mod avx512;
mod body;
mod family;
mod portable;
mod vector;

pub(crate) use body::{PREFETCH_BYTES, prefetch_l2};
pub(crate) use family::{KernelArgs, KernelFamily};

use crate::isa::Isa;

impl KernelFamily {
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

    /// The f32 kernels whose panels are bf16.
    pub(crate) fn bf16(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::BF16,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::BF16,
            _ => &portable::BF16,
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

    /// The i32 kernels, for integers; 8-bit ones on CPUs with AMX have their own.
    pub(crate) fn i32(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::I32,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::I32,
            _ => &portable::I32,
        }
    }

    /// The i64 kernels.
    pub(crate) fn i64() -> &'static Self {
        &portable::I64
    }
}
