//! Peaks of the processor: every element type and instruction set, by one thread and by all, in a burst and held.

use std::hint::black_box;
use std::time::{Duration, Instant};

use warpforge_inventory::live::{TimelineRecord, Watch};
use warpforge_measure::stats::{Summary, mean};
use warpforge_probes::affinity;
use warpforge_probes::cpu::{PeakKernel, peaks};
use warpforge_probes::team::Team;

use super::Session;
use super::timing::long_enough;
use crate::cases::Scale;
use crate::error::{Error, Result};
use crate::profile::{Mode, Peak};

/// How long a burst is.
const BURST: Duration = Duration::from_millis(10);

/// How long a peak is held for the sustained rate.
const SUSTAINED: Duration = Duration::from_secs(10);

/// How often power and clock are looked at.
const PERIOD: Duration = Duration::from_millis(500);

/// A pause before each burst, so that the one before does not count.
const REST: Duration = Duration::from_millis(20);

/// Measures what is missing.
pub(super) fn measure(session: &mut Session<'_>) -> Result<()> {
    let all = session.settings.thread_count();
    for threads in session.settings.thread_counts() {
        let mut cpus = affinity::allowed()?;
        cpus.truncate(threads);
        let mut team = Team::new(&cpus)?;
        let kernels = peaks();
        for kernel in &kernels {
            for mode in [Mode::Burst, Mode::Sustained] {
                let widest = kernels.iter().find(|other| other.dtype() == kernel.dtype());
                let is_widest = widest.is_some_and(|widest| widest.isa() == kernel.isa());
                if is_wanted(session, kernel, is_widest && threads == all, mode)
                    && !is_known(session, kernel, threads, mode)
                {
                    let peak = match mode {
                        Mode::Burst => {
                            let (peak, pace) =
                                session.with_pace(|session| peak(session, &mut team, kernel, mode))?;
                            Peak { pace, ..peak }
                        }
                        Mode::Sustained => peak(session, &mut team, kernel, mode)?,
                    };
                    session.profile.peaks.push(peak);
                }
            }
        }
    }
    Ok(())
}

/// Everything, but quickly the sustained rate of f32 by its widest instructions alone.
fn is_wanted(session: &Session<'_>, kernel: &PeakKernel, is_widest: bool, mode: Mode) -> bool {
    match (session.settings.scale, mode) {
        (_, Mode::Burst) | (Scale::Full, _) => true,
        (Scale::Quick, Mode::Sustained) => is_widest && kernel.dtype().name() == "f32",
        (Scale::Smoke, Mode::Sustained) => false,
    }
}

fn is_known(session: &Session<'_>, kernel: &PeakKernel, threads: usize, mode: Mode) -> bool {
    session.profile.peaks.iter().any(|known| {
        known.device == session.device
            && known.dtype == kernel.dtype().name()
            && known.isa == kernel.isa()
            && known.threads == threads
            && known.mode == mode
    })
}

/// A peak of this mode; cut short it is none.
fn peak(session: &Session<'_>, team: &mut Team, kernel: &PeakKernel, mode: Mode) -> Result<Peak> {
    let each = kernel.ops_per_iteration() as f64 * team.size() as f64;
    let mut run = |iterations: u64| {
        team.run(|_| {
            black_box(kernel.run(iterations));
        })
    };
    let smoke = session.settings.scale == Scale::Smoke;
    let length = if smoke { Duration::from_millis(1) } else { BURST };
    let iterations = long_enough(length, 1000, &mut run);
    let rate = |time: Duration| each * iterations as f64 / time.as_secs_f64().max(1e-9) / 1e9;
    let watch = (mode == Mode::Sustained).then(|| Watch::start(PERIOD).ok()).flatten();
    let (mut rates, begin) = (Vec::new(), Instant::now());
    match mode {
        Mode::Burst => {
            for _ in 0..if smoke { 3 } else { 7 } {
                std::thread::sleep(REST);
                rates.push(rate(run(iterations)));
            }
        }
        Mode::Sustained => {
            while begin.elapsed() < SUSTAINED && !session.stopped() {
                rates.push(rate(run(iterations)));
            }
        }
    }
    let records = watch.map(Watch::stop).unwrap_or_default();
    if session.stopped() {
        return Err(Error::Stopped);
    }
    let of = |values: Vec<f64>| mean(&values);
    let summary = Summary::of_rounds(&[rates]);
    let summary = summary.ok_or_else(|| Error::NotPossible("a peak has no rate".to_owned()))?;
    Ok(Peak {
        device: session.device.clone(),
        dtype: kernel.dtype().name().to_owned(),
        isa: kernel.isa().to_owned(),
        threads: team.size(),
        mode,
        gops: summary.value,
        ci_low: summary.spread.ci_low,
        ci_high: summary.spread.ci_high,
        watts: of(records.iter().filter_map(TimelineRecord::processor_watts).collect()),
        clock: of(records.iter().filter_map(TimelineRecord::mean_mhz).collect()),
        pace: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Observer, Settings, Step};
    use crate::profile::testing::profile;
    use crate::profile::{Profile, ProfileError};

    /// Asks to stop the third time that it is asked itself.
    struct Impatient(std::cell::Cell<usize>);

    impl Observer for Impatient {
        fn begins(&mut self, _: &Step) {}

        fn measured(&mut self, _: &Profile) -> std::result::Result<(), ProfileError> {
            Ok(())
        }

        fn ended(&mut self, _: &Profile) -> std::result::Result<(), ProfileError> {
            Ok(())
        }

        fn stopped(&self) -> bool {
            self.0.set(self.0.get() + 1);
            self.0.get() > 2
        }
    }

    #[test]
    fn a_sustained_peak_that_is_cut_short_is_none() {
        let settings = Settings::new(warpforge::Device::Cpu, Scale::Quick);
        let (mut profile, mut observer) = (profile(), Impatient(std::cell::Cell::new(0)));
        let session = Session {
            settings: &settings,
            device: "cpu".to_owned(),
            profile: &mut profile,
            observer: &mut observer,
            pace: None,
            begin: Instant::now(),
            done: 0,
        };
        let mut team = Team::new(&affinity::allowed().unwrap()[..1]).unwrap();
        let found = peak(&session, &mut team, &peaks()[0], Mode::Sustained);
        assert!(matches!(found, Err(Error::Stopped)));
    }
}
