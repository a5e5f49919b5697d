//! Dots and convolutions.

use warpforge_ir::attr::{Attribute, ConvDims, DotDims};
use warpforge_ir::{OpKind, Type};
use warpforge_tensor::{ElementType, FloatFormat, FloatType, Scalar, Shape, Tensor};

use super::Evaluator;
use super::quantized::{dequantized, expressed, quantized};
use crate::Value;
use crate::cx::{Cx, missing, one, to_usizes};
use crate::error::{Result, invalid};
use crate::math::complex;
use crate::scalar::convert;

pub(super) const OPS: &[(OpKind, Evaluator)] = &[
    (OpKind::Convolution, convolution),
    (OpKind::Dot, dot),
    (OpKind::DotGeneral, dot_general),
    (OpKind::DynamicConv, dynamic_conv),
    (OpKind::Einsum, einsum),
    (OpKind::UnaryEinsum, unary_einsum),
];

/// A sum of products, one after the other. Integers wrap around at the end; binary32 and binary64 are rounded at each
/// step, as the specification's multiply and add would; narrower floats only when the sum is stored, as hardware that
/// has them accumulates in something wider.
#[derive(Clone, Copy)]
pub(super) struct Sum {
    value: Scalar,
    single: bool,
}

impl Sum {
    /// The sum of nothing, for a result of this type.
    pub(super) fn zero(element: ElementType) -> Self {
        Self { value: Scalar::zero(element), single: element.float_part() == Some(FloatType::F32) }
    }

    pub(super) fn add_product(&mut self, a: Scalar, b: Scalar) {
        let single = self.single;
        let round = |x: f64| if single { f64::from(x as f32) } else { x };
        self.value = match self.value {
            Scalar::Complex(re, im) => {
                let product = complex::mul(a.to_complex(), b.to_complex(), round);
                Scalar::Complex(round(re + product.0), round(im + product.1))
            }
            Scalar::Float(sum) => Scalar::Float(round(sum + round(a.to_f64() * b.to_f64()))),
            Scalar::Bool(sum) => Scalar::Bool(sum || a.is_true() && b.is_true()),
            Scalar::Int(sum) => {
                let product = match (a, b) {
                    (Scalar::Float(_), _) | (_, Scalar::Float(_)) => (a.to_f64() * b.to_f64()) as i128,
                    _ => a.to_i128().wrapping_mul(b.to_i128()),
                };
                Scalar::Int(sum.wrapping_add(product))
            }
        };
    }

    pub(super) fn value(self) -> Scalar {
        self.value
    }
}

/// Dimensions of one side of a dot.
struct Side {
    batching: Vec<usize>,
    contracting: Vec<usize>,
    free: Vec<usize>,
}

impl Side {
    fn new(rank: usize, batching: &[i64], contracting: &[i64]) -> Result<Self> {
        let (batching, contracting) = (to_usizes(batching)?, to_usizes(contracting)?);
        if batching.iter().chain(&contracting).any(|&dim| dim >= rank) {
            return Err(invalid("a dimension number is no dimension of the operand"));
        }
        let free = (0..rank).filter(|dim| !batching.contains(dim) && !contracting.contains(dim)).collect();
        Ok(Self { batching, contracting, free })
    }

    /// Positions of all elements along some dimensions, from the first element on.
    fn offsets(shape: &Shape, dims: &[usize]) -> Result<Vec<usize>> {
        let strides = shape.strides();
        let inner = Shape::new(dims.iter().map(|&dim| shape.dims()[dim]).collect::<Vec<_>>())?;
        let mut indices = inner.indices();
        let mut offsets = Vec::new();
        while let Some(index) = indices.advance() {
            offsets.push(index.iter().zip(dims).map(|(at, &dim)| at * strides[dim]).sum());
        }
        Ok(offsets)
    }
}

