//! The one result record: what a benchmark is, what a run of it measured, and what is needed to trust it.

mod conditions;
mod file;
mod metric;
mod peer;
mod run;
mod spec;

pub use conditions::Conditions;
pub use file::{RecordError, read, read_str, write};
pub use metric::{BenchmarkMetric, MetricStatistics, Outliers, Spread, Tags};
pub use peer::{PeerRatio, PeerResult};
pub use run::{BenchmarkRunResult, BenchmarkSuiteRun, Verdict};
pub(crate) use spec::params;
pub use spec::{BenchmarkComponent, BenchmarkId, BenchmarkKind, BenchmarkSpec, ParamValue, Params};

/// The version of the record's shape; a reader refuses a newer one.
pub const SCHEMA_VERSION: u32 = 1;
