//! Names, widths and every code of every small format.

use super::*;

#[test]
fn names_read_back() {
    for element in ElementType::all() {
        assert_eq!(element.to_string().parse::<ElementType>().ok(), Some(element), "{element}");
    }
    assert_eq!("si8".parse::<ElementType>().ok(), Some(ElementType::I8));
    assert!("f7".parse::<ElementType>().is_err());
    assert!("si".parse::<ElementType>().is_err());
}

#[test]
fn every_code_of_the_narrow_formats_reads_back() {
    for float in FloatType::ALL.iter().filter(|float| float.format().bits() <= 16) {
        let format = float.format();
        for code in 0..1u64 << format.bits() {
            let value = format.decode(code);
            if !value.is_nan() {
                assert_eq!(format.encode(value), code, "{} code {code:#x} = {value}", float.name());
            }
        }
    }
}

/// The code nearest to `value` by exhaustive search: the independent way to say what rounding means.
fn nearest_by_search(format: &FloatFormat, value: f64) -> f64 {
    let finite =
        (0..1u64 << format.bits()).map(|code| (code, format.decode(code))).filter(|c| c.1.is_finite());
    let distance = |candidate: f64| (candidate - value).abs();
    finite
        .min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)).then((a.0 & 1).cmp(&(b.0 & 1))))
        .map_or(f64::NAN, |found| found.1)
}

#[test]
fn rounding_is_to_the_nearest_even_code() {
    let mut random = fastrand::Rng::with_seed(7);
    for float in FloatType::ALL.iter().filter(|float| float.format().bits() <= 8) {
        let format = float.format();
        for _ in 0..400 {
            let scale = format.max_finite().log2().min(20.0);
            let sign = if format.signed && random.bool() { -1.0 } else { 1.0 };
            let value = sign * (random.f64() + 1e-9) * (random.f64() * scale * 2.0 - scale).exp2();
            if value.abs() < format.max_finite() {
                assert_eq!(
                    format.round(value),
                    nearest_by_search(&format, value),
                    "{} {value}",
                    float.name()
                );
            }
        }
        // Half way between neighbours, where only the tie rule decides. The codes of e8m0 have no mantissa to be even.
        for code in 0..(1u64 << (format.bits() - 1)) - 1 {
            let (a, b) = (format.decode(code), format.decode(code + 1));
            if format.mantissa_bits > 0 && a.is_finite() && b.is_finite() && b > a {
                let even = if code % 2 == 0 { a } else { b };
                assert_eq!(format.round(a + (b - a) / 2.0), even, "{} between {a} and {b}", float.name());
            }
        }
    }
}

#[test]
fn overflow_and_nan_follow_the_format() {
    let round = |float: FloatType, value: f64| float.format().round(value);
    assert_eq!(round(FloatType::F8E5M2, 1e9), f64::INFINITY);
    assert_eq!(round(FloatType::F16, -65520.0), f64::NEG_INFINITY);
    assert_eq!(round(FloatType::F16, 65519.0), 65504.0);
    assert!(round(FloatType::F8E4M3Fn, 1e9).is_nan());
    assert!(round(FloatType::F8E4M3Fnuz, f64::NEG_INFINITY).is_nan());
    assert_eq!(FloatType::F8E4M3Fnuz.format().encode(-0.0), 0);
    assert_eq!(round(FloatType::F4E2M1Fn, -1e9), -6.0);
    assert_eq!(FloatType::F4E2M1Fn.format().encode(f64::NAN), 8);
    assert!(round(FloatType::F8E8M0Fnu, -1.0).is_nan());
    assert_eq!(round(FloatType::F8E8M0Fnu, 3.0), 4.0);
    assert_eq!(round(FloatType::Bf16, f64::from(f32::MAX)), f64::INFINITY);
}

#[test]
fn single_precision_agrees_with_the_hardware() {
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..20_000 {
        let value = f64::from_bits(random.u64(..));
        if !value.is_nan() {
            assert_eq!(FloatFormat::F32.encode(value), u64::from((value as f32).to_bits()), "{value:e}");
        }
        let single = f32::from_bits(random.u32(..));
        if !single.is_nan() {
            assert_eq!(FloatFormat::F32.decode(u64::from(single.to_bits())), f64::from(single));
        }
    }
}

#[test]
fn limits_are_those_of_the_formats() {
    let f8 = FloatType::F8E4M3Fn.format();
    assert_eq!((f8.max_finite(), f8.min_normal(), f8.min_positive()), (448.0, 0.015625, 0.001953125));
    assert_eq!(FloatFormat::F64.max_finite(), f64::MAX);
    assert_eq!(FloatFormat::F64.min_positive(), 5e-324);
    assert_eq!(FloatFormat::F32.epsilon(), f64::from(f32::EPSILON));
    assert_eq!(FloatType::F8E8M0Fnu.format().min_positive(), (-127f64).exp2());
}

#[test]
fn ordinals_count_steps() {
    let format = FloatFormat::F32;
    let next = f64::from(f32::from_bits(1.0f32.to_bits() + 1));
    assert_eq!(format.ordinal(next).zip(format.ordinal(1.0)).map(|(a, b)| a - b), Some(1));
    assert_eq!(format.ordinal(-0.0), format.ordinal(0.0));
    assert_eq!(format.ordinal(-f64::from(f32::from_bits(2))), Some(-2));
    assert_eq!(format.ordinal(f64::NAN), None);
}
