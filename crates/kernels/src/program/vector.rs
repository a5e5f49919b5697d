//! Loops over binary32 rows with vectors, compiled for each instruction set.

// Tiles are memory that the executor lays out; loops get at it by address.
#![allow(unsafe_code)]

use crate::isa::Isa;
use crate::math::{self, Lanes};
#[cfg(target_arch = "x86_64")]
use crate::math::{Avx2, Avx512};

use super::loops::{Call, Kernel};
use super::step::{BinaryOp, UnaryOp};

/// A loop over the rows of a call, for any vectors.
trait Rows: Copy + Send + Sync + 'static {
    /// # Safety
    ///
    /// What callers of kernels promise.
    unsafe fn run<V: Lanes>(self, call: &Call);
}

/// The kernel of a loop, compiled for an instruction set.
fn kernel<R: Rows>(isa: Isa, rows: R) -> Kernel {
    /// # Safety
    ///
    /// The processor has AVX-512; the rest as the loop itself.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    unsafe fn avx512<R: Rows>(rows: R, call: &Call) {
        // SAFETY: the caller's promise.
        unsafe { rows.run::<Avx512>(call) }
    }
    /// # Safety
    ///
    /// The processor has AVX2; the rest as the loop itself.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<R: Rows>(rows: R, call: &Call) {
        // SAFETY: the caller's promise.
        unsafe { rows.run::<Avx2>(call) }
    }
    Kernel {
        run: match isa {
            // SAFETY: the instruction set is one that this processor has, the rest is what callers of kernels promise.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Box::new(move |call| unsafe { avx512(rows, call) }),
            // SAFETY: the same.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Box::new(move |call| unsafe { avx2(rows, call) }),
            // SAFETY: what callers of kernels promise.
            _ => Box::new(move |call| unsafe { rows.run::<f32>(call) }),
        },
        takes_one_column: true,
    }
}

