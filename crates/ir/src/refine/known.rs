//! Small tensors of integers whose values are known, and what operations make of them.

use warpforge_tensor::element::IntType;

use crate::attr::{Attribute, ComparisonDirection, DenseElements};
use crate::module::OpRef;
use crate::table::OpKind;
use crate::types::{ElementType, TensorType};

/// Most elements of a tensor that is followed by value: shapes have far fewer.
const MOST: u64 = 1 << 12;

/// A tensor of integers or truth values that is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Known {
    dims: Vec<u64>,
    element: ElementType,
    values: Vec<i128>,
}

impl Known {
    /// What a constant holds, when it is small and of integers.
    pub(super) fn of(elements: &DenseElements) -> Option<Self> {
        let ty = elements.ty();
        let (element, count) = (ty.element().plain()?, ty.element_count()?);
        if !followed(element) || count > MOST {
            return None;
        }
        let values = (0..usize::try_from(count).ok()?).map(|index| elements.int(index));
        Some(Self { dims: ty.shape()?, element, values: values.collect::<Option<_>>()? })
    }

    /// A scalar.
    pub(super) fn scalar(element: ElementType, value: i128) -> Self {
        Self { dims: Vec::new(), element, values: vec![wrap(element, value)] }
    }

    /// The type.
    pub(super) fn ty(&self) -> TensorType {
        TensorType::fixed(&self.dims, self.element)
    }

    /// The values as 64-bit integers.
    pub(super) fn i64s(&self) -> Option<Vec<i64>> {
        self.values.iter().map(|value| i64::try_from(*value).ok()).collect()
    }

    /// The values as sizes.
    pub(super) fn sizes(&self) -> Option<Vec<u64>> {
        self.values.iter().map(|value| u64::try_from(*value).ok()).collect()
    }

    /// The values in order.
    pub(super) fn values(&self) -> &[i128] {
        &self.values
    }

    /// As the value of a `stablehlo.constant`.
    pub(super) fn constant(&self) -> Option<Attribute> {
        let width = self.element.byte_width();
        let bytes: Vec<u8> =
            self.values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(width)).collect();
        DenseElements::raw(self.ty(), bytes).ok().map(Attribute::from)
    }

    fn with(&self, element: ElementType, value: impl Fn(i128) -> i128) -> Self {
        let values = self.values.iter().map(|each| wrap(element, value(*each))).collect();
        Self { dims: self.dims.clone(), element, values }
    }
}

fn followed(element: ElementType) -> bool {
    element.is_int() || matches!(element, ElementType::Bool | ElementType::Index)
}

fn wrap(element: ElementType, value: i128) -> i128 {
    match element {
        ElementType::Bool => i128::from(value != 0),
        ElementType::Int(int) => int.wrap(value),
        _ => IntType::I64.wrap(value),
    }
}

/// What an operation gives for operands that are all known; `None` where it is not followed.
pub(super) fn fold(op: OpRef<'_>, operands: &[&Known]) -> Option<Known> {
    let result = op.result_tensor(0).filter(|_| op.result_count() == 1)?;
    let element = result.element().plain().filter(|element| followed(*element))?;
    match (op.kind()?, operands) {
        (OpKind::Convert, [x]) => Some(x.with(element, |value| value)),
        (OpKind::Negate, [x]) => Some(x.with(element, |value| -value)),
        (OpKind::Abs, [x]) => Some(x.with(element, i128::abs)),
        (OpKind::Sign, [x]) => Some(x.with(element, i128::signum)),
        (OpKind::Not, [x]) if element == ElementType::Bool => Some(x.with(element, |value| 1 - value)),
        (OpKind::Not, [x]) => Some(x.with(element, |value| !value)),
        (OpKind::Compare, [x, y]) => compare(op, x, y),
        (OpKind::Select, [pred, x, y]) => select(pred, x, y),
        (OpKind::Clamp, [min, x, max]) => {
            zip(&zip(x, &spread(min, x), i128::max)?, &spread(max, x), i128::min)
        }
        (OpKind::Reshape, [x]) => {
            let dims = result.shape()?;
            let count: u64 = dims.iter().try_fold(1u64, |count, dim| count.checked_mul(*dim))?;
            (count == x.values.len() as u64).then(|| Known { dims, ..(*x).clone() })
        }
        (OpKind::BroadcastInDim, [x]) if x.values.len() == 1 => {
            let count = usize::try_from(result.element_count().filter(|count| *count <= MOST)?).ok()?;
            Some(Known { dims: result.shape()?, element, values: vec![x.values[0]; count] })
        }
        (OpKind::Concatenate, [first, ..]) if first.dims.len() == 1 => {
            let values: Vec<i128> = operands.iter().flat_map(|part| part.values.iter().copied()).collect();
            let small = values.len() as u64 <= MOST;
            small.then(|| Known { dims: vec![values.len() as u64], element, values })
        }
        (OpKind::Slice, [x]) if x.dims.len() == 1 => slice(op, x),
        (OpKind::Iota, []) if result.rank() == 1 => {
            let count = result.element_count().filter(|count| *count <= MOST)?;
            let values = (0..count).map(|index| wrap(element, i128::from(index))).collect();
            Some(Known { dims: vec![count], element, values })
        }
        // What dividing by zero gives is left to whoever evaluates.
        (OpKind::Divide | OpKind::Remainder, [_, y]) if y.values.contains(&0) => None,
        (kind, [x, y]) => zip(x, y, binary(kind)?),
        _ => None,
    }
}

