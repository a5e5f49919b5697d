//! Measuring a machine, step by step; what was measured is kept when it is stopped.

mod bandwidth;
mod cases;
mod cold;
mod gpu;
mod overheads;
mod peaks;
mod program;
mod self_check;
mod threads;
mod timing;

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use warpforge::{Device, Precision};
use warpforge_inventory::live::{Conditions, ConditionsWatch};

use crate::cases::{Case, Dtype, Family, Scale};
use crate::error::{Error, Result};
use crate::machine::machine;
use crate::pace::Pace;
use crate::profile::{Profile, ProfileError, SCHEMA_VERSION, SelfCheck, Theoretical};

pub(crate) use timing::long_enough;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where.
    pub device: Device,
    /// How much.
    pub scale: Scale,
    /// Which patterns.
    pub families: Vec<Family>,
    /// In which precisions; empty for those that the device is known for.
    pub precisions: Vec<Precision>,
    /// Host threads; all where left out.
    pub threads: Option<NonZeroUsize>,
    /// What the machine is called.
    pub hardware_name: Option<String>,
    /// What its maker says.
    pub theoretical: Theoretical,
    /// How long to wait in all for a processor that others slow down; by the scale where left out.
    pub patience: Option<Duration>,
    /// Disturbs every time by up to this part, to check that noise is found.
    pub noise: f64,
}

impl Settings {
    /// Everything about a device, at a scale.
    #[must_use]
    pub fn new(device: Device, scale: Scale) -> Self {
        Self {
            device,
            scale,
            families: Family::NAMED.to_vec(),
            precisions: Vec::new(),
            threads: None,
            hardware_name: None,
            theoretical: Theoretical::default(),
            patience: None,
            noise: 0.0,
        }
    }

    fn dtypes(&self) -> Vec<Dtype> {
        let usual: &[Precision] = match self.device {
            Device::Cpu => &[Precision::Model, Precision::Bf16],
            _ => &[Precision::Model, Precision::Tf32, Precision::Bf16, Precision::F16],
        };
        let chosen = if self.precisions.is_empty() { usual } else { &self.precisions };
        chosen.iter().map(|&precision| Dtype::Float(precision)).collect()
    }

    /// The types of 8 bits that the device may have kernels for.
    fn dtypes_of_bytes(&self) -> &'static [Dtype] {
        if self.device == Device::Cpu { &[Dtype::Int8] } else { &[Dtype::Int8, Dtype::Float8] }
    }

    /// A case as it is measured on the device. Kernels of CPUs round operands as they pack them; on GPUs the kernel before has
    /// rounded them, and convolutions round their results.
    fn fitted(&self, case: Case) -> Case {
        if self.device == Device::Cpu { case } else { case.in_narrow_memory() }
    }

    /// What tells the pace of a processor, and how long it waits for others that slow it down. The clock of a GPU is its own.
    fn pace(&self, before: Option<f64>) -> Result<Option<Pace>> {
        let usual = match (self.device, self.scale) {
            (Device::Cpu, Scale::Quick) => Duration::from_secs(60),
            (Device::Cpu, Scale::Full) => Duration::from_secs(300),
            _ => return Ok(None),
        };
        Pace::fastest(before, self.thread_count(), self.patience.unwrap_or(usual)).map(Some)
    }

    fn rounds(&self) -> usize {
        if self.scale == Scale::Full { 2 } else { 1 }
    }

    /// All threads, and one where that is not all.
    fn thread_counts(&self) -> Vec<usize> {
        let mut counts = vec![self.thread_count(), 1];
        counts.dedup();
        counts
    }

    fn thread_count(&self) -> usize {
        match self.device {
            Device::Cpu => self.threads.map_or_else(
                || std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
                NonZeroUsize::get,
            ),
            _ => 1,
        }
    }
}

/// A step that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its number, from 1.
    pub number: usize,
    /// How many there are.
    pub count: usize,
    /// What is measured.
    pub what: String,
}

/// What watches a calibration.
pub trait Observer {
    /// A step begins.
    fn begins(&mut self, step: &Step);

    /// Something was measured: keep it.
    ///
    /// # Errors
    ///
    /// When it cannot be kept.
    fn measured(&mut self, profile: &Profile) -> std::result::Result<(), ProfileError>;