// Closures would not do here: only functions that must be inlined are sure to become part of the code that is compiled for
// the instruction set.

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
    unsafe fn run<V: Lanes>(self, call: &Call) {
        for row in 0..call.rows {
            let (out, a) = (call.out_row(row).cast::<f32>(), call.row(0, row).cast::<f32>());
            let mut at = 0;
            // SAFETY: the caller's promise: the places are within the rows.
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

/// An operand of one row: numbers, or one number for all columns.
trait Numbers<V: Lanes>: Copy {
    /// # Safety
    ///
    /// There are numbers for all lanes from this place on.
    unsafe fn whole(self, at: usize) -> V;
    /// # Safety
    ///
    /// There are so many numbers, fewer than there are lanes, from this place on.
    unsafe fn part(self, at: usize, count: usize) -> V;
}

impl<V: Lanes> Numbers<V> for *const f32 {
    #[inline(always)]
    unsafe fn whole(self, at: usize) -> V {
        // SAFETY: the caller's promise.
        unsafe { V::load(self.add(at)) }
    }

    #[inline(always)]
    unsafe fn part(self, at: usize, count: usize) -> V {
        // SAFETY: the caller's promise.
        unsafe { V::load_part(self.add(at), count) }
    }
}

/// The same number for all columns.
#[derive(Clone, Copy)]
struct Same<V>(V);

impl<V: Lanes> Numbers<V> for Same<V> {
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
/// The operands have, and the result has room for, so many numbers.
#[inline(always)]
unsafe fn row2<V: Lanes, F: Function2>(
    columns: usize,
    out: *mut f32,
    a: impl Numbers<V>,
    b: impl Numbers<V>,
) {
    let mut at = 0;
    // SAFETY: the caller's promise.
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

/// The rows of a function of two vectors; either may be one number for all columns.
#[derive(Clone, Copy)]
struct Rows2<F>(F);

impl<F: Function2> Rows for Rows2<F> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self, call: &Call) {
        for row in 0..call.rows {
            let out = call.out_row(row).cast::<f32>();
            let (a, b) = (call.row(0, row).cast::<f32>(), call.row(1, row).cast::<f32>());
            // SAFETY: the caller's promise.
            unsafe {
                match (call.operands[0].one_column, call.operands[1].one_column) {
                    (false, false) => row2::<V, F>(call.columns, out, a, b),
                    (false, true) => row2::<V, F>(call.columns, out, a, Same(V::splat(*b))),
                    (true, false) => row2::<V, F>(call.columns, out, Same(V::splat(*a)), b),
                    (true, true) => row2::<V, F>(call.columns, out, Same(V::splat(*a)), Same(V::splat(*b))),
                }
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
    Exp(x) = math::exp(x);
    Expm1(x) = math::expm1(x);
    Log(x) = math::log(x);
    Log1p(x) = math::log1p(x);
    Logistic(x) = math::logistic(x);
    Tanh(x) = math::tanh(x);
    Sin(x) = math::sin(x);
    Cos(x) = math::cos(x);
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

/// The rows of the larger or smaller of two vectors, quicker where one of them is a number for all columns.
#[derive(Clone, Copy)]
struct Extreme<const LARGER: bool>;

impl<const LARGER: bool> Rows for Extreme<LARGER> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self, call: &Call) {
        let one = match (call.operands[0].one_column, call.operands[1].one_column) {
            (false, true) => 1,
            (true, false) => 0,
            // SAFETY: the caller's promise.
            _ if LARGER => return unsafe { Rows2(Maximum).run::<V>(call) },
            // SAFETY: the caller's promise.
            _ => return unsafe { Rows2(Minimum).run::<V>(call) },
        };
        for row in 0..call.rows {
            let out = call.out_row(row).cast::<f32>();
            let x = call.row(1 - one, row).cast::<f32>();
            // SAFETY: the caller's promise.
            let number = unsafe { call.row(one, row).cast::<f32>().read() };
            let lanes = Same(V::splat(number));
            // SAFETY: the caller's promise.
            unsafe {
                match (LARGER, Care::of(LARGER, number)) {
                    (_, Care::Zeros) => row2::<V, Relu>(call.columns, out, lanes, x),
                    (true, Care::All) => row2::<V, Maximum>(call.columns, out, lanes, x),
                    (false, Care::All) => row2::<V, Minimum>(call.columns, out, lanes, x),
                    (true, Care::None) => row2::<V, LargerThanNumber>(call.columns, out, lanes, x),
                    (false, Care::None) => row2::<V, SmallerThanNumber>(call.columns, out, lanes, x),
                }
            }
        }
    }
}

/// What the larger or smaller of a number and a vector needs beyond the instruction, which gives the second if either is NaN.
#[derive(Clone, Copy)]
enum Care {
    None,
    /// Zeros become positive.
    Zeros,
    /// Zeros are ordered and NaN wins.
    All,
}

impl Care {
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
    match (larger, Care::of(larger, number)) {
        (_, Care::Zeros) => Relu::apply(lanes, x),
        (true, Care::All) => Maximum::apply(lanes, x),
        (false, Care::All) => Minimum::apply(lanes, x),
        (true, Care::None) => LargerThanNumber::apply(lanes, x),
        (false, Care::None) => SmallerThanNumber::apply(lanes, x),
    }
}

/// The rows of a quotient, quicker where the divisor is a number for all columns.
#[derive(Clone, Copy)]
struct Quotient;

/// Magnitudes between which neither a quotient nor what it is corrected by leaves the normal range.
const MODERATE: (f32, f32) = (8.673_617_4e-19, 1.152_921_5e18);

impl Rows for Quotient {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self, call: &Call) {
        for row in 0..call.rows {
            let out = call.out_row(row).cast::<f32>();
            let (a, b) = (call.row(0, row).cast::<f32>(), call.row(1, row).cast::<f32>());
            // SAFETY: the caller's promise.
            unsafe {
                match (call.operands[0].one_column, call.operands[1].one_column) {
                    (false, true) if (MODERATE.0..MODERATE.1).contains(&(*b).abs()) => {
                        quotients::<V>(call.columns, out, a, *b);
                    }
                    (false, true) => row2::<V, Divide>(call.columns, out, a, Same(V::splat(*b))),
                    (true, false) => row2::<V, Divide>(call.columns, out, Same(V::splat(*a)), b),
                    (false, false) => row2::<V, Divide>(call.columns, out, a, b),
                    (true, true) => {
                        row2::<V, Divide>(call.columns, out, Same(V::splat(*a)), Same(V::splat(*b)));
                    }
                }
            }
        }
    }
}

/// The quotients of a row by a moderate number. With the correctly rounded reciprocal, one correction of the product
/// gives the correctly rounded quotient; numbers that are not moderate themselves are divided.
///
/// # Safety
///
/// The operand has, and the result has room for, so many numbers.
#[inline(always)]
unsafe fn quotients<V: Lanes>(columns: usize, out: *mut f32, a: *const f32, divisor: f32) {
    let (divisor, reciprocal) = (V::splat(divisor), V::splat(1.0 / divisor));
    let mut at = 0;
    // SAFETY: the caller's promise.
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
    let moderate = V::splat(MODERATE.1).min(V::splat(MODERATE.0).max(magnitude));
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
    // Equal numbers have equal bits but for zeros, of which the positive one is meant.
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
        pub(super) fn unary(isa: Isa, op: UnaryOp) -> Option<Kernel> {
            Some(match op {
                $(UnaryOp::$op => kernel(isa, Rows1($op)),)*
                _ => return None,
            })
        }

        /// A function of a vector, where there is one.
        #[cfg(target_arch = "x86_64")]
        pub(super) fn apply1<V: Lanes>(op: UnaryOp, x: V) -> Option<V> {
            Some(match op {
                $(UnaryOp::$op => $op::apply(x),)*
                _ => return None,
            })
        }
    };
}

unary_functions! {
    Abs Negate Ceil Floor RoundNearestEven RoundNearestAfz Sqrt Rsqrt Exp Expm1 Log Log1p Logistic Tanh Sin Cos Erf Gelu
}

/// The loop of a function of two values, where there is one with vectors.
pub(super) fn binary(isa: Isa, op: BinaryOp) -> Option<Kernel> {
    Some(match op {
        BinaryOp::Add => kernel(isa, Rows2(Add)),
        BinaryOp::Subtract => kernel(isa, Rows2(Subtract)),
        BinaryOp::Multiply => kernel(isa, Rows2(Multiply)),
        BinaryOp::Divide => kernel(isa, Quotient),
        BinaryOp::Maximum => kernel(isa, Extreme::<true>),
        BinaryOp::Minimum => kernel(isa, Extreme::<false>),
        _ => return None,
    })
}

/// A function of two vectors, where there is one.
#[cfg(target_arch = "x86_64")]
pub(super) fn apply2<V: Lanes>(op: BinaryOp, a: V, b: V) -> Option<V> {
    Some(match op {
        BinaryOp::Add => a.add(b),
        BinaryOp::Subtract => a.sub(b),
        BinaryOp::Multiply => a.mul(b),
        BinaryOp::Divide => a.div(b),
        BinaryOp::Maximum => larger(a, b),
        BinaryOp::Minimum => smaller(a, b),
        _ => return None,
    })
}
