//! Accuracy of functions, in units in the last place.

use super::*;

/// Functions of f32 values, the range that matters for each, and the units in the last place that it may be off.
const BOUNDS: [(Function, f32, f64); 14] = [
    (Function::Rsqrt, 1e30, 1.5),
    (Function::Cbrt, 1e30, 0.51),
    (Function::Exponential, 105.0, 1.0),
    (Function::ExponentialMinusOne, 90.0, 1.4),
    (Function::Log, 1e6, 0.9),
    (Function::LogPlusOne, 1e6, 1.3),
    (Function::Logistic, 105.0, 1.6),
    (Function::Tanh, 10.0, 1.8),
    (Function::Sine, 1e5, 1.6),
    (Function::Cosine, 1e5, 1.6),
    (Function::Tan, 1e5, 0.51),
    (Function::Erf, 4.0, 0.7),
    (Function::Erfc, 10.1, 0.51),
    (Function::Sqrt, 1e30, 0.5),
];

/// Numbers spread over the range and, by their bits, over all exponents.
fn arguments(range: f32) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(5);
    let mut numbers: Vec<f32> = (0..100_000).map(|_| (random.f32() * 2.0 - 1.0) * range).collect();
    numbers.extend((0..100_000).map(|_| (random.f32() * 2.0 - 1.0) * range.min(4.0)));
    numbers.extend((0..100_000).map(|_| f32::from_bits(random.u32(..))).filter(|number| !number.is_nan()));
    numbers
}

/// The error of a value, in units in the last place of the exact value.
fn distance(found: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    if found.to_bits() == nearest.to_bits() || found.is_nan() && nearest.is_nan() {
        return (f64::from(nearest) - exact).abs().min(f64::MAX) / unit(nearest);
    }
    if !found.is_finite() || !nearest.is_finite() || found.is_sign_negative() != nearest.is_sign_negative() {
        // An infinity is one beyond the largest number.
        let both =
            found.is_nan() == nearest.is_nan() && found.is_sign_negative() == nearest.is_sign_negative();
        return if both { f64::from(found.to_bits().abs_diff(nearest.to_bits())) } else { f64::INFINITY };
    }
    (f64::from(found) - exact).abs() / unit(nearest)
}

fn unit(number: f32) -> f64 {
    let magnitude = number.abs().clamp(f32::MIN_POSITIVE, f32::MAX);
    f64::from(f32::from_bits(magnitude.to_bits() + 1)) - f64::from(magnitude)
}

#[test]
fn f32_functions_are_within_their_error_bounds() {
    let domain = |count| matrix(1, count);
    for isa in Isa::available() {
        for (op, range, bound) in BOUNDS {
            let numbers = arguments(range);
            let inputs = [memory(ElementType::F32, strides(0, 1))];
            let insts = [Inst::Load(0), Inst::Unary(op, Register(0))];
            let outputs = [output(1, strides(0, 1))];
            let fused_loop =
                FusedLoop::with_isa(isa, &domain(numbers.len()), &inputs, &insts, &outputs).unwrap();
            let mut found = vec![0f32; numbers.len()];
            let targets = [found.as_mut_ptr().cast()];
            // SAFETY: the buffers have as many values as the domain.
            unsafe { fused_loop.run(&pool(1), &[numbers.as_ptr().cast()], &targets) };
            let exact = naive::real(op);
            let mut worst = (0.0, 0.0, 0.0);
            for (&x, &found) in numbers.iter().zip(&found) {
                let off = distance(found, exact(f64::from(x)));
                if off > worst.0 {
                    worst = (off, x, found);
                }
            }
            println!("{isa:8} {op:?}: {:.3} at {:?}", worst.0, worst.1);
            assert!(worst.0 <= bound, "{isa} {op:?}: {worst:?}, not {:e}", exact(f64::from(worst.1)));
        }
    }
}
