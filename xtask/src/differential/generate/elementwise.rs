//! Operations on one element at a time.

use warpforge_tensor::ElementType;

use super::{COMPLEX, FLOATS, Generator, INTS, WIDE_FLOATS, every_type};
use crate::differential::program::{OpTolerance, Step};

/// Element types of an operation.
#[derive(Clone, Copy)]
enum Class {
    Float,
    FloatComplex,
    Int,
    IntBool,
    Number,
    Real,
    Signed,
}

impl Class {
    fn elements(self) -> Vec<ElementType> {
        match self {
            Class::Float => FLOATS.to_vec(),
            Class::FloatComplex => [FLOATS, COMPLEX].concat(),
            Class::Int => INTS.to_vec(),
            Class::IntBool => [INTS, &[ElementType::Bool]].concat(),
            Class::Number => [FLOATS, COMPLEX, INTS].concat(),
            Class::Real => [FLOATS, INTS].concat(),
            Class::Signed => [FLOATS, &INTS[..4]].concat(),
        }
    }
}

/// XLA approximates its functions on the CPU: a few units in the last place, more for compositions.
const APPROXIMATE: OpTolerance = OpTolerance::Ulps(64.0);
/// A sum of products, or a part of one that is fused with its neighbour.
const ROUNDED: OpTolerance = OpTolerance::Sum(1);

const UNARY: &[(&str, Class, OpTolerance)] = &[
    ("stablehlo.abs", Class::Signed, OpTolerance::Exact),
    ("stablehlo.cbrt", Class::Float, APPROXIMATE),
    ("stablehlo.ceil", Class::Float, OpTolerance::Exact),
    ("stablehlo.cosine", Class::FloatComplex, APPROXIMATE),
    ("stablehlo.count_leading_zeros", Class::Int, OpTolerance::Exact),
    ("stablehlo.exponential", Class::FloatComplex, APPROXIMATE),
    ("stablehlo.exponential_minus_one", Class::FloatComplex, APPROXIMATE),
    ("stablehlo.floor", Class::Float, OpTolerance::Exact),
    ("stablehlo.log", Class::FloatComplex, APPROXIMATE),
    ("stablehlo.log_plus_one", Class::FloatComplex, APPROXIMATE),
    ("stablehlo.logistic", Class::Float, APPROXIMATE),
    ("stablehlo.negate", Class::Number, OpTolerance::Exact),
    ("stablehlo.not", Class::IntBool, OpTolerance::Exact),
    ("stablehlo.popcnt", Class::Int, OpTolerance::Exact),
    ("stablehlo.round_nearest_afz", Class::Float, OpTolerance::Exact),
    ("stablehlo.round_nearest_even", Class::Float, OpTolerance::Exact),
    ("stablehlo.rsqrt", Class::FloatComplex, APPROXIMATE),
    ("stablehlo.sign", Class::Signed, OpTolerance::Exact),
    ("stablehlo.sine", Class::FloatComplex, APPROXIMATE),
    ("stablehlo.sqrt", Class::FloatComplex, APPROXIMATE),
    ("stablehlo.tan", Class::Float, APPROXIMATE),
    ("stablehlo.tanh", Class::FloatComplex, APPROXIMATE),
];

/// Powers of integers are left out: XLA stops after six squarings, which shows when they overflow.
const BINARY: &[(&str, Class, OpTolerance)] = &[
    ("stablehlo.add", Class::Number, ROUNDED),
    ("stablehlo.and", Class::IntBool, OpTolerance::Exact),
    ("stablehlo.atan2", Class::Float, APPROXIMATE),
    ("stablehlo.divide", Class::Number, ROUNDED),
    ("stablehlo.maximum", Class::Real, OpTolerance::Exact),
    ("stablehlo.minimum", Class::Real, OpTolerance::Exact),
    ("stablehlo.multiply", Class::Number, ROUNDED),
    ("stablehlo.or", Class::IntBool, OpTolerance::Exact),
    ("stablehlo.power", Class::Float, APPROXIMATE),
    ("stablehlo.remainder", Class::Real, ROUNDED),
    ("stablehlo.shift_left", Class::Int, OpTolerance::Exact),
    ("stablehlo.shift_right_arithmetic", Class::Int, OpTolerance::Exact),
    ("stablehlo.shift_right_logical", Class::Int, OpTolerance::Exact),
    ("stablehlo.subtract", Class::Number, ROUNDED),
    ("stablehlo.xor", Class::IntBool, OpTolerance::Exact),
];

