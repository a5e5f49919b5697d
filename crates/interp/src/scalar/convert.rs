//! Conversion between element types.

use warpforge_tensor::{ElementType, FloatType, Scalar};

/// `value` as an element of another type: floats are truncated towards zero and saturate, integers wrap, and any value
/// but zero is true. Of a complex number, only the real part is converted to a type that is not complex.
pub(crate) fn convert(value: Scalar, to: ElementType) -> Scalar {
    match (value, to) {
        (Scalar::Complex(x, _), ElementType::Bool) => Scalar::Bool(x != 0.0),
        (Scalar::Float(x) | Scalar::Complex(x, _), ElementType::Int(int)) => {
            Scalar::Int(int.clamp(x as i128))
        }
        (Scalar::Float(x) | Scalar::Complex(x, _), ElementType::Index) => Scalar::Int(i128::from(x as i64)),
        (Scalar::Int(x), ElementType::Float(float) | ElementType::Complex(float))
            if float != FloatType::F64 =>
        {
            Scalar::Float(to_odd(x)).rounded_to(to)
        }
        _ => value.rounded_to(to),
    }
}

/// The integer as a binary64 rounded to odd, so that rounding once more to a narrower type is right.
fn to_odd(value: i128) -> f64 {
    let nearest = value as f64;
    let back = nearest as i128;
    if back == value || nearest.to_bits() & 1 == 1 {
        return nearest;
    }
    // The neighbour on the other side of the value is odd.
    let away = (back < value) == (value > 0);
    f64::from_bits(if away { nearest.to_bits() + 1 } else { nearest.to_bits() - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_saturate_and_integers_wrap() {
        assert_eq!(convert(Scalar::Float(300.7), ElementType::I8), Scalar::Int(127));
        assert_eq!(convert(Scalar::Float(-1.5), ElementType::U8), Scalar::Int(0));
        assert_eq!(convert(Scalar::Float(f64::NAN), ElementType::I32), Scalar::Int(0));
        assert_eq!(convert(Scalar::Int(300), ElementType::I8), Scalar::Int(44));
        assert_eq!(convert(Scalar::Float(0.5), ElementType::Bool), Scalar::Bool(true));
        assert_eq!(convert(Scalar::Complex(2.0, 3.0), ElementType::F32), Scalar::Float(2.0));
        assert_eq!(convert(Scalar::Int(2), ElementType::C64), Scalar::Complex(2.0, 0.0));
        assert_eq!(convert(Scalar::Complex(0.0, 1.0), ElementType::Bool), Scalar::Bool(false));
    }

    #[test]
    fn every_code_of_a_small_float_but_zero_is_true() {
        let narrow = FloatType::ALL.iter().filter(|float| float.format().bits() <= 8);
        for &float in narrow {
            for code in 0..1u64 << float.format().bits() {
                let value = float.format().decode(code);
                let expected = Scalar::Bool(value != 0.0);
                assert_eq!(convert(Scalar::Float(value), ElementType::Bool), expected, "{float:?} {code:#x}");
            }
        }
    }

    #[test]
    fn wide_integers_are_rounded_once() {
        for value in [
            (1i128 << 62) + (1 << 38) + 1,
            -((1i128 << 62) + (1 << 38) + 1),
            (1 << 62) + (1 << 38),
            16_777_217,
        ] {
            let expected = Scalar::Float(f64::from(value as f32));
            assert_eq!(convert(Scalar::Int(value), ElementType::F32), expected, "{value}");
        }
    }
}
