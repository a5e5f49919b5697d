//! What a benchmark is: its identity, what it exercises and how it is run.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The hardware or system area that a benchmark exercises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BenchmarkComponent {
    /// Processor cores.
    Cpu,
    /// Graphics processors and other accelerators.
    Gpu,
    /// Main memory and caches.
    Ram,
    /// Disks.
    Storage,
    /// Network interfaces.
    Network,
    /// The machine as a whole, end to end.
    System,
}

impl BenchmarkComponent {
    /// Every component, in the order in which they are listed and run.
    pub const ALL: [Self; 6] = [Self::Cpu, Self::Gpu, Self::Ram, Self::Storage, Self::Network, Self::System];

    /// The name used on the command line and in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Ram => "ram",
            Self::Storage => "storage",
            Self::Network => "network",
            Self::System => "system",
        }
    }
}

impl fmt::Display for BenchmarkComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The high-level category of a benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BenchmarkKind {
    /// A micro-benchmark or stress-like workload.
    Synthetic,
    /// An end-to-end workload.
    Application,
    /// A workload of one scientific or industrial domain.
    Domain,
}

impl fmt::Display for BenchmarkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Synthetic => "synthetic",
            Self::Application => "application",
            Self::Domain => "domain",
        })
    }
}

/// Names one benchmark within a suite.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BenchmarkId {
    /// The suite's name, such as `micro`.
    pub suite: String,
    /// The benchmark's name within the suite, such as `cpu_flops`.
    pub name: String,
}

impl BenchmarkId {
    /// An identity from its two names.
    pub fn new(suite: impl Into<String>, name: impl Into<String>) -> Self {
        Self { suite: suite.into(), name: name.into() }
    }

    /// The specification of this benchmark where nothing but its category is known.
    #[must_use]
    pub fn spec(self, kind: BenchmarkKind) -> BenchmarkSpec {
        BenchmarkSpec {
            id: self,
            components: Vec::new(),
            kind,
            description: None,
            default_duration_seconds: None,
            external_tool: None,
            params: None,
        }
    }
}

impl fmt::Display for BenchmarkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.suite, self.name)
    }
}

/// A parameter's value: text, integer, float or boolean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParamValue {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// Anything else.
    Text(String),
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

/// The parameters of a benchmark by name.
pub type Params = BTreeMap<String, ParamValue>;

/// Parameters with these values.
pub(crate) fn params(values: &[(&str, ParamValue)]) -> Params {
    values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

/// Describes an available benchmark and how it is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkSpec {
    /// The benchmark's identity.
    pub id: BenchmarkId,
    /// What it exercises.
    pub components: Vec<BenchmarkComponent>,
    /// Its category.
    pub kind: BenchmarkKind,
    /// What it does, for people.
    pub description: Option<String>,
    /// How long it measures, over all rounds, by default.
    pub default_duration_seconds: Option<u32>,
    /// The program it needs beside `warpt`, if any.
    pub external_tool: Option<String>,
    /// Its parameters: the defaults in a listing, the values used in a result.
    pub params: Option<Params>,
}
