//! f32 loops with explicit vectors, compiled for each instruction set.

// Tiles are in memory that the evaluator lays out; loops access them by pointers.
#![allow(unsafe_code)]

use crate::isa::Isa;
use crate::math::{self, Lanes};
#[cfg(target_arch = "x86_64")]
use crate::math::{Avx2, Avx512};

use super::loops::{LoopCall, LoopKernel};
use warpforge_tensor::elementwise::Function;

/// A loop over the rows of a call, for any vectors.
trait Rows: Copy + Send + Sync + 'static {
    /// # Safety
    ///
    /// Guaranteed by the callers of kernels.
    unsafe fn run<V: Lanes>(self, call: &LoopCall);
}

/// The kernel of a loop, compiled for an instruction set.
fn kernel<R: Rows>(isa: Isa, rows: R) -> LoopKernel {
    /// # Safety
    ///
    /// The CPU has AVX-512; the rest as the loop itself.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    unsafe fn avx512<R: Rows>(rows: R, call: &LoopCall) {
        // SAFETY: guaranteed by the caller.
        unsafe { rows.run::<Avx512>(call) }
    }
    /// # Safety
    ///
    /// The CPU has AVX2; the rest as the loop itself.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<R: Rows>(rows: R, call: &LoopCall) {
        // SAFETY: guaranteed by the caller.
        unsafe { rows.run::<Avx2>(call) }
    }
    LoopKernel {
        run: match isa {
            // SAFETY: the instruction set is one that this CPU has, the rest is guaranteed by the callers of kernels.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Box::new(move |call| unsafe { avx512(rows, call) }),
            // SAFETY: the same.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Box::new(move |call| unsafe { avx2(rows, call) }),
            // SAFETY: guaranteed by the callers of kernels.
            _ => Box::new(move |call| unsafe { rows.run::<f32>(call) }),
        },
        takes_one_column: true,
    }
}

// Traits instead of closures: only functions marked for inlining are sure to be compiled for the instruction set.

/// A function of a vector.
trait Function1: Copy + Send + Sync + 'static {
    fn apply<V: Lanes>(x: V) -> V;
}

/// A function of two vectors.
trait Function2: Copy + Send + Sync + 'static {
    fn apply<V: Lanes>(a: V, b: V) -> V;
}

/// The rows of a function of one vector.
#[derive(Clone, Copy)]
struct Rows1<F>(F);

impl<F: Function1> Rows for Rows1<F> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self, call: &LoopCall) {
        for row in 0..call.rows {
            let (out, a) = (call.out_row(row).cast::<f32>(), call.row(0, row).cast::<f32>());
            let mut at = 0;
            // SAFETY: guaranteed by the caller: the offsets are within the rows.
            unsafe {
                while at + V::COUNT <= call.columns {
                    F::apply(V::load(a.add(at))).store(out.add(at));
                    at += V::COUNT;
                }
                let left = call.columns - at;
                if left > 0 {
                    F::apply(V::load_part(a.add(at), left)).store_part(out.add(at), left);
                }
            }
        }
    }
}

/// An operand of a row: a vector of elements, or a broadcast value.
trait RowOperand<V: Lanes>: Copy {
    /// # Safety
    ///
    /// There are elements for all lanes from this index on.
    unsafe fn whole(self, at: usize) -> V;
    /// # Safety
    ///
    /// There are `count` elements, fewer than lanes, from this index on.
    unsafe fn part(self, at: usize, count: usize) -> V;
}

impl<V: Lanes> RowOperand<V> for *const f32 {
    #[inline(always)]
    unsafe fn whole(self, at: usize) -> V {
        // SAFETY: guaranteed by the caller.
        unsafe { V::load(self.add(at)) }
    }

    #[inline(always)]
    unsafe fn part(self, at: usize, count: usize) -> V {
        // SAFETY: guaranteed by the caller.
        unsafe { V::load_part(self.add(at), count) }
    }
}

/// A broadcast value.
#[derive(Clone, Copy)]
struct Broadcast<V>(V);

impl<V: Lanes> RowOperand<V> for Broadcast<V> {
    #[inline(always)]
    unsafe fn whole(self, _: usize) -> V {
        self.0
    }

