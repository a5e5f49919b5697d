//! The entry to convolutions.

use std::sync::Arc;

use warpforge_tensor::ElementType;

use super::ConvError;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::columns;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::even::Evenly;
use super::geometry::{Dimension, Geometry, Line};
use super::padded::{Padded, Source};
use super::taps::Taps;
use super::weights::{Form, PackedWeights, Weights, pack_group};
use super::winograd::{Plan, Transformed};
use crate::block::Sink;
use crate::gemm::drive::Target;
use crate::gemm::{Gemm, Kind, PackedRhs, Shape};
use crate::pool::Pool;

/// Up to so many channels the taps along the last dimension are made one run.
const FEW_CHANNELS: usize = 8;

/// An input in memory; its channels lie side by side.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The first channel of the first pixel of the first image.
    pub data: *const u8,
    /// The type of the elements.
    pub element: ElementType,
    /// From one image to the next, in elements.
    pub batch_stride: usize,
    /// From one element to the next along each spatial dimension, in elements.
    pub strides: &'a [usize],
}

/// A convolution of fixed sizes by the kernels of one kind of product.
#[derive(Debug)]
pub struct Convolution {
    gemm: Arc<Gemm>,
    geometry: Geometry,
    lines: Vec<Line>,
    /// How it is computed with fewer products, where that gains time.
    pub(super) fewer: Option<Plan>,
    /// How tiles are loaded from the input as it lies, where they can be.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    evenly: Option<Evenly>,
    /// As many bytes as the longest run has.
    zeros: Vec<u8>,
}

impl Convolution {
    /// Prepares a convolution.
    ///
    /// # Errors
    ///
    /// When the sizes do not fit each other.
    pub fn new(gemm: Arc<Gemm>, mut geometry: Geometry) -> Result<Self, ConvError> {
        let Geometry { channels, outputs, groups, .. } = geometry;
        if groups == 0 || channels % groups != 0 || outputs % groups != 0 {
            return Err(ConvError::Groups { groups, input: channels, output: outputs });
        }
        if geometry.dimensions.is_empty() {
            geometry.dimensions.push(Dimension::new(1, 1));
        }
        let lines = geometry.dimensions.iter().enumerate();
        let lines = lines.map(|(at, dimension)| Line::new(dimension, at)).collect::<Result<Vec<_>, _>>()?;
        let product =
            |sizes: &[usize]| sizes.iter().try_fold(size_of::<f64>(), |all, &size| all.checked_mul(size));
        let mut result: Vec<usize> = lines.iter().map(|line| line.outputs).collect();
        let mut weights: Vec<usize> = lines.iter().map(|line| line.window).collect();
        result.extend([geometry.batch, outputs]);
        weights.extend([channels, outputs]);
        if product(&result).is_none() || product(&weights).is_none() {
            return Err(ConvError::TooLarge { dimension: 0 });
        }
        let zeros = vec![0; channels / groups * size_of::<f64>()];
        let plan = || Plan::new(&geometry, &lines, gemm.isa());
        let fewer = if gemm.kind() == Kind::F32 { plan() } else { None };
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        let evenly = if gemm.takes_even_rows() { Evenly::new(&geometry, &lines) } else { None };
        Ok(Self {
            gemm,
            geometry,
            lines,
            fewer,
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            evenly,
            zeros,
        })
    }

    /// The spatial sizes of the output.
    pub fn output(&self) -> impl Iterator<Item = usize> {
        self.lines.iter().map(|line| line.outputs)
    }