pub(super) fn unary(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let (op, class, tolerance) = g.one_of(UNARY);
    let Some(x) = g.value(&class.elements(), |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    Ok(Some(g.step(op, vec![x], "", vec![ty], tolerance)))
}

pub(super) fn binary(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let (op, class, tolerance) = g.one_of(BINARY);
    let Some(x) = g.value(&class.elements(), |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    let y = g.of_type(&ty)?;
    Ok(Some(g.step(op, vec![x, y], "", vec![ty], tolerance)))
}

pub(super) fn compare(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&every_type(), |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    let y = g.of_type(&ty)?;
    let direction = if ty.element.is_complex() {
        g.one_of(&["EQ", "NE"])
    } else {
        g.one_of(&["EQ", "NE", "LT", "LE", "GT", "GE"])
    };
    let middle = format!("{{comparison_direction = #stablehlo<comparison_direction {direction}>}}");
    let result = ty.of(ElementType::Bool);
    Ok(Some(g.step("stablehlo.compare", vec![x, y], &middle, vec![result], OpTolerance::Exact)))
}

pub(super) fn select(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&every_type(), |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    let y = g.of_type(&ty)?;
    let mut predicate = ty.of(ElementType::Bool);
    if g.rng.bool() {
        predicate.dims.clear();
    }
    let predicate = g.of_type(&predicate)?;
    Ok(Some(g.step("stablehlo.select", vec![predicate, x, y], "", vec![ty], OpTolerance::Exact)))
}

pub(super) fn clamp(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&[FLOATS, INTS].concat(), |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    let mut bound = ty.clone();
    if g.rng.bool() {
        bound.dims.clear();
    }
    let (low, high) = (g.of_type(&bound)?, g.of_type(&bound)?);
    Ok(Some(g.step("stablehlo.clamp", vec![low, x, high], "", vec![ty], OpTolerance::Exact)))
}

/// Between types where every value has a place: what lies outside is up to the implementation.
pub(super) fn convert(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&every_type(), |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    let targets = match ty.element {
        ElementType::Float(_) => [FLOATS, COMPLEX, &[ElementType::Bool]].concat(),
        ElementType::Complex(_) => COMPLEX.to_vec(),
        _ => every_type(),
    };
    let result = ty.of(g.one_of(&targets));
    Ok(Some(g.step("stablehlo.convert", vec![x], "", vec![result], OpTolerance::Exact)))
}

pub(super) fn bitcast(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&[FLOATS, INTS].concat(), |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    // To floats, the bits might be a subnormal number or an odd NaN, which hardware does not keep.
    let target = g.one_of(INTS);
    let (from, to) = (ty.element.bits() as usize, target.bits() as usize);
    let mut result = ty.of(target);
    match from.cmp(&to) {
        std::cmp::Ordering::Equal => {}
        std::cmp::Ordering::Greater => result.dims.push(from / to),
        std::cmp::Ordering::Less => {
            if result.dims.pop() != Some(to / from) {
                return Ok(None);
            }
        }
    }
    Ok(Some(g.step("stablehlo.bitcast_convert", vec![x], "", vec![result], OpTolerance::Exact)))
}

pub(super) fn complex_parts(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    if g.rng.bool() {
        let Some(x) = g.value(WIDE_FLOATS, |_| true)? else { return Ok(None) };
        let ty = g.ty(x);
        let y = g.of_type(&ty)?;
        let element = if ty.element == ElementType::F32 { ElementType::C64 } else { ElementType::C128 };
        return Ok(Some(g.step(
            "stablehlo.complex",
            vec![x, y],
            "",
            vec![ty.of(element)],
            OpTolerance::Exact,
        )));
    }
    let Some(x) = g.value(COMPLEX, |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    let part = if ty.element == ElementType::C64 { ElementType::F32 } else { ElementType::F64 };
    let (op, tolerance) = g.one_of(&[
        ("stablehlo.real", OpTolerance::Exact),
        ("stablehlo.imag", OpTolerance::Exact),
        ("stablehlo.abs", ROUNDED),
    ]);
    Ok(Some(g.step(op, vec![x], "", vec![ty.of(part)], tolerance)))
}
