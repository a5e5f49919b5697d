//! Traced vectors: functions generic over [`Lanes`] are recorded as operations.
//!
//! Compiled code thus has the same formulas as the precompiled loops, and the same results bit for bit.

// The trait's loads and stores are unsafe; nothing here is.
#![allow(unsafe_code)]

use std::cell::RefCell;

use crate::math::{Lanes, Table};

use super::op::{Binary, Body, Logic, Op, Predicate, Unary, Value};

thread_local! {
    static BODY: RefCell<Recording> = RefCell::default();
}

/// What is being recorded by this thread.
#[derive(Default)]
struct Recording {
    body: Body,
    /// A function depended on a value.
    failed: bool,
}

/// The operations of a function, and its result; `None` if it depends on values.
pub(super) fn record<R>(f: impl FnOnce() -> R) -> Option<(Body, R)> {
    BODY.take();
    let result = f();
    let Recording { body, failed } = BODY.take();
    (!failed).then_some((body, result))
}

/// Adds an operation to what is being recorded.
pub(super) fn push(op: Op) -> Traced {
    Traced(BODY.with_borrow_mut(|recording| recording.body.push(op)))
}

/// Adds an operation whose value is a mask.
pub(super) fn push_mask(op: Op) -> TracedMask {
    TracedMask(push(op).0)
}

/// The operation of a value.
pub(super) fn op(value: Traced) -> Op {
    BODY.with_borrow(|recording| *recording.body.op(value.0))
}

/// Changes what is being recorded.
pub(super) fn with_body<R>(f: impl FnOnce(&mut Body) -> R) -> R {
    BODY.with_borrow_mut(|recording| f(&mut recording.body))
}

fn fail() {
    BODY.with_borrow_mut(|recording| recording.failed = true);
}

/// A vector that is yet to be computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traced(pub(super) Value);

/// A mask that is yet to be computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct TracedMask(pub(super) Value);

impl TracedMask {
    pub(super) fn logic(self, logic: Logic, other: Self) -> Self {
        push_mask(Op::Logic(logic, self.0, other.0))
    }

    pub(super) fn not(self) -> Self {
        push_mask(Op::Not(self.0))
    }
}

fn unary(unary: Unary, x: Traced) -> Traced {
    push(Op::Unary(unary, x.0))
}

fn binary(binary: Binary, a: Traced, b: Traced) -> Traced {
    push(Op::Binary(binary, a.0, b.0))
}

fn compare(predicate: Predicate, a: Traced, b: Traced) -> TracedMask {
    push_mask(Op::Compare(predicate, a.0, b.0))
}

/// Rounding modes without exceptions, as immediates.
const TO_NEAREST: u8 = 8;
const DOWN: u8 = 9;
const UP: u8 = 10;
const TO_ZERO: u8 = 11;

impl Lanes for Traced {
    const COUNT: usize = 16;
    const ROUGH_IS_GOOD: bool = true;
    type Mask = TracedMask;

    unsafe fn load(_: *const f32) -> Self {
        fail();
        Self::splat(0.0)
    }

    unsafe fn store(self, _: *mut f32) {
        fail();
    }

    unsafe fn load_part(_: *const f32, _: usize) -> Self {
        fail();
        Self::splat(0.0)
    }

    unsafe fn store_part(self, _: *mut f32, _: usize) {
        fail();
    }

    fn splat(value: f32) -> Self {
        push(Op::Constant(value.to_bits()))
    }

    fn add(self, other: Self) -> Self {
        binary(Binary::Add, self, other)
    }

    fn sub(self, other: Self) -> Self {
        binary(Binary::Sub, self, other)
    }

    fn mul(self, other: Self) -> Self {
        binary(Binary::Mul, self, other)
    }

    fn div(self, other: Self) -> Self {
        binary(Binary::Div, self, other)
    }

    fn mul_add(self, factor: Self, term: Self) -> Self {
        push(Op::MulAdd(self.0, factor.0, term.0))
    }

    fn neg_mul_add(self, factor: Self, term: Self) -> Self {
        push(Op::NegMulAdd(self.0, factor.0, term.0))
    }

    fn max(self, other: Self) -> Self {
        binary(Binary::Max, self, other)
    }

    fn min(self, other: Self) -> Self {
        binary(Binary::Min, self, other)
    }

    fn sqrt(self) -> Self {
        unary(Unary::Sqrt, self)
    }

    fn round(self) -> Self {
        unary(Unary::Round(TO_NEAREST), self)
    }

    fn floor(self) -> Self {
        unary(Unary::Round(DOWN), self)
    }

    fn ceil(self) -> Self {
        unary(Unary::Round(UP), self)
    }

    fn trunc(self) -> Self {
        unary(Unary::Round(TO_ZERO), self)
    }

    fn rough_reciprocal(self) -> Self {
        unary(Unary::Reciprocal, self)
    }

    fn and(self, other: Self) -> Self {
        binary(Binary::And, self, other)
    }

    fn or(self, other: Self) -> Self {
        // Bits of one value under a mask combined with another: one instruction.
        if let Op::Binary(Binary::And, x, mask) = op(other)
            && matches!(op(Traced(mask)), Op::Constant(0x8000_0000))
        {
            return push(Op::OrMasked(self.0, x, mask));
        }
        binary(Binary::Or, self, other)
    }

    fn xor(self, other: Self) -> Self {
        binary(Binary::Xor, self, other)
    }

    fn add_bits(self, other: Self) -> Self {
        binary(Binary::AddBits, self, other)
    }

    fn sub_bits(self, other: Self) -> Self {
        binary(Binary::SubBits, self, other)
    }

    fn shift_up<const BY: u32>(self) -> Self {
        unary(Unary::ShiftUp(BY as u8), self)
    }

    fn shift_down<const BY: u32>(self) -> Self {
        unary(Unary::ShiftDown(BY as u8), self)
    }

    fn float_to_int(self) -> Self {
        unary(Unary::FloatToInt, self)
    }

    fn int_to_float(self) -> Self {
        unary(Unary::IntToFloat, self)
    }

    fn lookup(self, table: &'static Table) -> Self {
        push(Op::Lookup(table.0.map(f32::to_bits), self.0))
    }

    fn less(self, other: Self) -> TracedMask {
        compare(Predicate::Less, self, other)
    }

    fn not_less(self, other: Self) -> TracedMask {
        compare(Predicate::NotLess, self, other)
    }

    fn equal(self, other: Self) -> TracedMask {
        compare(Predicate::Equal, self, other)
    }

    fn differs(self, other: Self) -> TracedMask {
        compare(Predicate::Differs, self, other)
    }

    fn unordered(self, other: Self) -> TracedMask {
        compare(Predicate::Unordered, self, other)
    }

    fn select(mask: TracedMask, yes: Self, no: Self) -> Self {
        push(Op::Select(mask.0, yes.0, no.0))
    }

    fn any(_: TracedMask) -> bool {
        fail();
        false
    }

    fn scale(self, exponent: Self) -> Self {
        binary(Binary::Scale, self, exponent)
    }

    fn scale_where(self, mask: TracedMask, exponent: Self) -> Self {
        push(Op::ScaleWhere(mask.0, self.0, exponent.0))
    }
}
