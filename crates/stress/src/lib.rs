//! Load on one part of the machine for a time, with every result verified.
//!
//! [`TESTS`] lists the tests. [`run`] prepares one, which refuses before it allocates where something is missing, and
//! repeats its iterations until the time is over. The result of every iteration is compared with what it must be: a known
//! answer, the data that was written, or the first result, which was itself checked. A difference is a [`Mismatch`] with
//! its place.
//!
//! ```
//! use std::time::Duration;
//! use warpforge_stress::{Resources, Settings, Verdict, find, run};
//!
//! let resources = Resources { memory_bytes: Some(64 << 20), swap_bytes: None };
//! let settings = Settings { resources, ..Settings::new(Duration::from_millis(1)) };
//! let result = run(find("cpu", "hashing").unwrap(), &settings, &|| false);
//! assert_eq!((result.verdict, result.errors), (Verdict::Pass, 0));
//! ```

#![forbid(unsafe_code)]

mod catalog;
mod cpu;
mod error;
mod gpu;
mod load;
mod network;
mod pattern;
mod ram;
mod rate;
mod record;
mod run;
mod settings;
mod storage;
mod telemetry;
mod workers;

pub use catalog::{Component, TESTS, Test, find, of_component};
pub use error::StressError;
pub use load::Mismatch;
pub use rate::{Rate, Span, Window};
pub use record::{StressRun, TestResult, Verdict};
pub use run::run;
pub use settings::{MOST_DISK_SHARE, MOST_MEMORY_SHARE, MOST_SWAP_SHARE, Resources, Settings};
pub use telemetry::{Range, Telemetry};
