//! Values that options take: listed in the help and offered by completions, read by their own rules.

use std::marker::PhantomData;
use std::num::{IntErrorKind, NonZeroUsize};
use std::str::FromStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command};
use warpforge::{Device, Precision, QuantizationRecipe, Tier};
use warpforge_bench::record::BenchmarkComponent;
use warpforge_bench::suites::{METRICS, SUITES};
use warpforge_collective::Collectives;
use warpforge_stress::TESTS;

/// A parser that reads with [`FromStr`] and knows the usual values.
#[derive(Clone)]
pub(crate) struct Known<T> {
    values: Vec<String>,
    result: PhantomData<fn() -> T>,
}

impl<T> Known<T> {
    fn new(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { values: values.into_iter().map(Into::into).collect(), result: PhantomData }
    }
}

impl<T> TypedValueParser for Known<T>
where
    T: FromStr + Clone + Send + Sync + 'static,
    T::Err: std::fmt::Display,
{
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<T, clap::Error> {
        let text = StringValueParser::new().parse_ref(command, argument, value)?;
        text.parse().map_err(|error: T::Err| {
            let name = argument.map_or_else(String::new, ToString::to_string);
            let message = format!("invalid value '{text}' for '{name}': {error}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.values.iter().map(PossibleValue::new)))
    }
}

/// The devices, of several of a kind the first.
pub(crate) fn devices() -> Known<Device> {
    Known::new(["cpu", "cuda", "hip"])
}

/// The device of a rank: one that is not numbered is another for each rank of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RankDevice {
    device: Device,
    is_numbered: bool,
}

impl RankDevice {
    /// The device of one of several ranks on a machine that has so many devices of its kind.
    pub(crate) fn of(self, local_rank: usize, there: usize) -> Device {
        let own = u32::try_from(local_rank % there.max(1)).unwrap_or(0);
        match self.device {
            Device::Cuda(_) if !self.is_numbered => Device::Cuda(own),
            Device::Hip(_) if !self.is_numbered => Device::Hip(own),
            device => device,
        }
    }

    /// The device as it is named.
    pub(crate) fn named(self) -> Device {
        self.device
    }
}

impl FromStr for RankDevice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self { device: text.parse()?, is_numbered: text.contains(':') })
    }
}

/// The devices, of several of a kind one for each rank.
pub(crate) fn rank_devices() -> Known<RankDevice> {
    Known::new(["cpu", "cuda", "hip"])
}

/// The engines by which ranks talk to each other.
pub(crate) fn collectives() -> Known<Collectives> {
    Known::new(Collectives::ALL.map(|engine| engine.to_string()))
}

/// The tiers.
pub(crate) fn tiers() -> Known<Tier> {
    Known::new(Tier::ALL.map(|tier| tier.to_string()))
}

/// The precisions that operands are rounded to, without the recipes of quantized weights.
pub(crate) fn float_precisions() -> Known<Precision> {
    Known::new(Precision::ALL.into_iter().map(|precision| precision.to_string()))
}

/// The precisions; which of them a device has is known when it is opened.
pub(crate) fn precisions() -> Known<Precision> {
    let recipes = QuantizationRecipe::ALL.map(Precision::Quantized);
    Known::new(Precision::ALL.into_iter().chain(recipes).map(|precision| precision.to_string()))
}

/// The suites of benchmarks.
pub(crate) fn suites() -> Known<String> {
    Known::new(SUITES.iter().map(|suite| suite.name))
}

/// The benchmarks of all suites.
pub(crate) fn benchmarks() -> Known<String> {
    Known::new(SUITES.iter().flat_map(|suite| suite.list_benchmarks()).map(|spec| spec.id.name))
}

/// The metrics that benchmarks report.
pub(crate) fn metrics() -> Known<String> {
    Known::new(METRICS.iter().copied())
}

/// The parts of a machine.
pub(crate) fn components() -> Known<String> {
    Known::new(BenchmarkComponent::ALL.map(BenchmarkComponent::name))
}

/// What a stress test can load.
pub(crate) fn stress_components() -> clap::builder::PossibleValuesParser {
    crate::commands::stress::component_names().collect::<Vec<_>>().into()
}

/// The stress tests.
pub(crate) fn stress_tests() -> Known<String> {
    Known::new(TESTS.iter().map(|test| test.name))
}

/// A whole number above zero.
pub(crate) fn count(text: &str) -> Result<NonZeroUsize, String> {
    whole(text).ok().and_then(NonZeroUsize::new).ok_or_else(|| "expected a whole number above 0".to_owned())
}

/// A whole number.
pub(crate) fn whole<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let number = text.parse::<u64>().map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow => format!("expected at most {}", u64::MAX),
        _ => "expected a whole number, 0 or more".to_owned(),
    })?;
    T::try_from(number).map_err(|_| "expected a smaller number".to_owned())
}
