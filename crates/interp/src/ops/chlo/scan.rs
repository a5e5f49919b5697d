//! Running a computation along a dimension, carrying values from step to step.

use warpforge_ir::TensorType;
use warpforge_tensor::{Shape, Tensor};

use super::super::shape::concatenated;
use super::range;
use crate::Value;
use crate::cx::{Cx, missing};
use crate::error::{Result, invalid};

/// The tensor without a dimension of size one.
fn squeezed(tensor: &Tensor, axis: usize) -> Result<Tensor> {
    let mut dims = tensor.dims().to_vec();
    dims.remove(axis);
    Ok(tensor.reshaped(Shape::new(dims)?)?)
}

/// The tensor with a new dimension of size one.
fn unsqueezed(tensor: &Tensor, axis: usize) -> Result<Tensor> {
    let mut dims = tensor.dims().to_vec();
    dims.insert(axis.min(dims.len()), 1);
    Ok(tensor.reshaped(Shape::new(dims)?)?)
}

/// Runs the body for each index along a dimension: slices of the inputs and the carried values in, slices of the outputs
/// and the next carried values out.
pub(super) fn scan(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (inputs, mut carried) = (cx.group("inputs")?, cx.group("inits")?);
    let sizes = cx.op.result_group_sizes().ok_or_else(|| invalid("the results do not fit the groups"))?;
    let outputs = sizes.first().copied().unwrap_or(0);
    let rank = inputs
        .first()
        .map_or_else(|| cx.result_type(0).map_or(0, TensorType::rank), |input| input.shape().rank());
    let axis = cx.axis("dimension", rank)?;
    let length = match (inputs.first(), cx.op.attr_i64("scan_dim_size")) {
        (Some(input), _) => input.dims()[axis],
        (None, Some(size)) => usize::try_from(size).map_err(|_| invalid("scan_dim_size is negative"))?,
        (None, None) => return Err(missing("scan_dim_size")),
    };
    let block = cx.op.region_block(0).ok_or_else(|| invalid("the body is empty"))?;
    let mut collected: Vec<Vec<Tensor>> = vec![Vec::new(); outputs];
    let reverse = cx.bool("is_reverse")?;
    for step in 0..length {
        cx.machine.count_steps(1)?;
        let at = if reverse { length - 1 - step } else { step };
        let mut arguments = Vec::new();
        for input in &inputs {
            arguments.push(Value::Tensor(squeezed(&range(input, axis, at, at + 1)?, axis)?));
        }
        arguments.extend(carried.drain(..).map(Value::Tensor));
        let results = cx.machine.block(block, arguments)?;
        for (index, result) in results.iter().enumerate() {
            let tensor = result.as_tensor()?.clone();
            match collected.get_mut(index) {
                Some(list) => list.push(unsqueezed(&tensor, axis)?),
                None => carried.push(tensor),
            }
        }
    }
    let mut results = Vec::new();
    for (index, mut list) in collected.into_iter().enumerate() {
        if reverse {
            list.reverse();
        }
        let joined = match list.is_empty() {
            true => Tensor::zeros(cx.result_element(index)?, cx.result_shape(index)?)?,
            false => concatenated(&list, axis)?,
        };
        results.push(Value::Tensor(joined));
    }
    results.extend(carried.into_iter().map(Value::Tensor));
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpforge_tensor::ElementType;

    #[test]
    fn ranges_keep_the_rank_until_squeezed() {
        let tensor = Tensor::from_slice(&[2, 3], &[1i32, 2, 3, 4, 5, 6]).expect("fits");
        let column = range(&tensor, 1, 1, 2).expect("inside");
        assert_eq!((column.dims(), column.element_type()), (&[2, 1][..], ElementType::I32));
        assert_eq!(squeezed(&column, 1).expect("size one").as_slice::<i32>().expect("i32"), [2, 5]);
        assert_eq!(unsqueezed(&column, 0).expect("fits").dims(), [1, 2, 1]);
    }
}
