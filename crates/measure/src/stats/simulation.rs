//! Whether the intervals hold what they promise, on simulated samples with a known median.

use super::{median_interval, order_interval, rounds_interval};

/// A standard normal variable (Box and Muller).
pub(super) fn normal(random: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

/// How often the interval of 200 simulations holds the true median.
fn coverage(
    count: usize,
    truth: f64,
    interval: impl Fn(&[f64]) -> Option<super::Interval>,
    mut draw: impl FnMut(&mut fastrand::Rng) -> f64,
) -> f64 {
    let mut random = fastrand::Rng::with_seed(7);
    let holds = |_: &u32| {
        let values: Vec<f64> = (0..count).map(|_| draw(&mut random)).collect();
        interval(&values).unwrap().contains(truth)
    };
    f64::from(u32::try_from((0..200).filter(holds).count()).unwrap()) / 200.0
}

#[test]
fn intervals_of_a_median_cover_it_whatever_the_distribution() {
    type Draw = fn(&mut fastrand::Rng) -> f64;
    let distributions: [(&str, f64, Draw); 3] = [
        ("normal", 5.0, |random| 5.0 + normal(random)),
        ("lognormal", 1.0, |random| normal(random).exp()),
        // Two modes, the larger of which holds the median: the 0.5 / 0.7 quantile of its normal.
        (
            "bimodal",
            0.566_05,
            |random| if random.f64() < 0.7 { normal(random) } else { 8.0 + normal(random) },
        ),
    ];
    for (name, truth, draw) in distributions {
        for count in [10, 30, 100] {
            let bootstrap = coverage(count, truth, |values| median_interval(values, 0.95), draw);
            let exact = coverage(count, truth, |values| order_interval(values, 0.95), draw);
            assert!((0.89..=1.0).contains(&bootstrap), "{name} {count}: bootstrap {bootstrap}");
            assert!((0.92..=1.0).contains(&exact), "{name} {count}: exact {exact}");
        }
    }
}

#[test]
fn intervals_over_rounds_cover_what_processes_differ_by() {
    let mut random = fastrand::Rng::with_seed(11);
    let mut covered = [0_u32; 2];
    for _ in 0..200 {
        let rounds: Vec<Vec<f64>> = (0..5)
            .map(|_| {
                let process = 100.0 + normal(&mut random);
                (0..30).map(|_| process + normal(&mut random)).collect()
            })
            .collect();
        covered[0] += u32::from(rounds_interval(&rounds, 0.95).unwrap().contains(100.0));
        covered[1] += u32::from(median_interval(&rounds.concat(), 0.95).unwrap().contains(100.0));
    }
    let [by_rounds, pooled] = covered.map(|count| f64::from(count) / 200.0);
    assert!(by_rounds >= 0.88, "{by_rounds}");
    // Were the rounds pooled, the interval would promise far too much; if it does not, this simulation shows nothing.
    assert!(pooled < 0.75, "{pooled}");
}
