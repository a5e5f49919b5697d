//! Vectors of f32, independent of the instruction set.

/// How many elements [`Pick::pick`] picks from.
pub(crate) const PICKED_FROM: usize = 16;

/// Vectors whose lanes, as bits, can be places of elements in memory.
pub(crate) trait Pick: Lanes {
    /// The elements at places below [`PICKED_FROM`].
    ///
    /// # Safety
    ///
    /// There are [`PICKED_FROM`] values at the address.
    unsafe fn pick(self, from: *const f32) -> Self;
}

/// A table indexed by the lowest four bits of a lane.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Table(pub(crate) [f32; 16]);

impl Table {
    /// A column of a table of rows.
    pub(super) const fn column<const WIDTH: usize>(rows: &[[f32; WIDTH]; 16], column: usize) -> Self {
        let mut numbers = [0.0; 16];
        let mut row = 0;
        while row < rows.len() {
            numbers[row] = rows[row][column];
            row += 1;
        }
        Self(numbers)
    }

    /// `COUNT` columns of a table of rows, from `first` on.
    pub(super) const fn columns<const WIDTH: usize, const COUNT: usize>(
        rows: &[[f32; WIDTH]; 16],
        first: usize,
    ) -> [Self; COUNT] {
        let mut columns = [const { Self([0.0; 16]) }; COUNT];
        let mut at = 0;
        while at < COUNT {
            columns[at] = Self::column(rows, first + at);
            at += 1;
        }
        columns
    }
}

/// Values of this size have a spacing of one: a value added to it is rounded to an integer in the lowest bits.
pub(super) const ROUNDING: f32 = 8_388_608.0;

/// A vector of f32. The functions are only called in code compiled for the instruction set of the implementation, into
/// which they are inlined.
pub(crate) trait Lanes: Copy {
    /// The number of lanes.
    const COUNT: usize;
    /// Whether [`Lanes::rough_reciprocal`] has 13 bits or more already.
    const ROUGH_IS_GOOD: bool = false;
    /// A mask of lanes.
    type Mask: Copy;

    /// # Safety
    ///
    /// There are [`Lanes::COUNT`] values at the address.
    unsafe fn load(from: *const f32) -> Self;
    /// # Safety
    ///
    /// There is space for [`Lanes::COUNT`] values at the address.
    unsafe fn store(self, to: *mut f32);
    /// The first of the lanes; the others are zero.
    ///
    /// # Safety
    ///
    /// There are `count` values at the address, fewer than [`Lanes::COUNT`].
    unsafe fn load_part(from: *const f32, count: usize) -> Self;
    /// # Safety
    ///
    /// There is space for `count` values at the address, fewer than [`Lanes::COUNT`].
    unsafe fn store_part(self, to: *mut f32, count: usize);

    fn splat(value: f32) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    /// `self * factor + term`, rounded once.
    fn mul_add(self, factor: Self, term: Self) -> Self;
    /// `term - self * factor`, rounded once.
    fn neg_mul_add(self, factor: Self, term: Self) -> Self;
    /// The larger; the second of two zeros or if either is NaN.
    fn max(self, other: Self) -> Self;
    /// The smaller; the second of two zeros or if either is NaN.
    fn min(self, other: Self) -> Self;
    fn sqrt(self) -> Self;
    /// The nearest integer, halves to the even one.
    fn round(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn trunc(self) -> Self;
    /// An approximation of `1 / self` to 11 bits or more, of a number whose reciprocal is normal.
    fn rough_reciprocal(self) -> Self;

    /// Bits set in both.
    fn and(self, other: Self) -> Self;
    /// Bits set in either.
    fn or(self, other: Self) -> Self;
    /// Bits set in one.
    fn xor(self, other: Self) -> Self;
    /// The sum of the bits as integers.
    fn add_bits(self, other: Self) -> Self;
    /// The difference of the bits as integers.
    fn sub_bits(self, other: Self) -> Self;
    /// Shift left.
    fn shift_up<const BY: u32>(self) -> Self;
    /// Arithmetic shift right.
    fn shift_down<const BY: u32>(self) -> Self;
    /// The nearest 32-bit integer, as bits.
    fn float_to_int(self) -> Self;
    /// The value of a 32-bit integer, given as bits.
    fn int_to_float(self) -> Self;

    /// The table entries at the indices in the lanes.
    fn lookup(self, table: &'static Table) -> Self;

    fn less(self, other: Self) -> Self::Mask;
    /// Whether it is not less, or either is NaN.
    fn not_less(self, other: Self) -> Self::Mask;
    fn equal(self, other: Self) -> Self::Mask;
    /// Whether they are not equal, or either is NaN.
    fn differs(self, other: Self) -> Self::Mask;
    /// Whether either is NaN.
    fn unordered(self, other: Self) -> Self::Mask;
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
    fn any(mask: Self::Mask) -> bool;

    /// `self` times two to the power of `exponent`, an integer of at most 250 either way; of a value near one rounded once.
    fn scale(self, exponent: Self) -> Self;

    /// [`Lanes::scale`] where the mask is set, else zero, whatever the exponent is there.
    #[inline(always)]
    fn scale_where(self, mask: Self::Mask, exponent: Self) -> Self {
        let zero = Self::splat(0.0);
        Self::select(mask, self.scale(Self::select(mask, exponent, zero)), zero)
    }

    #[inline(always)]
    fn splat_bits(bits: u32) -> Self {
        Self::splat(f32::from_bits(bits))
    }

    #[inline(always)]
    fn abs(self) -> Self {
        self.and(Self::splat_bits(0x7fff_ffff))
    }

    /// The sign bit alone.
    #[inline(always)]
    fn sign(self) -> Self {
        self.and(Self::splat_bits(0x8000_0000))
    }

    #[inline(always)]
    fn neg(self) -> Self {
        self.xor(Self::splat_bits(0x8000_0000))
    }

    /// The quotient, to about half a unit in the last place, by a divisor whose rounding error is `lost`. The divisor
    /// is between 2^-60 and 2^60 and the quotient does not overflow.
    #[inline(always)]
    fn quick_div_by_sum(self, divisor: Self, lost: Self) -> Self {
        let reciprocal = divisor.good_reciprocal();
        let quotient = self.mul(reciprocal);
        let left = quotient.neg_mul_add(lost, quotient.neg_mul_add(divisor, self));
        left.mul_add(reciprocal, quotient)
    }

    /// An approximation of `1 / self` to 13 bits or more, as [`Lanes::rough_reciprocal`].
    #[inline(always)]
    fn good_reciprocal(self) -> Self {
        let rough = self.rough_reciprocal();
        if Self::ROUGH_IS_GOOD {
            return rough;
        }
        self.neg_mul_add(rough, Self::splat(1.0)).mul_add(rough, rough)
    }
}

/// A polynomial, the coefficient of the highest power first.
#[inline(always)]
pub(super) fn polynomial<V: Lanes, const N: usize>(x: V, coefficients: [f32; N]) -> V {
    let mut sum = V::splat(coefficients[0]);
    for &coefficient in &coefficients[1..] {
        sum = sum.mul_add(x, V::splat(coefficient));
    }
    sum
}

/// A polynomial, the coefficient of the highest power first, each looked up.
#[inline(always)]
pub(super) fn looked_up_polynomial<V: Lanes, const N: usize>(
    positions: V,
    x: V,
    coefficients: &'static [Table; N],
) -> V {
    let mut sum = positions.lookup(&coefficients[0]);
    for coefficient in &coefficients[1..] {
        sum = sum.mul_add(x, positions.lookup(coefficient));
    }
    sum
}
