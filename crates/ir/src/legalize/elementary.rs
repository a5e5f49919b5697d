//! Hyperbolic functions, and the inverses of circular and hyperbolic ones.

use std::f64::consts::LN_2;

use super::cx::{Cx, Refusal};
use super::expr::{Emitter, Expr};
use crate::module::ValueId;
use crate::table::OpKind;
use crate::types::ElementType;

/// `sqrt(1 - x²)` without losing digits near one.
fn other_leg(x: &Expr) -> Expr {
    ((1.0 - x.clone()) * (1.0 + x.clone())).sqrt()
}

pub(super) fn asin(x: &Expr) -> Expr {
    x.atan2(&other_leg(x))
}

pub(super) fn acos(x: &Expr) -> Expr {
    other_leg(x).atan2(x)
}

pub(super) fn atan(x: &Expr) -> Expr {
    x.atan2(&Expr::number(1.0))
}

pub(super) fn asinh(x: &Expr) -> Expr {
    let a = x.abs();
    // Squares of larger numbers overflow, and the one under the root is nothing beside them.
    let large = 2f64.powi(28);
    let inner = a.min(large);
    let square = inner.clone() * inner.clone();
    let small = (inner.clone() + square.clone() / (1.0 + (1.0 + square).sqrt())).ln1p();
    let far = a.ln() + LN_2;
    // A zero keeps its sign.
    x.eq(0.0).choose(x.clone(), a.lt(large).choose(small, far).with_sign(x))
}

pub(super) fn acosh(x: &Expr) -> Expr {
    let large = 2f64.powi(28);
    let t = x.min(large) - 1.0;
    let near = (t.clone() + (t.clone() * (t.clone() + 2.0)).sqrt()).ln1p();
    let inside = x.lt(large).choose(near, x.ln() + LN_2);
    x.lt(1.0).choose(f64::NAN, inside)
}

pub(super) fn atanh(x: &Expr) -> Expr {
    let a = x.abs();
    let positive = 0.5 * (2.0 * a.clone() / (1.0 - a)).ln1p();
    x.eq(0.0).choose(x.clone(), positive.with_sign(x))
}

/// Beyond this one of the two exponentials is nothing beside the other, which is halved before it overflows.
const ONE_SIDED: f64 = 20.0;

fn half_exp(a: &Expr) -> Expr {
    let root = (a.clone() * 0.5).exp();
    0.5 * root.clone() * root
}

fn sinh_of(x: &Expr) -> Expr {
    let a = x.abs();
    let u = a.min(ONE_SIDED).expm1();
    let near = 0.5 * (u.clone() + u.clone() / (u + 1.0));
    x.eq(0.0).choose(x.clone(), a.lt(ONE_SIDED).choose(near, half_exp(&a)).with_sign(x))
}

fn cosh_of(x: &Expr) -> Expr {
    let a = x.abs();
    let exp = a.min(ONE_SIDED).exp();
    let near = 0.5 * exp.clone() + 0.5 / exp;
    a.lt(ONE_SIDED).choose(near, half_exp(&a))
}

pub(super) fn sinh(cx: &mut Cx<'_, '_>) -> Result<Vec<ValueId>, Refusal> {
    match cx.element()?.is_complex() {
        true => complex(cx, sinh_of, cosh_of),
        false => cx.formula(ElementType::F64, sinh_of),
    }
}

pub(super) fn cosh(cx: &mut Cx<'_, '_>) -> Result<Vec<ValueId>, Refusal> {
    match cx.element()?.is_complex() {
        true => complex(cx, cosh_of, sinh_of),
        false => cx.formula(ElementType::F64, cosh_of),
    }
}

/// `f(x) cos y + i g(x) sin y`: sine and cosine of an angle `x + iy` turned by a right one.
fn complex(cx: &mut Cx<'_, '_>, f: fn(&Expr) -> Expr, g: fn(&Expr) -> Expr) -> Result<Vec<ValueId>, Refusal> {
    let operand = cx.operand(0)?;
    let part = cx.element()?.float_part().ok_or_else(|| cx.refused())?;
    let mut wide = |kind| -> Result<Expr, Refusal> {
        let value = cx.b.unary(kind, operand)?;
        Ok(Expr::value(cx.b.convert(value, ElementType::F64)?))
    };
    let (x, y) = (wide(OpKind::Real)?, wide(OpKind::Imag)?);
    let formulas = [f(&x) * y.cos(), g(&x) * y.sin()];
    let mut emitter = Emitter::new(cx, ElementType::F64);
    let values = formulas.map(|formula| emitter.emit(&formula));
    let mut results = Vec::new();
    for value in values {
        results.push(cx.b.convert(value?, ElementType::Float(part))?);
    }
    Ok(vec![cx.b.op(OpKind::Complex, &results, [])?])
}
