//! What element-wise operations do to single elements.

mod arithmetic;
mod compare;
mod convert;
mod functions;
mod precision;

use warpforge_ir::attr::{ComparisonDirection, ComparisonType};
use warpforge_ir::{OpKind, OpRef};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar};

pub(crate) use arithmetic::{binary, maximum, minimum, unary};
pub use compare::compare;
pub(crate) use convert::convert;
pub(crate) use functions::real_function;

/// A computation on the elements of an operation's operands, rounded to the result's type.
pub type Kernel = Box<dyn Fn(&[Scalar]) -> Scalar + Send + Sync>;

/// The computation of an elementwise function of operands of these types; `None` where no operation is that function.
#[must_use]
pub fn of_function(function: Function, inputs: &[ElementType], output: ElementType) -> Option<Kernel> {
    of_kind(OpKind::from_name(function.op_name()?)?, inputs, output)
}

/// The computation of an element-wise operation on plain elements; `None` for other operations.
pub(crate) fn kernel(op: OpRef<'_>, inputs: &[ElementType], output: ElementType) -> Option<Kernel> {
    let kind = op.kind()?;
    match (kind, inputs) {
        (OpKind::Compare | OpKind::ChloBroadcastCompare, [_, _]) => {
            let direction: ComparisonDirection = op.attr_enum("comparison_direction")?;
            let total = op.attr_enum("compare_type") == Some(ComparisonType::TotalOrder);
            Some(Box::new(move |x| Scalar::Bool(compare(direction, total, x[0], x[1]))))
        }
        (OpKind::ReducePrecision, [ElementType::Float(float)]) => {
            let exponent = u32::try_from(op.attr_i64("exponent_bits")?).ok()?;
            let mantissa = u32::try_from(op.attr_i64("mantissa_bits")?).ok()?;
            let format = float.format();
            Some(Box::new(move |x| {
                Scalar::Float(precision::reduce(&format, exponent, mantissa, x[0].to_f64()))
            }))
        }
        _ => of_kind(kind, inputs, output),
    }
}

/// The computation of an operation that has no attributes.
fn of_kind(kind: OpKind, inputs: &[ElementType], output: ElementType) -> Option<Kernel> {
    let &element = inputs.first()?;
    match (kind, inputs) {
        (OpKind::Select | OpKind::ChloBroadcastSelect, [_, _, _]) => {
            Some(Box::new(|x| if x[0].is_true() { x[1] } else { x[2] }))
        }
        (OpKind::Clamp, [_, _, _]) => Some(Box::new(|x| minimum(maximum(x[1], x[0]), x[2]))),
        (OpKind::Convert, [_]) => Some(Box::new(move |x| convert(x[0], output))),
        (_, [_]) => {
            let function = unary(kind, element)?;
            Some(Box::new(move |x| function(x[0]).rounded_to(output)))
        }
        (_, [_, _]) => {
            let function = binary(kind, element)?;
            Some(Box::new(move |x| function(x[0], x[1]).rounded_to(output)))
        }
        _ => None,
    }
}
