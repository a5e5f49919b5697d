//! Micro-kernels: a few rows of the left-hand operand times one panel of the packed right-hand operand.

mod avx2;
mod avx512;
mod body;
mod family;
mod few_rows;
mod group_body;
mod portable;
mod vector;

pub(crate) use body::{PREFETCH_BYTES, WAITING_ROWS};
pub(crate) use family::{KernelArgs, KernelFamily, WidenFn};
pub(crate) use few_rows::{FewRowsArgs, FewRowsFn};
pub(crate) use group_body::ROWS_OF_WORD;
use half::bf16;
use warpforge_tensor::ElementType;

use super::packed::PackedFormat;
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

    /// The f32 kernels whose panels are i8.
    pub(crate) fn i8_widened(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::I8,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::I8,
            _ => &portable::I8,
        }
    }

    /// The f32 kernels whose panels are f8E4M3FN.
    pub(crate) fn f8_widened(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::F8,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::F8,
            _ => &portable::F8,
        }
    }

    /// The f32 kernels whose panels have 4 bits.
    pub(crate) fn int4(isa: Isa) -> &'static Self {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::INT4,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::INT4,
            _ => &portable::INT4,
        }
    }

    /// The i32 kernels of quads of bytes: by VNNI, or by products of 16 bits.
    pub(crate) fn quads(isa: Isa) -> Option<&'static Self> {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if is_x86_feature_detected!("avx512vnni") => Some(&avx512::QUADS),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Avx2 => Some(&avx2::QUADS),
            _ => None,
        }
    }

    /// What widens panels of a format for kernels with so many lanes, and the f32 kernels that read what comes of it.
    pub(crate) fn widening(format: PackedFormat, lanes: usize) -> Option<(WidenFn, &'static Self)> {
        #[cfg(target_arch = "x86_64")]
        if lanes == avx512::F32.lanes {
            let widen: WidenFn = match format {
                PackedFormat::I8Widened => avx512::widen_i8,
                PackedFormat::F8Widened => avx512::widen_f8,
                PackedFormat::Int4 { .. } => avx512::widen_int4,
                _ => return None,
            };
            return Some((widen, &avx512::F32));
        }
        #[cfg(target_arch = "x86_64")]
        if lanes == avx2::F32.lanes {
            let widen: WidenFn = match format {
                PackedFormat::I8Widened => avx2::widen_i8,
                PackedFormat::F8Widened => avx2::widen_f8,
                PackedFormat::Int4 { .. } => avx2::widen_int4,
                _ => return None,
            };
            return Some((widen, &avx2::F32));
        }
        let widen: WidenFn = match format {
            PackedFormat::I8Widened => portable::widen_i8,
            PackedFormat::F8Widened => portable::widen_f8,
            PackedFormat::Int4 { .. } => portable::widen_int4,
            _ => return None,
        };
        (lanes == portable::F32.lanes).then_some((widen, &portable::F32))
    }

    /// The i64 kernels.
    pub(crate) fn i64() -> &'static Self {
        &portable::I64
    }
}

/// The kernel of a few rows by an operand of an element type with these strides of rows and columns.
pub(crate) fn few_rows(isa: Isa, element: ElementType, strides: [usize; 2]) -> Option<FewRowsFn> {
    macro_rules! of {
        ($module:ident) => {
            match (element, strides) {
                (ElementType::F32, [_, 1]) => Some($module::whole_rows::<f32> as FewRowsFn),
                (ElementType::F32, [1, _]) => Some($module::whole_columns::<f32>),
                (ElementType::BF16, [_, 1]) => Some($module::whole_rows::<bf16>),
                (ElementType::BF16, [1, _]) => Some($module::whole_columns::<bf16>),
                _ => None,
            }
        };
    }
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => of!(avx512),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => of!(avx2),
        _ => of!(portable),
    }
}
