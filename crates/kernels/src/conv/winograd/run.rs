//! Runs of Winograd convolutions: rounds of input tiles are transformed, then multiplied and transformed back, task by
//! task.

use std::sync::Mutex;

use warpforge_tensor::ElementType;

use super::plan::{COLUMNS, WinogradPlan};
use super::transform::{InputTile, MAX_TILE_ELEMENTS, OutputTile};
use super::weights::TransformedWeights;
use crate::conv::ConvError;
use crate::conv::input::Input;
use crate::gemm::drive::GemmTarget;
use crate::gemm::{Gemm, GemmError, Operand, Scratch};
use crate::output_block::OutputBlock;
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// Bytes of transformed tiles per round: they stay in cache until they are multiplied.
const ROUND_BYTES: usize = 4 << 20;
/// Padding between tile elements, so that they map to different cache sets.
const CACHE_PADDING: usize = 16;
/// Bytes of an element.
const BYTES: usize = size_of::<f32>();

/// The context of a run.
struct WinogradRun<'a> {
    plan: &'a WinogradPlan,
    gemm: &'a Gemm,
    input: &'a Input<'a>,
    weights: &'a TransformedWeights,
    target: GemmTarget<'a>,
    /// As many zeros as there are channels.
    zeros: *const f32,
    /// The transformed tiles of a round, block by block.
    tiles: SharedPtr<*mut u8>,
}

// SAFETY: the caller guarantees that nothing writes to its input during the call.
unsafe impl Sync for WinogradRun<'_> {}

impl WinogradPlan {
    /// Elements of the transformed tiles of the largest block.
    fn block_len(&self) -> usize {
        self.values() * self.value_stride(self.block_rows())
    }

    /// From one value of the tiles of a block of that many rows to the next, in elements.
    fn value_stride(&self, rows: usize) -> usize {
        rows * self.across() * self.channels + CACHE_PADDING
    }

    /// From one product of the tiles of a block to the next, in elements.
    fn product_stride(&self) -> usize {
        self.block_rows() * self.across() * COLUMNS + CACHE_PADDING
    }