    /// The calibration ended, with everything measured or not: keep what there is.
    ///
    /// # Errors
    ///
    /// When it cannot be kept.
    fn ended(&mut self, profile: &Profile) -> std::result::Result<(), ProfileError>;

    /// Whether to stop.
    fn stopped(&self) -> bool;
}

/// Where a profile lies by default: `warpt/machine.json` under the XDG data directory, for a GPU `warpt/machine-cuda-0.json`.
#[must_use]
pub fn default_path(device: Device) -> Option<PathBuf> {
    let history = warpforge_bench::history::History::default_path().ok()?;
    let name = match device {
        Device::Cpu => "machine.json".to_owned(),
        other => format!("machine-{}.json", other.to_string().replace(':', "-")),
    };
    Some(history.with_file_name(name))
}

/// Measures a machine. A profile that was begun is gone on with.
///
/// Stopped, it gives what was measured until then, which is not [`Profile::complete`]. However it ends, the observer gets what was
/// measured.
///
/// # Errors
///
/// When the device is not there, the begun profile is of another machine, or the profile cannot be kept.
pub fn calibrate(
    settings: &Settings,
    begun: Option<Profile>,
    observer: &mut dyn Observer,
) -> Result<Profile> {
    let settings = &threads::settled(settings)?;
    let name = settings.device.to_string();
    let here = machine(&name, settings.hardware_name.as_deref());
    let mut profile = match begun {
        Some(begun) => resumed(settings, begun, &here)?,
        None => Profile {
            schema_version: SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            created: Timestamp::now(),
            quick: settings.scale != Scale::Full,
            complete: false,
            machine: here,
            conditions: Conditions::default(),
            theoretical: settings.theoretical,
            peaks: Vec::new(),
            bandwidth: Vec::new(),
            overheads: Vec::new(),
            operations: Vec::new(),
            cold_weights: Vec::new(),
            fusion_profiles: Vec::new(),
            self_check: SelfCheck::default(),
        },
    };
    let watch = ConditionsWatch::start().ok();
    let begin = Instant::now();
    let pace = settings.pace(profile.self_check.pace_gflops)?;
    let mut session =
        Session { settings, device: name, profile: &mut profile, observer, pace, begin, done: 0 };
    let outcome = session.run();
    profile.self_check.pace_gflops = session.pace.as_ref().map(Pace::gflops);
    profile.conditions = watch.map(ConditionsWatch::finish).unwrap_or_default();
    profile.self_check.seconds += begin.elapsed().as_secs_f64();
    self_check::finish(&mut profile);
    profile.complete = outcome.is_ok();
    observer.ended(&profile)?;
    match outcome {
        Ok(()) | Err(Error::Stopped) => Ok(profile),
        Err(error) => Err(error),
    }
}

/// A begun profile, if it is of this machine and asked for in the same way.
fn resumed(settings: &Settings, begun: Profile, here: &crate::profile::Machine) -> Result<Profile> {
    let differences = begun.differences(here);
    if !differences.is_empty() {
        return Err(ProfileError::OtherMachine {
            origin: "--resume".to_owned(),
            profile: begun.machine.fingerprint.clone(),
            here: here.fingerprint.clone(),
            differences,
        }
        .into());
    }
    if begun.quick != (settings.scale != Scale::Full) {
        let (was, is) = if begun.quick { ("with", "without") } else { ("without", "with") };
        return Err(Error::Settings(format!(
            "--resume: the profile was begun {was} --quick, and this is {is}"
        )));
    }
    let (said, before) = (settings.theoretical, begun.theoretical);
    let theoretical = Theoretical {
        peak_gflops: said.peak_gflops.or(before.peak_gflops),
        peak_bandwidth_gbps: said.peak_bandwidth_gbps.or(before.peak_bandwidth_gbps),
    };
    let mut machine = begun.machine.clone();
    if let Some(name) = &settings.hardware_name {
        machine.hardware_name.clone_from(name);
    }
    Ok(Profile { theoretical, machine, ..begun })
}

/// A calibration under way.
struct Session<'s> {
    settings: &'s Settings,
    /// The device's name.
    device: String,
    profile: &'s mut Profile,
    observer: &'s mut dyn Observer,
    /// The processor's; a GPU has none.
    pace: Option<Pace>,
    begin: Instant,
    /// Steps done.
    done: usize,
}

