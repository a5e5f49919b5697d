//! What a validation found, as data: `report` renders it, and as JSON it is the machine's answer.

use std::fmt;

use serde::Serialize;

use crate::Class;
use crate::tolerance::Rule;

/// The form of [`Validation`] as JSON.
pub const SCHEMA_VERSION: u32 = 1;

/// What it came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// Everything that was compared is within its tolerance, and nothing that had to be there is missing.
    Pass,
    /// Something is not.
    Fail,
    /// Nothing could be compared.
    Inconclusive,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Inconclusive => "INCONCLUSIVE",
        })
    }
}

/// The comparison of two runs.
#[derive(Debug, Clone, Serialize)]
pub struct Validation {
    /// The form of this record.
    pub schema_version: u32,
    /// The version of the program.
    pub tool_version: String,
    /// What it came to.
    pub verdict: Verdict,
    /// The run that is right by definition.
    pub golden: RunInfo,
    /// The run that is judged.
    pub candidate: RunInfo,
    /// The run in binary64 that judges both where their own types are narrow.
    pub reference: Option<RunInfo>,
    /// The model that operations were replayed with.
    pub model: Option<String>,
    /// Totals.
    pub counts: Counts,
    /// The classes that occur, in the order in which a run makes them.
    pub classes: Vec<ClassSummary>,
    /// The first operation in execution order that is out of tolerance.
    pub first_operation: Option<Operation>,
    /// The operation before it that made the error, where the first out of tolerance only inherited it.
    pub cause: Option<Cause>,
    /// Why there is no first operation though something is out of tolerance.
    pub first_operation_unknown: Option<String>,
    /// What was found by splitting the first operation whose error arose there.
    pub bisection: Option<Bisection>,
    /// All operations out of tolerance, in execution order; the first is among them.
    pub operations: Vec<Operation>,
    /// Every tensor of either run: steps in order, execution order within, then by name.
    pub tensors: Vec<TensorReport>,
    /// What else a reader should know: files left out, runs made from different seeds.
    pub notes: Vec<String>,
}

/// Where a run comes from.
#[derive(Debug, Clone, Serialize)]
pub struct RunInfo {
    /// Its folder.
    pub path: String,
    /// What the model is called.
    pub model: Option<String>,
    /// The seed of the random numbers.
    pub seed: Option<i64>,
    /// The versions of what made it.
    pub versions: std::collections::BTreeMap<String, String>,
}

/// How many tensors fared how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Compared value by value.
    pub compared: usize,
    /// Of these, the same to the bit.
    pub identical: usize,
    /// Of these, within their tolerance.
    pub passed: usize,
    /// Out of tolerance, of another shape or type, or missing where that is a mismatch.
    pub failed: usize,
    /// Only in the golden run.
    pub missing: usize,
    /// Only in the candidate.
    pub extra: usize,
    /// Left out by a rule.
    pub ignored: usize,
    /// Only in the golden run, and the candidate says why.
    pub skipped: usize,
    /// Elements compared.
    pub elements: u64,
    /// Elements out of tolerance.
    pub elements_out_of_tolerance: u64,
}

/// What the tensors of a class came to.
#[derive(Debug, Clone, Serialize)]
pub struct ClassSummary {
    /// The class.
    pub class: Class,
    /// What it came to; inconclusive when nothing of it could be compared.
    pub verdict: Verdict,
    /// Its totals.
    pub counts: Counts,
    /// The largest absolute difference.
    pub max_abs: Option<f64>,
    /// The largest difference divided by the golden magnitude.
    pub max_rel: Option<f64>,
    /// The largest number of representable values apart.
    pub max_ulp: Option<u64>,
    /// The smallest cosine between a golden tensor and its candidate.
    pub min_cosine: Option<f64>,
    /// The tensor with the largest absolute difference.
    pub worst_tensor: Option<String>,
    /// Tensors with NaN or infinities that the other run has not. The differences above are of the other elements.
    pub non_finite: usize,
}

/// How one tensor fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Within its tolerance.
    Passed,
    /// Out of its tolerance, and no further away than golden runs are from each other.
    WithinNoise,
    /// Not.
    OutOfTolerance,
    /// The shapes differ.
    ShapeMismatch,
    /// The element types differ.
    TypeMismatch,
    /// Only in the golden run.
    Missing,
    /// Only in the candidate.
    Extra,
    /// Left out by a rule.
    Ignored,
    /// Only in the golden run, and the candidate says why.
    Skipped,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Passed => "passed",
            Self::WithinNoise => "within noise",
            Self::OutOfTolerance => "out of tolerance",
            Self::ShapeMismatch => "other shape",
            Self::TypeMismatch => "other type",
            Self::Missing => "missing",
            Self::Extra => "extra",
            Self::Ignored => "ignored",
            Self::Skipped => "skipped",
        })
    }
}