/// The general dot: batching dimensions, then the free ones of both sides.
pub(super) fn dot_of(lhs: &Tensor, rhs: &Tensor, dims: &DotDims, element: ElementType) -> Result<Tensor> {
    let left = Side::new(lhs.shape().rank(), &dims.lhs_batching, &dims.lhs_contracting)?;
    let right = Side::new(rhs.shape().rank(), &dims.rhs_batching, &dims.rhs_contracting)?;
    let sizes =
        |tensor: &Tensor, dims: &[usize]| dims.iter().map(|&dim| tensor.dims()[dim]).collect::<Vec<_>>();
    if sizes(lhs, &left.batching) != sizes(rhs, &right.batching)
        || sizes(lhs, &left.contracting) != sizes(rhs, &right.contracting)
    {
        return Err(invalid("the operands' batching or contracting dimensions have different sizes"));
    }
    let shape = [sizes(lhs, &left.batching), sizes(lhs, &left.free), sizes(rhs, &right.free)].concat();
    let (lhs_batches, rhs_batches) =
        (Side::offsets(lhs.shape(), &left.batching)?, Side::offsets(rhs.shape(), &right.batching)?);
    let (lhs_rows, rhs_columns) =
        (Side::offsets(lhs.shape(), &left.free)?, Side::offsets(rhs.shape(), &right.free)?);
    let (lhs_inner, rhs_inner) =
        (Side::offsets(lhs.shape(), &left.contracting)?, Side::offsets(rhs.shape(), &right.contracting)?);
    let mut result = Tensor::zeros(element, Shape::new(shape)?)?;
    let (left_values, right_values): (Vec<Scalar>, Vec<Scalar>) =
        (lhs.iter().collect(), rhs.iter().collect());
    let mut position = 0;
    for (lhs_batch, rhs_batch) in lhs_batches.iter().zip(&rhs_batches) {
        for row in &lhs_rows {
            for column in &rhs_columns {
                let mut sum = Sum::zero(element);
                for (a, b) in lhs_inner.iter().zip(&rhs_inner) {
                    sum.add_product(left_values[lhs_batch + row + a], right_values[rhs_batch + column + b]);
                }
                result.set(position, sum.value());
                position += 1;
            }
        }
    }
    Ok(result)
}

/// Both operands as the real numbers they stand for.
fn operands(cx: &Cx<'_, '_, '_>) -> Result<(Tensor, Tensor)> {
    Ok((dequantized(cx.tensor(0)?, cx.operand_type(0)?)?, dequantized(cx.tensor(1)?, cx.operand_type(1)?)?))
}

fn finish(cx: &Cx<'_, '_, '_>, result: &Tensor) -> Result<Vec<Value>> {
    one(quantized(result, cx.result_type(0)?)?)
}

fn dot(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (lhs, rhs) = operands(cx)?;
    let last = lhs.shape().rank() as i64 - 1;
    let dims = DotDims { lhs_contracting: vec![last], rhs_contracting: vec![0], ..DotDims::default() };
    finish(cx, &dot_of(&lhs, &rhs, &dims, expressed(cx.result_type(0)?)?)?)
}

fn dot_general(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
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
    finish(cx, &dot_of(&lhs, &rhs, dims, expressed(cx.result_type(0)?)?)?)
}

/// A tensor of floats rounded to what an algorithm multiplies.
fn rounded(tensor: &Tensor, precision: &Type) -> Result<Tensor> {
    let format = match precision {
        Type::Scalar(element) => element.plain().and_then(ElementType::float_part).map(FloatType::format),
        Type::Opaque(name) if &**name == "tf32" => Some(FloatFormat::TF32),
        _ => None,
    };
    let (Some(format), true) = (format, tensor.element_type().is_float()) else { return Ok(tensor.clone()) };
    let values = tensor.iter().map(|value| Scalar::Float(format.round(value.to_f64())));
    Ok(Tensor::from_scalars(tensor.element_type(), tensor.shape().clone(), values)?)
}

fn convolution(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let spatial = cx.op.conv_dims().ok_or_else(|| missing("dimension_numbers"))?.input_spatial.len();
    let padding = cx.pairs_or_zero("padding", spatial)?;
    convolved(cx, &padding)
}

fn dynamic_conv(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let padding: Vec<(i64, i64)> =
        cx.operand_i64s(2)?.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    convolved(cx, &padding)
}

/// Dimension numbers as positions.
struct Layout {
    batch: usize,
    feature: usize,
    spatial: Vec<usize>,
}

impl Layout {
    fn new(rank: usize, batch: i64, feature: i64, spatial: &[i64]) -> Result<Self> {
        let all = to_usizes(&[&[batch, feature], spatial].concat())?;
        let mut sorted = all.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..rank) {
            return Err(invalid("the dimension numbers of the convolution do not cover the dimensions"));
        }
        Ok(Self { batch: all[0], feature: all[1], spatial: all[2..].to_vec() })
    }
}

