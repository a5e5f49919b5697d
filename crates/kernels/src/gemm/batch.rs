//! Batched GEMMs of one shape.

use super::matmul::Gemm;
use super::operand::{GemmError, Operand, Rhs, Shape};
use super::single_thread::Scratch;
use crate::output_block::OutputBlock;
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

use std::sync::{Mutex, PoisonError};

/// Batch size from which on each GEMM runs on one worker; smaller batches run one GEMM after another on all workers.
const MIN_PARALLEL_BATCH: usize = 8;

/// One GEMM of a batch.
#[derive(Debug, Clone, Copy)]
pub struct BatchItem<'a> {
    /// The left operand.
    pub lhs: Operand,
    /// The right operand.
    pub rhs: Rhs<'a>,
    /// The result, row-major.
    pub out: *mut u8,
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
        if batch < MIN_PARALLEL_BATCH {
            for at in 0..batch {
                let BatchItem { lhs, rhs, out } = item(at);
                let each = sink.map(|sink| move |block: &OutputBlock| sink(at, block));
                let each = each.as_ref().map(|each| each as &(dyn Fn(&OutputBlock) + Sync));
                // SAFETY: guaranteed by the caller.
                unsafe { self.multiply(pool, shape, &lhs, rhs, Some(out), stride, each)? };
            }
            return Ok(());
        }
        let each = self.packed_len(shape.k, shape.n)?.next_multiple_of(64);
        let memory = self.buffers.take(each.saturating_mul(pool.threads()))?;
        let scratch_spaces = SharedPtr::new(memory.as_ptr());
        let scratch: Vec<Mutex<Scratch>> = (0..pool.threads()).map(|_| Mutex::default()).collect();
        let failure = Mutex::new(None);
        pool.run(batch, &|at, worker| {
            let mut scratch = scratch[worker].lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: each worker has its own part of the memory; the rest is guaranteed by the caller.
            let outcome = unsafe {
                let scratch_space = scratch_spaces.get().add(worker * each);
                self.multiply_item(&mut scratch, shape, &item(at), scratch_space, stride)
            };
            match (outcome, sink) {
                (Ok(data), Some(sink)) if shape.m * shape.n > 0 => {
                    sink(at, &OutputBlock { rows: 0..shape.m, columns: 0..shape.n, data, stride, worker });
                }
                (Ok(_), _) => {}
                (Err(error), _) => *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error),
            }
        });
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// Computes one GEMM of a batch on the calling thread.
    unsafe fn multiply_item(
        &self,
        scratch: &mut Scratch,
        shape: Shape,
        item: &BatchItem<'_>,
        scratch_space: *mut u8,
        stride: usize,
    ) -> Result<*mut u8, GemmError> {
        // SAFETY: guaranteed by the caller; the scratch space is large enough for the packed operand.
        unsafe {
            let view = match item.rhs {
                Rhs::Packed(packed) => packed.view(),
                Rhs::View(view) => view,
                Rhs::Strided(rhs) => self.pack_into(&rhs, shape.k, shape.n, scratch_space)?,
            };
            self.check(&view, shape.k, Some(shape.n))?;
            self.multiply_single_threaded(
                scratch, shape.m, shape.k, &item.lhs, view, item.out, stride, false,
            )?;
        }
        Ok(item.out)
    }
}