/// One tensor of either run.
#[derive(Debug, Clone, Serialize)]
pub struct TensorReport {
    /// Its name.
    pub name: String,
    /// What it is in the run.
    pub class: Class,
    /// The folder inside the run's that it is in.
    pub step: Option<String>,
    /// The node of the graph that computes it.
    pub node: Option<String>,
    /// How it fared.
    pub status: Status,
    /// Why it was skipped.
    pub reason: Option<String>,
    /// Whether that is a mismatch.
    pub failed: bool,
    /// Whether the two are the same to the bit.
    pub identical: bool,
    /// What the golden tensor is.
    pub golden: Option<TensorKind>,
    /// What the candidate's is.
    pub candidate: Option<TensorKind>,
    /// How it was judged.
    pub rule: Rule,
    /// What the comparison measured, where there was one.
    pub figures: Option<Figures>,
    /// How far both runs are from the reference run, where that is what the tensor was judged by.
    pub three_way: Option<ThreeWay>,
}

impl TensorReport {
    /// The name with the step before it.
    #[must_use]
    pub fn label(&self) -> String {
        self.step.as_ref().map_or_else(|| self.name.clone(), |step| format!("{step}/{}", self.name))
    }
}

/// Two tensors of a narrow type judged by a third in binary64: the candidate may be `factor` times as far from it as
/// the golden one, and half a step of the type more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ThreeWay {
    /// How far the golden tensor is from the reference.
    pub golden: Share,
    /// How far the candidate's is; what is out of tolerance here is what counts.
    pub candidate: Share,
    /// How many times as far it may be.
    pub factor: f64,
    /// Half a step of the type at the largest value: what rounding alone may make.
    pub half_step: f64,
}

/// The type and shape of a tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TensorKind {
    /// The element type.
    pub element_type: String,
    /// The shape.
    pub shape: Vec<usize>,
}

impl fmt::Display for TensorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.element_type, self.shape)
    }
}

/// What a comparison measured. Values are the candidate's against the golden ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Elements compared.
    pub elements: u64,
    /// Elements out of tolerance.
    pub out_of_tolerance: u64,
    /// Largest absolute difference.
    pub max_abs: f64,
    /// Largest difference divided by the golden magnitude, where that is not zero.
    pub max_rel: f64,
    /// Largest number of representable values apart.
    pub max_ulp: u64,
    /// Mean absolute difference.
    pub mean_abs: f64,
    /// Root of the mean squared difference.
    pub rms: f64,
    /// Cosine of the angle between the two as vectors; unknown when one is zero everywhere or they are not finite in the
    /// same places, 1 for identical ones.
    pub cosine: Option<f64>,
    /// Largest finite golden magnitude that is no outlier; not looked at in identical tensors.
    pub scale: Option<f64>,
    /// Largest finite golden magnitude.
    pub largest: Option<f64>,
    /// Golden values far above the rest that are few, or all the same: each is judged by its own magnitude.
    pub outliers: Option<u64>,
    /// Whether a single golden value, far above the rest, sets the scale.
    pub scale_of_one: bool,
    /// NaNs in the golden tensor; not counted in identical ones.
    pub golden_nan: Option<u64>,
    /// NaNs in the candidate's.
    pub candidate_nan: Option<u64>,
    /// Infinities in the golden tensor; not counted in identical ones.
    pub golden_infinite: Option<u64>,
    /// Infinities in the candidate's.
    pub candidate_infinite: Option<u64>,
    /// The first element that is NaN or infinite in one of the two, and not the same in both. The differences above are
    /// of the other elements.
    pub first_non_finite: Option<Point>,
    /// The element with the largest difference; one that is not finite on one side only beats all others.
    pub worst: Option<Point>,
    /// The first element out of tolerance.
    pub first: Option<Point>,
    /// Absolute differences by powers of ten.
    pub histogram: Vec<Bin>,
    /// Distances in representable values by powers of two.
    pub ulp_histogram: Vec<Bin>,
}

/// One element of both tensors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Point {
    /// Its index.
    pub index: Vec<usize>,
    /// The golden value, as text: JSON has no NaN.
    pub golden: String,
    /// The candidate's.
    pub candidate: String,
}