/// The size of a dimension whose elements are spread apart.
fn extent_of(size: usize, dilation: i64) -> i64 {
    if size == 0 { 0 } else { (size as i64 - 1).saturating_mul(dilation).saturating_add(1) }
}

fn convolved(cx: &mut Cx<'_, '_, '_>, padding: &[(i64, i64)]) -> Result<Vec<Value>> {
    let (lhs, rhs) = operands(cx)?;
    let dims: &ConvDims = cx.op.conv_dims().ok_or_else(|| missing("dimension_numbers"))?;
    let rank = lhs.shape().rank();
    let count = dims.input_spatial.len();
    let input = Layout::new(rank, dims.input_batch, dims.input_feature, &dims.input_spatial)?;
    let kernel = Layout::new(
        rhs.shape().rank(),
        dims.kernel_output_feature,
        dims.kernel_input_feature,
        &dims.kernel_spatial,
    )?;
    let output = Layout::new(rank, dims.output_batch, dims.output_feature, &dims.output_spatial)?;
    let strides = cx.i64s_or("window_strides", count, 1)?;
    let lhs_dilation = cx.i64s_or("lhs_dilation", count, 1)?;
    let rhs_dilation = cx.i64s_or("rhs_dilation", count, 1)?;
    let reversal = cx.op.attr_bools("window_reversal").map_or_else(|| vec![false; count], <[bool]>::to_vec);
    let feature_groups = to_usizes(&[cx.i64("feature_group_count")?])?[0];
    let batch_groups = to_usizes(&[cx.i64("batch_group_count")?])?[0];
    let positive =
        [&strides, &lhs_dilation, &rhs_dilation].iter().all(|list| list.iter().all(|&value| value > 0));
    let sizes =
        |tensor: &Tensor, axes: &[usize]| axes.iter().map(|&axis| tensor.dims()[axis]).collect::<Vec<_>>();
    let (window, base) = (sizes(&rhs, &kernel.spatial), sizes(&lhs, &input.spatial));
    let (kernel_features, output_features) = (rhs.dims()[kernel.feature], rhs.dims()[kernel.batch]);
    let batches = lhs.dims()[input.batch];
    let groups = feature_groups.saturating_mul(batch_groups);
    if !positive
        || padding.len() != count
        || reversal.len() != count
        || groups == 0
        || kernel_features.checked_mul(feature_groups) != Some(lhs.dims()[input.feature])
        || output_features % groups != 0
        || batches % batch_groups != 0
    {
        return Err(invalid("the window or the groups of the convolution do not fit the operands"));
    }
    let mut out = vec![0i64; rank];
    out[output.batch] = (batches / batch_groups) as i64;
    out[output.feature] = output_features as i64;
    for axis in 0..count {
        let dilated = extent_of(base[axis], lhs_dilation[axis]);
        let extent = extent_of(window[axis], rhs_dilation[axis]);
        let padded = dilated.saturating_add(padding[axis].0).saturating_add(padding[axis].1);
        out[output.spatial[axis]] = if extent > padded { 0 } else { (padded - extent) / strides[axis] + 1 };
    }
    let element = expressed(cx.result_type(0)?)?;
    let mut result = Tensor::zeros(element, cx.shape_from(&out)?)?;
    let (lhs_strides, rhs_strides) = (lhs.shape().strides(), rhs.shape().strides());
    let (left, right): (Vec<Scalar>, Vec<Scalar>) = (lhs.iter().collect(), rhs.iter().collect());
    let window_shape = Shape::new(window.clone())?;
    let (batch_size, group_size) = (batches / batch_groups, output_features / groups);
    let shape = result.shape().clone();
    let mut positions = shape.indices();
    let mut position = 0;
    while let Some(index) = positions.advance() {
        let feature = index[output.feature];
        // Output features go by batch group, then by feature group; only one of the two is more than one.
        let batch = index[output.batch] + (feature / (output_features / batch_groups)) * batch_size;
        let group = if feature_groups > 1 { feature / group_size } else { 0 };
        let lhs_start =
            batch * lhs_strides[input.batch] + group * kernel_features * lhs_strides[input.feature];
        let rhs_start = feature * rhs_strides[kernel.batch];
        let mut sum = Sum::zero(element);
        let mut offsets = window_shape.indices();
        'window: while let Some(offset) = offsets.advance() {
            let (mut a, mut b) = (lhs_start, rhs_start);
            for axis in 0..count {
                let at = index[output.spatial[axis]] as i64 * strides[axis]
                    + offset[axis] as i64 * rhs_dilation[axis]
                    - padding[axis].0;
                if at < 0 || at % lhs_dilation[axis] != 0 || at / lhs_dilation[axis] >= base[axis] as i64 {
                    continue 'window;
                }
                let in_kernel = if reversal[axis] { window[axis] - 1 - offset[axis] } else { offset[axis] };
                a += (at / lhs_dilation[axis]) as usize * lhs_strides[input.spatial[axis]];
                b += in_kernel * rhs_strides[kernel.spatial[axis]];
            }
            for channel in 0..kernel_features {
                let (x, y) = (channel * lhs_strides[input.feature], channel * rhs_strides[kernel.feature]);
                sum.add_product(left[a + x], right[b + y]);
            }
        }
        result.set(position, sum.value());
        position += 1;
    }
    finish(cx, &result)
}

