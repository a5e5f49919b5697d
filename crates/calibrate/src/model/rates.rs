//! Rates between measured ones: local linear regression of logarithms.

/// Points that a regression is made of, at most.
const NEIGHBOURS: usize = 12;

/// A point nearer than this, in octaves, is the answer itself.
const SAME: f64 = 0.05;

/// Features and the rate there.
type Point = (Vec<f64>, f64);

/// Rates measured at points, all in binary logarithms.
#[derive(Debug, Clone, Default)]
pub(super) struct Rates {
    points: Vec<Point>,
}

impl Rates {
    /// Adds a rate at a point.
    pub(super) fn add(&mut self, features: Vec<f64>, rate: f64) {
        if rate.is_finite() && rate > 0.0 && features.iter().all(|value| value.is_finite()) {
            self.points.push((features, rate.log2()));
        }
    }

    /// How far the nearest point is, in octaves; infinite without points.
    pub(super) fn distance(&self, features: &[f64]) -> f64 {
        self.points.iter().map(|(point, _)| distance(point, features)).fold(f64::INFINITY, f64::min)
    }

    /// The rate at a point. Beyond what was measured, it is that of the border.
    pub(super) fn at(&self, features: &[f64]) -> Option<f64> {
        Some(self.fitted(&self.clamped(features)?)?.rate.exp2())
    }

    /// The rate at a point of work that keeps a device busier the larger it is: beyond what was measured, it follows the
    /// slope at the border, no faster than the work grows and no higher than the peak.
    pub(super) fn towards(&self, features: &[f64], peak: f64) -> Option<f64> {
        let border = self.clamped(features)?;
        let Fit { rate, slopes } = self.fitted(&border)?;
        let steps = features.iter().zip(&border).zip(&slopes);
        let change: f64 =
            steps.map(|((wanted, border), slope)| slope.clamp(0.0, 1.0) * (wanted - border)).sum();
        Some((rate + change).min(rate.max(peak.log2())).exp2())
    }

    fn fitted(&self, wanted: &[f64]) -> Option<Fit> {
        let mut near: Vec<(f64, &Point)> =
            self.points.iter().map(|point| (distance(&point.0, wanted), point)).collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        near.truncate(NEIGHBOURS);
        let &(nearest, &(_, rate)) = near.first()?;
        if near.len() == 1 {
            return Some(Fit { rate, slopes: vec![0.0; wanted.len()] });
        }
        let fit = regression(&near, wanted);
        Some(if nearest < SAME { Fit { rate, ..fit } } else { fit })
    }

