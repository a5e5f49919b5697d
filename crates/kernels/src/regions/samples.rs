//! Where the bins of a region are sampled.

use super::real::Real;
use super::spec::RoiAlignSpec;

/// A sample: four elements of a plane and their parts.
#[derive(Clone, Copy)]
pub(super) struct Sample<T> {
    pub(super) places: [usize; 4],
    pub(super) parts: [T; 4],
}

/// The samples of a region that are inside of the features.
pub(super) struct Samples<T> {
    /// The image that the region is of; none if there is no such image.
    pub(super) image: Option<usize>,
    all: Vec<Sample<T>>,
    /// Where the samples of each bin end.
    ends: Vec<usize>,
    /// How many samples a bin has, those outside of the features included.
    pub(super) count: T,
}

/// The elements that a sample is interpolated from along one axis, and the part of each.
struct Pair<T> {
    low: usize,
    high: usize,
    of_low: T,
    of_high: T,
}

/// One axis of a region.
struct Axis<T> {
    start: T,
    bin: T,
    samples: f64,
    size: usize,
}

impl<T: Real> Axis<T> {
    fn new(spec: &RoiAlignSpec, [start, end]: [T; 2], size: usize, bins: usize) -> Self {
        let (scale, offset) = (T::of(spec.spatial_scale), T::of(if spec.aligned { 0.5 } else { 0.0 }));
        let [start, end] = [start, end].map(|value| value * scale - offset);
        let length = end - start;
        let length = if spec.aligned { length } else { length.larger(T::of(1.0)) };
        let bin = length / T::of(bins as f64);
        let samples = spec.sampling_ratio.map_or_else(|| bin.to_f64().ceil().max(0.0), f64::from);
        Self { start, bin, samples, size }
    }

    /// The samples of a bin that are inside of the features.
    fn pairs(&self, bin: usize, pairs: &mut Vec<Pair<T>>) {
        pairs.clear();
        let begins = self.start + T::of(bin as f64) * self.bin;
        // A region may be of any size: only as many samples as fit beside the features are looked at.
        let step = self.bin.to_f64() / self.samples;
        let (mut first, mut count) = (0.0, self.samples);
        if step > 0.0 {
            first = ((-2.0 - begins.to_f64()) / step).floor().max(0.0);
            count = (self.samples - first).min(((self.size as f64 + 4.0) / step).ceil() + 2.0);
        }
        let count = if count.is_finite() { count as usize } else { 0 };
        for sample in 0..count {
            let at = begins + T::of(first + sample as f64 + 0.5) * self.bin / T::of(self.samples);
            if at < T::of(-1.0) || at > T::of(self.size as f64) {
                continue;
            }
            let at = at.larger(T::of(0.0));
            let low = at.to_f64() as usize;
            pairs.push(if low + 1 >= self.size {
                let last = self.size - 1;
                Pair { low: last, high: last, of_low: T::of(1.0), of_high: T::of(0.0) }
            } else {
                let of_high = at - T::of(low as f64);
                Pair { low, high: low + 1, of_low: T::of(1.0) - of_high, of_high }
            });
        }
    }
}

impl<T: Real> Samples<T> {
    pub(super) fn new() -> Self {
        Self { image: None, all: Vec::new(), ends: Vec::new(), count: T::of(1.0) }
    }

    /// The samples of another region: the number of its image, left, top, right and bottom.
    pub(super) fn fill(&mut self, spec: &RoiAlignSpec, region: &[T; 5]) {
        let [images, _, height, width] = spec.features;
        let number = region[0].to_f64().trunc();
        self.image = (number >= 0.0 && number < images as f64).then_some(number as usize);
        self.all.clear();
        self.ends.clear();
        if self.image.is_none() {
            return;
        }
        let rows = Axis::new(spec, [region[2], region[4]], height, spec.bins[0]);
        let columns = Axis::new(spec, [region[1], region[3]], width, spec.bins[1]);
        self.count = T::of((rows.samples * columns.samples).max(1.0));
        let mut across: Vec<Vec<Pair<T>>> = Vec::new();
        for column in 0..spec.bins[1] {
            let mut pairs = Vec::new();
            columns.pairs(column, &mut pairs);
            across.push(pairs);
        }
        let mut down = Vec::new();
        for row in 0..spec.bins[0] {
            rows.pairs(row, &mut down);
            for across in &across {
                for y in &down {
                    for x in across {
                        self.all.push(Sample {
                            places: [
                                y.low * width + x.low,
                                y.low * width + x.high,
                                y.high * width + x.low,
                                y.high * width + x.high,
                            ],
                            parts: [
                                y.of_low * x.of_low,
                                y.of_low * x.of_high,
                                y.of_high * x.of_low,
                                y.of_high * x.of_high,
                            ],
                        });
                    }
                }
                self.ends.push(self.all.len());
            }
        }
    }

    /// The samples of each bin, row by row.
    pub(super) fn bins(&self) -> impl Iterator<Item = &[Sample<T>]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.all[start..end])
    }
}