/// The labels of an Einstein summation: operands and result.
fn labels(config: &str) -> Result<(Vec<Vec<char>>, Vec<char>)> {
    let (inputs, result) =
        config.split_once("->").ok_or_else(|| invalid(format!("`{config}` has no `->`")))?;
    let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<Vec<char>>();
    Ok((inputs.split(',').map(letters).collect(), letters(result)))
}

fn einsum(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let inputs = [cx.tensor(0)?.clone(), cx.tensor(1)?.clone()];
    summed(cx, &inputs)
}

fn unary_einsum(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let inputs = [cx.tensor(0)?.clone()];
    summed(cx, &inputs)
}

/// Sums over all labels that the result does not have, by the definition.
fn summed(cx: &mut Cx<'_, '_, '_>, inputs: &[Tensor]) -> Result<Vec<Value>> {
    let (operands, result) = labels(cx.str("einsum_config")?)?;
    let fits = operands.len() == inputs.len()
        && operands.iter().zip(inputs).all(|(letters, input)| letters.len() == input.shape().rank());
    if !fits {
        return Err(invalid("the labels do not fit the operands"));
    }
    let mut sizes: Vec<(char, usize)> = Vec::new();
    for (letter, &size) in
        operands.iter().zip(inputs).flat_map(|(letters, input)| letters.iter().zip(input.dims()))
    {
        match sizes.iter().find(|(known, _)| known == letter) {
            Some((_, known)) if *known != size => return Err(invalid(format!("`{letter}` has two sizes"))),
            Some(_) => {}
            None => sizes.push((*letter, size)),
        }
    }
    let known = |letter: &char| sizes.iter().find(|(known, _)| known == letter).map(|(_, size)| *size);
    let kept: Option<Vec<usize>> = result.iter().map(known).collect();
    let kept = cx.shape(kept.ok_or_else(|| invalid("the result has a label that no operand has"))?)?;
    let inner: Vec<char> =
        sizes.iter().map(|(letter, _)| *letter).filter(|letter| !result.contains(letter)).collect();
    let inner_shape = cx.shape(inner.iter().filter_map(known).collect())?;
    let element = expressed(cx.result_type(0)?)?;
    let place = |letters: &[char], outer: &[usize], within: &[usize]| -> Vec<usize> {
        let at = |letter: &char| match result.iter().position(|kept| kept == letter) {
            Some(dim) => outer[dim],
            None => inner.iter().position(|kept| kept == letter).map_or(0, |dim| within[dim]),
        };
        letters.iter().map(at).collect()
    };
    let mut sums = Tensor::zeros(element, kept.clone())?;
    let mut outer = kept.indices();
    let mut position = 0;
    while let Some(outer) = outer.advance() {
        let mut sum = Sum::zero(element);
        let mut within = inner_shape.indices();
        while let Some(within) = within.advance() {
            let value = |at: usize| {
                inputs[at].at(&place(&operands[at], outer, within)).unwrap_or(Scalar::zero(element))
            };
            let second = if inputs.len() > 1 { value(1) } else { convert(Scalar::Int(1), element) };
            sum.add_product(value(0), second);
        }
        sums.set(position, sum.value());
        position += 1;
    }
    one(sums)
}
