//! Scaling by powers of two for instruction sets without `vscalefps`.

use super::lanes::Lanes;

/// `value · 2^exponent`, in two multiplications by normal powers of two. For a value near one only the second rounds.
#[inline(always)]
pub(super) fn scale<V: Lanes>(value: V, exponent: V) -> V {
    let half = exponent.mul(V::splat(0.5)).round();
    value.mul(power_of_two(half)).mul(power_of_two(exponent.sub(half)))
}

/// Two to the power of an exponent of normal values.
#[inline(always)]
fn power_of_two<V: Lanes>(exponent: V) -> V {
    exponent.float_to_int().add_bits(V::splat_bits(127)).shift_up::<23>()
}
