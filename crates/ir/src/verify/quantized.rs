//! Constraints on quantized elements that several operations share.

use super::{Cx, compatible};
use crate::types::{Element, Granularity, QuantizedType, TensorType, Type};

/// The axis of elements that are quantized along one.
pub fn axis(tensor: &TensorType) -> Option<usize> {
    match tensor.element().quantized()?.granularity {
        Granularity::PerAxis(axis) => Some(axis),
        _ => None,
    }
}

/// Whether elements are quantized with one scale for all.
pub fn per_tensor(tensor: &TensorType) -> bool {
    tensor.element().quantized().is_some_and(|quantized| quantized.granularity == Granularity::PerTensor)
}

/// Most bits of a storage type that the quantized types of StableHLO have.
const MAX_STORAGE_BITS: u32 = 32;

/// What is wrong with the quantization parameters of a type, given its shape: constraints C1 to C13 of quantized types.
/// Parts of tuples are checked too.
pub fn check_type(ty: &Type) -> Result<(), String> {
    match ty {
        Type::Tensor(tensor) | Type::Buffer(tensor) => check_tensor(tensor),
        Type::UnrankedTensor(Element::Quantized(quantized)) => check_parameters(quantized),
        Type::Tuple(parts) | Type::Future(parts) => parts.iter().try_for_each(check_type),
        _ => Ok(()),
    }
}

fn check_parameters(quantized: &QuantizedType) -> Result<(), String> {
    let bits = quantized.storage.bits();
    if bits > MAX_STORAGE_BITS {
        return Err(format!("a storage type has at most {MAX_STORAGE_BITS} bits, not {bits}"));
    }
    quantized.validate().map_err(|error| error.to_string())
}

fn check_tensor(tensor: &TensorType) -> Result<(), String> {
    let Element::Quantized(quantized) = tensor.element() else { return Ok(()) };
    check_parameters(quantized)?;
    let Granularity::PerAxis(axis) = quantized.granularity else { return Ok(()) };
    let Some(dim) = tensor.dim(axis) else {
        return Err(format!(
            "the quantization dimension {axis} is not a dimension of rank {}",
            tensor.rank()
        ));
    };
    let scales = quantized.parameters.len();
    match dim.size() {
        Some(size) if size != scales as u64 => {
            Err(format!("{scales} scales for the quantization dimension {axis} of size {size}"))
        }
        _ => Ok(()),
    }
}

impl Cx<'_> {
    /// Checks that elements are moved without being changed: of one kind, with the same scales and zero points. The axis
    /// of the scales may be another one.
    pub fn same_numbers(&mut self, label: &'static str, what: &str, a: &TensorType, b: &TensorType) -> bool {
        let same = match (a.element(), b.element()) {
            (Element::Quantized(x), Element::Quantized(y)) => {
                compatible::elements(a.element(), b.element()) && x.parameters == y.parameters
            }
            (x, y) => x == y,
        };
        self.check(same, label, || format!("{what} have different elements: {a} and {b}"))
    }

    /// Checks what `broadcast_in_dim` and its dynamic twin ask of the axis of the scales.
    pub fn same_broadcast_axis(
        &mut self,
        label: &'static str,
        operand: &TensorType,
        result: &TensorType,
        dims: &[i64],
    ) {
        let (Some(from), Some(to)) = (axis(operand), axis(result)) else { return };
        let mapped = dims.get(from).is_some_and(|dim| *dim == to as i64);
        self.check(mapped, label, || format!("the axis of {result} is not where that of {operand} goes"));
        let (Some(source), Some(target)) = (operand.element().quantized(), result.element().quantized())
        else {
            return;
        };
        // Along a dimension of size one, its only scale is repeated.
        let one = operand.dims().get(from).is_some_and(|dim| dim.size() == Some(1));
        let same = if one {
            let first = source.parameters.first();
            target.parameters.iter().all(|parameters| Some(parameters) == first)
        } else {
            source.parameters == target.parameters
        };
        self.check(same, label, || format!("the scales of {result} are not those of {operand}"));
    }

    /// Checks what dots and convolutions ask of quantized operands and results. The labels are those of a dot's C14 and
    /// of C17 to C20.
    pub fn quantized_contraction(
        &mut self,
        labels: [&'static str; 5],
        lhs: &TensorType,
        rhs: &TensorType,
        result: &TensorType,
    ) {
        let fits =
            rhs.element().is_quantized() && lhs.element().is_quantized() == result.element().is_quantized();
        if !self.check(fits, labels[0], || {
            "the right operand must be quantized, and the result if the left operand is".to_owned()
        }) {
            return;
        }
        let Some(right) = rhs.element().quantized() else { return };
        let (left, given) = (lhs.element().quantized(), result.element().quantized());
        if let (Some(left), Some(given)) = (left, given) {
            self.check(left.storage == right.storage, labels[1], || {
                format!("{lhs} and {rhs} store different integers")
            });
            let expressed = left.expressed == right.expressed && left.expressed == given.expressed;
            self.check(expressed, labels[2], || {
                format!("{lhs}, {rhs} and {result} express different numbers")
            });
            self.check(!per_tensor(rhs) || per_tensor(result), labels[3], || {
                format!("{result} has scales along an axis where {rhs} has one for all")
            });
        } else {
            let expressed = Element::Plain(crate::types::ElementType::Float(right.expressed));
            let same = *lhs.element() == expressed && *result.element() == expressed;
            self.check(same, labels[4], || format!("{lhs} and {result} are not what {rhs} expresses"));
        }
    }
}
