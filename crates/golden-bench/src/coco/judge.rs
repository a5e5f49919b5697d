//! The evaluation: a graph for each stage of the detector, and our own choice of boxes between and behind them.

use warpforge::{Inputs, Outputs, Tensor};
use warpforge_detection::coco::Detection;
use warpforge_detection::evaluate::evaluate;
use warpforge_detection::select::{Found, level_of};
use warpforge_detection::transform::resize_boxes;

use super::Coco;
use super::agreement::Agreement;
use super::first_stage::{FirstStage, LEVELS, boxes, output};
use crate::Error;
use crate::task::{Evaluation, Stages};

/// The graphs of the stages.
const FIRST: &str = "eval.pt2";
const SECOND: &str = "eval-regions.pt2";

impl Coco {
    /// Runs both stages on all images of the evaluation, and judges what they find.
    pub(super) fn judge(&self, stages: &Stages<'_>) -> Result<Evaluation, Error> {
        let (first, second) = (stages.compile(FIRST)?, stages.compile(SECOND)?);
        let (size, count) = (stages.batch_size, self.eval.len());
        let mut found = Vec::new();
        for begin in (0..count).step_by(size) {
            // The last batch is filled up with examples of the first.
            let indices: Vec<usize> = (begin..begin + size).map(|index| index % count).collect();
            let batch = self.prepared("eval", &indices)?;
            let images = Tensor::from_slice(&batch.dims, &batch.values)?;
            let given = first.run([("images", images)])?;
            let stage = FirstStage::of(&given, self.settings.canvas, size)?;
            let proposals = stage.proposals(&self.settings.proposals(), &batch.sizes);
            let judged = second.run(self.regions(&given, &proposals)?)?;
            for (at, proposed) in proposals.iter().enumerate().take(count - begin) {
                found.extend(self.found(&judged, proposed, at, begin + at, batch.sizes[at])?);
            }
        }
        let summary = evaluate(&self.truth, &found)?;
        let points = summary.named().into_iter().filter_map(|(name, value)| Some((name, value?)));
        Ok(Evaluation {
            metrics: points.map(|(name, value)| (name.to_owned(), 100.0 * value)).collect(),
            agreement: Some(Agreement::of(&self.golden_detections()?, &found)),
            detections: found,
            ..Evaluation::default()
        })
    }

    /// The inputs of the second stage: as many regions for each image as there may be proposals.
    fn regions(&self, given: &Outputs, proposals: &[Vec<[f32; 4]>]) -> Result<Inputs, Error> {
        let most = self.settings.proposals().after;
        let (mut regions, mut levels) = (Vec::new(), Vec::new());
        for (image, proposals) in proposals.iter().enumerate() {
            for at in 0..most {
                let region = proposals.get(at).copied().unwrap_or_default();
                regions.push(image as f32);
                regions.extend(region);
                levels.push(level_of(region) as i64);
            }
        }
        let mut inputs = Inputs::new();
        for level in 0..LEVELS - 1 {
            let name = format!("features_{level}");
            inputs.insert(name.clone(), output(given, &name)?.clone());
        }
        inputs.insert("regions", Tensor::from_slice(&[levels.len(), 5], &regions)?);
        inputs.insert("region_level", Tensor::from_slice(&[levels.len()], &levels)?);
        Ok(inputs)
    }

    /// What was found in an image, which is at a place of its batch, in the pixels of its file.
    fn found(
        &self,
        judged: &Outputs,
        proposals: &[[f32; 4]],
        at: usize,
        index: usize,
        size: (usize, usize),
    ) -> Result<Vec<Detection>, Error> {
        let (most, classes) = (self.settings.proposals().after, self.settings.classes);
        let rows = at * most * classes..(at * most + proposals.len()) * classes;
        let short = || Error::Stopped("the model gives fewer rows than it has regions".to_owned());
        let logits = output(judged, "logits")?.as_slice::<f32>()?.get(rows.clone()).ok_or_else(short)?;
        let codes = boxes(output(judged, "codes")?.as_slice::<f32>()?).get(rows).ok_or_else(short)?;
        let found = self.settings.detections().of_image(proposals, logits, codes, size);
        let image = self.eval.image(index);
        let within: Vec<[f32; 4]> = found.iter().map(|found| found.bbox).collect();
        let (from, to) = ((size.1, size.0), (image.width as usize, image.height as usize));
        let boxes = resize_boxes(&within, from, to);
        let detection = |(found, &[left, top, right, bottom]): (&Found, &[f32; 4])| Detection {
            image_id: image.id,
            category_id: found.label as i64,
            bbox: [left, top, right - left, bottom - top].map(f64::from),
            score: f64::from(found.score),
        };
        Ok(found.iter().zip(&boxes).map(detection).collect())
    }
}