    /// Rows of the result: output pixels of all images, image by image.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.lines.iter().map(|line| line.outputs).product::<usize>() * self.geometry.batch
    }

    /// Prepares weights once for many runs: that may take a while, and makes runs faster.
    ///
    /// # Errors
    ///
    /// As for [`Convolution::pack`].
    ///
    /// # Safety
    ///
    /// As for [`Convolution::pack`].
    pub unsafe fn prepare(&self, weights: &Weights, pool: Option<&Pool>) -> Result<PackedWeights, ConvError> {
        match &self.fewer {
            Some(plan) if weights.element == ElementType::F32 => {
                self.check_strides(weights.window_strides.len())?;
                // SAFETY: as the caller promises.
                let transformed = unsafe { Transformed::new(&self.gemm, plan, weights, pool)? };
                Ok(PackedWeights { form: Form::Transformed(transformed) })
            }
            // SAFETY: as the caller promises.
            _ => unsafe { self.pack(weights, pool) },
        }
    }

    /// Packs weights for a run.
    ///
    /// # Errors
    ///
    /// When there is no memory, the element type is none that such products take, or strides are missing.
    ///
    /// # Safety
    ///
    /// The weights' address is good for the window and the channels.
    pub unsafe fn pack(&self, weights: &Weights, pool: Option<&Pool>) -> Result<PackedWeights, ConvError> {
        let Geometry { channels, outputs, groups, .. } = self.geometry;
        let mut weights = weights.clone();
        let window: Vec<usize> = self.lines.iter().map(|line| line.window).collect();
        if weights.window_strides.is_empty() && window == [1] {
            weights.window_strides.push(0);
        }
        self.check_strides(weights.window_strides.len())?;
        let each = outputs / groups;
        let pack = |group: usize| {
            let columns = group * each..(group + 1) * each;
            // SAFETY: as the caller promises.
            unsafe { pack_group(&self.gemm, &weights, &window, channels / groups, columns, pool) }
        };
        Ok(PackedWeights { form: Form::Groups((0..groups).map(pack).collect::<Result<_, _>>()?) })
    }

    fn check_strides(&self, found: usize) -> Result<(), ConvError> {
        let wanted = self.lines.len();
        if found == wanted { Ok(()) } else { Err(ConvError::Strides { found, wanted }) }
    }

    /// Runs the convolution. Rows of the result are output pixels, image by image, columns are output channels; `out`,
    /// `stride` and `sink` are as in [`Gemm::product`].
    ///
    /// # Errors
    ///
    /// When there is no memory, the input's type is none that such products take, or the weights are not this
    /// convolution's.
    ///
    /// # Safety
    ///
    /// As for [`Gemm::product`].
    pub unsafe fn run(
        &self,
        pool: &Pool,
        input: &Input<'_>,
        weights: &PackedWeights,
        out: Option<*mut u8>,
        stride: usize,
        sink: Option<&Sink<'_>>,
    ) -> Result<(), ConvError> {
        let one = [0];
        let strides =
            if input.strides.is_empty() && self.lines.len() == 1 { &one[..] } else { input.strides };
        self.check_strides(strides.len())?;
        let input = Input { strides, ..*input };
        let weights = match (&weights.form, &self.fewer) {
            (Form::Groups(weights), _) if weights.len() == self.geometry.groups => weights.as_slice(),
            (Form::Transformed(weights), Some(plan)) if input.element == ElementType::F32 => {
                let target = Target { out, stride, rounded: false, sink, origin: (0, 0) };
                let zeros = self.zeros.as_ptr().cast();
                // SAFETY: as the caller promises.
                return unsafe { plan.run(&self.gemm, pool, &input, weights, target, zeros) };
            }
            _ => return Err(ConvError::Weights),
        };
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        if let (Some(evenly), [weights]) = (&self.evenly, weights) {
            let target = Target { out, stride, rounded: false, sink, origin: (0, 0) };
            // SAFETY: as the caller promises.
            if unsafe { evenly.run(&self.gemm, pool, &self.geometry, &input, weights, target)? } {
                return Ok(());
            }
        }
        let merge = self.merges();
        // SAFETY: as the caller promises.
        unsafe {
            if merge || !self.gemm.reads_rows_of(input.element) {
                self.run_on_copy(pool, &input, merge, weights, out, stride, sink)
            } else {
                self.run_on(pool, &input, &self.lines, 1, weights, out, stride, sink)
            }
        }
    }

    /// Whether taps along the last dimension are made one run.
    fn merges(&self) -> bool {
        let last = self.geometry.dimensions.last();
        self.geometry.groups == 1
            && self.geometry.channels <= FEW_CHANNELS
            && last.is_some_and(|last| last.window > 1 && last.window_dilation == 1)
    }

    /// Runs on a copy of the input in the type that kernels read.
    #[allow(clippy::too_many_arguments, reason = "those of `run`")]
    unsafe fn run_on_copy(
        &self,
        pool: &Pool,
        input: &Input<'_>,
        merge: bool,
        weights: &[PackedRhs],
        out: Option<*mut u8>,
        stride: usize,
        sink: Option<&Sink<'_>>,
    ) -> Result<(), ConvError> {
        let Geometry { batch, channels, dimensions, .. } = &self.geometry;
        let padded = if merge { Padded::new(dimensions) } else { Padded::plain(dimensions) };
        let (element, copy) = self.gemm.row_copy(input.element)?;
        let bytes = element.byte_width();
        let mut strides = vec![*channels; dimensions.len()];
        let sizes = padded.sizes();
        for at in (0..sizes.len() - 1).rev() {
            strides[at] = strides[at + 1] * sizes[at + 1];
        }
        let image = strides[0] * sizes[0];
        let memory = self.gemm.lend(image.saturating_mul(*batch).saturating_mul(bytes))?;
        let source = Source {
            data: input.data,
            element: input.element,
            batch_stride: input.batch_stride,
            strides: input.strides,
            batch: *batch,
            channels: *channels,
        };
        let copied = Input { data: memory.as_ptr(), element, batch_stride: image, strides: &strides };
        // SAFETY: as the caller promises; the memory has room for all images.
        unsafe {
            padded.fill(pool, &source, copy, memory.as_ptr(), bytes);
            if merge {
                let lines = padded.merged(dimensions, &self.lines);
                let window = dimensions.last().map_or(1, |last| last.window);
                self.run_on(pool, &copied, &lines, window, weights, out, stride, sink)
            } else {
                self.run_on(pool, &copied, &self.lines, 1, weights, out, stride, sink)
            }
        }
    }

    /// Runs on an input that kernels can read; `merged` pixels are one run.
    #[allow(clippy::too_many_arguments, reason = "those of `run`")]
    unsafe fn run_on(
        &self,
        pool: &Pool,
        input: &Input<'_>,
        lines: &[Line],
        merged: usize,
        weights: &[PackedRhs],
        out: Option<*mut u8>,
        stride: usize,
        sink: Option<&Sink<'_>>,
    ) -> Result<(), ConvError> {
        let Geometry { channels, outputs, groups, .. } = self.geometry;
        let bytes = input.element.byte_width();
        let strides: Vec<usize> = input.strides.iter().map(|stride| stride * bytes).collect();
        let (run, n) = (channels / groups * merged, outputs / groups);
        let taps: usize = lines.iter().map(|line| line.window).product();
        let shape = Shape { m: self.rows(), n, k: taps * run };
        let sum = self.gemm.kind().sum().byte_width();
        for (group, weights) in weights.iter().enumerate() {
            let rows = Taps {
                data: input.data.wrapping_add(group * run * bytes),
                lines,
                batch_stride: input.batch_stride * bytes,
                strides: &strides,
                run,
                element: input.element,
                zeros: self.zeros.as_ptr(),
            };
            let out = out.map(|out| out.wrapping_add(group * n * sum));
            let target = Target { out, stride, rounded: false, sink, origin: (0, group * n) };
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            if merged > 1 && run <= columns::MOST && self.gemm.takes_even_rows() {
                // SAFETY: as the caller promises; where there are tiles there are instructions for words.
                if unsafe { columns::product(&self.gemm, pool, shape.m, &rows, weights, target)? } {
                    continue;
                }
            }
            // SAFETY: as the caller promises.
            unsafe { self.gemm.rows_product(pool, shape, &rows, weights.view(), target)? };
        }
        Ok(())
    }
}