    #[inline(always)]
    unsafe fn part(self, _: usize, _: usize) -> V {
        self.0
    }
}

/// One row of a function of two vectors.
///
/// # Safety
///
/// The operands have, and the result has space for, that many values.
#[inline(always)]
unsafe fn row2<V: Lanes, F: Function2>(
    columns: usize,
    out: *mut f32,
    a: impl RowOperand<V>,
    b: impl RowOperand<V>,
) {
    let mut at = 0;
    // SAFETY: guaranteed by the caller.
    unsafe {
        while at + V::COUNT <= columns {
            F::apply(a.whole(at), b.whole(at)).store(out.add(at));
            at += V::COUNT;
        }
        let left = columns - at;
        if left > 0 {
            F::apply(a.part(at, left), b.part(at, left)).store_part(out.add(at), left);
        }
    }
}

/// The rows of a function of two vectors; either may be one value for all columns.
#[derive(Clone, Copy)]
struct Rows2<F>(F);

impl<F: Function2> Rows for Rows2<F> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self, call: &LoopCall) {
        for row in 0..call.rows {
            // SAFETY: guaranteed by the caller.
            unsafe { broadcast_row2::<V, F>(call, row) }
        }
    }
}

/// One row of a function of two vectors; either may be one value for all columns.
#[inline(always)]
unsafe fn broadcast_row2<V: Lanes, F: Function2>(call: &LoopCall, row: usize) {
    let out = call.out_row(row).cast::<f32>();
    let (a, b) = (call.row(0, row).cast::<f32>(), call.row(1, row).cast::<f32>());
    // SAFETY: guaranteed by the caller.
    unsafe {
        match (call.operands[0].one_column, call.operands[1].one_column) {
            (false, false) => row2::<V, F>(call.columns, out, a, b),
            (false, true) => row2::<V, F>(call.columns, out, a, Broadcast(V::splat(*b))),
            (true, false) => row2::<V, F>(call.columns, out, Broadcast(V::splat(*a)), b),
            (true, true) => {
                row2::<V, F>(call.columns, out, Broadcast(V::splat(*a)), Broadcast(V::splat(*b)));
            }
        }
    }
}

macro_rules! functions {
    ($trait:ident: $($name:ident($($parameter:ident),*) = $body:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name;

        impl $trait for $name {
            #[inline(always)]
            fn apply<V: Lanes>($($parameter: V),*) -> V {
                $body
            }
        }
    )*};
}

functions! { Function1:
    Abs(x) = x.abs();
    Negate(x) = x.neg();
    Ceil(x) = x.ceil();
    Floor(x) = x.floor();
    RoundNearestEven(x) = x.round();
    RoundNearestAfz(x) = round_away(x);
    Sqrt(x) = x.sqrt();
    Rsqrt(x) = V::splat(1.0).div(x.sqrt());
    Exponential(x) = math::exp(x);
    ExponentialMinusOne(x) = math::expm1(x);
    Log(x) = math::log(x);
    LogPlusOne(x) = math::log1p(x);
    Logistic(x) = math::logistic(x);
    Tanh(x) = math::tanh(x);
    Sine(x) = math::sin(x);
    Cosine(x) = math::cos(x);
    Erf(x) = math::erf(x);
    Gelu(x) = math::gelu(x);
}

functions! { Function2:
    Add(a, b) = a.add(b);
    Subtract(a, b) = a.sub(b);
    Multiply(a, b) = a.mul(b);
    Divide(a, b) = a.div(b);
    Maximum(a, b) = larger(a, b);
    Minimum(a, b) = smaller(a, b);
    LargerThanNumber(number, x) = number.max(x);
    SmallerThanNumber(number, x) = number.min(x);
    Relu(zero, x) = zero.max(x).add(V::splat(0.0));
}

/// Maximum or minimum of two vectors, faster where one of them is broadcast.
#[derive(Clone, Copy)]
struct Extreme<const LARGER: bool>;

