//! Many products of one shape.

use super::drive::Shared;
use super::operand::{GemmError, Operand, Rhs, Shape};
use super::product::Gemm;
use super::single::Scratch;
use crate::block::Block;
use crate::pool::Pool;

use std::sync::{Mutex, PoisonError};

/// From so many products on, each is one worker's own; fewer are computed one after another by all workers.
const ENOUGH: usize = 8;

/// One product of a batch.
#[derive(Debug, Clone, Copy)]
pub struct BatchItem<'a> {
    /// The left operand.
    pub lhs: Operand,
    /// The right operand.
    pub rhs: Rhs<'a>,
    /// The result, row-major.
    pub out: *mut u8,
}

/// Sees the finished blocks of a batch with the number of their product.
pub type BatchSink<'a> = dyn Fn(usize, &Block) + Sync + 'a;

impl Gemm {
    /// As many products of one shape as `batch` says; `item` has the operands of each. Their results have rows `stride`
    /// elements apart.
    ///
    /// # Errors
    ///
    /// As for [`Gemm::product`]. Other products of the batch may have been computed.
    ///
    /// # Safety
    ///
    /// As for [`Gemm::product`], for each product; results do not overlap.
    pub unsafe fn batched<'a>(
        &self,
        pool: &Pool,
        shape: Shape,
        batch: usize,
        item: &(dyn Fn(usize) -> BatchItem<'a> + Sync),
        stride: usize,
        sink: Option<&BatchSink<'_>>,
    ) -> Result<(), GemmError> {
        if batch < ENOUGH {
            for at in 0..batch {
                let BatchItem { lhs, rhs, out } = item(at);
                let each = sink.map(|sink| move |block: &Block| sink(at, block));
                let each = each.as_ref().map(|each| each as &(dyn Fn(&Block) + Sync));
                // SAFETY: as the caller promises.
                unsafe { self.product(pool, shape, &lhs, rhs, Some(out), stride, each)? };
            }
            return Ok(());
        }
        let each = self.packed_len(shape.k, shape.n)?.next_multiple_of(64);
        let memory = self.store.take(each.saturating_mul(pool.threads()))?;
        let rooms = Shared(memory.as_ptr());
        let scratch: Vec<Mutex<Scratch>> = (0..pool.threads()).map(|_| Mutex::default()).collect();
        let failure = Mutex::new(None);
        pool.run(batch, &|at, worker| {
            let mut scratch = scratch[worker].lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: each worker has its own part of the memory; the rest is as the caller promises.
            let outcome = unsafe {
                let room = rooms.get().add(worker * each);
                self.one(&mut scratch, shape, &item(at), room, stride)
            };
            match (outcome, sink) {
                (Ok(data), Some(sink)) if shape.m * shape.n > 0 => {
                    sink(at, &Block { rows: 0..shape.m, columns: 0..shape.n, data, stride, worker });
                }
                (Ok(_), _) => {}
                (Err(error), _) => *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error),
            }
        });
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// One product of a batch, by the calling thread.
    unsafe fn one(
        &self,
        scratch: &mut Scratch,
        shape: Shape,
        item: &BatchItem<'_>,
        room: *mut u8,
        stride: usize,
    ) -> Result<*mut u8, GemmError> {
        // SAFETY: as the caller promises; the room has as many bytes as the packed operand needs.
        unsafe {
            let view = match item.rhs {
                Rhs::Packed(packed) => packed.view(),
                Rhs::View(view) => view,
                Rhs::Strided(rhs) => self.pack_into(&rhs, shape.k, shape.n, room)?,
            };
            self.check(&view, shape.k, Some(shape.n))?;
            self.block(scratch, shape.m, shape.k, &item.lhs, view, item.out, stride, false)?;
        }
        Ok(item.out)
    }
}