impl Session<'_> {
    fn run(&mut self) -> Result<()> {
        let cases = self.cases()?;
        if self.settings.device == Device::Cpu && self.settings.families.contains(&Family::Linear) {
            self.skip(
                "linear e4m3: the CPU has no kernel that multiplies 8-bit floats, it widens them to f32"
                    .to_owned(),
            );
        }
        let patterns = cases.iter().filter(|case| case.pattern.is_some()).count();
        let count = 5 + cases.len() + (self.settings.rounds() - 1) * patterns + self.settings.rounds();
        self.reference(count)?;
        self.step(count, "overheads")?;
        overheads::measure(self)?;
        self.step(count, "bandwidth")?;
        match self.settings.device {
            Device::Cpu => bandwidth::measure(self)?,
            _ => gpu::bandwidth(self)?,
        }
        self.step(count, "peaks")?;
        match self.settings.device {
            Device::Cpu => peaks::measure(self)?,
            _ => gpu::peaks(self)?,
        }
        for round in 0..self.settings.rounds() {
            for case in &cases {
                if round > 0 && case.pattern.is_none() {
                    continue;
                }
                self.step(count, &case.label())?;
                cases::measure(self, case, round)?;
            }
            self.reference(count)?;
        }
        self.step(count, "cold weights")?;
        cold::measure(self)
    }

    /// Keeps what was measured and goes on to the next step.
    fn step(&mut self, count: usize, what: &str) -> Result<()> {
        if self.observer.stopped() {
            return Err(Error::Stopped);
        }
        self.observer.measured(self.profile)?;
        self.done += 1;
        self.observer.begins(&Step { number: self.done, count, what: what.to_owned() });
        Ok(())
    }

    fn reference(&mut self, count: usize) -> Result<()> {
        self.step(count, "reference")?;
        let ms = self_check::reference(self)?;
        self.profile.self_check.reference_ms.push(ms);
        Ok(())
    }

    /// What is measured, as far as the device can compute it.
    fn cases(&self) -> Result<Vec<Case>> {
        let Settings { scale, families, .. } = self.settings;
        let dtypes = self.settings.dtypes();
        let of_bytes = self.settings.dtypes_of_bytes();
        let mut all = crate::cases::cases(*scale, families, &dtypes, of_bytes);
        if self.settings.device != Device::Cpu && *scale != Scale::Smoke {
            let known: HashSet<String> = all.iter().map(Case::label).collect();
            let large = crate::cases::large(*scale, families, &dtypes, of_bytes).into_iter();
            all.extend(large.filter(|case| !known.contains(&case.label())));
        }
        Ok(all.into_iter().map(|case| self.settings.fitted(case)).collect())
    }

    fn stopped(&self) -> bool {
        self.observer.stopped()
    }

    /// Measures while the machine is at its pace, as far as others let it, and counts what they disturbed.
    fn steadily<T>(&mut self, measure: impl FnMut(&Self) -> Result<T>) -> Result<T> {
        Ok(self.with_pace(measure)?.0)
    }

    /// As [`Self::steadily`], with the pace that the machine was at, in GFLOP/s, where it has one.
    fn with_pace<T>(&mut self, mut measure: impl FnMut(&Self) -> Result<T>) -> Result<(T, Option<f64>)> {
        let Some(mut pace) = self.pace.take() else { return Ok((measure(self)?, None)) };
        let measured = pace.steadily(|| self.stopped(), || measure(self));
        self.pace = Some(pace);
        let measured = measured?;
        let check = &mut self.profile.self_check;
        check.paced += 1;
        check.disturbed += usize::from(!measured.is_steady());
        Ok((measured.value, Some(measured.pace.gflops)))
    }

    /// Notes once what cannot be measured here.
    fn skip(&mut self, what: String) {
        let skipped = &mut self.profile.self_check.skipped;
        if !skipped.contains(&what) {
            skipped.push(what);
        }
    }

    /// Seconds since the beginning, for the order of random numbers.
    fn salt(&self) -> u64 {
        self.done as u64 ^ self.begin.elapsed().as_nanos() as u64
    }
}

#[cfg(test)]
mod tests;
