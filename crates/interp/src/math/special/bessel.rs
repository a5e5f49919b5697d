//! Exponentially scaled modified Bessel functions of the first kind.

use crate::math::wide::Wide;

/// Beyond this the asymptotic series is exact to the last place.
const ASYMPTOTIC: f64 = 60.0;

/// `e^-|x| I0(x)`.
#[must_use]
pub fn bessel_i0e(x: f64) -> f64 {
    scaled_bessel(0, x)
}

/// `e^-|x| I1(x)`.
#[must_use]
pub fn bessel_i1e(x: f64) -> f64 {
    scaled_bessel(1, x)
}

fn scaled_bessel(order: u64, x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let magnitude = x.abs();
    let value = if magnitude.is_infinite() {
        0.0
    } else if magnitude < ASYMPTOTIC {
        power_series(order, Wide::from(magnitude)).to_f64()
    } else {
        asymptotic_series(order, Wide::from(magnitude)).to_f64()
    };
    if order % 2 == 1 { value.copysign(x) } else { value }
}

/// `(x/2)^n Σ (x²/4)^k / (k! (n+k)!)`, every term positive.
fn power_series(order: u64, x: Wide) -> Wide {
    let quarter = x.square().scaled(-2);
    let mut term = if order == 0 { Wide::ONE } else { x.scaled(-1) };
    let mut sum = term;
    let mut k = 1;
    while term.magnitude() > sum.magnitude() - 120 && !term.is_zero() {
        term = (term * quarter).over(k * (k + order));
        sum = sum + term;
        k += 1;
    }
    sum * (-x).exp()
}

/// `Σ (-1)^k Π (4n² - (2j-1)²) / (k! (8x)^k) / sqrt(2πx)`, up to its smallest term.
fn asymptotic_series(order: u64, x: Wide) -> Wide {
    let inverse = x.scaled(3).reciprocal();
    let squared = 4 * (order * order) as i64;
    let mut term = Wide::ONE;
    let mut sum = Wide::ONE;
    for k in 1..=40u64 {
        let odd = (2 * k - 1) as i64;
        term = -(term * Wide::from(squared - odd * odd) * inverse).over(k);
        sum = sum + term;
        if term.magnitude() < -120 {
            break;
        }
    }
    sum / (Wide::PI * x.scaled(1)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        for (x, i0e, i1e) in [
            (0.5, 0.6450352704491501, 0.1564208031848717),
            (10.0, 0.1278333371634286, 0.12126268138445552),
            (59.9, 0.05165479536847349, 0.05122178969724907),
            (100.0, 0.03994437929909668, 0.03974415302513025),
        ] {
            assert!((bessel_i0e(x) / i0e - 1.0).abs() < 1e-15, "{x}");
            assert!((bessel_i1e(x) / i1e - 1.0).abs() < 1e-15, "{x}");
            assert_eq!(bessel_i1e(-x), -bessel_i1e(x));
        }
        assert_eq!((bessel_i0e(0.0), bessel_i1e(0.0)), (1.0, 0.0));
    }
}
