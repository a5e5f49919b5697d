//! Formulas: expressions of real numbers, written with operators and made into operations when they are whole.
//!
//! A part that is used twice, being cloned, becomes one operation.

use std::collections::HashMap;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::rc::Rc;

use super::cx::{Cx, Refusal};
use crate::attr::ComparisonDirection;
use crate::module::ValueId;
use crate::table::OpKind;
use crate::types::ElementType;

/// A number, or a truth value, that is computed from others.
#[derive(Clone, Debug)]
pub(super) struct Expr(Rc<Node>);

#[derive(Debug)]
enum Node {
    Value(ValueId),
    Number(f64),
    Op(OpKind, Vec<Expr>),
    Compare(ComparisonDirection, Expr, Expr),
    Convert(Expr, ElementType),
}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident: $kind:ident;)*) => {$(
        $(#[$doc])*
        pub(super) fn $name(&self) -> Self {
            Self::op(OpKind::$kind, [self.clone()])
        }
    )*};
}

impl Expr {
    /// A value of the module.
    pub(super) fn value(value: ValueId) -> Self {
        Self(Rc::new(Node::Value(value)))
    }

    /// A number.
    pub(super) fn number(value: f64) -> Self {
        Self(Rc::new(Node::Number(value)))
    }

    fn op<const N: usize>(kind: OpKind, operands: [Self; N]) -> Self {
        Self(Rc::new(Node::Op(kind, Vec::from(operands))))
    }

    functions! {
        abs: Abs;
        cos: Cosine;
        exp: Exponential;
        /// `e^x - 1`.
        expm1: ExponentialMinusOne;
        floor: Floor;
        ln: Log;
        /// `ln (1 + x)`.
        ln1p: LogPlusOne;
        /// The nearest whole number.
        round: RoundNearestEven;
        sin: Sine;
        sqrt: Sqrt;
    }

    /// The angle of the point `(x, self)`.
    pub(super) fn atan2(&self, x: &Self) -> Self {
        Self::op(OpKind::Atan2, [self.clone(), x.clone()])
    }

    /// `self^exponent`.
    pub(super) fn pow(&self, exponent: &Self) -> Self {
        Self::op(OpKind::Power, [self.clone(), exponent.clone()])
    }

    /// The smaller of this and a number.
    pub(super) fn min(&self, limit: f64) -> Self {
        Self::op(OpKind::Minimum, [self.clone(), Self::number(limit)])
    }

    /// The larger of this and a number.
    pub(super) fn max(&self, limit: f64) -> Self {
        Self::op(OpKind::Maximum, [self.clone(), Self::number(limit)])
    }

    /// The number with the sign of another, for a number that is not negative.
    pub(super) fn with_sign(&self, sign: &Self) -> Self {
        Self::lt(sign, 0.0).choose(-self.clone(), self.clone())
    }

    /// The number rounded to 24 bits, so that its square is exact.
    pub(super) fn short(&self) -> Self {
        let narrow = Self(Rc::new(Node::Convert(self.clone(), ElementType::F32)));
        Self(Rc::new(Node::Convert(narrow, ElementType::F64)))
    }

    /// `coefficients[0] + coefficients[1] self + …`.
    pub(super) fn polynomial(&self, coefficients: &[f64]) -> Self {
        let mut highest_first = coefficients.iter().rev();
        let first = highest_first.next().map_or(Self::number(0.0), |&last| Self::number(last));
        highest_first.fold(first, |sum, &coefficient| sum * self.clone() + coefficient)
    }

    /// A sum of Chebyshev polynomials, for a number from -1 to 1: Clenshaw's recurrence.
    pub(super) fn chebyshev(&self, coefficients: &[f64]) -> Self {
        let Some((&constant, rest)) = coefficients.split_first() else { return Self::number(0.0) };
        let double = self.clone() * 2.0;
        let (mut next, mut after) = (Self::number(0.0), Self::number(0.0));
        for &coefficient in rest.iter().rev() {
            let sum = double.clone() * next.clone() - after + coefficient;
            after = std::mem::replace(&mut next, sum);
        }
        self.clone() * next - after + constant
    }

