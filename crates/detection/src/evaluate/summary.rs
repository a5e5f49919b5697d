//! The twelve numbers of COCO.

use super::curve::{Curve, RECALLS};
use super::{AREAS, MAX_DETECTIONS, THRESHOLDS};

/// Average precision and recall, as COCO defines them. None where no annotation counts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Summary {
    /// Average precision over thresholds from 0.50 to 0.95: the mAP.
    pub precision: Option<f64>,
    /// Average precision at 0.50.
    pub precision_50: Option<f64>,
    /// Average precision at 0.75.
    pub precision_75: Option<f64>,
    /// Average precision of objects smaller than 32×32 pixels.
    pub precision_small: Option<f64>,
    /// Average precision of objects between 32×32 and 96×96 pixels.
    pub precision_medium: Option<f64>,
    /// Average precision of objects larger than 96×96 pixels.
    pub precision_large: Option<f64>,
    /// Average recall with one detection of each category in an image.
    pub recall_1: Option<f64>,
    /// Average recall with ten of them.
    pub recall_10: Option<f64>,
    /// Average recall with a hundred of them.
    pub recall_100: Option<f64>,
    /// Average recall of small objects.
    pub recall_small: Option<f64>,
    /// Average recall of medium objects.
    pub recall_medium: Option<f64>,
    /// Average recall of large objects.
    pub recall_large: Option<f64>,
}

impl Summary {
    /// The numbers with their names, in the order of `pycocotools`.
    pub fn named(&self) -> [(&'static str, Option<f64>); 12] {
        [
            ("AP", self.precision),
            ("AP50", self.precision_50),
            ("AP75", self.precision_75),
            ("AP_small", self.precision_small),
            ("AP_medium", self.precision_medium),
            ("AP_large", self.precision_large),
            ("AR1", self.recall_1),
            ("AR10", self.recall_10),
            ("AR100", self.recall_100),
            ("AR_small", self.recall_small),
            ("AR_medium", self.recall_medium),
            ("AR_large", self.recall_large),
        ]
    }

    /// The numbers as `COCOeval.stats` has them: -1 where there is none.
    pub fn stats(&self) -> [f64; 12] {
        self.named().map(|(_, value)| value.unwrap_or(-1.0))
    }
}

/// A sum and how many values it has.
#[derive(Default, Clone, Copy)]
struct Mean(f64, usize);

impl Mean {
    fn add(&mut self, sum: f64, count: usize) {
        self.0 += sum;
        self.1 += count;
    }

    fn value(self) -> Option<f64> {
        (self.1 > 0).then(|| self.0 / self.1 as f64)
    }
}

/// The means while categories are added, of each range of areas, number of detections and threshold.
#[derive(Default)]
pub(super) struct Means {
    precision: [[[Mean; THRESHOLDS]; MAX_DETECTIONS.len()]; AREAS.len()],
    recall: [[[Mean; THRESHOLDS]; MAX_DETECTIONS.len()]; AREAS.len()],
}

impl Means {
    /// Adds a category.
    pub(super) fn add(&mut self, area: usize, limit: usize, curves: &[Curve; THRESHOLDS]) {
        for (threshold, curve) in curves.iter().enumerate() {
            self.precision[area][limit][threshold].add(curve.precision.iter().sum(), RECALLS);
            self.recall[area][limit][threshold].add(curve.recall, 1);
        }
    }

    pub(super) fn finish(&self) -> Summary {
        let over = |means: &[Mean; THRESHOLDS]| {
            let mut all = Mean::default();
            means.iter().for_each(|mean| all.add(mean.0, mean.1));
            all.value()
        };
        let most = MAX_DETECTIONS.len() - 1;
        let precision = |area: usize| over(&self.precision[area][most]);
        let recall = |area: usize, limit: usize| over(&self.recall[area][limit]);
        Summary {
            precision: precision(0),
            precision_50: self.precision[0][most][0].value(),
            precision_75: self.precision[0][most][5].value(),
            precision_small: precision(1),
            precision_medium: precision(2),
            precision_large: precision(3),
            recall_1: recall(0, 0),
            recall_10: recall(0, 1),
            recall_100: recall(0, 2),
            recall_small: recall(1, 2),
            recall_medium: recall(2, 2),
            recall_large: recall(3, 2),
        }
    }
}
