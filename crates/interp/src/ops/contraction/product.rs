//! What dots and convolutions have in common: sums of products of elements that lie at sums of offsets.

use std::sync::{Mutex, PoisonError};

use warpforge_tensor::{ElementType, Native, Scalar, Shape, Tensor};

use super::Sum;
use crate::error::Result;
use crate::machine::Machine;
use crate::native::Threads;
use crate::native::convert::convert;
use crate::native::lanes::{Strided, Window};
use crate::native::matmul::{Multiply, Part, Sizes, multiply};

/// One operand: element `d` of lane `l` of batch `b` is at `batches[b] + lanes[l] + depths[d]`. Lanes are the rows of the
/// left operand and the columns of the right one.
pub(super) struct Side<'a> {
    pub(super) tensor: &'a Tensor,
    pub(super) batches: Vec<i64>,
    pub(super) lanes: Vec<i64>,
    pub(super) depths: Vec<i64>,
    /// Where elements lie outside, as if they were zero.
    pub(super) window: Option<Window>,
}

/// Where the results go: row `r` and column `c` of batch `b` at `batches[b] + rows[r] + columns[c]`.
pub(super) struct Places {
    pub(super) batches: Vec<i64>,
    pub(super) rows: Vec<i64>,
    pub(super) columns: Vec<i64>,
}

/// Sums the products of two operands.
pub(super) struct Product<'a> {
    pub(super) lhs: Side<'a>,
    pub(super) rhs: Side<'a>,
    pub(super) places: Places,
    pub(super) element: ElementType,
    pub(super) shape: Shape,
}

impl Product<'_> {
    /// The result. Operands and result are of the sizes that the offsets lead to.
    pub(super) fn compute(&self, machine: &Machine<'_, '_>) -> Result<Tensor> {
        let mut result = Tensor::zeros(self.element, self.shape.clone())?;
        let (left, right) = (self.lhs.tensor.element_type(), self.rhs.tensor.element_type());
        if machine.options.general_only {
            self.sum_generally(&mut result);
            return Ok(result);
        }
        let threads = machine.threads;
        let all = |test: fn(ElementType) -> bool| [left, right, self.element].into_iter().all(test);
        if left == ElementType::F32 && right == left && self.element == left {
            self.multiply::<f32>(threads, self.lhs.tensor, self.rhs.tensor, &mut result)?;
        } else if all(ElementType::is_float) {
            let wide = |tensor: &Tensor| widened(threads, tensor, ElementType::F64);
            let (lhs, rhs) = (wide(self.lhs.tensor)?, wide(self.rhs.tensor)?);
            self.multiply::<f64>(threads, &lhs, &rhs, &mut result)?;
        } else if all(ElementType::is_int) {
            let wide = |tensor: &Tensor| widened(threads, tensor, ElementType::I64);
            let (lhs, rhs) = (wide(self.lhs.tensor)?, wide(self.rhs.tensor)?);
            self.multiply::<i64>(threads, &lhs, &rhs, &mut result)?;
        } else {
            self.sum_generally(&mut result);
        }
        Ok(result)
    }

    fn multiply<A: Multiply + Native>(
        &self,
        threads: Threads,
        lhs: &Tensor,
        rhs: &Tensor,
        result: &mut Tensor,
    ) -> Result<()> {
        let lhs = strided::<A>(&self.lhs, lhs)?;
        let rhs = strided::<A>(&self.rhs, rhs)?;
        let sizes = Sizes {
            batches: self.places.batches.len(),
            rows: self.places.rows.len(),
            columns: self.places.columns.len(),
            depth: lhs.depths.len(),
        };
        let result = Mutex::new(result);
        multiply(threads, sizes, &lhs, &rhs, |part: &Part, totals: &[A::Total]| {
            let mut result = result.lock().unwrap_or_else(PoisonError::into_inner);
            let places = part.rows.clone().flat_map(|row| {
                let start = self.places.batches[part.batch] + self.places.rows[row];
                self.places.columns[part.columns.clone()].iter().map(move |column| (start + column) as usize)
            });
            let elements = places.zip(totals.iter().map(|&total| A::scalar(total)));
            match result.as_slice_mut::<f32>() {
                Ok(slice) => elements.for_each(|(place, element)| slice[place] = element.to_f64() as f32),
                Err(_) => elements.for_each(|(place, element)| result.set(place, element)),
            }
        });
        Ok(())
    }

    /// The sums one after the other, on elements of any type.
    fn sum_generally(&self, result: &mut Tensor) {
        let (left, right): (Vec<Scalar>, Vec<Scalar>) =
            (self.lhs.tensor.iter().collect(), self.rhs.tensor.iter().collect());
        let zero =
            (Scalar::zero(self.lhs.tensor.element_type()), Scalar::zero(self.rhs.tensor.element_type()));
        for (batch, &start) in self.places.batches.iter().enumerate() {
            for (row, &row_place) in self.places.rows.iter().enumerate() {
                for (column, &column_place) in self.places.columns.iter().enumerate() {
                    let mut sum = Sum::zero(self.element);
                    for depth in 0..self.lhs.depths.len() {
                        sum.add_product(
                            self.lhs.position(batch, row, depth).map_or(zero.0, |at| left[at]),
                            self.rhs.position(batch, column, depth).map_or(zero.1, |at| right[at]),
                        );
                    }
                    result.set((start + row_place + column_place) as usize, sum.value());
                }
            }
        }
    }
}

impl Side<'_> {
    fn position(&self, batch: usize, lane: usize, depth: usize) -> Option<usize> {
        if self.window.as_ref().is_some_and(|window| !window.has(lane, depth)) {
            return None;
        }
        Some((self.batches[batch] + self.lanes[lane] + self.depths[depth]) as usize)
    }
}

/// A tensor with its elements as another type that holds them all.
fn widened(threads: Threads, tensor: &Tensor, to: ElementType) -> Result<Tensor> {
    if let Some(converted) = convert(threads, tensor, to)? {
        return Ok(converted);
    }
    Ok(Tensor::from_scalars(to, tensor.shape().clone(), tensor.iter())?)
}

fn strided<'a, A: Native>(side: &'a Side<'_>, tensor: &'a Tensor) -> Result<Strided<'a, A>> {
    Ok(Strided {
        data: tensor.as_slice()?,
        batches: &side.batches,
        lanes: &side.lanes,
        depths: &side.depths,
        window: side.window.as_ref(),
    })
}
