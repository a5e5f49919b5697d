//! Our own choice of anchors and regions for a training step, in the place of the recorded one.

use warpforge::{Inputs, Outputs, Tensor};
use warpforge_detection::select::{BoxCoder, Match, Matcher, level_of};
use warpforge_detection::transform::{mirror_boxes, resize_boxes};

use super::Coco;
use super::first_stage::FirstStage;
use crate::Error;

/// Values that fill up to a fixed size, with marks of those that count.
struct Filled<T> {
    values: Vec<T>,
    /// Numbers of each.
    width: usize,
}

impl<T: Copy + Default + warpforge_tensor::Native> Filled<T> {
    fn new(width: usize) -> Self {
        Self { values: Vec::new(), width }
    }

    /// So many rows; those that are missing are zeros.
    fn tensor(mut self, rows: usize) -> Result<Tensor, Error> {
        self.values.resize(rows * self.width, T::default());
        let dims = [rows, self.width];
        Ok(Tensor::from_slice(&dims[..if self.width == 1 { 1 } else { 2 }], &self.values)?)
    }
}

/// As many ones as are counted.
fn ones(count: usize) -> Filled<f32> {
    Filled { values: vec![1.0; count], width: 1 }
}

/// An anchor that was sampled: its place among those of the batch, and where its object is.
struct Sampled {
    index: i64,
    target: [f32; 4],
}

impl Coco {
    /// Height and width of an example's prepared image.
    fn size(&self, index: usize) -> Result<(usize, usize), Error> {
        let image = self.train.image(index % self.train.len());
        let (width, height) = self.transform.size(image.width as usize, image.height as usize)?;
        Ok((height, width))
    }

    /// What the objects of an example are and where in its prepared image.
    fn objects(&self, index: usize, size: (usize, usize)) -> (Vec<[f32; 4]>, &[i64]) {
        let count = self.train.len();
        let (image, target) = self.train.example(index % count);
        let (width, height) = (image.width as usize, image.height as usize);
        let boxes = match index >= count {
            true => mirror_boxes(&target.boxes, width),
            false => target.boxes.clone(),
        };
        (resize_boxes(&boxes, (width, height), (size.1, size.0)), target.labels.as_slice())
    }

    /// The inputs of a step beside the images, chosen by what the first stage gives for a batch.
    pub(super) fn chosen(&self, given: &Outputs, indices: &[usize], seed: u64) -> Result<Inputs, Error> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut permutation = |count: usize| {
            let mut order: Vec<usize> = (0..count).collect();
            random.shuffle(&mut order);
            order
        };
        let sizes = indices.iter().map(|&index| self.size(index)).collect::<Result<Vec<_>, Error>>()?;
        let stage = FirstStage::of(given, self.settings.canvas, indices.len())?;
        let anchors: Vec<[f32; 4]> = stage.anchors.concat();
        let (mut positive, mut negative): (Vec<Sampled>, Vec<Sampled>) = (Vec::new(), Vec::new());
        let (mut regions, mut levels) = (Filled::<f32>::new(5), Filled::<i64>::new(1));
        let (mut labels, mut targets) = (Filled::<i64>::new(1), Filled::<f32>::new(4));
        let proposals = stage.proposals(&self.settings.training_proposals(), &sizes);
        for (image, (&index, mut proposals)) in indices.iter().zip(proposals).enumerate() {
            let (objects, of_objects) = self.objects(index, sizes[image]);
            let matches = Matcher::ANCHORS.matches(&objects, &anchors);
            let (with, without) = self.settings.anchor_samples().sample(&matches, &mut permutation);
            let place = |at: usize| (image * anchors.len() + at) as i64;
            positive.extend(with.into_iter().filter_map(|at| match matches[at] {
                Match::Object(object) => {
                    let target = BoxCoder::PROPOSALS.encode(objects[object], anchors[at]);
                    Some(Sampled { index: place(at), target })
                }
                _ => None,
            }));
            negative.extend(without.into_iter().map(|at| Sampled { index: place(at), target: [0.0; 4] }));
            // Objects are proposals too.
            proposals.extend(&objects);
            let matches = Matcher::PROPOSALS.matches(&objects, &proposals);
            let (with, without) = self.settings.region_samples().sample(&matches, &mut permutation);
            let mut sampled: Vec<usize> = with.into_iter().chain(without).collect();
            sampled.sort_unstable();
            for at in sampled {
                let region = proposals[at];
                let (label, target) = match matches[at] {
                    Match::Object(object) => {
                        (of_objects[object], BoxCoder::DETECTIONS.encode(objects[object], region))
                    }
                    _ => (0, [0.0; 4]),
                };
                regions.values.push(image as f32);
                regions.values.extend(region);
                levels.values.push(level_of(region) as i64);
                labels.values.push(label);
                targets.values.extend(target);
            }
        }
        let (objects, sampled) = (positive.len(), positive.len() + negative.len());
        let (mut index, mut target) = (Filled::<i64>::new(1), Filled::<f32>::new(4));
        for anchor in positive.iter().chain(&negative) {
            index.values.push(anchor.index);
            target.values.extend(anchor.target);
        }
        let count = levels.values.len();
        let of_anchors = self.settings.anchor_samples().count * indices.len();
        let of_regions = self.settings.region_samples().count * indices.len();
        Ok([
            ("rpn_index", index.tensor(of_anchors)?),
            ("rpn_label", ones(objects).tensor(of_anchors)?),
            ("rpn_target", target.tensor(of_anchors)?),
            ("rpn_valid", ones(sampled).tensor(of_anchors)?),
            ("rpn_positive", ones(objects).tensor(of_anchors)?),
            ("regions", regions.tensor(of_regions)?),
            ("region_level", levels.tensor(of_regions)?),
            ("region_label", labels.tensor(of_regions)?),
            ("region_target", targets.tensor(of_regions)?),
            ("region_valid", ones(count).tensor(of_regions)?),
        ]
        .into())
    }
}
