//! Type promotion as PyTorch has it: tensors with dimensions before those without, those before Python numbers.

use warpforge_ir::ElementType;
use warpforge_tensor::{FloatType, IntType};

use super::cx::Cx;
use super::refusal::{Lowered, refuse};
use super::value::{Number, Operand, Tensor};

/// The type that Python floats have: PyTorch's default element type. An archive of a program with another default is
/// noticed when results are held against the recorded types.
pub(crate) const DEFAULT_FLOAT: ElementType = ElementType::F32;

/// Kinds of numbers, each of which holds the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Category {
    Bool,
    Int,
    Float,
    Complex,
}

fn category(dtype: ElementType) -> Category {
    match dtype {
        ElementType::Bool => Category::Bool,
        ElementType::Int(_) | ElementType::Index => Category::Int,
        ElementType::Float(_) => Category::Float,
        ElementType::Complex(_) => Category::Complex,
    }
}

/// The type that values of two types have together.
pub(crate) fn promote(a: ElementType, b: ElementType) -> Lowered<ElementType> {
    use ElementType::{Bool, Complex, Float, Int};
    if a == b {
        return Ok(a);
    }
    match (a, b) {
        (Bool, other) | (other, Bool) => Ok(other),
        (Int(a), Int(b)) => promote_ints(a, b).map(Int),
        (Int(_), other) | (other, Int(_)) => Ok(other),
        (Float(a), Float(b)) => promote_floats(a, b).map(Float),
        (Complex(a), Complex(b)) => promote_floats(a, b).map(Complex),
        (Complex(part), Float(float)) | (Float(float), Complex(part)) => {
            let wide = if float == FloatType::F64 { FloatType::F64 } else { part };
            Ok(Complex(wide))
        }
        _ => refuse(format!("{a} and {b} have no common type")),
    }
}

fn promote_ints(a: IntType, b: IntType) -> Lowered<IntType> {
    let (wide, narrow) = if a.bits() >= b.bits() { (a, b) } else { (b, a) };
    match (wide.is_signed(), narrow.is_signed()) {
        (true, true) | (false, false) => Ok(wide),
        (true, false) if wide.bits() > narrow.bits() && narrow == IntType::U8 => Ok(wide),
        _ if wide.bits() == 8 => Ok(IntType::I16),
        _ => refuse(format!("PyTorch does not promote {} and {}", a.name(), b.name())),
    }
}

fn promote_floats(a: FloatType, b: FloatType) -> Lowered<FloatType> {
    let rank = |float| match float {
        FloatType::F16 | FloatType::Bf16 => Some(1),
        FloatType::F32 => Some(2),
        FloatType::F64 => Some(3),
        _ => None,
    };
    match (rank(a), rank(b)) {
        (Some(1), Some(1)) if a != b => Ok(FloatType::F32),
        (Some(first), Some(second)) => Ok(if first >= second { a } else { b }),
        _ => refuse(format!("PyTorch does not promote {} and {}", a.name(), b.name())),
    }
}

/// The element type of a Python number on its own.
fn number_type(number: &Number) -> ElementType {
    match number {
        Number::Int(_) => ElementType::I64,
        Number::Float(_) => DEFAULT_FLOAT,
        Number::Bool(_) => ElementType::Bool,
        Number::Complex(..) => ElementType::C64,
        Number::Computed(tensor) => match tensor.dtype {
            ElementType::F64 => DEFAULT_FLOAT,
            other => other,
        },
    }
}

/// The common type of operands.
pub(crate) fn result_type(operands: &[Operand]) -> Lowered<ElementType> {
    // The types of tensors with dimensions, tensors without, and numbers.
    let mut found: [Option<ElementType>; 3] = [None; 3];
    for operand in operands {
        let (level, dtype) = match operand {
            Operand::Tensor(tensor) if tensor.rank() > 0 => (0, tensor.dtype),
            Operand::Tensor(tensor) => (1, tensor.dtype),
            Operand::Number(number) => (2, number_type(number)),
        };
        found[level] = Some(match found[level] {
            Some(before) => promote(before, dtype)?,
            None => dtype,
        });
    }
    let mut levels = found.into_iter().flatten();
    let Some(mut result) = levels.next() else { return refuse("no operands to find a type by") };
    for lower in levels {
        if category(lower) > category(result) {
            // A number of a higher kind decides the kind, with the default size; a narrow float stays a narrow complex.
            result = match (result, lower) {
                (ElementType::Float(float), ElementType::Complex(_)) => complex_of(float),
                _ => lower,
            };
        }
    }
    Ok(result)
}

fn complex_of(float: FloatType) -> ElementType {
    if float == FloatType::F64 { ElementType::C128 } else { ElementType::C64 }
}

/// The type that PyTorch computes a type's arithmetic in.
pub(crate) fn opmath(dtype: ElementType) -> ElementType {
    match dtype {
        ElementType::Float(FloatType::F16 | FloatType::Bf16) => ElementType::F32,
        other => other,
    }
}

/// The type of an operation that gives fractions: integers and truth values become floats.
pub(crate) fn to_inexact(dtype: ElementType) -> ElementType {
    match category(dtype) {
        Category::Bool | Category::Int => DEFAULT_FLOAT,
        Category::Float | Category::Complex => dtype,
    }
}

impl Cx<'_> {
    /// An operand as a tensor of an element type.
    pub(crate) fn as_tensor(&mut self, operand: &Operand, dtype: ElementType) -> Lowered<Tensor> {
        match operand {
            Operand::Tensor(tensor) => self.convert(tensor, dtype),
            Operand::Number(number) => self.fill(dtype, &[], number),
        }
    }

    /// Operands as tensors of one element type and shape. Numbers are converted straight to that type.
    pub(crate) fn unify(&mut self, operands: &[Operand], dtype: ElementType) -> Lowered<Vec<Tensor>> {
        let shapes: Vec<&[crate::graph::size::Size]> = operands
            .iter()
            .filter_map(|operand| match operand {
                Operand::Tensor(tensor) => Some(&*tensor.dims),
                Operand::Number(_) => None,
            })
            .collect();
        let dims = self.broadcast_shape(&shapes)?;
        operands
            .iter()
            .map(|operand| match operand {
                Operand::Tensor(tensor) => {
                    let converted = self.convert(tensor, dtype)?;
                    self.expand_to(&converted, &dims)
                }
                Operand::Number(number) => self.fill(dtype, &dims, number),
            })
            .collect()
    }
}
