//! The few conversions of bf16 that the kernels' data needs.

/// A bf16 value by its bits: the upper half of an f32.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Bf16(u16);

impl Bf16 {
    /// The nearest bf16, ties to even. The data of the probes is finite, so NaN needs no care.
    pub(super) fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        let ties_to_even = 0x7fff + ((bits >> 16) & 1);
        Self(((bits + ties_to_even) >> 16) as u16)
    }

    /// The same value as an f32.
    pub(super) fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

impl std::ops::Neg for Bf16 {
    type Output = Self;

    fn neg(self) -> Self {
        Self(self.0 ^ 0x8000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_to_the_nearest_and_ties_to_even() {
        for (value, expected) in [
            (1.0, 1.0),
            (-0.75, -0.75),
            (1.003, 1.0),
            (1.005, 1.0078125),
            (1.0 + 1.0 / 256.0, 1.0),
            (1.0 + 3.0 / 256.0, 1.015625),
        ] {
            assert_eq!(Bf16::from_f32(value).to_f32(), expected, "{value}");
        }
        assert_eq!((-Bf16::from_f32(1.5)).to_f32(), -1.5);
    }
}