impl<const LARGER: bool> Rows for Extreme<LARGER> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self, call: &LoopCall) {
        let one = match (call.operands[0].one_column, call.operands[1].one_column) {
            (false, true) => 1,
            (true, false) => 0,
            // SAFETY: guaranteed by the caller.
            _ if LARGER => return unsafe { Rows2(Maximum).run::<V>(call) },
            // SAFETY: guaranteed by the caller.
            _ => return unsafe { Rows2(Minimum).run::<V>(call) },
        };
        for row in 0..call.rows {
            let out = call.out_row(row).cast::<f32>();
            let x = call.row(1 - one, row).cast::<f32>();
            // SAFETY: guaranteed by the caller.
            let number = unsafe { call.row(one, row).cast::<f32>().read() };
            let lanes = Broadcast(V::splat(number));
            // SAFETY: guaranteed by the caller.
            unsafe {
                match (LARGER, ExtremeCare::of(LARGER, number)) {
                    (_, ExtremeCare::Zeros) => row2::<V, Relu>(call.columns, out, lanes, x),
                    (true, ExtremeCare::All) => row2::<V, Maximum>(call.columns, out, lanes, x),
                    (false, ExtremeCare::All) => row2::<V, Minimum>(call.columns, out, lanes, x),
                    (true, ExtremeCare::None) => row2::<V, LargerThanNumber>(call.columns, out, lanes, x),
                    (false, ExtremeCare::None) => row2::<V, SmallerThanNumber>(call.columns, out, lanes, x),
                }
            }
        }
    }
}

/// The special cases of the maximum or minimum of a constant and a vector, beyond the instruction, which returns the
/// second operand if either is NaN.
#[derive(Clone, Copy)]
enum ExtremeCare {
    None,
    /// Zeros become positive.
    Zeros,
    /// Zeros are ordered and NaN wins.
    All,
}

impl ExtremeCare {
    fn of(larger: bool, number: f32) -> Self {
        match number {
            0.0 if larger && number.is_sign_positive() => Self::Zeros,
            _ if number.is_nan() || number == 0.0 => Self::All,
            _ => Self::None,
        }
    }
}

/// The larger or smaller of a number and a vector.
#[cfg(target_arch = "x86_64")]
pub(super) fn extreme<V: Lanes>(larger: bool, number: f32, x: V) -> V {
    let lanes = V::splat(number);
    match (larger, ExtremeCare::of(larger, number)) {
        (_, ExtremeCare::Zeros) => Relu::apply(lanes, x),
        (true, ExtremeCare::All) => Maximum::apply(lanes, x),
        (false, ExtremeCare::All) => Minimum::apply(lanes, x),
        (true, ExtremeCare::None) => LargerThanNumber::apply(lanes, x),
        (false, ExtremeCare::None) => SmallerThanNumber::apply(lanes, x),
    }
}

/// Division, faster where the divisor is broadcast.
#[derive(Clone, Copy)]
struct Quotient;

/// Magnitudes for which neither a quotient nor its correction leaves the normal range.
const SAFE_RANGE: (f32, f32) = (8.673_617_4e-19, 1.152_921_5e18);

impl Rows for Quotient {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self, call: &LoopCall) {
        let by_one = !call.operands[0].one_column && call.operands[1].one_column;
        for row in 0..call.rows {
            let divisor = call.row(1, row).cast::<f32>();
            // SAFETY: guaranteed by the caller.
            unsafe {
                if by_one && (SAFE_RANGE.0..SAFE_RANGE.1).contains(&(*divisor).abs()) {
                    let (out, a) = (call.out_row(row).cast::<f32>(), call.row(0, row).cast::<f32>());
                    quotients::<V>(call.columns, out, a, *divisor);
                } else {
                    broadcast_row2::<V, Divide>(call, row);
                }
            }
        }
    }
}

/// Divides a row by a value in the safe range. With the correctly rounded reciprocal, one correction of the product is
/// the correctly rounded quotient; vectors with elements outside of the range are divided.
///
/// # Safety
///
/// The operand has, and the result has space for, that many values.
#[inline(always)]
unsafe fn quotients<V: Lanes>(columns: usize, out: *mut f32, a: *const f32, divisor: f32) {
    let (divisor, reciprocal) = (V::splat(divisor), V::splat(1.0 / divisor));
    let mut at = 0;
    // SAFETY: guaranteed by the caller.
    unsafe {
        while at + V::COUNT <= columns {
            let x = V::load(a.add(at));
            quotient(x, divisor, reciprocal).store(out.add(at));
            at += V::COUNT;
        }
        let left = columns - at;
        if left > 0 {
            quotient(V::load_part(a.add(at), left), divisor, reciprocal).store_part(out.add(at), left);
        }
    }
}

