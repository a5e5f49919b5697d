//! Selection and partition of Winograd convolutions.

use std::ops::Range;

use super::channel_vector;
use super::scheme::{F2x2, F4x4, Scheme};
use super::transform::{self, Transforms};
use crate::conv::geometry::{AxisTaps, Dimension, Geometry};
use crate::isa::Isa;

/// Minimum channels that amortize the transforms.
const MIN_CHANNELS: usize = 32;
/// Maximum channels for F(4x4, 3x3), whose rounding error is larger than that of F(2x2, 3x3).
const MAX_CHANNELS_F4X4: usize = 256;
/// Columns of a task.
pub(super) const COLUMNS: usize = 32;
/// Tiles of a task, if that many rows of tiles fit.
const TILES: usize = 64;
/// Maximum tiles in a row: the products of one row and [`COLUMNS`] columns stay in an L2 cache.
const MAX_TILES_PER_ROW: usize = 128;
/// Relative cost of reading a weight.
const READING: usize = 16;

/// The plan of a Winograd convolution.
#[derive(Debug, Clone, Copy)]
pub(in crate::conv) struct WinogradPlan {
    /// Inputs along each dimension of a tile.
    pub(super) side: usize,
    /// Outputs along each dimension of a tile.
    pub(super) out: usize,
    /// The scheme's points.
    pub(super) points: &'static [f64],
    pub(super) transforms: Transforms,
    pub(super) batch: usize,
    pub(super) channels: usize,
    pub(super) outputs: usize,
    /// Rows and columns of the input.
    pub(super) input: (usize, usize),
    /// Rows and columns of the output.
    pub(super) output: (usize, usize),
    /// Zeros before the input's rows and columns.
    pub(super) padding: (i64, i64),
}

impl WinogradPlan {
    /// The plan of an f32 convolution, if Winograd is faster.
    pub(in crate::conv) fn new(geometry: &Geometry, lines: &[AxisTaps], isa: Isa) -> Option<Self> {
        let ([rows, columns], [down, across]) = (geometry.dimensions.as_slice(), lines) else { return None };
        let plain = |dimension: &Dimension| {
            let Dimension { window, stride, window_dilation, base_dilation, .. } = *dimension;
            (window, stride, window_dilation, base_dilation) == (3, 1, 1, 1)
        };
        let enough =
            |channels: usize| channels >= MIN_CHANNELS && channels.is_multiple_of(channel_vector::MAX_LANES);
        let &Geometry { batch, channels, outputs, groups, .. } = geometry;
        if groups != 1 || !plain(rows) || !plain(columns) || !enough(channels) || !enough(outputs) {
            return None;
        }
        let output = (down.outputs, across.outputs);
        let cost = |values: usize, tiles: usize| values * (batch * tiles + READING);
        let tiled = |out: usize| {
            let across = output.1.div_ceil(out);
            let fits = across > 0 && across <= MAX_TILES_PER_ROW;
            fits.then(|| cost((out + 2) * (out + 2), output.0.div_ceil(out) * across))
        };
        let four = tiled(4).filter(|_| channels <= MAX_CHANNELS_F4X4).unwrap_or(usize::MAX);
        let two = tiled(2).unwrap_or(usize::MAX);
        // Margin for the cost of the transforms.
        if four.min(two) >= cost(9, output.0 * output.1) / 3 * 2 {
            return None;
        }
        let (side, out, points, transforms) = match four < two {
            true => (6, 4, F4x4::POINTS, transform::four(isa)),
            false => (4, 2, F2x2::POINTS, transform::two(isa)),
        };
        let (input, padding) = ((rows.input, columns.input), (rows.padding.0, columns.padding.0));
        Some(Self { side, out, points, transforms, batch, channels, outputs, input, output, padding })
    }

    /// Values of a transformed tile.
    pub(super) fn values(&self) -> usize {
        self.side * self.side
    }

    /// Tiles in a row of them.
    pub(super) fn across(&self) -> usize {
        self.output.1.div_ceil(self.out)
    }

    /// Rows of tiles in an image.
    fn down(&self) -> usize {
        self.output.0.div_ceil(self.out)
    }

    /// Rows of tiles in all images.
    pub(super) fn tile_rows(&self) -> usize {
        self.batch * self.down()
    }

    /// How many blocks of rows of tiles there are.
    pub(super) fn blocks(&self) -> usize {
        self.tile_rows().div_ceil((TILES / self.across()).max(1))
    }

    /// The rows of tiles of a block.
    pub(super) fn block(&self, at: usize) -> Range<usize> {
        let (rows, blocks) = (self.tile_rows(), self.blocks());
        at * rows / blocks..(at + 1) * rows / blocks
    }

    /// The most rows of tiles of a block.
    pub(super) fn block_rows(&self) -> usize {
        self.tile_rows().div_ceil(self.blocks().max(1))
    }

    /// The image and the row of its first pixels, for a row of tiles.
    pub(super) fn input_index(&self, tile_row: usize) -> (usize, usize) {
        (tile_row / self.down(), tile_row % self.down() * self.out)
    }

    /// Number of column chunks.
    pub(super) fn chunks(&self) -> usize {
        self.outputs.div_ceil(COLUMNS)
    }

    /// The columns of a chunk.
    pub(super) fn chunk(&self, at: usize) -> Range<usize> {
        at * COLUMNS..((at + 1) * COLUMNS).min(self.outputs)
    }
}
