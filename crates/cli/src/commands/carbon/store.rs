//! Kept records: a file each, below the data folder.

use std::path::PathBuf;

use anyhow::Context as _;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use warpforge_bench::history::History;

use super::grids::Factor;
use crate::exit::Failure;
use crate::{output, term};

/// The form of a record.
const SCHEMA_VERSION: u32 = 1;

/// What a command used, and the carbon of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The version of this form.
    pub(super) schema_version: u32,
    /// When the command began.
    pub(super) started: Timestamp,
    /// The command and its arguments.
    pub(super) command: Vec<String>,
    /// How it ended; null where a signal ended it.
    pub(super) exit_code: Option<i32>,
    /// How long it ran.
    pub(super) seconds: f64,
    /// What the machine used meanwhile; null where it is not known.
    pub(super) energy_joules: Option<f64>,
    /// `measured`, or `estimate` where the user gave a power.
    pub(super) energy_source: Option<String>,
    /// What was measured, such as `package-0` or `gpu-0`: what does not report its power is not in the energy.
    #[serde(default)]
    pub(super) energy_of: Vec<String>,
    /// The power that the user gave.
    pub(super) estimated_watts: Option<f64>,
    /// Why the energy is not known, where it is not.
    pub(super) reason: Option<String>,
    /// What energy was multiplied with; null without `--grid` or `--intensity`.
    pub(super) factor: Option<Factor>,
    /// Grams of CO2 or CO2 equivalents; null without energy or factor.
    pub(super) carbon_grams: Option<f64>,
    /// The price of a kilowatt-hour that the user gave.
    pub(super) price_per_kwh: Option<f64>,
    /// The cost in the same currency.
    pub(super) cost: Option<f64>,
}

impl Record {
    /// A record without figures.
    pub(super) fn new(started: Timestamp, command: Vec<String>) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            started,
            command,
            exit_code: None,
            seconds: 0.0,
            energy_joules: None,
            energy_source: None,
            energy_of: Vec::new(),
            estimated_watts: None,
            reason: None,
            factor: None,
            carbon_grams: None,
            price_per_kwh: None,
            cost: None,
        }
    }
}

/// The folder of the records, beside the history of benchmarks.
fn folder() -> Result<PathBuf, Failure> {
    let history = History::default_path().map_err(Failure::not_possible)?;
    Ok(history.with_file_name("carbon"))
}

/// Keeps a record in a file of its own, so that two commands at once do not lose one.
pub(super) fn keep(record: &Record) -> Result<PathBuf, Failure> {
    let folder = folder()?;
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))
        .map_err(Failure::not_possible)?;
    let time = record.started.strftime("%Y%m%dT%H%M%S%6fZ");
    let path = folder.join(format!("{time}-{:08x}.json", fastrand::u32(..)));
    let text = serde_json::to_string_pretty(record).map_err(Failure::not_possible)?;
    output::write(&path, text.as_bytes())?;
    Ok(path)
}

/// All records, oldest first. A file that is none is named and left out.
pub(super) fn all() -> Result<Vec<Record>, Failure> {
    let folder = folder()?;
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            let error = anyhow::Error::from(error).context(format!("cannot read {}", folder.display()));
            return Err(Failure::not_possible(error));
        }
    };
    let mut records = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let read = std::fs::read_to_string(&path).map_err(anyhow::Error::from);
        match read.and_then(|text| Ok(serde_json::from_str::<Record>(&text)?)) {
            Ok(record) if record.schema_version <= SCHEMA_VERSION => records.push(record),
            Ok(record) => term::remark(&format!(
                "warpt: {}: written by a newer program (form {})",
                path.display(),
                record.schema_version
            )),
            Err(error) => term::remark(&format!("warpt: {}: left out: {error}", path.display())),
        }
    }
    records.sort_by_key(|record| record.started);
    Ok(records)
}
