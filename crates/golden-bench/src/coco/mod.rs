//! Object detection on COCO: images by our own pipeline, what was chosen in the golden run, and detections with COCO's metrics.

mod agreement;
mod choose;
mod examples;
mod first_stage;
mod judge;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use agreement::Agreement;
use warpforge::{Inputs, Outputs, Tensor};
use warpforge_detection::coco::{Dataset, Detection};
use warpforge_detection::transform::{Batch, Transform};

use self::examples::Examples;
use self::settings::Settings;
use crate::Error;
use crate::description::Plan;
use crate::task::{Evaluation, Stages, Task};

/// What the loss is the sum of, as torchvision calls it.
const PARTS: [&str; 4] = ["loss_classifier", "loss_box_reg", "loss_objectness", "loss_rpn_box_reg"];

/// Detection of objects. The examples to train on are the images that have any, then the same ones mirrored.
pub(crate) struct Coco {
    golden: PathBuf,
    settings: Settings,
    transform: Transform,
    train: Examples,
    eval: Examples,
    /// What detections are judged by.
    truth: Dataset,
}

impl Coco {
    pub(crate) fn load(plan: &Plan, golden: &Path, train: &Path, eval: &Path) -> Result<Self, Error> {
        let settings = Settings::load(golden)?;
        let (training, judging) = (Dataset::read(train)?, Dataset::read(eval)?);
        training.same_categories(&judging).map_err(|error| Error::data(train, error.to_string()))?;
        let most = training.categories().iter().map(|category| category.id).max().unwrap_or(0);
        if most + 1 != settings.classes as i64 {
            let reason = format!("categories up to {most} are not those of {} classes", settings.classes);
            return Err(Error::data(train, reason));
        }
        let mut checksums: BTreeMap<String, BTreeMap<String, u32>> = settings::read(golden, "images.json")?;
        let mut examples = |part: &str, dataset: &Dataset, limit: Option<usize>| {
            let folder = settings.images(golden, part)?;
            let known = checksums.remove(part).unwrap_or_default();
            Ok::<_, Error>(Examples::new(dataset, folder, known, part == "train", limit))
        };
        let (train, eval) = (
            examples("train", &training, plan.data.limit_train)?,
            examples("eval", &judging, plan.data.limit_eval)?,
        );
        let truth = part_of(&judging, &eval)?;
        let transform = settings.transform();
        Ok(Self { golden: golden.to_owned(), settings, transform, train, eval, truth })
    }

    /// Examples of a part as one batch.
    fn prepared(&self, part: &str, indices: &[usize]) -> Result<Batch, Error> {
        let images = indices.iter().map(|&index| match part {
            "train" => {
                let count = self.train.len();
                self.train.prepared(index % count, index >= count, &self.transform)
            }
            _ => self.eval.prepared(index, false, &self.transform),
        });
        let batch = self.transform.batch(&images.collect::<Result<Vec<_>, _>>()?);
        let canvas = self.settings.canvas;
        match batch.dims {
            [_, _, height, width] if (height, width) == (canvas, canvas) => Ok(batch),
            dims => Err(Error::golden(&self.golden, format!("a batch of {dims:?}, not of {canvas} pixels"))),
        }
    }

    /// The detections of the golden run.
    fn golden_detections(&self) -> Result<Vec<Detection>, Error> {
        settings::read(&self.golden, "detections.json")
    }
}

/// The part of a dataset that examples are of.
fn part_of(dataset: &Dataset, examples: &Examples) -> warpforge_detection::Result<Dataset> {
    let images: Vec<_> = (0..examples.len()).map(|index| examples.image(index).clone()).collect();
    let known: std::collections::HashSet<i64> = images.iter().map(|image| image.id).collect();
    let annotations = dataset.annotations().iter().filter(|one| known.contains(&one.image_id)).cloned();
    Dataset::new(images, dataset.categories().to_vec(), annotations.collect())
}

impl Task for Coco {
    fn examples(&self, part: &str) -> usize {
        if part == "train" { 2 * self.train.len() } else { self.eval.len() }
    }

    fn row(&self, part: &str, index: usize) -> Vec<u8> {
        match part {
            "train" => self.train.row(index % self.train.len(), index >= self.train.len()),
            _ => self.eval.row(index, false),
        }
    }

    fn batch(&self, indices: &[usize]) -> Result<Inputs, Error> {
        let Batch { dims, values, .. } = self.prepared("train", indices)?;
        Ok([("images", Tensor::from_slice(&dims, &values)?)].into())
    }

    fn evaluation_batch(&self, indices: &[usize]) -> Result<Inputs, Error> {
        let Batch { dims, values, .. } = self.prepared("eval", indices)?;
        Ok([("images", Tensor::from_slice(&dims, &values)?)].into())
    }

    fn outputs(&self) -> Vec<&str> {
        Vec::new()
    }

    fn parts(&self) -> &[&'static str] {
        &PARTS
    }

    fn evaluate(&self, _outputs: &BTreeMap<String, Vec<Tensor>>) -> Result<Evaluation, Error> {
        Err(Error::Stopped("a detector is judged by its stages".to_owned()))
    }

    fn choose(&self, given: &Outputs, indices: &[usize], seed: u64) -> Result<Inputs, Error> {
        self.chosen(given, indices, seed)
    }

    fn evaluate_stages(&self, stages: &Stages<'_>) -> Option<Result<Evaluation, Error>> {
        Some(self.judge(stages))
    }
}
