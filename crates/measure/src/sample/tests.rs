//! Sampling against a simulated machine: a clock that moves only as far as the routine's cost model says.

use std::cell::{Cell, RefCell};

use super::*;

const OVERHEAD: Duration = Duration::from_nanos(25);

struct Machine {
    now: Cell<Duration>,
    calls: RefCell<Vec<u64>>,
}

impl Machine {
    fn new() -> Self {
        Self { now: Cell::new(Duration::ZERO), calls: RefCell::new(vec![]) }
    }

    /// Runs `iterations` that cost as `seconds` says, by the number of the call, and shows the clock's overhead.
    fn work(&self, iterations: u64, seconds: impl Fn(usize) -> f64) -> Duration {
        let call = self.calls.borrow().len();
        self.calls.borrow_mut().push(iterations);
        let time = Duration::from_secs_f64(seconds(call) * iterations as f64) + OVERHEAD;
        self.now.set(self.now.get() + time);
        time
    }

    fn sample(&self, config: &SampleConfig, seconds: impl Fn(usize) -> f64) -> Samples {
        sample_with(self, config, &|| false, &mut |iterations| self.work(iterations, &seconds).into())
    }
}

impl Clock for Machine {
    fn now(&self) -> Duration {
        self.now.get()
    }

    fn overhead(&self) -> Duration {
        OVERHEAD
    }

    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    /// Follows the simulated time, so that a test can tell which moment was meant.
    fn core_speed(&self) -> f64 {
        self.now.get().as_secs_f64()
    }
}

fn noisy(base: f64) -> impl Fn(usize) -> f64 {
    move |call| base * (1.0 + fastrand::Rng::with_seed(call as u64).f64() * 0.2)
}

#[test]
fn samples_are_long_enough_at_any_cost() {
    let config = SampleConfig::within(Duration::from_secs(1));
    for cost in [1e-9, 3e-8, 1e-6, 7e-5, 1e-3, 2e-2] {
        let samples = Machine::new().sample(&config, |_| cost);
        let length = cost * samples.iterations_per_sample as f64;
        assert!(length >= config.min_sample_time.as_secs_f64(), "{cost}: {length}");
        assert!(OVERHEAD.as_secs_f64() <= length / 1000.0, "{cost}: {length}");
        assert!(samples.seconds_per_iteration.len() >= config.min_samples);
        let found = stats::median(&samples.seconds_per_iteration).unwrap();
        assert!((found / cost - 1.0).abs() < 1e-3, "{cost}: {found}");
    }
}

#[test]
fn each_sample_has_the_core_s_speed_around_it() {
    let config = SampleConfig::within(Duration::from_secs(1));
    let samples = Machine::new().sample(&config, noisy(1e-5));
    let speeds = &samples.core_speeds;
    assert_eq!(speeds.len(), samples.seconds_per_iteration.len());
    // Here the speed is the time, so from one sample's middle to the next lies the mean of their lengths.
    for (pair, times) in speeds.windows(2).zip(samples.seconds_per_iteration.windows(2)) {
        let expected = f64::midpoint(times[0], times[1]) * samples.iterations_per_sample as f64;
        assert!((pair[1] - pair[0] - expected).abs() < 1e-6, "{pair:?} {expected}");
    }
}

#[test]
fn a_routine_on_another_core_tells_the_speed_of_that() {
    let machine = Machine::new();
    let config = SampleConfig::within(Duration::from_secs(1));
    let samples = sample_with(&machine, &config, &|| false, &mut |iterations| Timing {
        time: machine.work(iterations, noisy(1e-5)),
        core_speed: Some(0.5),
    });
    assert!(samples.core_speeds.len() > 5 && samples.core_speeds.iter().all(|&speed| speed == 0.5));
}

#[test]
fn a_cold_start_does_not_make_samples_short() {
    let config = SampleConfig::within(Duration::from_secs(1));
    let samples = Machine::new().sample(&config, |call| if call < 10 { 1e-4 } else { 1e-6 });
    assert!(samples.iterations_per_sample as f64 * 1e-6 >= config.min_sample_time.as_secs_f64());
}

