//! The flags that record what the machine does while a command measures, and the file they write.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use crate::exit::Failure;
use crate::{output, term};

/// Flags of a command that can record the monitor's samples.
#[derive(Debug, Args)]
pub(crate) struct TimelineArgs {
    /// Record what the machine is doing meanwhile, into the result
    #[arg(long)]
    monitor: bool,
    /// Seconds between two samples of the monitor
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = term::positive_seconds)]
    monitor_interval: f64,
    /// Write the monitor's timeline to this file, `-` for standard output; implies --monitor
    #[arg(long, value_name = "FILE")]
    monitor_output: Option<PathBuf>,
}

impl TimelineArgs {
    /// Whether the samples are asked for.
    pub(crate) fn is_asked(&self) -> bool {
        self.monitor || self.monitor_output.is_some()
    }

    /// The time between two samples.
    pub(crate) fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.monitor_interval)
    }

    /// The file for the timeline, with the flag that names it.
    pub(crate) fn file(&self) -> (&'static str, Option<&Path>) {
        ("--monitor-output", self.monitor_output.as_deref())
    }

    /// Writes the timeline where a file is named.
    pub(crate) fn write(&self, timeline: &impl Serialize) -> Result<(), Failure> {
        let Some(path) = &self.monitor_output else { return Ok(()) };
        let text = serde_json::to_string_pretty(timeline).map_err(Failure::not_possible)?;
        output::write(path, text.as_bytes())?;
        term::tell!("timeline written to {}", path.display());
        Ok(())
    }
}