/// How many elements differ by something from `from` to below `to`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bin {
    /// The lower end; 0 with a `to` of 0 counts what is the same.
    pub from: f64,
    /// The upper end; none in the last bin.
    pub to: Option<f64>,
    /// How many.
    pub count: u64,
}

/// An operation of the model whose value is out of tolerance.
#[derive(Debug, Clone, Serialize)]
pub struct Operation {
    /// The node of the graph.
    pub node: String,
    /// Its place in execution order, from 0.
    pub position: usize,
    /// The operation: `aten.relu.default`.
    pub target: Option<String>,
    /// The module that it is in.
    pub module: Option<String>,
    /// The line of the source, `file:line`.
    pub source: Option<String>,
    /// The step of the run.
    pub step: Option<String>,
    /// The tensor that shows it: a value of the node that is out of tolerance.
    pub tensor: String,
    /// Its class.
    pub class: Class,
    /// The fused cluster of the candidate that gave it.
    pub cluster: Option<Cluster>,
    /// What the comparison measured.
    pub figures: Option<Figures>,
    /// Where the error comes from.
    pub origin: Origin,
}

/// An operation whose value is within its tolerance, and whose error put a later one out of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// The node of the graph.
    pub node: String,
    /// The operation: `aten.gelu.default`.
    pub target: Option<String>,
    /// The module that it is in.
    pub module: Option<String>,
    /// The line of the source, `file:line`.
    pub source: Option<String>,
    /// The step of the run.
    pub step: Option<String>,
    /// Its value.
    pub tensor: String,
    /// The largest error that was made in it.
    pub max_abs: f64,
    /// The same, divided by the largest golden magnitude.
    pub part_of_largest: f64,
}

/// A cluster of operations that one kernel of the candidate computed.
#[derive(Debug, Clone, Serialize)]
pub struct Cluster {
    /// Its place in execution order, from 0.
    pub position: usize,
    /// The kernel's name.
    pub kernel: String,
    /// The nodes of the graph that it computes.
    pub nodes: Vec<String>,
}

/// The first node that errs inside an operation or a cluster, and the smallest subgraph that shows it.
#[derive(Debug, Clone, Serialize)]
pub struct Bisection {
    /// The node.
    pub node: String,
    /// The line of its source, `file:line`.
    pub source: Option<String>,
    /// What makes the error.
    pub of: Source,
    /// How large it is on the inputs of the subgraph.
    pub difference: Share,
    /// The nodes of the subgraph.
    pub subgraph: Vec<String>,
    /// The values that it starts from.
    pub inputs: Vec<String>,
    /// The folder that it was written to.
    pub written: Option<String>,
}

/// What makes an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The engine computes it otherwise than the reference.
    Execution,
    /// The imported model is not what the golden run ran.
    Import,
}

/// Where an error comes from.
#[derive(Debug, Clone, Serialize)]
pub struct Origin {
    /// The answer.
    pub verdict: OriginVerdict,
    /// The answer in a sentence, with its figures or with the reason why there is none.
    pub explanation: String,
    /// What the replay measured; nothing where there was none.
    pub replay: Option<Replay>,
}

/// Whether an error was made in an operation or came with its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OriginVerdict {
    /// The operation made it.
    AroseHere,
    /// Its inputs brought it.
    Inherited,
    /// Both.
    Both,
    /// It could not be found out.
    Unknown,
}

impl fmt::Display for OriginVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::AroseHere => "arose here",
            Self::Inherited => "inherited",
            Self::Both => "both",
            Self::Unknown => "unknown",
        })
    }
}

/// An operation computed again by the reference, on the inputs of each run.
///
/// The difference between the runs is the sum of three: `execution` + `inherited` + `import`.
#[derive(Debug, Clone, Serialize)]
pub struct Replay {
    /// The candidate's value against the reference's on the candidate's inputs: what computing it has changed.
    pub execution: Share,
    /// The reference on the candidate's inputs against the reference on the golden inputs: what the inputs brought.
    pub inherited: Share,
    /// The reference on the golden inputs against the golden value: what the imported model does otherwise.
    pub import: Share,
    /// The values that both runs have and the replay started from.
    pub inputs: Vec<String>,
    /// The nodes that were computed again: the operation, and those before it whose values were not saved.
    pub nodes: Vec<String>,
}

/// A difference, or one part of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// Largest absolute difference.
    pub max_abs: f64,
    /// Root of the mean squared difference.
    pub rms: f64,
    /// Elements that this alone puts out of tolerance.
    pub out_of_tolerance: u64,
}