fn binary(kind: OpKind) -> Option<fn(i128, i128) -> i128> {
    Some(match kind {
        OpKind::Add => i128::wrapping_add,
        OpKind::Subtract => i128::wrapping_sub,
        OpKind::Multiply => i128::wrapping_mul,
        OpKind::Divide => i128::wrapping_div,
        OpKind::Remainder => i128::wrapping_rem,
        OpKind::Maximum => i128::max,
        OpKind::Minimum => i128::min,
        OpKind::And => |a, b| a & b,
        OpKind::Or => |a, b| a | b,
        OpKind::Xor => |a, b| a ^ b,
        _ => return None,
    })
}

fn zip(x: &Known, y: &Known, combine: impl Fn(i128, i128) -> i128) -> Option<Known> {
    if x.dims != y.dims || x.element != y.element {
        return None;
    }
    let pairs = x.values.iter().zip(&y.values);
    let values = pairs.map(|(a, b)| wrap(x.element, combine(*a, *b))).collect();
    Some(Known { values, ..x.clone() })
}

/// A scalar in the shape of another tensor.
fn spread(x: &Known, like: &Known) -> Known {
    match x.values.as_slice() {
        [only] if x.dims.is_empty() => {
            Known { dims: like.dims.clone(), element: x.element, values: vec![*only; like.values.len()] }
        }
        _ => x.clone(),
    }
}

fn compare(op: OpRef<'_>, x: &Known, y: &Known) -> Option<Known> {
    let direction = op.attr_enum::<ComparisonDirection>("comparison_direction")?;
    let holds = |a: i128, b: i128| match direction {
        ComparisonDirection::Eq => a == b,
        ComparisonDirection::Ne => a != b,
        ComparisonDirection::Ge => a >= b,
        ComparisonDirection::Gt => a > b,
        ComparisonDirection::Le => a <= b,
        ComparisonDirection::Lt => a < b,
    };
    if x.dims != y.dims {
        return None;
    }
    let values = x.values.iter().zip(&y.values).map(|(a, b)| i128::from(holds(*a, *b))).collect();
    Some(Known { dims: x.dims.clone(), element: ElementType::Bool, values })
}

fn select(pred: &Known, x: &Known, y: &Known) -> Option<Known> {
    let pred = spread(pred, x);
    if pred.dims != x.dims || x.dims != y.dims || x.element != y.element {
        return None;
    }
    let chosen = pred.values.iter().zip(x.values.iter().zip(&y.values));
    let values = chosen.map(|(pred, (x, y))| if *pred != 0 { *x } else { *y }).collect();
    Some(Known { values, ..x.clone() })
}

fn slice(op: OpRef<'_>, x: &Known) -> Option<Known> {
    let at = |name: &str| usize::try_from(*op.attr_i64s(name)?.first()?).ok();
    let (start, limit, stride) = (at("start_indices")?, at("limit_indices")?, at("strides")?);
    let values: Vec<i128> = x.values.get(start..limit)?.iter().step_by(stride.max(1)).copied().collect();
    Some(Known { dims: vec![values.len() as u64], element: x.element, values })
}
