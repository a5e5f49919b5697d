//! Packing: panels for the right-hand operand, rows for the left-hand one.

use half::{bf16, f16};
use warpforge_tensor::{ElementType, FloatType};

use super::convert::{Bf16AsF32, OffsetI8};
#[cfg(target_arch = "x86_64")]
use super::pack_bf16;
use super::pack_copy::{PackFn, PackRegion, for_isa, zero_padding};
use super::packed::PackedFormat;
use crate::data_movement::{StridedLoop, TransposeKernel};
use crate::isa::Isa;

/// The function that packs elements of type `element` as `format`; none for element types that GEMMs do not accept.
pub(crate) fn pack_fn(format: PackedFormat, element: ElementType, isa: Isa) -> Option<PackFn> {
    Some(match (format, element) {
        (PackedFormat::F32, ElementType::F32) => match isa {
            Isa::Avx512 => transposed,
            _ => for_isa::<f32, f32>(isa),
        },
        (PackedFormat::F32, ElementType::BF16) => for_isa::<bf16, f32>(isa),
        (PackedFormat::F32, ElementType::F16) => for_isa::<f16, f32>(isa),
        (PackedFormat::F64, ElementType::F64) => for_isa::<f64, f64>(isa),
        (PackedFormat::Bf16AsF32, ElementType::F32) => for_isa::<f32, Bf16AsF32>(isa),
        (PackedFormat::Bf16AsF32, ElementType::BF16) => for_isa::<bf16, Bf16AsF32>(isa),
        (PackedFormat::Bf16AsF32, ElementType::F16) => for_isa::<f16, Bf16AsF32>(isa),
        // Only CPUs with bf16 instructions use this format.
        #[cfg(target_arch = "x86_64")]
        (PackedFormat::Bf16, ElementType::F32) if isa == Isa::Avx512 => pack_bf16::pack_f32,
        #[cfg(target_arch = "x86_64")]
        (PackedFormat::Bf16, ElementType::BF16) if isa == Isa::Avx512 => pack_bf16::pack_bf16,
        (PackedFormat::Bf16 | PackedFormat::Bf16Widened, ElementType::F32) => for_isa::<f32, bf16>(isa),
        (PackedFormat::Bf16 | PackedFormat::Bf16Widened, ElementType::BF16) => for_isa::<bf16, bf16>(isa),
        (PackedFormat::Bf16 | PackedFormat::Bf16Widened, ElementType::F16) => for_isa::<f16, bf16>(isa),
        (PackedFormat::I8 | PackedFormat::I8Quads | PackedFormat::I8Widened, ElementType::I8) => {
            for_isa::<i8, i8>(isa)
        }
        (PackedFormat::I8Offset, ElementType::I8) => for_isa::<i8, OffsetI8>(isa),
        (PackedFormat::F8Widened, ElementType::Float(FloatType::F8E4M3Fn)) => for_isa::<u8, u8>(isa),
        (PackedFormat::I8AsI32 | PackedFormat::I32, ElementType::I8) => for_isa::<i8, i32>(isa),
        (PackedFormat::I32, ElementType::U8) => for_isa::<u8, i32>(isa),
        (PackedFormat::I32, ElementType::I16) => for_isa::<i16, i32>(isa),
        (PackedFormat::I32, ElementType::U16) => for_isa::<u16, i32>(isa),
        (PackedFormat::I32, ElementType::I32) => for_isa::<i32, i32>(isa),
        (PackedFormat::I32, ElementType::U32) => for_isa::<u32, i32>(isa),
        (PackedFormat::I64, ElementType::I8) => for_isa::<i8, i64>(isa),
        (PackedFormat::I64, ElementType::U8) => for_isa::<u8, i64>(isa),
        (PackedFormat::I64, ElementType::I16) => for_isa::<i16, i64>(isa),
        (PackedFormat::I64, ElementType::U16) => for_isa::<u16, i64>(isa),
        (PackedFormat::I64, ElementType::I32) => for_isa::<i32, i64>(isa),
        (PackedFormat::I64, ElementType::U32) => for_isa::<u32, i64>(isa),
        (PackedFormat::I64, ElementType::I64) => for_isa::<i64, i64>(isa),
        (PackedFormat::I64, ElementType::U64) => for_isa::<u64, i64>(isa),
        _ => return None,
    })
}

/// Packs f32 with AVX-512; where contiguous source elements are strided in the copy, blocks are transposed in
/// registers.
unsafe fn transposed(region: &PackRegion) {
    // SAFETY: guaranteed by the caller, who has AVX-512; the part's elements are those of the block.
    unsafe {
        if region.group != 1 || region.row_stride != 1 || region.column_stride == 1 {
            return for_isa::<f32, f32>(Isa::Avx512)(region);
        }
        const SIZE: usize = size_of::<f32>();
        let bytes = |elements: usize| (elements * SIZE) as isize;
        let rows = StridedLoop { size: region.rows, source: bytes(1), target: bytes(region.target_stride) };
        let columns =
            StridedLoop { size: region.columns, source: bytes(region.column_stride), target: bytes(1) };
        let target = region.target.add(region.first_row * region.target_stride * SIZE);
        TransposeKernel::best(SIZE).transpose_block(SIZE, (rows, columns), region.source, target, false);
        zero_padding::<f32, f32>(region);
    }
}
