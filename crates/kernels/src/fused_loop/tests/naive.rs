//! A naive evaluation, one position after another, on scalars wide enough for every type.

use crate::reduce::ReduceOp;
use std::cmp::Ordering;

use warpforge_tensor::{ElementType, Scalar};

use super::super::{Access, Direction, Domain, Function, Input, Inst, Order, Register, Source, check};
use crate::math::scalar;

/// The values of all steps at all positions, rows outermost. An input is the elements of its buffer.
pub(super) fn evaluate(
    domain: &Domain,
    inputs: &[Input],
    buffers: &[Vec<Scalar>],
    insts: &[Inst],
) -> Vec<Vec<Scalar>> {
    let types = check::types(inputs, insts).unwrap();
    let count = |sizes: &[usize]| sizes.iter().product::<usize>();
    let (rows, columns) = (count(&domain.rows), count(&domain.columns));
    let mut values: Vec<Vec<Scalar>> = Vec::new();
    for (inst, &element) in insts.iter().zip(&types) {
        let value = (0..rows * columns).map(|position| {
            let (row, column) = (position / columns, position % columns);
            let of = |register: &Register| values[register.0][position];
            match inst {
                Inst::Load(input) => match &inputs[*input].source {
                    Source::Memory(access) => buffers[*input][index(domain, access, row, column)],
                    Source::Tile => buffers[*input][position],
                },
                Inst::Constant(_, value) => value.rounded_to(element),
                Inst::Iota { offset, rows, columns, .. } => {
                    let strides = |factors: &[i64]| factors.iter().map(|&factor| factor as isize).collect();
                    let access =
                        Access { offset: *offset as isize, rows: strides(rows), columns: strides(columns) };
                    Scalar::Int(signed(domain, &access, row, column) as i128).rounded_to(element)
                }
                Inst::Unary(op, a) => unary(*op, of(a), types[a.0]).rounded_to(element),
                Inst::Binary(op, a, b) => binary(*op, of(a), of(b), element).rounded_to(element),
                Inst::Compare(direction, order, a, b) => {
                    Scalar::Bool(compare(*direction, *order, of(a), of(b)))
                }
                Inst::Select(which, yes, no) => of(if of(which).is_true() { yes } else { no }),
                Inst::Convert(a, _) => convert(of(a), element),
                Inst::Reduce(reduction, a) => {
                    let row = &values[a.0][row * columns..][..columns];
                    reduce(*reduction, row, element)
                }
            }
        });
        let value = value.collect();
        values.push(value);
    }
    values
}

/// The element of a position, counted from the access's start.
pub(super) fn signed(domain: &Domain, access: &Access, row: usize, column: usize) -> isize {
    let along = |sizes: &[usize], strides: &[isize], mut index: usize| {
        let mut sum = 0;
        for (&size, &stride) in sizes.iter().zip(strides).rev() {
            sum += (index % size) as isize * stride;
            index /= size;
        }
        sum
    };
    access.offset + along(&domain.rows, &access.rows, row) + along(&domain.columns, &access.columns, column)
}

pub(super) fn index(domain: &Domain, access: &Access, row: usize, column: usize) -> usize {
    usize::try_from(signed(domain, access, row, column)).unwrap()
}

/// A function of one value, not yet rounded.
pub(super) fn unary(op: Function, x: Scalar, element: ElementType) -> Scalar {
    match (op, x) {
        (Function::Abs, Scalar::Float(x)) => Scalar::Float(x.abs()),
        (Function::Abs, x) => Scalar::Int(x.to_i128().abs()),
        (Function::Negate, Scalar::Float(x)) => Scalar::Float(-x),
        (Function::Negate, x) => Scalar::Int(-x.to_i128()),
        (Function::Sign, Scalar::Float(x)) => {
            Scalar::Float(if x == 0.0 || x.is_nan() { x } else { x.signum() })
        }
        (Function::Sign, x) => Scalar::Int(x.to_i128().signum()),
        (Function::Not, Scalar::Bool(x)) => Scalar::Bool(!x),
        (Function::Not, x) => Scalar::Int(!x.to_i128()),
        (Function::Popcnt | Function::CountLeadingZeros, x) => {
            let bits = x.to_i128() as u64 & (u64::MAX >> (64 - element.bits()));
            Scalar::Int(i128::from(match op {
                Function::Popcnt => bits.count_ones(),
                _ => bits.leading_zeros() - (64 - element.bits()),
            }))
        }
        (Function::IsFinite, x) => Scalar::Bool(x.to_f64().is_finite()),
        (op, x) => Scalar::Float(real(op)(x.to_f64())),
    }
}

/// A function of real values.
pub(super) fn real(op: Function) -> fn(f64) -> f64 {
    match op {
        Function::Ceil => f64::ceil,
        Function::Floor => f64::floor,
        Function::RoundNearestAfz => f64::round,
        Function::RoundNearestEven => f64::round_ties_even,
        Function::Sqrt => f64::sqrt,
        Function::Rsqrt => |x| 1.0 / x.sqrt(),
        Function::Cbrt => libm::cbrt,
        Function::Exponential => libm::exp,
        Function::ExponentialMinusOne => libm::expm1,
        Function::Log => libm::log,
        Function::LogPlusOne => libm::log1p,
        Function::Logistic => scalar::logistic,
        Function::Tanh => libm::tanh,
        Function::Sine => libm::sin,
        Function::Cosine => libm::cos,
        Function::Tan => libm::tan,
        Function::Erf => libm::erf,
        Function::Erfc => libm::erfc,
        Function::Gelu => scalar::gelu,
        other => panic!("{other:?} is no function of real numbers"),
    }
}