    /// Whether a number is below another.
    pub(super) fn lt(&self, other: impl Into<Self>) -> Self {
        self.compare(ComparisonDirection::Lt, other.into())
    }

    /// Whether two numbers are equal.
    pub(super) fn eq(&self, other: impl Into<Self>) -> Self {
        self.compare(ComparisonDirection::Eq, other.into())
    }

    fn compare(&self, direction: ComparisonDirection, other: Self) -> Self {
        Self(Rc::new(Node::Compare(direction, self.clone(), other)))
    }

    /// Both of two truth values.
    pub(super) fn and(&self, other: &Self) -> Self {
        Self::op(OpKind::And, [self.clone(), other.clone()])
    }

    /// Either of two truth values.
    pub(super) fn or(&self, other: &Self) -> Self {
        Self::op(OpKind::Or, [self.clone(), other.clone()])
    }

    /// The opposite of a truth value.
    pub(super) fn not(&self) -> Self {
        Self::op(OpKind::Not, [self.clone()])
    }

    /// One of two numbers, as this truth value says.
    pub(super) fn choose(&self, on_true: impl Into<Self>, on_false: impl Into<Self>) -> Self {
        Self::op(OpKind::Select, [self.clone(), on_true.into(), on_false.into()])
    }
}

impl From<f64> for Expr {
    fn from(value: f64) -> Self {
        Self::number(value)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $kind:ident;)*) => {$(
        impl<T: Into<Expr>> $trait<T> for Expr {
            type Output = Expr;
            fn $method(self, other: T) -> Expr {
                Expr::op(OpKind::$kind, [self, other.into()])
            }
        }
        impl $trait<Expr> for f64 {
            type Output = Expr;
            fn $method(self, other: Expr) -> Expr {
                Expr::op(OpKind::$kind, [Expr::number(self), other])
            }
        }
    )*};
}

operators! {
    Add add Add;
    Div div Divide;
    Mul mul Multiply;
    Sub sub Subtract;
}

impl Neg for Expr {
    type Output = Self;
    fn neg(self) -> Self {
        Self::op(OpKind::Negate, [self])
    }
}

/// Makes a formula into operations; its numbers are of one element type.
pub(super) struct Emitter<'c, 'b, 'm> {
    cx: &'c mut Cx<'b, 'm>,
    element: ElementType,
    done: HashMap<*const Node, ValueId>,
    numbers: HashMap<u64, ValueId>,
}

impl<'c, 'b, 'm> Emitter<'c, 'b, 'm> {
    pub(super) fn new(cx: &'c mut Cx<'b, 'm>, element: ElementType) -> Self {
        Self { cx, element, done: HashMap::new(), numbers: HashMap::new() }
    }

    /// The value of an expression. Formulas nest as deep as they are written: some hundred levels.
    pub(super) fn emit(&mut self, expr: &Expr) -> Result<ValueId, Refusal> {
        let key = Rc::as_ptr(&expr.0);
        if let Some(&done) = self.done.get(&key) {
            return Ok(done);
        }
        let value = match &*expr.0 {
            Node::Value(value) => *value,
            Node::Number(number) => self.number(*number)?,
            Node::Op(kind, operands) => {
                let operands: Vec<ValueId> =
                    operands.iter().map(|operand| self.emit(operand)).collect::<Result<_, _>>()?;
                self.cx.b.op(*kind, &operands, [])?
            }
            Node::Compare(direction, lhs, rhs) => {
                let (lhs, rhs) = (self.emit(lhs)?, self.emit(rhs)?);
                self.cx.b.compare(*direction, lhs, rhs)?
            }
            Node::Convert(operand, element) => {
                let operand = self.emit(operand)?;
                self.cx.b.convert(operand, *element)?
            }
        };
        self.done.insert(key, value);
        Ok(value)
    }

    fn number(&mut self, number: f64) -> Result<ValueId, Refusal> {
        if let Some(&made) = self.numbers.get(&number.to_bits()) {
            return Ok(made);
        }
        let made = self.cx.splat(self.element, number)?;
        self.numbers.insert(number.to_bits(), made);
        Ok(made)
    }
}