    /// Runs a convolution on an input of f32; `zeros` has as many zeros as there are channels.
    ///
    /// # Safety
    ///
    /// All pointers are valid for the sizes of the plan, and nothing else uses the target during the call.
    pub(in crate::conv) unsafe fn run(
        &self,
        gemm: &Gemm,
        pool: &Pool,
        input: &Input<'_>,
        weights: &TransformedWeights,
        target: GemmTarget<'_>,
        zeros: *const f32,
    ) -> Result<(), ConvError> {
        if weights.len() != self.chunks() * self.values() {
            return Err(ConvError::Weights);
        }
        let block_bytes = self.block_len() * BYTES;
        let at_once = (ROUND_BYTES / block_bytes.max(1)).clamp(1, self.blocks().max(1));
        let tiles = gemm.scratch_buffer(at_once * block_bytes)?;
        let row = self.out * self.output.1 * COLUMNS;
        let each = ((self.values() * self.product_stride() + row) * BYTES).next_multiple_of(64);
        let scratch = gemm.scratch_buffer(each * pool.threads())?;
        let (space, tiles) = (SharedPtr::new(scratch.as_ptr()), SharedPtr::new(tiles.as_ptr()));
        let run = WinogradRun { plan: self, gemm, input, weights, target, zeros: zeros.cast(), tiles };
        let failure = Mutex::new(None);
        for first in (0..self.blocks()).step_by(at_once) {
            let blocks = at_once.min(self.blocks() - first);
            let rows = self.block(first).start..self.block(first + blocks - 1).end;
            // SAFETY: rows of tiles do not overlap; the rest is guaranteed by the caller.
            pool.run(rows.len(), &|at, _| unsafe { run.transform(first, rows.start + at) });
            pool.run(blocks * self.chunks(), &|at, worker| {
                // SAFETY: each worker has its own scratch space; tasks do not overlap.
                let done = unsafe {
                    let scratch = space.get().add(worker * each);
                    run.task(first, first + at % blocks, at / blocks, scratch.cast(), worker)
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

impl WinogradRun<'_> {
    /// The transformed tiles of a block.
    fn tiles_of(&self, first: usize, block: usize) -> *mut f32 {
        self.tiles.get().cast::<f32>().wrapping_add((block - first) * self.plan.block_len())
    }

    /// Transforms a row of tiles.
    unsafe fn transform(&self, first: usize, tile_row: usize) {
        let plan = self.plan;
        let block = (first..plan.blocks()).find(|&at| plan.block(at).contains(&tile_row)).unwrap_or(first);
        let rows = plan.block(block);
        let (image, top) = plan.input_index(tile_row);
        let data = self.input.data.cast::<f32>().wrapping_add(image * self.input.batch_stride);
        let inside = |at: i64, size: usize| usize::try_from(at).ok().filter(|&at| at < size);
        let (down, across) = (self.input.strides[0], self.input.strides[1]);
        let stride = plan.value_stride(rows.len());
        let target = self.tiles_of(first, block);
        for tile in 0..plan.across() {
            let mut pixels = [self.zeros; MAX_TILE_ELEMENTS];
            for (at, pixel) in pixels.iter_mut().enumerate().take(plan.values()) {
                let y = inside((top + at / plan.side) as i64 - plan.padding.0, plan.input.0);
                let x = inside((tile * plan.out + at % plan.side) as i64 - plan.padding.1, plan.input.1);
                if let (Some(y), Some(x)) = (y, x) {
                    *pixel = data.wrapping_add(y * down + x * across);
                }
            }
            let at = (tile_row - rows.start) * plan.across() + tile;
            let target = target.wrapping_add(at * plan.channels);
            // SAFETY: guaranteed by the caller; the round has space for all tiles of the block.
            unsafe {
                (plan.transforms.input)(&InputTile { pixels, channels: plan.channels, target, stride });
            }
        }
    }

    /// Multiplies the tiles of a block by some columns and passes the outputs on, one row of tiles at a time.
    unsafe fn task(
        &self,
        first: usize,
        block: usize,
        chunk: usize,
        scratch: *mut f32,
        worker: usize,
    ) -> Result<(), GemmError> {
        let plan = self.plan;
        let (rows, columns) = (plan.block(block), plan.chunk(chunk));
        let (tiles, stride) = (self.tiles_of(first, block), plan.value_stride(rows.len()));
        let mut gemm_scratch = Scratch::default();
        for (value, weights) in self.weights.chunk(chunk).iter().enumerate() {
            let lhs = Operand {
                data: tiles.wrapping_add(value * stride).cast(),
                element: ElementType::F32,
                row_stride: plan.channels,
                column_stride: 1,
            };
            let out = scratch.wrapping_add(value * plan.product_stride()).cast();
            let m = rows.len() * plan.across();
            // SAFETY: the tiles have been transformed, and the scratch space holds all products.
            unsafe {
                self.gemm.multiply_single_threaded(
                    &mut gemm_scratch,
                    m,
                    plan.channels,
                    &lhs,
                    *weights,
                    out,
                    COLUMNS,
                    false,
                )?;
            }
        }
        for tile_row in rows.clone() {
            let products = scratch.wrapping_add((tile_row - rows.start) * plan.across() * COLUMNS);
            let row_buffer = scratch.wrapping_add(plan.values() * plan.product_stride());
            // SAFETY: guaranteed by the caller; the scratch space ends with a row of tiles.
            unsafe { self.finish(tile_row, columns.clone(), products, row_buffer, worker) };
        }
        Ok(())
    }

    /// Transforms the products of a row of tiles into pixels and passes them on; `row_buffer` has space for them.
    unsafe fn finish(
        &self,
        tile_row: usize,
        columns: std::ops::Range<usize>,
        products: *const f32,
        row_buffer: *mut f32,
        worker: usize,
    ) {
        let plan = self.plan;
        let (image, top) = plan.input_index(tile_row);
        let height = plan.out.min(plan.output.0 - top);
        let pixel = (image * plan.output.0 + top) * plan.output.1;
        let (data, stride) = match self.target.out {
            Some(out) => {
                let at = pixel * self.target.stride + columns.start;
                (out.cast::<f32>().wrapping_add(at), self.target.stride)
            }
            None => (row_buffer, COLUMNS),
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
            // SAFETY: guaranteed by the caller.
            unsafe { (plan.transforms.output)(&tile) };
        }
        if let Some(sink) = self.target.sink {
            let origin = self.target.origin;
            let rows = pixel + origin.0..pixel + height * plan.output.1 + origin.0;
            let columns = columns.start + origin.1..columns.end + origin.1;
            sink(&OutputBlock { rows, columns, data: data.cast(), stride, worker });
        }
    }
}
