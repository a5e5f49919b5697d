//! Runs: rounds of tiles are transformed, then multiplied and transformed back, piece by piece.

use std::sync::Mutex;

use warpforge_tensor::ElementType;

use super::plan::{COLUMNS, Plan};
use super::transform::{InputTile, MOST, OutputTile};
use super::weights::Transformed;
use crate::block::Block;
use crate::conv::ConvError;
use crate::conv::run::Input;
use crate::gemm::drive::{Shared, Target};
use crate::gemm::{Gemm, GemmError, Operand, Scratch};
use crate::pool::Pool;

/// Bytes of transformed tiles at a time: they stay in a cache until they are multiplied.
const ROUND_BYTES: usize = 4 << 20;
/// Elements between two values of tiles more than there need be, so that they do not share the same few places of a
/// cache.
const APART: usize = 16;
/// Bytes of an element.
const BYTES: usize = size_of::<f32>();

/// What a run is made of.
struct Run<'a> {
    plan: &'a Plan,
    gemm: &'a Gemm,
    input: &'a Input<'a>,
    weights: &'a Transformed,
    target: Target<'a>,
    /// As many zeros as there are channels.
    zeros: *const f32,
    /// The transformed tiles of a round, block by block.
    tiles: Shared,
}

// SAFETY: who runs the convolution promises that nobody writes to its input meanwhile.
unsafe impl Sync for Run<'_> {}

impl Plan {
    /// Elements of the transformed tiles of the largest block.
    fn block_len(&self) -> usize {
        self.values() * self.value_stride(self.block_rows())
    }

    /// From one value of the tiles of a block of so many rows to the next, in elements.
    fn value_stride(&self, rows: usize) -> usize {
        rows * self.across() * self.channels + APART
    }

    /// From one product of the tiles of a block to the next, in elements.
    fn product_stride(&self) -> usize {
        self.block_rows() * self.across() * COLUMNS + APART
    }

    /// Runs a convolution on an input of f32; `zeros` has as many zeros as there are channels.
    ///
    /// # Safety
    ///
    /// All addresses are good for the sizes of the plan, and nobody else uses the target meanwhile.
    pub(in crate::conv) unsafe fn run(
        &self,
        gemm: &Gemm,
        pool: &Pool,
        input: &Input<'_>,
        weights: &Transformed,
        target: Target<'_>,
        zeros: *const f32,
    ) -> Result<(), ConvError> {
        if weights.len() != self.chunks() * self.values() {
            return Err(ConvError::Weights);
        }
        let block_bytes = self.block_len() * BYTES;
        let at_once = (ROUND_BYTES / block_bytes.max(1)).clamp(1, self.blocks().max(1));
        let tiles = gemm.lend(at_once * block_bytes)?;
        let row = self.out * self.output.1 * COLUMNS;
        let each = ((self.values() * self.product_stride() + row) * BYTES).next_multiple_of(64);
        let rooms = gemm.lend(each * pool.threads())?;
        let (space, tiles) = (Shared(rooms.as_ptr()), Shared(tiles.as_ptr()));
        let run = Run { plan: self, gemm, input, weights, target, zeros: zeros.cast(), tiles };
        let failure = Mutex::new(None);
        for first in (0..self.blocks()).step_by(at_once) {
            let blocks = at_once.min(self.blocks() - first);
            let rows = self.block(first).start..self.block(first + blocks - 1).end;
            // SAFETY: rows of tiles do not overlap; the rest is as the caller promises.
            pool.run(rows.len(), &|at, _| unsafe { run.transform(first, rows.start + at) });
            pool.run(blocks * self.chunks(), &|at, worker| {
                // SAFETY: each worker has its own room; pieces do not overlap.
                let done = unsafe {
                    let room = space.get().add(worker * each);
                    run.piece(first, first + at % blocks, at / blocks, room.cast(), worker)
                };
                if let Err(error) = done {
                    *failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
                }
            });
        }
        let failure = failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        failure.map_or(Ok(()), |error| Err(error.into()))
    }
}

