//! Orders of elements.

use std::cmp::Ordering;

use warpforge_ir::attr::ComparisonDirection;
use warpforge_tensor::Scalar;

/// Whether two elements of one type compare as asked; `total` puts floats in the order of IEEE 754's totalOrder.
#[must_use]
pub fn compare(direction: ComparisonDirection, total: bool, a: Scalar, b: Scalar) -> bool {
    let order = match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) if total => Some(a.total_cmp(&b)),
        _ => partial_order(a, b),
    };
    match direction {
        ComparisonDirection::Eq => order == Some(Ordering::Equal),
        ComparisonDirection::Ne => order != Some(Ordering::Equal),
        ComparisonDirection::Ge => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        ComparisonDirection::Gt => order == Some(Ordering::Greater),
        ComparisonDirection::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        ComparisonDirection::Lt => order == Some(Ordering::Less),
    }
}

/// The usual order; complex numbers by real part, then by imaginary part.
pub(super) fn partial_order(a: Scalar, b: Scalar) -> Option<Ordering> {
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => a.partial_cmp(&b),
        (Scalar::Complex(ar, ai), Scalar::Complex(br, bi)) => match ar.partial_cmp(&br)? {
            Ordering::Equal => ai.partial_cmp(&bi),
            unequal => (!ai.is_nan() && !bi.is_nan()).then_some(unequal),
        },
        (a, b) => Some(a.to_i128().cmp(&b.to_i128())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ComparisonDirection::{Eq, Ge, Lt, Ne};

    #[test]
    fn nan_is_unordered_unless_the_order_is_total() {
        let (nan, one) = (Scalar::Float(f64::NAN), Scalar::Float(1.0));
        assert!(
            !compare(Eq, false, nan, nan) && compare(Ne, false, nan, nan) && !compare(Ge, false, nan, one)
        );
        assert!(compare(Eq, true, nan, nan) && compare(Ge, true, nan, one));
        assert!(compare(Lt, true, Scalar::Float(-0.0), Scalar::Float(0.0)));
        assert!(compare(Eq, false, Scalar::Float(-0.0), Scalar::Float(0.0)));
    }

    #[test]
    fn complex_numbers_are_ordered_by_parts() {
        let z = |re: f64, im: f64| Scalar::Complex(re, im);
        assert!(compare(Lt, false, z(1.0, 9.0), z(2.0, 0.0)));
        assert!(compare(Lt, false, z(1.0, 1.0), z(1.0, 2.0)));
        assert!(compare(Eq, false, z(1.0, 1.0), z(1.0, 1.0)));
        assert!(compare(Ne, false, z(1.0, f64::NAN), z(2.0, 1.0)));
    }
}
