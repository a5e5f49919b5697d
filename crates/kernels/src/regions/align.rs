//! RoIAlign: each bin of a region is the mean of interpolated samples of the features; and the gradient of the features.

use warpforge_tensor::{ElementType, FloatType};

use super::error::RegionError;
use super::real::Real;
use super::samples::Samples;
use super::spec::RoiAlignSpec;
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// Channels of a task. The samples of a region are computed once for all of them.
const TASK_CHANNELS: usize = 32;

/// A planned RoIAlign of row-major arrays.
#[derive(Debug, Clone)]
pub struct RoiAlign {
    spec: RoiAlignSpec,
    double: bool,
}

impl RoiAlign {
    /// Plans both directions.
    ///
    /// # Errors
    ///
    /// When the element type has no kernel, features or bins have no elements, or sizes overflow.
    pub fn new(spec: RoiAlignSpec) -> Result<Self, RegionError> {
        let double = match spec.element {
            ElementType::Float(FloatType::F32) => false,
            ElementType::Float(FloatType::F64) => true,
            other => return Err(RegionError::Element(other)),
        };
        let [images, channels, height, width] = spec.features;
        let bytes = |sizes: &[usize]| sizes.iter().try_fold(8_usize, |all, &size| all.checked_mul(size));
        let features = bytes(&[images, channels, height, width]);
        let pooled = bytes(&[spec.regions, channels.max(5), spec.bins[0], spec.bins[1]]);
        let some = height > 0 && width > 0 && spec.bins.iter().all(|&size| size > 0);
        match (features, pooled) {
            (Some(_), Some(_)) if some => Ok(Self { spec, double }),
            _ => Err(RegionError::Sizes),
        }
    }

    /// Pools the features of each region.
    ///
    /// # Safety
    ///
    /// Features and regions may be read and the target written, as large as planned and aligned; they have no byte in
    /// common.
    pub unsafe fn run(&self, pool: &Pool, features: *const u8, regions: *const u8, target: *mut u8) {
        // SAFETY: as the caller promises.
        unsafe {
            match self.double {
                false => self.forward::<f32>(pool, features.cast(), regions.cast(), target.cast()),
                true => self.forward::<f64>(pool, features.cast(), regions.cast(), target.cast()),
            }
        }
    }

    /// Adds the gradient of each bin to the elements that it was interpolated from.
    ///
    /// # Safety
    ///
    /// As [`Self::run`], with the gradient of the bins in place of the features and that of the features as the target.
    pub unsafe fn run_backward(&self, pool: &Pool, gradient: *const u8, regions: *const u8, target: *mut u8) {
        // SAFETY: as the caller promises.
        unsafe {
            match self.double {
                false => self.backward::<f32>(pool, gradient.cast(), regions.cast(), target.cast()),
                true => self.backward::<f64>(pool, gradient.cast(), regions.cast(), target.cast()),
            }
        }
    }

    /// The regions as they are stored.
    ///
    /// # Safety
    ///
    /// The pointer is good for all of them.
    unsafe fn regions<T: Real>(&self, regions: *const T) -> &[[T; 5]] {
        // SAFETY: as the caller promises; five numbers are an array of five.
        unsafe { std::slice::from_raw_parts(regions.cast::<[T; 5]>(), self.spec.regions) }
    }

    /// A task has one region and some channels.
    unsafe fn forward<T: Real>(&self, pool: &Pool, features: *const T, regions: *const T, target: *mut T) {
        let [_, channels, height, width] = self.spec.features;
        let (plane, bins) = (height * width, self.spec.bins[0] * self.spec.bins[1]);
        let groups = channels.div_ceil(TASK_CHANNELS);
        // SAFETY: as the caller promises.
        let regions = unsafe { self.regions(regions) };
        let (features, target) = (SharedPtr::new(features), SharedPtr::new(target));
        pool.run(regions.len() * groups, &|task, _worker| {
            let (region, first) = (task / groups, task % groups * TASK_CHANNELS);
            let count = TASK_CHANNELS.min(channels - first);
            let mut samples = Samples::new();
            samples.fill(&self.spec, &regions[region]);
            // SAFETY: no other task has these channels of the region.
            let target = unsafe {
                let start = target.get().add((region * channels + first) * bins);
                std::slice::from_raw_parts_mut(start, count * bins)
            };
            let Some(image) = samples.image else { return target.fill(T::default()) };
            for (at, target) in target.chunks_exact_mut(bins).enumerate() {
                // SAFETY: the plane is one of the features.
                let plane = unsafe {
                    let start = features.get().add((image * channels + first + at) * plane);
                    std::slice::from_raw_parts(start, plane)
                };
                for (value, bin) in target.iter_mut().zip(samples.bins()) {
                    let mut sum = T::default();
                    for sample in bin {
                        let [a, b, c, d] = sample.places;
                        let [of_a, of_b, of_c, of_d] = sample.parts;
                        sum += of_a * plane[a] + of_b * plane[b] + of_c * plane[c] + of_d * plane[d];
                    }
                    sum /= samples.count;
                    *value = sum;
                }
            }
        });
    }

    /// A task has some channels of one image and goes through the regions in order, so that sums do not depend on threads.
    unsafe fn backward<T: Real>(&self, pool: &Pool, gradient: *const T, regions: *const T, target: *mut T) {
        let [images, channels, height, width] = self.spec.features;
        let (plane, bins) = (height * width, self.spec.bins[0] * self.spec.bins[1]);
        let groups = channels.div_ceil(TASK_CHANNELS);
        // SAFETY: as the caller promises.
        let regions = unsafe { self.regions(regions) };
        let (gradient, target) = (SharedPtr::new(gradient), SharedPtr::new(target));
        pool.run(images * groups, &|task, _worker| {
            let (image, first) = (task / groups, task % groups * TASK_CHANNELS);
            let count = TASK_CHANNELS.min(channels - first);
            // SAFETY: no other task has these channels of the image.
            let target = unsafe {
                let start = target.get().add((image * channels + first) * plane);
                std::slice::from_raw_parts_mut(start, count * plane)
            };
            target.fill(T::default());
            let mut samples = Samples::new();
            for (region, numbers) in regions.iter().enumerate() {
                if numbers[0].to_f64().trunc() != image as f64 {
                    continue;
                }
                samples.fill(&self.spec, numbers);
                for (at, target) in target.chunks_exact_mut(plane).enumerate() {
                    // SAFETY: the bins are some of the gradient.
                    let gradient = unsafe {
                        let start = gradient.get().add((region * channels + first + at) * bins);
                        std::slice::from_raw_parts(start, bins)
                    };
                    for (&value, bin) in gradient.iter().zip(samples.bins()) {
                        for sample in bin {
                            for (&place, &part) in sample.places.iter().zip(&sample.parts) {
                                target[place] += value * part / samples.count;
                            }
                        }
                    }
                }
            }
        });
    }
}
