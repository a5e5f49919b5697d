//! Scalars as vectors of one lane, which the compiler may vectorize.

use super::lanes::{Lanes, Pick, Table};

impl Lanes for f32 {
    const COUNT: usize = 1;
    type Mask = bool;

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { from.read() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: guaranteed by the caller.
        unsafe { to.write(self) }
    }

    // A single lane has no partial loads.
    #[inline(always)]
    unsafe fn load_part(_: *const f32, _: usize) -> Self {
        0.0
    }

    #[inline(always)]
    unsafe fn store_part(self, _: *mut f32, _: usize) {}

    #[inline(always)]
    fn splat(value: f32) -> Self {
        value
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self + other
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self - other
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self * other
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self / other
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        if cfg!(target_arch = "aarch64") {
            f32::mul_add(self, factor, term)
        } else {
            // The product is exact in f64: rounding twice is all that this loses, and no call is needed.
            (f64::from(self) * f64::from(factor) + f64::from(term)) as f32
        }
    }

    #[inline(always)]
    fn neg_mul_add(self, factor: Self, term: Self) -> Self {
        Lanes::mul_add(-self, factor, term)
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        if self > other { self } else { other }
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        if self < other { self } else { other }
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        f32::sqrt(self)
    }

    #[inline(always)]
    fn round(self) -> Self {
        self.round_ties_even()
    }

    #[inline(always)]
    fn floor(self) -> Self {
        f32::floor(self)
    }

    #[inline(always)]
    fn ceil(self) -> Self {
        f32::ceil(self)
    }

    #[inline(always)]
    fn trunc(self) -> Self {
        f32::trunc(self)
    }

    #[inline(always)]
    fn rough_reciprocal(self) -> Self {
        1.0 / self
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        f32::from_bits(self.to_bits() & other.to_bits())
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        f32::from_bits(self.to_bits() | other.to_bits())
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        f32::from_bits(self.to_bits() ^ other.to_bits())
    }

    #[inline(always)]
    fn add_bits(self, other: Self) -> Self {
        f32::from_bits(self.to_bits().wrapping_add(other.to_bits()))
    }

    #[inline(always)]
    fn sub_bits(self, other: Self) -> Self {
        f32::from_bits(self.to_bits().wrapping_sub(other.to_bits()))
    }

    #[inline(always)]
    fn shift_up<const BY: u32>(self) -> Self {
        f32::from_bits(self.to_bits() << BY)
    }

    #[inline(always)]
    fn shift_down<const BY: u32>(self) -> Self {
        f32::from_bits((self.to_bits() as i32 >> BY) as u32)
    }

    #[inline(always)]
    fn float_to_int(self) -> Self {
        f32::from_bits(self.round_ties_even() as i32 as u32)
    }

    #[inline(always)]
    fn int_to_float(self) -> Self {
        self.to_bits() as i32 as f32
    }

    #[inline(always)]
    fn lookup(self, table: &'static Table) -> Self {
        table.0[self.to_bits() as usize % table.0.len()]
    }

    #[inline(always)]
    fn less(self, other: Self) -> bool {
        self < other
    }

    #[inline(always)]
    fn not_less(self, other: Self) -> bool {
        !self.less(other)
    }

    #[inline(always)]
    fn equal(self, other: Self) -> bool {
        self == other
    }

    #[inline(always)]
    fn differs(self, other: Self) -> bool {
        self != other
    }

    #[inline(always)]
    fn unordered(self, other: Self) -> bool {
        self.is_nan() | other.is_nan()
    }

    #[inline(always)]
    fn select(mask: bool, yes: Self, no: Self) -> Self {
        if mask { yes } else { no }
    }

    #[inline(always)]
    fn any(mask: bool) -> bool {
        mask
    }

    #[inline(always)]
    fn scale(self, exponent: Self) -> Self {
        super::scale::scale(self, exponent)
    }
}

impl Pick for f32 {
    #[inline(always)]
    unsafe fn pick(self, from: *const f32) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { *from.add(self.to_bits() as usize) }
    }
}
