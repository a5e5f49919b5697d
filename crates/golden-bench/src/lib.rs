//! Golden benchmarks: a model is trained by PyTorch, then by this engine, and the two runs are compared.
//!
//! A benchmark is a [`Description`] in TOML. [`record`] has PyTorch run the first pass, which leaves a golden folder.
//! [`run::run`] is the second pass: its own data pipeline, the whole training step as one program with its state in place,
//! its own metrics. `warpt validate` compares the folders.
//!
//! ```
//! use warpforge_golden_bench::description::{Description, Overrides};
//!
//! let description = Description::find("bert-squad")?;
//! let plan = description.plan(Some("tiny"), &Overrides { steps: Some(10), ..Overrides::default() })?;
//! assert_eq!((plan.training.steps, plan.data.max_length), (Some(10), 64));
//! # Ok::<(), warpforge_golden_bench::Error>(())
//! ```

#![forbid(unsafe_code)]

mod coco;
pub mod description;
mod error;
mod generate;
mod golden;
mod instruct;
mod masks;
mod record;
mod records;
pub mod run;
pub mod squad;
mod task;
mod tensors;
pub mod values;

pub use coco::Agreement;
pub use description::{Description, Plan};
pub use error::Error;
pub use golden::{GoldenRun, Wanted};
pub use record::{Python, record};
pub use records::suite_run;
