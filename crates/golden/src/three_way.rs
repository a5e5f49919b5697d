//! Narrow types judged three ways: the golden run and the candidate by a run in binary64.

use warpforge_tensor::compare::{Criterion, Report, Tolerance, compare_values};
use warpforge_tensor::{FloatFormat, FloatType, Tensor};

use crate::report::{Share, ThreeWay};
use crate::tolerance::Rule;

/// Judges two tensors of a narrow float type by a reference. `None` where the three-way comparison does not apply: the
/// types are not narrow, the reference's is not wider, or the shapes differ.
pub(crate) fn three_way(
    golden: &Tensor,
    candidate: &Tensor,
    reference: &Tensor,
    rule: &Rule,
) -> Option<ThreeWay> {
    let format = |tensor: &Tensor| tensor.element_type().float_part().map(FloatType::format);
    let (own, other, wide) = (format(golden)?, format(candidate)?, format(reference)?);
    let steps = own.mantissa_bits.min(other.mantissa_bits);
    if steps >= FloatFormat::F32.mantissa_bits || wide.mantissa_bits <= steps {
        return None;
    }
    let coarser = if own.mantissa_bits == steps { own } else { other };
    // Distances are in units of the reference's scale, and those of its outliers in units of their own size: else a mask
    // of -1e38, rounded, would allow any distance for the rest.
    let within = |actual: &Tensor, tolerance: Tolerance| {
        compare_values(actual, reference, Criterion { tolerance, ..rule.criterion() }).ok()
    };
    let golden = within(golden, Tolerance::Absolute { atol: f64::MAX })?;
    let half = coarser.epsilon() / 2.0;
    let half_step = half * golden.scale;
    let allowed = rule.factor * golden.max_scaled.max(half);
    let candidate = if golden.scale > 0.0 {
        within(candidate, Tolerance::Scaled { rtol: allowed })?
    } else {
        within(candidate, Tolerance::Absolute { atol: rule.factor * golden.max_absolute })?
    };
    let mut candidate_share = share(&candidate);
    // No single element is too far away, but together they are.
    if golden.scale > 0.0 && candidate.rms_scaled > rule.factor * golden.rms_scaled.max(half) {
        candidate_share.out_of_tolerance = candidate_share.out_of_tolerance.max(1);
    }
    Some(ThreeWay { golden: share(&golden), candidate: candidate_share, factor: rule.factor, half_step })
}

fn share(report: &Report) -> Share {
    Share { max_abs: report.max_absolute, rms: report.rms, out_of_tolerance: report.mismatches as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Class;
    use crate::folder::Key;
    use crate::tolerance::Tolerances;
    use half::bf16;
    use warpforge_tensor::ElementType;

    fn judged(golden: &[f32], candidate: &[f32], reference: &[f64]) -> Option<ThreeWay> {
        let key = Key { step: String::new(), class: Class::Outputs, name: "x".to_owned() };
        let rule = Tolerances::default().rule(&key, ElementType::BF16);
        let narrow = |values: &[f32]| {
            let values: Vec<bf16> = values.iter().copied().map(bf16::from_f32).collect();
            Tensor::from_slice(&[values.len()], &values).unwrap()
        };
        let reference = Tensor::from_slice(&[reference.len()], reference).unwrap();
        three_way(&narrow(golden), &narrow(candidate), &reference, &rule)
    }

    #[test]
    fn the_candidate_may_be_as_far_off_as_the_golden_run_and_a_little_more() {
        let good = judged(&[1.0, 2.0], &[1.0078125, 2.0], &[1.004, 2.0]).unwrap();
        assert_eq!(good.candidate.out_of_tolerance, 0, "{good:?}");
        assert_eq!(good.half_step, 0.0078125);
        let bad = judged(&[1.0, 2.0], &[1.0, 2.125], &[1.004, 2.0]).unwrap();
        assert_eq!(bad.candidate.out_of_tolerance, 1, "{bad:?}");
        let nan = judged(&[1.0, 2.0], &[f32::NAN, 2.0], &[1.004, 2.0]).unwrap();
        assert_eq!(nan.candidate.out_of_tolerance, 1, "{nan:?}");
    }

    #[test]
    fn a_mask_allows_nothing_for_the_rest() {
        let mask = -1e38f32;
        let reference = [1.0, 2.0, f64::from(mask)];
        let bad = judged(&[1.0, 2.0, mask], &[5.0, 2.0, mask], &reference).unwrap();
        assert_eq!(bad.candidate.out_of_tolerance, 1, "{bad:?}");
        let good = judged(&[1.0, 2.0, mask], &[1.0, 2.0, mask], &reference).unwrap();
        assert_eq!(good.candidate.out_of_tolerance, 0, "{good:?}");
    }

    #[test]
    fn wide_types_and_other_shapes_are_judged_otherwise() {
        assert!(judged(&[1.0], &[1.0], &[1.0, 2.0]).is_none());
        let key = Key { step: String::new(), class: Class::Outputs, name: "x".to_owned() };
        let rule = Tolerances::default().rule(&key, ElementType::F32);
        let wide = Tensor::from_slice(&[1], &[1.0f32]).unwrap();
        assert!(three_way(&wide, &wide, &wide, &rule).is_none());
    }
}
