//! Input and output transforms of tiles.

use super::channel_vector::ChannelVector;
use super::scheme::{F2x2, F4x4, Scheme};
use crate::isa::Isa;

/// Maximum elements of a tile.
pub(super) const MAX_TILE_ELEMENTS: usize = 36;

/// An input tile and its transform.
#[derive(Debug, Clone, Copy)]
pub(super) struct InputTile {
    /// The first channels of the tile's pixels, row by row; zeros where the tile is outside the input.
    pub(super) pixels: [*const f32; MAX_TILE_ELEMENTS],
    /// Whole vectors.
    pub(super) channels: usize,
    /// The first channel of the first of the transform's values.
    pub(super) target: *mut f32,
    /// From one value to the next, in elements.
    pub(super) stride: usize,
}

/// The products of a tile and its outputs.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputTile {
    /// The first channel of the first product.
    pub(super) products: *const f32,
    /// From one product to the next, in elements.
    pub(super) stride: usize,
    /// Whole vectors.
    pub(super) channels: usize,
    /// The tile's first pixel in the output.
    pub(super) target: *mut f32,
    /// From one row of pixels to the next, in elements.
    pub(super) row_stride: usize,
    /// From one pixel to the next, in elements.
    pub(super) pixel_stride: usize,
    /// Rows and columns of the tile that the output has.
    pub(super) sizes: (usize, usize),
}

/// The transforms of a scheme on an instruction set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transforms {
    /// Transforms a tile of an input.
    ///
    /// Safety: the pointers are valid for all channels, and the CPU has the instruction set.
    pub(super) input: unsafe fn(&InputTile),
    /// Transforms products into an output tile.
    ///
    /// Safety: as above.
    pub(super) output: unsafe fn(&OutputTile),
}

macro_rules! transforms {
    ($scheme:ty, $side:literal, $out:literal, $isa:expr) => {
        match $isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw")]
                unsafe fn input(tile: &InputTile) {
                    // SAFETY: guaranteed by the caller.
                    unsafe { input_tile::<std::arch::x86_64::__m512, $scheme, $side, $out>(tile) }
                }
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw")]
                unsafe fn output(tile: &OutputTile) {
                    // SAFETY: guaranteed by the caller.
                    unsafe { output_tile::<std::arch::x86_64::__m512, $scheme, $side, $out>(tile) }
                }
                Transforms { input, output }
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                #[target_feature(enable = "avx2")]
                unsafe fn input(tile: &InputTile) {
                    // SAFETY: guaranteed by the caller.
                    unsafe { input_tile::<std::arch::x86_64::__m256, $scheme, $side, $out>(tile) }
                }
                #[target_feature(enable = "avx2")]
                unsafe fn output(tile: &OutputTile) {
                    // SAFETY: guaranteed by the caller.
                    unsafe { output_tile::<std::arch::x86_64::__m256, $scheme, $side, $out>(tile) }
                }
                Transforms { input, output }
            }
            _ => Transforms {
                input: input_tile::<[f32; 4], $scheme, $side, $out>,
                output: output_tile::<[f32; 4], $scheme, $side, $out>,
            },
        }
    };
}

/// The transforms for tiles of two by two outputs.
pub(super) fn two(isa: Isa) -> Transforms {
    transforms!(F2x2, 4, 2, isa)
}

/// The transforms for tiles of four by four outputs.
pub(super) fn four(isa: Isa) -> Transforms {
    transforms!(F4x4, 6, 4, isa)
}

#[inline(always)]
unsafe fn input_tile<L: ChannelVector, S: Scheme<SIDE, OUT>, const SIDE: usize, const OUT: usize>(
    tile: &InputTile,
) {
    for channel in (0..tile.channels).step_by(L::COUNT) {
        // SAFETY: the caller guarantees that many channels and the instruction set.
        unsafe {
            let mut columns = [[L::all(0.0); SIDE]; SIDE];
            for (x, column) in columns.iter_mut().enumerate() {
                let mut pixels = [L::all(0.0); SIDE];
                for (y, pixel) in pixels.iter_mut().enumerate() {
                    *pixel = L::load(tile.pixels[y * SIDE + x].wrapping_add(channel));
                }
                *column = S::input(pixels);
            }
            let mut to = tile.target.wrapping_add(channel);
            for y in 0..SIDE {
                for value in S::input(columns.map(|column| column[y])) {
                    value.store(to);
                    to = to.wrapping_add(tile.stride);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn output_tile<L: ChannelVector, S: Scheme<SIDE, OUT>, const SIDE: usize, const OUT: usize>(
    tile: &OutputTile,
) {
    for channel in (0..tile.channels).step_by(L::COUNT) {
        // SAFETY: the caller guarantees that many channels and the instruction set.
        unsafe {
            let mut rows = [[L::all(0.0); OUT]; SIDE];
            let mut from = tile.products.wrapping_add(channel);
            for row in &mut rows {
                let mut products = [L::all(0.0); SIDE];
                for product in &mut products {
                    *product = L::load(from);
                    from = from.wrapping_add(tile.stride);
                }
                *row = S::output(products);
            }
            for x in 0..tile.sizes.1.min(OUT) {
                let column = S::output(rows.map(|row| row[x]));
                let mut to = tile.target.wrapping_add(x * tile.pixel_stride + channel);
                for value in column.into_iter().take(tile.sizes.0) {
                    value.store(to);
                    to = to.wrapping_add(tile.row_stride);
                }
            }
        }
    }
}
