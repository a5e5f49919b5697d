//! Elementary and special functions of single elements.

use warpforge_ir::OpKind;
use warpforge_tensor::{ElementType, FloatType, Scalar};

use crate::math::complex::{self, Complex};
use crate::math::{real, special};

/// A function of real numbers and, where there is one, of complex numbers.
type Pair = (OpKind, fn(f64) -> f64, Option<fn(Complex) -> Complex>);

const UNARY: &[Pair] = &[
    (OpKind::Cbrt, real::cbrt, Some(complex::cbrt)),
    (OpKind::Cosine, real::cos, Some(complex::cos)),
    (OpKind::Exponential, real::exp, Some(complex::exp)),
    (OpKind::ExponentialMinusOne, real::expm1, Some(complex::exp_m1)),
    (OpKind::Log, real::log, Some(complex::ln)),
    (OpKind::LogPlusOne, real::log1p, Some(complex::ln_1p)),
    (OpKind::Logistic, real::logistic, Some(complex::logistic)),
    (OpKind::Rsqrt, real::rsqrt, Some(complex::rsqrt)),
    (OpKind::Sine, real::sin, Some(complex::sin)),
    (OpKind::Sqrt, f64::sqrt, Some(complex::sqrt)),
    (OpKind::Tan, real::tan, Some(complex::tan)),
    (OpKind::Tanh, real::tanh, Some(complex::tanh)),
    (OpKind::ChloAcos, real::acos, Some(complex::acos)),
    (OpKind::ChloAcosh, real::acosh, Some(complex::acosh)),
    (OpKind::ChloAsin, real::asin, Some(complex::asin)),
    (OpKind::ChloAsinAcosKernel, |x| ((1.0 - x) * (1.0 + x)).sqrt(), Some(complex::asin_acos_kernel)),
    (OpKind::ChloAsinh, real::asinh, Some(complex::asinh)),
    (OpKind::ChloAtan, real::atan, Some(complex::atan)),
    (OpKind::ChloAtanh, real::atanh, Some(complex::atanh)),
    (OpKind::ChloTan, real::tan, Some(complex::tan)),
    (OpKind::ChloBesselI1e, special::bessel_i1e, None),
    (OpKind::ChloDigamma, special::digamma, None),
    (OpKind::ChloErf, special::erf, None),
    (OpKind::ChloErfInv, special::erf_inv, None),
    (OpKind::ChloErfc, special::erfc, None),
    (OpKind::ChloLgamma, special::lgamma, None),
];

/// The function of real numbers that an operation is, where the type does not matter.
pub(crate) fn real_function(kind: OpKind) -> Option<fn(f64) -> f64> {
    UNARY.iter().find(|(candidate, ..)| *candidate == kind).map(|&(_, on_real, _)| on_real)
}

pub(super) fn unary(
    kind: OpKind,
    element: ElementType,
) -> Option<Box<dyn Fn(Scalar) -> Scalar + Send + Sync>> {
    match kind {
        OpKind::ChloCosh => return Some(hyperbolic(element, real::cosh, stepwise_cosh, complex::cosh)),
        OpKind::ChloSinh => return Some(hyperbolic(element, real::sinh, stepwise_sinh, complex::sinh)),
        _ => {}
    }
    let &(_, on_real, on_complex) = UNARY.iter().find(|(candidate, ..)| *candidate == kind)?;
    if is_complex(element) && on_complex.is_none() {
        return None;
    }
    Some(Box::new(move |x| match (x, on_complex) {
        (Scalar::Complex(re, im), Some(function)) => {
            let (re, im) = function((re, im));
            Scalar::Complex(re, im)
        }
        (x, _) => Scalar::Float(on_real(x.to_f64())),
    }))
}

fn is_complex(element: ElementType) -> bool {
    matches!(element, ElementType::Complex(_))
}

