//! What instruction sets without an instruction for it do in several.

use super::lanes::Lanes;

/// `value` times two to the power of `exponent`, in two steps by normal powers of two. Of a value near one only the second
/// rounds.
#[inline(always)]
pub(super) fn scale<V: Lanes>(value: V, exponent: V) -> V {
    let half = exponent.mul(V::splat(0.5)).round();
    value.mul(power_of_two(half)).mul(power_of_two(exponent.sub(half)))
}

/// Two to the power of an exponent of normal numbers.
#[inline(always)]
fn power_of_two<V: Lanes>(exponent: V) -> V {
    exponent.float_to_int().add_bits(V::splat_bits(127)).shift_up::<23>()
}
