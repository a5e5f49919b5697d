//! The kinds of products, and which kernels make them on a machine.

use warpforge_tensor::ElementType;

use super::kernel::Family;
use super::packed::{Arrangement, Format};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::tiles::{Product, Tiles};
use crate::isa::Isa;

/// What is multiplied and what is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Products and sums of f32. Operands may be f32, bf16 or f16 in memory.
    F32,
    /// Products and sums of f64.
    F64,
    /// Products of bf16, sums of f32. Operands may be f32, bf16 or f16 in memory; they are rounded to bf16.
    Bf16,
    /// Products of i8, sums of i32, which wrap round.
    I8,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::F32, Self::F64, Self::Bf16, Self::I8];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Bf16 => "bf16",
            Self::I8 => "i8",
        }
    }

    /// The type of sums, and so of results.
    #[must_use]
    pub fn sum(self) -> ElementType {
        match self {
            Self::F32 | Self::Bf16 => ElementType::F32,
            Self::F64 => ElementType::F64,
            Self::I8 => ElementType::I32,
        }
    }
}

/// The kernels that make products of a kind.
#[derive(Debug, Clone, Copy)]
pub(super) enum Engine {
    /// Rows times vectors.
    Vectors(&'static Family),
    /// Tiles times tiles.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    Tiles(Tiles),
}

/// The kernels for a kind and how they want right operands.
pub(super) fn choose(kind: Kind, isa: Isa) -> (Engine, Arrangement) {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    if isa == Isa::Avx512 {
        let chosen = match kind {
            Kind::Bf16 => Tiles::detect(Product::Bf16).map(|tiles| (tiles, Format::Bf16, 2)),
            Kind::I8 => Tiles::detect(Product::I8).map(|tiles| (tiles, Format::I8, 4)),
            Kind::F32 | Kind::F64 => None,
        };
        if let Some((tiles, format, group)) = chosen {
            let row_multiple = tiles.depth();
            let arrangement = Arrangement { format, lanes: 16, vectors: 2, group, row_multiple };
            return (Engine::Tiles(tiles), arrangement);
        }
    }
    let (family, format) = match kind {
        Kind::F32 => (Family::f32(isa), Format::F32),
        Kind::F64 => (Family::f64(isa), Format::F64),
        Kind::Bf16 => (Family::f32(isa), Format::Rounded),
        Kind::I8 => (Family::i32(isa), Format::Widened),
    };
    let (lanes, vectors) = (family.lanes, family.vectors);
    (Engine::Vectors(family), Arrangement { format, lanes, vectors, group: 1, row_multiple: 1 })
}