#[inline(always)]
fn quotient<V: Lanes>(x: V, divisor: V, reciprocal: V) -> V {
    let zero = x.equal(V::splat(0.0));
    let magnitude = V::select(zero, V::splat(1.0), x.abs());
    let moderate = V::splat(SAFE_RANGE.1).min(V::splat(SAFE_RANGE.0).max(magnitude));
    if V::any(moderate.differs(magnitude)) {
        return x.div(divisor);
    }
    let product = x.mul(reciprocal);
    // The correction would lose the sign of a zero.
    V::select(zero, product, product.neg_mul_add(divisor, x).mul_add(reciprocal, product))
}

/// The nearest integer, halves away from zero.
#[inline(always)]
fn round_away<V: Lanes>(x: V) -> V {
    let cut = x.trunc();
    let one = V::splat(1.0).or(x.sign());
    let up = V::select(x.sub(cut).abs().less(V::splat(0.5)), cut, cut.add(one));
    // What has no fraction, infinities among it, stays; a zero keeps its sign.
    V::select(cut.equal(x), x, up.or(x.sign()))
}

/// The larger; NaN wins and zeros are ordered by sign.
#[inline(always)]
fn larger<V: Lanes>(a: V, b: V) -> V {
    // Equal values have equal bits but for zeros, of which the positive one is meant.
    let ordered = V::select(a.equal(b), a.and(b), a.max(b));
    V::select(a.unordered(b), a.add(b), ordered)
}

/// The smaller; NaN wins and zeros are ordered by sign.
#[inline(always)]
fn smaller<V: Lanes>(a: V, b: V) -> V {
    let ordered = V::select(a.equal(b), a.or(b), a.min(b));
    V::select(a.unordered(b), a.add(b), ordered)
}

/// The functions that operations of one value are.
macro_rules! unary_functions {
    ($($op:ident)*) => {
        /// The loop of a function of one value, where there is one with vectors.
        pub(super) fn unary(isa: Isa, op: Function) -> Option<LoopKernel> {
            Some(match op {
                $(Function::$op => kernel(isa, Rows1($op)),)*
                _ => return None,
            })
        }

        /// A function of a vector, where there is one.
        #[cfg(target_arch = "x86_64")]
        pub(super) fn apply1<V: Lanes>(op: Function, x: V) -> Option<V> {
            Some(match op {
                $(Function::$op => $op::apply(x),)*
                _ => return None,
            })
        }
    };
}

unary_functions! {
    Abs Negate Ceil Floor RoundNearestEven RoundNearestAfz Sqrt Rsqrt Exponential ExponentialMinusOne Log LogPlusOne Logistic
    Tanh Sine Cosine Erf Gelu
}

/// The loop of a function of two values, where there is one with vectors.
pub(super) fn binary(isa: Isa, op: Function) -> Option<LoopKernel> {
    Some(match op {
        Function::Add => kernel(isa, Rows2(Add)),
        Function::Subtract => kernel(isa, Rows2(Subtract)),
        Function::Multiply => kernel(isa, Rows2(Multiply)),
        Function::Divide => kernel(isa, Quotient),
        Function::Maximum => kernel(isa, Extreme::<true>),
        Function::Minimum => kernel(isa, Extreme::<false>),
        _ => return None,
    })
}

/// A function of two vectors, where there is one.
#[cfg(target_arch = "x86_64")]
pub(super) fn apply2<V: Lanes>(op: Function, a: V, b: V) -> Option<V> {
    Some(match op {
        Function::Add => a.add(b),
        Function::Subtract => a.sub(b),
        Function::Multiply => a.mul(b),
        Function::Divide => a.div(b),
        Function::Maximum => larger(a, b),
        Function::Minimum => smaller(a, b),
        _ => return None,
    })
}
