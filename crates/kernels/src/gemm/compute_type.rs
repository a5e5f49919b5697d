//! Compute types, and the kernels that implement them on a CPU.

use warpforge_tensor::ElementType;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::amx::{Amx, TileElement};
use super::microkernel::KernelFamily;
use super::packed::{PackedFormat, PackedLayout};
use crate::isa::Isa;

/// The multiplication and accumulation types of a GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComputeType {
    /// f32 multiplication and accumulation. Operands may be f32, bf16 or f16 in memory.
    F32,
    /// f64 multiplication and accumulation.
    F64,
    /// bf16 multiplication, f32 accumulation. Operands may be f32, bf16 or f16 in memory; they are rounded to bf16.
    Bf16,
    /// i8 multiplication, wrapping i32 accumulation.
    I8,
    /// Wrapping i32 multiplication and accumulation. Operands may be integers of 8, 16 or 32 bits in memory, with and without sign.
    I32,
    /// Wrapping i64 multiplication and accumulation. Operands may be integers of up to 64 bits in memory, with and without sign.
    I64,
}

impl ComputeType {
    /// Every compute type.
    pub const ALL: [Self; 6] = [Self::F32, Self::F64, Self::Bf16, Self::I8, Self::I32, Self::I64];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Bf16 => "bf16",
            Self::I8 => "i8",
            Self::I32 => "i32",
            Self::I64 => "i64",
        }
    }

    /// The accumulator type, which is the type of the output.
    #[must_use]
    pub fn accumulator(self) -> ElementType {
        match self {
            Self::F32 | Self::Bf16 => ElementType::F32,
            Self::F64 => ElementType::F64,
            Self::I8 | Self::I32 => ElementType::I32,
            Self::I64 => ElementType::I64,
        }
    }
}

/// The kernels of a compute type.
#[derive(Debug, Clone, Copy)]
pub(super) enum KernelSet {
    /// Vector micro-kernels.
    Vector(&'static KernelFamily),
    /// AMX tile kernels.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    Amx(Amx),
}

/// The most rows of a bf16 GEMM whose panels stay bf16 where there are no bf16 instructions: such a GEMM waits for memory, so half
/// the bytes are worth the widening of every element that is loaded.
const FEW_ROWS: usize = 16;

/// The most rows of a bf16 GEMM that tiles are too large for: of 32 rows they compute, few are wanted, and while a tile is loaded
/// nothing is prefetched.
const FEWER_THAN_TILES: usize = 2;

/// Selects the kernels of a compute type for GEMMs of so many rows, and the layout of their packed operands.
pub(super) fn select_kernels(compute_type: ComputeType, isa: Isa, rows: usize) -> (KernelSet, PackedLayout) {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    if isa == Isa::Avx512 {
        let chosen = match compute_type {
            ComputeType::Bf16 if rows <= FEWER_THAN_TILES => None,
            ComputeType::Bf16 => Amx::detect(TileElement::Bf16).map(|tiles| (tiles, PackedFormat::Bf16, 2)),
            ComputeType::I8 => Amx::detect(TileElement::I8).map(|tiles| (tiles, PackedFormat::I8, 4)),
            ComputeType::F32 | ComputeType::F64 | ComputeType::I32 | ComputeType::I64 => None,
        };
        if let Some((tiles, format, group)) = chosen {
            let row_multiple = tiles.depth();
            let packed_layout = PackedLayout { format, lanes: 16, vectors: 2, group, row_multiple };
            return (KernelSet::Amx(tiles), packed_layout);
        }
    }
    if let (ComputeType::I8, ..usize::MAX, Some(family)) = (compute_type, rows, KernelFamily::quads(isa)) {
        let (lanes, vectors, format) = (family.lanes, family.vectors, PackedFormat::I8Quads);
        return (
            KernelSet::Vector(family),
            PackedLayout { format, lanes, vectors, group: 4, row_multiple: 4 },
        );
    }
    let (family, format) = match compute_type {
        ComputeType::F32 => (KernelFamily::f32(isa), PackedFormat::F32),
        ComputeType::F64 => (KernelFamily::f64(isa), PackedFormat::F64),
        ComputeType::Bf16 if rows <= FEW_ROWS => (KernelFamily::bf16(isa), PackedFormat::Bf16Widened),
        ComputeType::Bf16 => (KernelFamily::f32(isa), PackedFormat::Bf16AsF32),
        ComputeType::I8 => (KernelFamily::i32(isa), PackedFormat::I8AsI32),
        ComputeType::I32 => (KernelFamily::i32(isa), PackedFormat::I32),
        ComputeType::I64 => (KernelFamily::i64(), PackedFormat::I64),
    };
    let (lanes, vectors) = (family.lanes, family.vectors);
    (KernelSet::Vector(family), PackedLayout { format, lanes, vectors, group: 1, row_multiple: 1 })
}

/// Weights that GEMMs read in the type that they are stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightType {
    /// i8.
    I8,
    /// f8E4M3FN without NaN.
    F8E4M3Fn,
    /// 4 bits in groups of so many rows, a multiple of 8.
    Int4 {
        /// Rows of a group.
        group: usize,
    },
}

/// The kernels of GEMMs of f32 rows with such weights, and the layout of these.
pub(super) fn weight_kernels(weights: WeightType, isa: Isa) -> (KernelSet, PackedLayout) {
    let (family, format, group) = match weights {
        WeightType::I8 => (KernelFamily::i8_widened(isa), PackedFormat::I8Widened, 1),
        WeightType::F8E4M3Fn => (KernelFamily::f8_widened(isa), PackedFormat::F8Widened, 1),
        WeightType::Int4 { group } => (KernelFamily::int4(isa), PackedFormat::Int4 { group }, group),
    };
    let (lanes, vectors) = (family.lanes, family.vectors);
    (KernelSet::Vector(family), PackedLayout { format, lanes, vectors, group: 1, row_multiple: group })
}