/// A hyperbolic function. On binary32 and binary64, CHLO's are what its decomposition gives, step by step in that type:
/// that is what compilers compute and what its tests expect, some units in the last place off for large arguments.
fn hyperbolic(
    element: ElementType,
    exact: fn(f64) -> f64,
    stepwise: fn(f64, &dyn Fn(f64) -> f64) -> f64,
    on_complex: fn(Complex) -> Complex,
) -> Box<dyn Fn(Scalar) -> Scalar + Send + Sync> {
    Box::new(move |x| match (x, element) {
        (Scalar::Complex(re, im), _) => {
            let (re, im) = on_complex((re, im));
            Scalar::Complex(re, im)
        }
        (x, ElementType::Float(float @ (FloatType::F32 | FloatType::F64))) => {
            let format = float.format();
            Scalar::Float(stepwise(x.to_f64(), &|y| format.round(y)))
        }
        (x, _) => Scalar::Float(exact(x.to_f64())),
    })
}

/// `e^(x + ln ½)`, each step rounded: the half is in the exponent so that the largest results do not overflow.
fn half_exp(x: f64, round: &dyn Fn(f64) -> f64) -> f64 {
    round(real::exp(round(x + round(-std::f64::consts::LN_2))))
}

fn stepwise_cosh(x: f64, round: &dyn Fn(f64) -> f64) -> f64 {
    round(half_exp(x, round) + half_exp(-x, round))
}

fn stepwise_sinh(x: f64, round: &dyn Fn(f64) -> f64) -> f64 {
    if x.abs() < 1.0 {
        let small = round(real::expm1(x));
        return round(0.5 * round(small + round(small / round(small + 1.0))));
    }
    round(half_exp(x, round) - half_exp(-x, round))
}

pub(super) fn binary(
    kind: OpKind,
    element: ElementType,
) -> Option<Box<dyn Fn(Scalar, Scalar) -> Scalar + Send + Sync>> {
    let function: fn(f64, f64) -> f64 = match kind {
        OpKind::Atan2 | OpKind::ChloBroadcastAtan2 => {
            return Some(Box::new(|y, x| match (y, x) {
                (Scalar::Complex(..), _) => complex_atan2(y.to_complex(), x.to_complex()),
                _ => Scalar::Float(real::atan2(y.to_f64(), x.to_f64())),
            }));
        }
        OpKind::ChloNextAfter | OpKind::ChloBroadcastNextAfter => {
            let format = element.float_part()?.format();
            return Some(Box::new(move |x, y| {
                Scalar::Float(special::next_after(&format, x.to_f64(), y.to_f64()))
            }));
        }
        _ if is_complex(element) => return None,
        OpKind::ChloPolygamma | OpKind::ChloBroadcastPolygamma => special::polygamma,
        OpKind::ChloZeta | OpKind::ChloBroadcastZeta => special::zeta,
        _ => return None,
    };
    Some(Box::new(move |a, b| Scalar::Float(function(a.to_f64(), b.to_f64()))))
}

/// `-i ln((x + i y) / sqrt(x² + y²))`.
fn complex_atan2(y: Complex, x: Complex) -> Scalar {
    let exact = |z: f64| z;
    let squares = (complex::mul(x, x, exact), complex::mul(y, y, exact));
    let norm = complex::sqrt((squares.0.0 + squares.1.0, squares.0.1 + squares.1.1));
    let (re, im) = complex::ln(complex::div((x.0 - y.1, x.1 + y.0), norm));
    Scalar::Complex(im, -re)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_real_numbers_alone_refuse_complex_ones() {
        for kind in [OpKind::ChloErf, OpKind::ChloLgamma, OpKind::ChloDigamma] {
            assert!(unary(kind, ElementType::C64).is_none(), "{kind:?}");
            assert!(unary(kind, ElementType::F32).is_some(), "{kind:?}");
        }
        assert!(unary(OpKind::Tan, ElementType::C64).is_some());
        assert!(binary(OpKind::ChloZeta, ElementType::C64).is_none());
        assert!(binary(OpKind::Atan2, ElementType::C64).is_some());
    }
}
