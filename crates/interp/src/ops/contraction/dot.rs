//! Dots: batching dimensions, free ones and those summed over.

use warpforge_ir::Type;
use warpforge_ir::attr::{Attribute, DotDims};
use warpforge_tensor::{ElementType, FloatFormat, FloatType, Scalar, Tensor};

use super::super::quantized::expressed;
use super::product::{Places, Product, Side};
use super::{finish, offsets, operands};
use crate::Value;
use crate::cx::{Cx, missing, to_usizes};
use crate::error::{Result, invalid};

/// Dimensions of one side of a dot.
struct Dims {
    batching: Vec<usize>,
    contracting: Vec<usize>,
    free: Vec<usize>,
}

impl Dims {
    fn new(rank: usize, batching: &[i64], contracting: &[i64]) -> Result<Self> {
        let (batching, contracting) = (to_usizes(batching)?, to_usizes(contracting)?);
        if batching.iter().chain(&contracting).any(|&dim| dim >= rank) {
            return Err(invalid("a dimension number is no dimension of the operand"));
        }
        let free = (0..rank).filter(|dim| !batching.contains(dim) && !contracting.contains(dim)).collect();
        Ok(Self { batching, contracting, free })
    }

    fn side<'a>(&self, tensor: &'a Tensor) -> Result<Side<'a>> {
        let along = |dims: &[usize]| offsets(tensor.shape(), dims);
        Ok(Side {
            tensor,
            batches: along(&self.batching)?,
            lanes: along(&self.free)?,
            depths: along(&self.contracting)?,
            window: None,
        })
    }
}

/// The general dot: batching dimensions, then the free ones of both sides.
pub(crate) fn dot_of(
    cx: &Cx<'_, '_, '_>,
    lhs: &Tensor,
    rhs: &Tensor,
    dims: &DotDims,
    element: ElementType,
) -> Result<Tensor> {
    let left = Dims::new(lhs.shape().rank(), &dims.lhs_batching, &dims.lhs_contracting)?;
    let right = Dims::new(rhs.shape().rank(), &dims.rhs_batching, &dims.rhs_contracting)?;
    let sizes =
        |tensor: &Tensor, dims: &[usize]| dims.iter().map(|&dim| tensor.dims()[dim]).collect::<Vec<_>>();
    if sizes(lhs, &left.batching) != sizes(rhs, &right.batching)
        || sizes(lhs, &left.contracting) != sizes(rhs, &right.contracting)
    {
        return Err(invalid("the operands' batching or contracting dimensions have different sizes"));
    }
    let shape = [sizes(lhs, &left.batching), sizes(lhs, &left.free), sizes(rhs, &right.free)].concat();
    let shape = cx.shape(shape)?;
    // Without elements there is nothing to sum, however long the dimensions beside the empty one are.
    if lhs.is_empty() || rhs.is_empty() {
        return Ok(Tensor::zeros(element, shape)?);
    }
    let (batches, rows) = (left.batching.len(), left.free.len());
    let along = |dims: std::ops::Range<usize>| offsets(&shape, &dims.collect::<Vec<_>>());
    let places = Places {
        batches: along(0..batches)?,
        rows: along(batches..batches + rows)?,
        columns: along(batches + rows..shape.rank())?,
    };
    Product { lhs: left.side(lhs)?, rhs: right.side(rhs)?, places, element, shape: shape.clone() }
        .compute(cx.machine)
}

pub(super) fn dot(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (lhs, rhs) = operands(cx)?;
    let last = lhs.shape().rank() as i64 - 1;
    let dims = DotDims { lhs_contracting: vec![last], rhs_contracting: vec![0], ..DotDims::default() };
    finish(cx, &dot_of(cx, &lhs, &rhs, &dims, expressed(cx.result_type(0)?)?)?)
}

pub(super) fn dot_general(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (mut lhs, mut rhs) = operands(cx)?;
    let dims = cx.op.dot_dims().ok_or_else(|| missing("dot_dimension_numbers"))?;
    if let Some(Attribute::DotAlgorithm(algorithm)) = cx.op.attr("algorithm") {
        // Several components make up for the precision of one.
        if algorithm.lhs_component_count == 1 {
            lhs = rounded(&lhs, &algorithm.lhs_precision_type)?;
        }
        if algorithm.rhs_component_count == 1 {
            rhs = rounded(&rhs, &algorithm.rhs_precision_type)?;
        }
    }
    finish(cx, &dot_of(cx, &lhs, &rhs, dims, expressed(cx.result_type(0)?)?)?)
}

/// A tensor of floats rounded to what an algorithm multiplies.
fn rounded(tensor: &Tensor, precision: &Type) -> Result<Tensor> {
    let format = match precision {
        Type::Scalar(element) => element.plain().and_then(ElementType::float_part).map(FloatType::format),
        Type::Opaque(name) if &**name == "tf32" => Some(FloatFormat::TF32),
        _ => None,
    };
    let own = tensor.element_type().float_part().map(FloatType::format);
    let (Some(format), true) = (format, tensor.element_type().is_float()) else { return Ok(tensor.clone()) };
    if own == Some(format) {
        return Ok(tensor.clone());
    }
    let values = tensor.iter().map(|value| Scalar::Float(format.round(value.to_f64())));
    Ok(Tensor::from_scalars(tensor.element_type(), tensor.shape().clone(), values)?)
}