impl Run<'_> {
    /// The transformed tiles of a block.
    fn tiles_of(&self, first: usize, block: usize) -> *mut f32 {
        self.tiles.get().cast::<f32>().wrapping_add((block - first) * self.plan.block_len())
    }

    /// Transforms a row of tiles.
    unsafe fn transform(&self, first: usize, tile_row: usize) {
        let plan = self.plan;
        let block = (first..plan.blocks()).find(|&at| plan.block(at).contains(&tile_row)).unwrap_or(first);
        let rows = plan.block(block);
        let (image, top) = plan.place(tile_row);
        let data = self.input.data.cast::<f32>().wrapping_add(image * self.input.batch_stride);
        let inside = |at: i64, size: usize| usize::try_from(at).ok().filter(|&at| at < size);
        let (down, across) = (self.input.strides[0], self.input.strides[1]);
        let stride = plan.value_stride(rows.len());
        let target = self.tiles_of(first, block);
        for tile in 0..plan.across() {
            let mut pixels = [self.zeros; MOST];
            for (at, pixel) in pixels.iter_mut().enumerate().take(plan.values()) {
                let y = inside((top + at / plan.side) as i64 - plan.padding.0, plan.input.0);
                let x = inside((tile * plan.out + at % plan.side) as i64 - plan.padding.1, plan.input.1);
                if let (Some(y), Some(x)) = (y, x) {
                    *pixel = data.wrapping_add(y * down + x * across);
                }
            }
            let at = (tile_row - rows.start) * plan.across() + tile;
            let target = target.wrapping_add(at * plan.channels);
            // SAFETY: as the caller promises; the round has room for all tiles of the block.
            unsafe {
                (plan.transforms.input)(&InputTile { pixels, channels: plan.channels, target, stride });
            }
        }
    }

    /// Multiplies the tiles of a block with some columns and hands on the outputs, one row of tiles at a time.
    unsafe fn piece(
        &self,
        first: usize,
        block: usize,
        chunk: usize,
        room: *mut f32,
        worker: usize,
    ) -> Result<(), GemmError> {
        let plan = self.plan;
        let (rows, columns) = (plan.block(block), plan.chunk(chunk));
        let (tiles, stride) = (self.tiles_of(first, block), plan.value_stride(rows.len()));
        let mut scratch = Scratch::default();
        for (value, weights) in self.weights.chunk(chunk).iter().enumerate() {
            let lhs = Operand {
                data: tiles.wrapping_add(value * stride).cast(),
                element: ElementType::F32,
                row_stride: plan.channels,
                column_stride: 1,
            };
            let out = room.wrapping_add(value * plan.product_stride()).cast();
            let m = rows.len() * plan.across();
            // SAFETY: the tiles have been transformed, the room has place for all products.
            unsafe {
                self.gemm.block(&mut scratch, m, plan.channels, &lhs, *weights, out, COLUMNS, false)?;
            }
        }
        for tile_row in rows.clone() {
            let products = room.wrapping_add((tile_row - rows.start) * plan.across() * COLUMNS);
            let beside = room.wrapping_add(plan.values() * plan.product_stride());
            // SAFETY: as the caller promises; the room ends with place for a row of tiles.
            unsafe { self.finish(tile_row, columns.clone(), products, beside, worker) };
        }
        Ok(())
    }

    /// Turns the products of a row of tiles into pixels and hands them on; `beside` has room for them.
    unsafe fn finish(
        &self,
        tile_row: usize,
        columns: std::ops::Range<usize>,
        products: *const f32,
        beside: *mut f32,
        worker: usize,
    ) {
        let plan = self.plan;
        let (image, top) = plan.place(tile_row);
        let height = plan.out.min(plan.output.0 - top);
        let pixel = (image * plan.output.0 + top) * plan.output.1;
        let (data, stride) = match self.target.out {
            Some(out) => {
                let at = pixel * self.target.stride + columns.start;
                (out.cast::<f32>().wrapping_add(at), self.target.stride)
            }
            None => (beside, COLUMNS),
        };
        for tile in 0..plan.across() {
            let left = tile * plan.out;
            let tile = OutputTile {
                products: products.wrapping_add(tile * COLUMNS),
                stride: plan.product_stride(),
                channels: columns.len(),
                target: data.wrapping_add(left * stride),
                row_stride: plan.output.1 * stride,
                pixel_stride: stride,
                sizes: (height, plan.out.min(plan.output.1 - left)),
            };
            // SAFETY: as the caller promises.
            unsafe { (plan.transforms.output)(&tile) };
        }
        if let Some(sink) = self.target.sink {
            let origin = self.target.origin;
            let rows = pixel + origin.0..pixel + height * plan.output.1 + origin.0;
            let columns = columns.start + origin.1..columns.end + origin.1;
            sink(&Block { rows, columns, data: data.cast(), stride, worker });
        }
    }
}