#[test]
fn the_least_number_of_samples_fits_a_tight_budget() {
    let config = SampleConfig { max_samples: 50, ..SampleConfig::within(Duration::from_millis(4)) };
    let machine = Machine::new();
    let samples = machine.sample(&config, noisy(1e-6));
    assert!(samples.seconds_per_iteration.len() >= config.min_samples);
    assert!(machine.now() <= Duration::from_millis(5), "{:?}", machine.now());
}

#[test]
fn time_is_kept_and_used_when_the_noise_stays() {
    let config = SampleConfig::within(Duration::from_secs(2));
    let machine = Machine::new();
    let samples = machine.sample(&config, noisy(1e-5));
    assert!(matches!(samples.ending, Ending::TimeUp | Ending::SampleLimit), "{:?}", samples.ending);
    let seconds = machine.now().as_secs_f64();
    assert!((1.6..=2.05).contains(&seconds), "{seconds}");
}

#[test]
fn a_steady_routine_ends_early() {
    let config = SampleConfig::within(Duration::from_secs(10));
    let machine = Machine::new();
    let samples = machine.sample(&config, |_| 1e-5);
    assert_eq!(samples.ending, Ending::NarrowEnough);
    assert!(machine.now() < Duration::from_secs(5));
}

#[test]
fn slow_routines_give_the_least_number_of_samples_all_the_same() {
    let config = SampleConfig::within(Duration::from_secs(1));
    let samples = Machine::new().sample(&config, noisy(3.0));
    assert_eq!(samples.iterations_per_sample, 1);
    assert_eq!(samples.seconds_per_iteration.len(), config.min_samples);
    assert_eq!(samples.ending, Ending::TimeUp);
}

#[test]
fn the_number_of_samples_is_limited() {
    let config = SampleConfig {
        budget: Duration::from_secs(1000),
        min_samples: 7,
        max_samples: 7,
        target_relative_half_width: 0.0,
        ..SampleConfig::within(Duration::from_secs(1))
    };
    let samples = Machine::new().sample(&config, noisy(1e-3));
    assert_eq!((samples.seconds_per_iteration.len(), samples.ending), (7, Ending::SampleLimit));
}

#[test]
fn stopping_keeps_what_there_is() {
    let config = SampleConfig::within(Duration::from_secs(1));
    let machine = Machine::new();
    let mut warm = 0;
    for wanted in [0, 1, 3] {
        let machine_before = machine.calls.borrow().len();
        let limit = machine_before + warm + wanted;
        let stop = || machine.calls.borrow().len() >= limit;
        let samples = sample_with(&machine, &config, &stop, &mut |iterations| {
            machine.work(iterations, noisy(1e-5)).into()
        });
        assert_eq!(samples.ending, Ending::Stopped);
        assert_eq!(samples.seconds_per_iteration.len(), if warm == 0 { 0 } else { wanted });
        // How many calls a warm-up takes: those before the first that has the final number of iterations.
        let probe = Machine::new();
        let iterations = probe.sample(&config, noisy(1e-5)).iterations_per_sample;
        warm = probe.calls.borrow().iter().position(|&call| call == iterations).unwrap();
    }
}

#[test]
fn a_routine_that_says_it_took_no_time_ends_too() {
    let config = SampleConfig::within(Duration::from_millis(10));
    let machine = Machine::new();
    for cost in [Duration::ZERO, Duration::from_micros(3)] {
        let samples = sample_with(&machine, &config, &|| false, &mut |iterations| {
            let passed = cost.mul_f64(iterations as f64) + Duration::from_micros(1);
            machine.now.set(machine.now() + passed);
            Duration::ZERO.into()
        });
        assert!(samples.seconds_per_iteration.iter().all(|&seconds| seconds == 0.0));
    }
    assert!(machine.now() < Duration::from_secs(1), "{:?}", machine.now());
}

#[test]
fn the_clock_s_overhead_is_taken_off_where_it_shows() {
    let machine = Machine::new();
    assert_eq!(without_overhead(Duration::from_nanos(125), &machine), Duration::from_nanos(100));
    assert_eq!(without_overhead(Duration::from_nanos(10), &machine), Duration::ZERO);
    assert_eq!(without_overhead(Duration::from_millis(1), &machine), Duration::from_millis(1));
}
