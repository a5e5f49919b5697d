//! AMX GEMMs: bf16 with f32 accumulation, and 8-bit integers with 32-bit accumulation.
//!
//! A tile is 16 rows of 64 bytes. The left-hand operand is read in place or packed into blocks of two tiles of rows; a
//! kernel computes two by two output tiles over the whole depth.

mod drive;
mod kernel;
mod lhs;
mod multiply;
mod pack_lhs;
mod strided_lhs;
mod stripes;
mod task;

use crate::amx::{Configured, ROW_BYTES, ROWS, Tiles};

pub(super) use drive::{block, drive, partition};
pub(crate) use strided_lhs::StridedLhs;
pub(super) use strided_lhs::drive as drive_strided;

/// Rows of a block of the left operand.
pub(super) const BLOCK_ROWS: usize = 2 * ROWS;

/// The element type of tile operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TileElement {
    /// Pairs of bf16, accumulated in f32.
    Bf16,
    /// Groups of four i8, accumulated in i32.
    I8,
}

/// Proof that the CPU has AMX for an element type and that the kernel permits this process to use it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Amx {
    element: TileElement,
    tiles: Tiles,
}

impl Amx {
    /// AMX for an element type, if available.
    pub(super) fn detect(element: TileElement) -> Option<Self> {
        if !is_x86_feature_detected!("avx512bf16") || !is_x86_feature_detected!("avx512bw") {
            return None;
        }
        let tiles = match element {
            TileElement::Bf16 => Tiles::with_bf16(),
            TileElement::I8 => Tiles::with_int8(),
        };
        tiles.map(|tiles| Self { element, tiles })
    }

    /// Elements of a tile's row.
    pub(super) fn depth(self) -> usize {
        match self.element {
            TileElement::Bf16 => ROW_BYTES / 2,
            TileElement::I8 => ROW_BYTES,
        }
    }

    /// Configures all eight tiles of the calling thread with their full size.
    fn configure(self) -> TileConfig {
        TileConfig { element: self.element, _tiles: self.tiles.configure() }
    }
}

/// Proof that the tiles of this thread are configured. Releases them when dropped.
#[derive(Debug)]
struct TileConfig {
    element: TileElement,
    _tiles: Configured,
}
