//! Transformed weights.

use std::sync::Mutex;

use warpforge_tensor::ElementType;

use super::plan::{COLUMNS, WinogradPlan};
use super::scheme::window;
use crate::buffer::{AlignedBuffer, AllocationError};
use crate::conv::weights::Weights;
use crate::gemm::{Gemm, GemmError, Operand, PackedView};
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// The transformed weights of a convolution: a packed operand for each chunk of columns and each element of a tile.
#[derive(Debug)]
pub(in crate::conv) struct TransformedWeights {
    /// Views into `memory`, in the order in which a task reads them.
    views: Vec<PackedView<'static>>,
    memory: AlignedBuffer,
    values: usize,
}

impl TransformedWeights {
    /// Transforms weights of f32.
    ///
    /// # Safety
    ///
    /// The weights' pointer is valid for a window of three by three and the channels of the plan.
    pub(in crate::conv) unsafe fn new(
        gemm: &Gemm,
        plan: &WinogradPlan,
        weights: &Weights,
        pool: Option<&Pool>,
    ) -> Result<Self, GemmError> {
        let each = gemm.packed_len(plan.channels, COLUMNS)?;
        let operands = plan.chunks() * plan.values();
        let memory =
            AlignedBuffer::lasting(each.checked_mul(operands).ok_or(AllocationError { bytes: usize::MAX })?)?;
        let to = SharedPtr::new(memory.as_ptr());
        let views: Vec<Mutex<Vec<_>>> = (0..plan.chunks()).map(|_| Mutex::default()).collect();
        let failure = Mutex::new(None);
        let chunk = |at: usize| {
            // SAFETY: guaranteed by the caller; each chunk has its own part of the memory.
            let made = unsafe {
                let to = to.get().add(at * plan.values() * each);
                chunk(gemm, plan, weights, at, to, each)
            };
            match made {
                Ok(made) => *views[at].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = made,
                Err(error) => {
                    *failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
                }
            }
        };
        match pool {
            Some(pool) => pool.run(plan.chunks(), &|at, _| chunk(at)),
            None => (0..plan.chunks()).for_each(chunk),
        }
        if let Some(error) = failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            return Err(error);
        }
        let views = views
            .into_iter()
            .flat_map(|views| views.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner));
        Ok(Self { views: views.collect(), memory, values: plan.values() })
    }

    /// Whether they were transformed for tiles of the plan's size.
    pub(in crate::conv) fn is_for(&self, plan: &WinogradPlan) -> bool {
        self.values == plan.values() && self.len() == plan.chunks() * plan.values()
    }

    /// Bytes that they take.
    pub(in crate::conv) fn bytes(&self) -> usize {
        self.memory.len()
    }

    /// The operands of a chunk of columns, one for each element of a tile.
    pub(super) fn chunk(&self, at: usize) -> &[PackedView<'_>] {
        &self.views[at * self.values..][..self.values]
    }

    /// How many operands there are.
    pub(super) fn len(&self) -> usize {
        self.views.len()
    }
}

/// Transforms and packs some columns.
unsafe fn chunk(
    gemm: &Gemm,
    plan: &WinogradPlan,
    weights: &Weights,
    at: usize,
    to: *mut u8,
    each: usize,
) -> Result<Vec<PackedView<'static>>, GemmError> {
    let (columns, channels) = (plan.chunk(at), plan.channels);
    let size = channels * columns.len();
    let matrix = window(plan.points);
    let mut values = vec![0f32; plan.values() * size];
    let data = weights.data.cast::<f32>();
    for channel in 0..channels {
        for (column, output) in columns.clone().enumerate() {
            let first = data.wrapping_add(channel * weights.input_stride + output * weights.output_stride);
            let tap = |y: usize, x: usize| {
                let [down, across] = [0, 1].map(|at| weights.window_strides[at]);
                let from = first.wrapping_offset(y as isize * down + x as isize * across);
                // SAFETY: the caller guarantees that many taps and channels.
                f64::from(unsafe { from.read_unaligned() })
            };
            let taps: [[f64; 3]; 3] = std::array::from_fn(|y| std::array::from_fn(|x| tap(y, x)));
            for (y, down) in matrix.iter().enumerate() {
                let row: [f64; 3] = std::array::from_fn(|x| (0..3).map(|tap| down[tap] * taps[tap][x]).sum());
                for (x, across) in matrix.iter().enumerate() {
                    let value: f64 = (0..3).map(|tap| across[tap] * row[tap]).sum();
                    values[(y * plan.side + x) * size + channel * columns.len() + column] = value as f32;
                }
            }
        }
    }
    let pack = |(value, values): (usize, &[f32])| {
        let operand = Operand {
            data: values.as_ptr().cast(),
            element: ElementType::F32,
            row_stride: columns.len(),
            column_stride: 1,
        };
        // SAFETY: the operand has these sizes; the memory has space for it, and the views live as long as that.
        unsafe { gemm.pack_into(&operand, channels, columns.len(), to.add(value * each)) }
    };
    values.chunks_exact(size).enumerate().map(pack).collect()
}
