//! The noise floor of a golden run: tensors in which a second run of the same kind differs from it.
//!
//! A gradient that is zero by mathematics is rounding in any float type, and optimizers that divide by a gradient's size turn it
//! into steps of the learning rate. No two runs whose sums have another order agree there.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::{Class, Error};

/// The newest form of the file that is understood.
const SCHEMA_VERSION: u64 = 1;
/// The name of the file.
const FILE_NAME: &str = "noise.json";

/// How far two golden runs are apart in a tensor.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Noise {
    /// The largest absolute difference.
    pub max_abs: f64,
    /// Of a curve: the same for each element, where the first are closer than the last.
    pub each: Option<Vec<f64>>,
    /// Why the two differ.
    pub reason: String,
}

impl Noise {
    fn distances(&self) -> impl Iterator<Item = f64> {
        self.each.iter().flatten().copied().chain([self.max_abs])
    }
}

#[derive(Deserialize)]
struct File {
    schema_version: u64,
    tensors: BTreeMap<Class, BTreeMap<String, Noise>>,
}

/// Reads the noise floor of a folder; most have none.
pub(super) fn read(folder: &Path) -> Result<BTreeMap<Class, BTreeMap<String, Noise>>, Error> {
    let path = folder.join(FILE_NAME);
    let wrong = |reason: String| Error::Json { path: path.display().to_string(), reason };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(cause) => return Err(Error::Io { path: path.display().to_string(), cause }),
    };
    let file: File = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    if file.schema_version != SCHEMA_VERSION {
        return Err(wrong(format!(
            "schema_version {} is not {SCHEMA_VERSION}, the one known here",
            file.schema_version
        )));
    }
    for (name, noise) in file.tensors.values().flatten() {
        if let Some(distance) = noise.distances().find(|distance| !(distance.is_finite() && *distance >= 0.0))
        {
            return Err(wrong(format!("`{name}`: {distance} is no distance")));
        }
    }
    Ok(file.tensors)
}