    /// A point moved into the box of those that were measured.
    fn clamped(&self, features: &[f64]) -> Option<Vec<f64>> {
        let first = self.points.first()?;
        if first.0.len() != features.len() {
            return None;
        }
        let range = |at: usize| {
            self.points
                .iter()
                .map(|(point, _)| point[at])
                .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
        };
        Some(features.iter().enumerate().map(|(at, value)| value.clamp(range(at).0, range(at).1)).collect())
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// A plane through the rates around a point.
struct Fit {
    /// The rate at the point, as a logarithm.
    rate: f64,
    slopes: Vec<f64>,
}

/// A weighted ridge regression around the wanted point. Near points count most: kernels have cliffs.
fn regression(near: &[(f64, &Point)], wanted: &[f64]) -> Fit {
    let dims = wanted.len();
    let reach = near[near.len().min(dims + 1) - 1].0.max(0.5);
    let weights: Vec<f64> =
        near.iter().map(|(distance, _)| (-(distance / reach).powi(2) * 2.0).exp() + 1e-6).collect();
    let total: f64 = weights.iter().sum();
    let mean_of = |value: &dyn Fn(&Point) -> f64| {
        near.iter().zip(&weights).map(|((_, point), weight)| weight * value(point)).sum::<f64>() / total
    };
    let centre: Vec<f64> = (0..dims).map(|at| mean_of(&|point| point.0[at])).collect();
    let middle = mean_of(&|point| point.1);
    let mut matrix = vec![vec![0.0; dims + 1]; dims];
    for row in 0..dims {
        for column in 0..dims {
            matrix[row][column] =
                mean_of(&|point| (point.0[row] - centre[row]) * (point.0[column] - centre[column]));
        }
        // A slope must be worth its while.
        matrix[row][row] += 0.02;
        matrix[row][dims] = mean_of(&|point| (point.0[row] - centre[row]) * (point.1 - middle));
    }
    let slopes = solved(matrix);
    let found = middle
        + slopes
            .iter()
            .zip(wanted)
            .zip(&centre)
            .map(|((slope, at), centre)| slope * (at - centre))
            .sum::<f64>();
    // No further than the neighbours are.
    let (low, high) = near
        .iter()
        .fold((f64::MAX, f64::MIN), |(low, high), (_, point)| (low.min(point.1), high.max(point.1)));
    Fit { rate: found.clamp(low, high), slopes }
}

/// The solution of a symmetric positive system, by elimination; the last column is the right side.
fn solved(mut matrix: Vec<Vec<f64>>) -> Vec<f64> {
    let count = matrix.len();
    for at in 0..count {
        let pivot = matrix[at].clone();
        for row in matrix.iter_mut().skip(at + 1) {
            let factor = row[at] / pivot[at];
            for (value, above) in row.iter_mut().zip(&pivot).skip(at) {
                *value -= factor * above;
            }
        }
    }
    let mut solution = vec![0.0; count];
    for at in (0..count).rev() {
        let known: f64 = (at + 1..count).map(|other| matrix[at][other] * solution[other]).sum();
        solution[at] = (matrix[at][count] - known) / matrix[at][at];
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Rates {
        let mut rates = Rates::default();
        for x in 0..6 {
            for y in 0..4 {
                let (x, y) = (f64::from(x), f64::from(y));
                rates.add(vec![x, y], (3.0 + 0.5 * x + 0.25 * y).exp2());
            }
        }
        rates
    }

    #[test]
    fn measured_points_are_met_and_planes_are_followed() {
        let rates = grid();
        assert!((rates.at(&[2.0, 1.0]).unwrap().log2() - 4.25).abs() < 1e-9);
        let between = rates.at(&[2.5, 1.5]).unwrap().log2();
        assert!((between - 4.625).abs() < 0.05, "{between}");
    }

    #[test]
    fn beyond_the_sweep_the_border_counts() {
        let rates = grid();
        assert_eq!(rates.at(&[50.0, 3.0]), rates.at(&[5.0, 3.0]));
        assert_eq!(rates.at(&[-50.0, 0.0]), rates.at(&[0.0, 0.0]));
    }

    #[test]
    fn beyond_the_sweep_larger_work_comes_nearer_to_the_peak() {
        let rates = grid();
        let border = rates.at(&[5.0, 3.0]).unwrap().log2();
        let beyond = rates.towards(&[7.0, 3.0], 1024.0).unwrap().log2();
        // Half an octave for each of the two; the regression holds slopes back a little.
        assert!((0.75..=1.0).contains(&(beyond - border)), "{border} to {beyond}");
        assert!((rates.towards(&[40.0, 3.0], 128.0).unwrap() - 128.0).abs() < 1e-9);
        assert!(rates.towards(&[-2.0, 0.0], 1024.0) < rates.at(&[0.0, 0.0]));
        assert_eq!(rates.towards(&[2.0, 1.0], 1024.0), rates.at(&[2.0, 1.0]));
    }

    #[test]
    fn few_points_and_none() {
        assert_eq!(Rates::default().at(&[1.0]), None);
        let mut one = Rates::default();
        one.add(vec![1.0], 8.0);
        one.add(vec![1.0], f64::NAN);
        assert!((one.at(&[7.0]).unwrap() - 8.0).abs() < 1e-9);
        assert_eq!(one.at(&[7.0, 1.0]), None);
        assert_eq!(one.distance(&[3.0]), 2.0);
    }
}
