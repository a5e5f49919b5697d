//! Batched GEMMs of one shape.

use super::drive::{GemmTarget, WorkerScratch, run_task};
use super::matmul::Gemm;
use super::operand::{GemmError, Operand, Rhs, Shape};
use super::packed::PackedView;
use super::rows::MatrixRows;
use super::single_thread::Scratch;
use crate::output_block::{BlockSink, OutputBlock};
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

use std::sync::{Mutex, PoisonError};

/// Batch size from which on each GEMM runs on one worker; all workers run the GEMMs of smaller batches together, or one after another.
const MIN_PARALLEL_BATCH: usize = 8;
/// Most bytes of a result that exists only for the sink: it stays in an L2 cache.
const MAX_BLOCK_BYTES: usize = 1 << 20;

/// One GEMM of a batch.
#[derive(Debug, Clone, Copy)]
pub struct BatchItem<'a> {
    /// The left operand.
    pub lhs: Operand,
    /// The right operand.
    pub rhs: Rhs<'a>,
    /// The result, row-major; none where blocks exist only for the sink.
    pub out: Option<*mut u8>,
}

/// The consumer of the finished blocks of a batch, with the index of their GEMM.
pub type BatchSink<'a> = dyn Fn(usize, &OutputBlock) + Sync + 'a;