/// A function of two values, not yet rounded.
pub(super) fn binary(op: Function, a: Scalar, b: Scalar, element: ElementType) -> Scalar {
    match (a, b) {
        (Scalar::Bool(a), Scalar::Bool(b)) => Scalar::Bool(match op {
            Function::Add | Function::Maximum | Function::Or => a || b,
            Function::Multiply | Function::Minimum | Function::And | Function::Divide => a && b,
            Function::Subtract | Function::Xor => a != b,
            Function::Remainder => a,
            Function::Power => a || !b,
            other => panic!("{other:?} of truth values"),
        }),
        (Scalar::Float(a), Scalar::Float(b)) => Scalar::Float(match op {
            Function::Add => a + b,
            Function::Subtract => a - b,
            Function::Multiply => a * b,
            Function::Divide => a / b,
            Function::Remainder => libm::fmod(a, b),
            Function::Power => libm::pow(a, b),
            Function::Atan2 => libm::atan2(a, b),
            Function::Maximum if a.is_nan() || b.is_nan() => f64::NAN,
            Function::Minimum if a.is_nan() || b.is_nan() => f64::NAN,
            Function::Maximum => {
                if a.total_cmp(&b) == Ordering::Greater {
                    a
                } else {
                    b
                }
            }
            Function::Minimum => {
                if a.total_cmp(&b) == Ordering::Less {
                    a
                } else {
                    b
                }
            }
            other => panic!("{other:?} of floats"),
        }),
        (a, b) => Scalar::Int(integers(op, a.to_i128(), b.to_i128(), element)),
    }
}

fn integers(op: Function, a: i128, b: i128, element: ElementType) -> i128 {
    let width = i128::from(element.bits());
    let wrap = |x: i128| Scalar::Int(x).rounded_to(element).to_i128();
    let unsigned = a & ((1 << width) - 1);
    let beyond = b < 0 || b >= width;
    match op {
        Function::Add => a + b,
        Function::Subtract => a - b,
        Function::Multiply => a.wrapping_mul(b),
        Function::Divide => {
            if b == 0 {
                -1
            } else {
                a / b
            }
        }
        Function::Remainder => {
            if b == 0 {
                a
            } else {
                a % b
            }
        }
        Function::Maximum => a.max(b),
        Function::Minimum => a.min(b),
        Function::And => a & b,
        Function::Or => a | b,
        Function::Xor => a ^ b,
        Function::ShiftLeft => {
            if beyond {
                0
            } else {
                a << b
            }
        }
        Function::ShiftRightLogical => {
            if beyond {
                0
            } else {
                unsigned >> b
            }
        }
        Function::ShiftRightArithmetic => {
            let signed = if unsigned >> (width - 1) == 1 { unsigned - (1 << width) } else { unsigned };
            signed >> if beyond { 127 } else { b }
        }
        Function::Power if b < 0 => match a {
            1 => 1,
            -1 => {
                if b % 2 == 0 {
                    1
                } else {
                    -1
                }
            }
            _ => 0,
        },
        Function::Power => {
            let (mut power, mut square, mut left) = (1i128, a, b);
            while left > 0 {
                if left % 2 == 1 {
                    power = wrap(power.wrapping_mul(square));
                }
                square = wrap(square.wrapping_mul(square));
                left /= 2;
            }
            power
        }
        other => panic!("{} of integers", other.name()),
    }
}

pub(super) fn compare(direction: Direction, order: Order, a: Scalar, b: Scalar) -> bool {
    let found = match (a, b, order) {
        (Scalar::Float(a), Scalar::Float(b), Order::Total) => Some(a.total_cmp(&b)),
        (Scalar::Float(a), Scalar::Float(b), Order::Partial) => a.partial_cmp(&b),
        _ => Some(a.to_i128().cmp(&b.to_i128())),
    };
    let is = |wanted: Ordering| found == Some(wanted);
    match direction {
        Direction::Eq => is(Ordering::Equal),
        Direction::Ne => !is(Ordering::Equal),
        Direction::Ge => is(Ordering::Greater) || is(Ordering::Equal),
        Direction::Gt => is(Ordering::Greater),
        Direction::Le => is(Ordering::Less) || is(Ordering::Equal),
        Direction::Lt => is(Ordering::Less),
    }
}

pub(super) fn convert(value: Scalar, to: ElementType) -> Scalar {
    match (value, to) {
        (Scalar::Float(x), ElementType::Int(int)) => Scalar::Int(int.clamp(x as i128)),
        // Every integer of up to 64 bits as f32, rounded once.
        (Scalar::Int(x), ElementType::F32) => Scalar::Float(f64::from(x as f32)),
        _ => value.rounded_to(to),
    }
}

pub(super) fn reduce(reduction: ReduceOp, row: &[Scalar], element: ElementType) -> Scalar {
    let op = match reduction {
        ReduceOp::Sum => Function::Add,
        ReduceOp::Product => Function::Multiply,
        ReduceOp::Maximum => Function::Maximum,
        ReduceOp::Minimum => Function::Minimum,
        ReduceOp::And => Function::And,
        ReduceOp::Or => Function::Or,
    };
    let mut reduced = row[0];
    for &value in &row[1..] {
        reduced = binary(op, reduced, value, element).rounded_to(element);
    }
    reduced
}
