//! What the golden run says about its detector: how images are prepared, and by what rules boxes are chosen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use warpforge_detection::select::{Detections, Proposals, Sampler};
use warpforge_detection::transform::Transform;

use crate::Error;

/// The newest form of the file.
const SCHEMA_VERSION: u64 = 1;

/// The content of `detection.json`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Settings {
    schema_version: u64,
    min_size: usize,
    max_size: usize,
    /// Width and height of every batch.
    pub(super) canvas: usize,
    mean: [f32; 3],
    std: [f32; 3],
    /// The background and every category.
    pub(super) classes: usize,
    proposals: ProposalSettings,
    training_proposals: ProposalSettings,
    anchor_samples: SampleSettings,
    region_samples: SampleSettings,
    detections: DetectionSettings,
    /// The folder of the images of each part.
    images: BTreeMap<String, PathBuf>,
}

#[derive(Debug, Clone, Deserialize)]
struct ProposalSettings {
    before: usize,
    after: usize,
    threshold: f64,
}

#[derive(Debug, Clone, Deserialize)]
struct SampleSettings {
    count: usize,
    positive: f64,
}

#[derive(Debug, Clone, Deserialize)]
struct DetectionSettings {
    score: f32,
    threshold: f64,
    most: usize,
}

impl ProposalSettings {
    fn rule(&self) -> Proposals {
        let Self { before, after, threshold } = *self;
        Proposals { before, after, threshold }
    }
}

impl SampleSettings {
    fn rule(&self) -> Sampler {
        let Self { count, positive } = *self;
        Sampler { count, positive }
    }
}

/// A JSON file of a golden folder.
pub(super) fn read<T: DeserializeOwned>(golden: &Path, name: &str) -> Result<T, Error> {
    let path = golden.join(name);
    let text = std::fs::read(&path).map_err(Error::io(&path))?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::golden(golden, format!("{name} cannot be read: {error}")))
}

impl Settings {
    pub(super) fn load(golden: &Path) -> Result<Self, Error> {
        let settings: Self = read(golden, "detection.json")?;
        let Self { schema_version, min_size, max_size, canvas, classes, proposals, .. } = &settings;
        if *schema_version != SCHEMA_VERSION {
            let reason = format!(
                "detection.json has form {schema_version}, known here is {SCHEMA_VERSION}; record it again"
            );
            return Err(Error::golden(golden, reason));
        }
        let fits = *min_size > 0 && *max_size <= *canvas && *classes > 1 && proposals.after > 0;
        match fits {
            true => Ok(settings),
            false => Err(Error::golden(golden, "detection.json: sizes that contradict each other")),
        }
    }

    /// How images are prepared.
    pub(super) fn transform(&self) -> Transform {
        let Self { min_size, max_size, mean, std, canvas, .. } = *self;
        Transform { min_size, max_size, mean, std, size_divisible: canvas }
    }

    /// Which boxes of the first stage are kept in an evaluation.
    pub(super) fn proposals(&self) -> Proposals {
        self.proposals.rule()
    }

    /// Which are kept in a training step.
    pub(super) fn training_proposals(&self) -> Proposals {
        self.training_proposals.rule()
    }

    /// How anchors are sampled for the losses.
    pub(super) fn anchor_samples(&self) -> Sampler {
        self.anchor_samples.rule()
    }

    /// How regions are sampled for the losses.
    pub(super) fn region_samples(&self) -> Sampler {
        self.region_samples.rule()
    }

    /// Which boxes of the second stage are kept.
    pub(super) fn detections(&self) -> Detections {
        let DetectionSettings { score, threshold, most } = self.detections;
        Detections { score, threshold, most }
    }

    /// The folder of the images of a part; that of generated ones is in the golden folder.
    pub(super) fn images(&self, golden: &Path, part: &str) -> Result<PathBuf, Error> {
        let folder = self.images.get(part);
        let missing = || Error::golden(golden, format!("detection.json names no images of {part}"));
        Ok(golden.join(folder.ok_or_else(missing)?))
    }
}