impl Gemm {
    /// Computes `batch` GEMMs of one shape; `item` returns the operands of each. Output rows are `stride` elements
    /// apart.
    ///
    /// # Errors
    ///
    /// As for [`Gemm::multiply`]. Other GEMMs of the batch may have been computed.
    ///
    /// # Safety
    ///
    /// As for [`Gemm::multiply`], for each GEMM; outputs do not overlap.
    pub unsafe fn batched<'a>(
        &self,
        pool: &Pool,
        shape: Shape,
        batch: usize,
        item: &(dyn Fn(usize) -> BatchItem<'a> + Sync),
        stride: usize,
        sink: Option<&BatchSink<'_>>,
    ) -> Result<(), GemmError> {
        if batch == 0 {
            return Ok(());
        }
        let result =
            shape.m.saturating_mul(shape.n).saturating_mul(self.compute_type().accumulator().byte_width());
        let block = if item(0).out.is_some() { 0 } else { result };
        if batch < MIN_PARALLEL_BATCH || block > MAX_BLOCK_BYTES {
            // SAFETY: guaranteed by the caller.
            if unsafe { self.together(pool, shape, batch, item, stride, sink)? } {
                return Ok(());
            }
            for at in 0..batch {
                let BatchItem { lhs, rhs, out } = item(at);
                let each = sink.map(|sink| move |block: &OutputBlock| sink(at, block));
                let each = each.as_ref().map(|each| each as &BlockSink<'_>);
                // SAFETY: guaranteed by the caller.
                unsafe { self.multiply(pool, shape, &lhs, rhs, out, stride, each)? };
            }
            return Ok(());
        }
        let packed = self.packed_len(shape.k, shape.n)?.next_multiple_of(64);
        let each = packed.saturating_add(block.next_multiple_of(64));
        let memory = self.buffers.take(each.saturating_mul(pool.threads()))?;
        let scratch_spaces = SharedPtr::new(memory.as_ptr());
        let scratch: Vec<Mutex<Scratch>> = (0..pool.threads()).map(|_| Mutex::default()).collect();
        let failure = Mutex::new(None);
        pool.run(batch, &|at, worker| {
            let mut scratch = scratch[worker].lock().unwrap_or_else(PoisonError::into_inner);
            let item = item(at);
            // SAFETY: each worker has its own part of the memory; the rest is guaranteed by the caller.
            let (outcome, data, stride) = unsafe {
                let space = scratch_spaces.get().add(worker * each);
                let (out, stride) = item.out.map_or((space.add(packed), shape.n), |out| (out, stride));
                (self.multiply_item(&mut scratch, shape, &item, space, out, stride), out, stride)
            };
            match (outcome, sink) {
                (Ok(()), Some(sink)) if shape.m * shape.n > 0 => {
                    sink(at, &OutputBlock { rows: 0..shape.m, columns: 0..shape.n, data, stride, worker });
                }
                (Ok(()), _) => {}
                (Err(error), _) => *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error),
            }
        });
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// Computes a few GEMMs whose operands are read as they are as one job, so that workers meet once. Nothing is done for others.
    unsafe fn together<'a>(
        &self,
        pool: &Pool,
        shape: Shape,
        batch: usize,
        item: &(dyn Fn(usize) -> BatchItem<'a> + Sync),
        stride: usize,
        sink: Option<&BatchSink<'_>>,
    ) -> Result<bool, GemmError> {
        let Some(family) = self.vector_kernels().filter(|_| !self.widens() && shape.m * shape.n > 0) else {
            return Ok(false);
        };
        for at in 0..batch {
            let BatchItem { lhs, rhs, .. } = item(at);
            let Some(view) = packed(rhs) else { return Ok(false) };
            self.check(&view, shape.k, Some(shape.n))?;
            if !self.reads_lhs_in_place(&lhs) || self.copy_pays_off(&lhs, shape) {
                return Ok(false);
            }
        }
        let partition = self.partition(shape, family);
        let ignored: &BlockSink<'_> = &|_| {};
        let first = of_item(item(0).out, stride, sink.is_some().then_some(ignored));
        let of_worker = WorkerScratch::of(&partition, 1, family, &first);
        let each = of_worker.bytes(family.bytes);
        let memory = self.buffers.take(each.saturating_mul(pool.threads()))?;
        let spaces = SharedPtr::new(memory.as_ptr());
        let tasks = partition.tasks();
        pool.run(batch * tasks, &|task, worker| {
            let at = task / tasks;
            let BatchItem { lhs, rhs, out } = item(at);
            let Some(rhs) = packed(rhs) else { return };
            let own = sink.map(|sink| move |block: &OutputBlock| sink(at, block));
            let target = of_item(out, stride, own.as_ref().map(|own| own as &BlockSink<'_>));
            let (rows, panels) = partition.task(task % tasks);
            let lhs = MatrixRows::of(&lhs, shape.k);
            // SAFETY: each worker has its own part of the memory; tasks do not overlap; the rest is guaranteed by the caller.
            unsafe {
                let space = spaces.get().add(worker * each);
                run_task(family, &lhs, rhs, &target, rows, panels, of_worker, space, worker);
            }
        });
        Ok(true)
    }

    /// Computes one GEMM of a batch on the calling thread.
    unsafe fn multiply_item(
        &self,
        scratch: &mut Scratch,
        shape: Shape,
        item: &BatchItem<'_>,
        scratch_space: *mut u8,
        out: *mut u8,
        stride: usize,
    ) -> Result<(), GemmError> {
        // SAFETY: guaranteed by the caller; the scratch space is large enough for the packed operand.
        unsafe {
            let view = match item.rhs {
                Rhs::Strided(rhs) => self.pack_into(&rhs, shape.k, shape.n, scratch_space)?,
                Rhs::Packed(packed) => packed.view(),
                Rhs::View(view) => view,
            };
            self.check(&view, shape.k, Some(shape.n))?;
            self.multiply_single_threaded(scratch, shape.m, shape.k, &item.lhs, view, out, stride, false)
        }
    }
}

/// The output of one GEMM.
fn of_item<'a>(out: Option<*mut u8>, stride: usize, sink: Option<&'a BlockSink<'a>>) -> GemmTarget<'a> {
    GemmTarget { out, stride, rounded: false, accumulate: false, sink, origin: (0, 0) }
}

/// An operand that is packed already.
fn packed(rhs: Rhs<'_>) -> Option<PackedView<'_>> {
    match rhs {
        Rhs::Packed(packed) => Some(packed.view()),
        Rhs::View(view) => Some(view),
        Rhs::Strided(_) => None,
    }
}
