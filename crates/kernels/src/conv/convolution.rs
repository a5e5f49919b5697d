//! The convolution entry point.

use std::sync::Arc;

use warpforge_tensor::ElementType;

use super::ConvError;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::amx_direct::AmxDirect;
use super::geometry::{AxisTaps, Dimension, Geometry};
use super::grouped::multiply_groups;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::im2col;
use super::input::Input;
use super::large_window::LargeWindow;
use super::packed_weights::{PackedForm, PackedWeights};
use super::padded_copy::{CopySource, PaddedCopy};
use super::tap_rows::TapRows;
use super::weights::{Weights, taps_of_group};
use super::winograd::{TransformedWeights, WinogradPlan};
use crate::gemm::drive::GemmTarget;
use crate::gemm::{ComputeType, Gemm, PackedRhs, PackedView, Shape};
use crate::output_block::BlockSink;
use crate::pool::Pool;

/// Maximum channels for which the taps along the last dimension are merged into one run.
const MAX_MERGED_CHANNELS: usize = 8;

/// A convolution of fixed sizes on the kernels of one GEMM.
#[derive(Debug)]
pub struct Convolution {
    gemm: Arc<Gemm>,
    geometry: Geometry,
    lines: Vec<AxisTaps>,
    /// The Winograd plan, where it is faster.
    pub(super) winograd: Option<WinogradPlan>,
    /// The direct AMX plan, where applicable.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    amx_direct: Option<AmxDirect>,
    /// The plan for windows larger than the output, where applicable.
    large_window: Option<LargeWindow>,
    /// As many zero bytes as all channels of a pixel have, in any type.
    zeros: Vec<u8>,
}

impl Convolution {
    /// Prepares a convolution.
    ///
    /// # Errors
    ///
    /// When the sizes are inconsistent.
    pub fn new(gemm: Arc<Gemm>, mut geometry: Geometry) -> Result<Self, ConvError> {
        let Geometry { channels, outputs, groups, .. } = geometry;
        if groups == 0 || channels % groups != 0 || outputs % groups != 0 {
            return Err(ConvError::Groups { groups, input: channels, output: outputs });
        }
        if geometry.dimensions.is_empty() {
            geometry.dimensions.push(Dimension::new(1, 1));
        }
        let lines = geometry.dimensions.iter().enumerate();
        let lines =
            lines.map(|(at, dimension)| AxisTaps::new(dimension, at)).collect::<Result<Vec<_>, _>>()?;
        let product =
            |sizes: &[usize]| sizes.iter().try_fold(size_of::<f64>(), |all, &size| all.checked_mul(size));
        let mut result: Vec<usize> = lines.iter().map(|line| line.outputs).collect();
        let mut weights: Vec<usize> = lines.iter().map(|line| line.window).collect();
        result.extend([geometry.batch, outputs]);
        weights.extend([channels, outputs]);
        if product(&result).is_none() || product(&weights).is_none() {
            return Err(ConvError::TooLarge { dimension: 0 });
        }
        let zeros = vec![0; channels * size_of::<f64>()];
        let plan = || WinogradPlan::new(&geometry, &lines, gemm.isa());
        let winograd = if gemm.compute_type() == ComputeType::F32 { plan() } else { None };
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        let amx_direct = if gemm.loads_strided_rows() { AmxDirect::new(&geometry, &lines) } else { None };
        let large_window = LargeWindow::new(&geometry, &lines, gemm.compute_type());
        Ok(Self {
            gemm,
            geometry,
            lines,
            winograd,
            large_window,
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            amx_direct,
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

    /// Packs or transforms weights once for many runs: slower than [`Convolution::pack`], with faster runs.
    ///
    /// # Errors
    ///
    /// As for [`Convolution::pack`].
    ///
    /// # Safety
    ///
    /// As for [`Convolution::pack`].
    pub unsafe fn prepare(&self, weights: &Weights, pool: Option<&Pool>) -> Result<PackedWeights, ConvError> {
        match &self.winograd {
            Some(plan) if weights.element == ElementType::F32 => {
                self.check_strides(weights.window_strides.len())?;
                // SAFETY: guaranteed by the caller.
                let transformed = unsafe { TransformedWeights::new(&self.gemm, plan, weights, pool)? };
                Ok(PackedWeights { form: PackedForm::Winograd(transformed) })
            }
            // SAFETY: guaranteed by the caller.
            _ => unsafe { self.pack(weights, pool) },
        }
    }

    /// Whether this is how [`Convolution::prepare`] packs weights of those sizes: those of another convolution can serve here too.
    #[must_use]
    pub fn prepares_as(&self, weights: &PackedWeights) -> bool {
        match (&weights.form, &self.winograd) {
            (PackedForm::Groups(groups), None) => {
                groups.len() == self.geometry.groups && groups.iter().all(|group| self.gemm.packs_as(group))
            }
            (PackedForm::Winograd(weights), Some(plan)) => weights.is_for(plan),
            _ => false,
        }
    }

    /// Packs weights for a run.
    ///
    /// # Errors
    ///
    /// When memory cannot be allocated, the GEMM does not accept the element type, or strides are missing.
    ///
    /// # Safety
    ///
    /// The weights' pointer is valid for the window and the channels.
    pub unsafe fn pack(&self, weights: &Weights, pool: Option<&Pool>) -> Result<PackedWeights, ConvError> {
        let Geometry { channels, outputs, groups, .. } = self.geometry;
        let weights = self.with_strides(weights)?;
        let window = self.window();
        let pack = |group: usize| {
            let taps = taps_of_group(&weights, &window, group * (outputs / groups));
            // SAFETY: guaranteed by the caller.
            unsafe { self.gemm.pack_rhs_of(&taps, channels / groups, outputs / groups, pool) }
        };
        Ok(PackedWeights { form: PackedForm::Groups((0..groups).map(pack).collect::<Result<_, _>>()?) })
    }

    fn window(&self) -> Vec<usize> {
        self.lines.iter().map(|line| line.window).collect()
    }

    /// The weights, with a stride for the dimension that a convolution without spatial dimensions has here.
    fn with_strides(&self, weights: &Weights) -> Result<Weights, ConvError> {
        let mut weights = weights.clone();
        if weights.window_strides.is_empty() && self.window() == [1] {
            weights.window_strides.push(0);
        }
        self.check_strides(weights.window_strides.len())?;
        Ok(weights)
    }

    fn check_strides(&self, found: usize) -> Result<(), ConvError> {
        let wanted = self.lines.len();
        if found == wanted { Ok(()) } else { Err(ConvError::Strides { found, wanted }) }
    }

    /// Runs the convolution. Rows of the output are pixels, image by image, columns are channels; `out`, `stride` and
    /// `sink` are as in [`Gemm::multiply`].
    ///
    /// # Errors
    ///
    /// When memory cannot be allocated, the GEMM does not accept the element type of the input, or the weights belong
    /// to another convolution.
    ///
    /// # Safety
    ///
    /// As for [`Gemm::multiply`].
    pub unsafe fn run(
        &self,
        pool: &Pool,
        input: &Input<'_>,
        weights: &PackedWeights,
        out: Option<*mut u8>,
        stride: usize,
        sink: Option<&BlockSink<'_>>,
    ) -> Result<(), ConvError> {
        let input = self.input_with_strides(input)?;
        self.check_channel_stride(&input)?;
        match (&weights.form, &self.winograd) {
            (PackedForm::Groups(weights), _) if weights.len() == self.geometry.groups => {
                let weights: Vec<PackedView<'_>> = weights.iter().map(PackedRhs::view).collect();
                // SAFETY: guaranteed by the caller.
                unsafe { self.run_packed(pool, &input, &weights, out, stride, sink) }
            }
            (PackedForm::Winograd(weights), Some(plan)) if input.element == ElementType::F32 => {
                let target =
                    GemmTarget { out, stride, rounded: false, accumulate: false, sink, origin: (0, 0) };
                let zeros = self.zeros.as_ptr().cast();
                // SAFETY: guaranteed by the caller.
                unsafe { plan.run(&self.gemm, pool, &input, weights, target, zeros) }
            }
            _ => Err(ConvError::Weights),
        }
    }

    /// Whether [`Convolution::run_unpacked`] reads inputs of an element type with any strides, for weights whose window is not reversed.
    #[must_use]
    pub fn reads_any_strides(&self, element: ElementType) -> bool {
        self.large_window.is_some() && self.gemm.reads_rows_of(element)
    }

    /// Whether images of an element type are read with any strides, by either way to run: their few channels are copied in any case.
    #[must_use]
    pub fn copies_any_strides(&self, element: ElementType) -> bool {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        if self.amx_direct.is_some() {
            return false;
        }
        self.winograd.is_none() && self.merges_last_axis() && self.gemm.row_pack_fn(element).is_ok()
    }

    fn check_channel_stride(&self, input: &Input<'_>) -> Result<(), ConvError> {
        match input.channel_stride {
            1 => Ok(()),
            _ if self.copies_any_strides(input.element) => Ok(()),
            found => Err(ConvError::ChannelStride { found }),
        }
    }

    /// [`Convolution::run`] with weights that are used once.
    ///
    /// # Errors
    ///
    /// As for [`Convolution::run`] and [`Convolution::pack`].
    ///
    /// # Safety
    ///
    /// As for [`Convolution::run`] and [`Convolution::pack`].
    pub unsafe fn run_unpacked(
        &self,
        pool: &Pool,
        input: &Input<'_>,
        weights: &Weights,
        out: Option<*mut u8>,
        stride: usize,
        sink: Option<&BlockSink<'_>>,
    ) -> Result<(), ConvError> {
        let weights = self.with_strides(weights)?;
        let input = self.input_with_strides(input)?;
        if let Some(plan) = &self.large_window
            && plan.reads(&weights)
            && self.gemm.reads_rows_of(input.element)
        {
            let target = GemmTarget { out, stride, rounded: false, accumulate: false, sink, origin: (0, 0) };
            // SAFETY: guaranteed by the caller.
            return unsafe { plan.run(&self.gemm, pool, &input, &weights, target) };
        }
        self.check_channel_stride(&input)?;
        let Geometry { channels, outputs, groups, .. } = self.geometry;
        let (run, n, window) = (channels / groups, outputs / groups, self.window());
        let k = window.iter().product::<usize>().saturating_mul(run);
        let each = self.gemm.packed_len(k, n)?.next_multiple_of(64);
        let memory = self.gemm.scratch_buffer(each.saturating_mul(groups))?;
        let mut views = Vec::with_capacity(groups);
        for group in 0..groups {
            let taps = taps_of_group(&weights, &window, group * n);
            // SAFETY: guaranteed by the caller; the memory has space for all groups.
            let view =
                unsafe { self.gemm.pack_taps_into(&taps, run, n, memory.as_ptr().add(group * each), pool)? };
            views.push(view);
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.run_packed(pool, &input, &views, out, stride, sink) }
    }

    /// The input, with a stride for the dimension that a convolution without spatial dimensions has here.
    fn input_with_strides<'a>(&self, input: &Input<'a>) -> Result<Input<'a>, ConvError> {
        let alone = input.strides.is_empty() && self.lines.len() == 1;
        let strides: &'a [usize] = if alone { &[0] } else { input.strides };
        self.check_strides(strides.len())?;
        Ok(Input { strides, ..*input })
    }

    unsafe fn run_packed(
        &self,
        pool: &Pool,
        input: &Input<'_>,
        weights: &[PackedView<'_>],
        out: Option<*mut u8>,
        stride: usize,
        sink: Option<&BlockSink<'_>>,
    ) -> Result<(), ConvError> {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        if let (Some(amx_direct), &[weights]) = (&self.amx_direct, weights) {
            let target = GemmTarget { out, stride, rounded: false, accumulate: false, sink, origin: (0, 0) };
            // SAFETY: guaranteed by the caller.
            if unsafe { amx_direct.run(&self.gemm, pool, &self.geometry, input, weights, target)? } {
                return Ok(());
            }
        }
        let merge = self.merges_last_axis();
        // SAFETY: guaranteed by the caller.
        unsafe {
            if merge || !self.gemm.reads_rows_of(input.element) {
                self.run_on_copy(pool, input, merge, weights, out, stride, sink)
            } else {
                self.run_on(pool, input, &self.lines, 1, weights, out, stride, sink)
            }
        }
    }

    /// Whether taps along the last dimension are merged into one run.
    fn merges_last_axis(&self) -> bool {
        let last = self.geometry.dimensions.last();
        self.geometry.groups == 1
            && self.geometry.channels <= MAX_MERGED_CHANNELS
            && last.is_some_and(|last| last.window > 1 && last.window_dilation == 1)
    }

    /// Runs on a copy of the input in the type that kernels read.
    #[allow(clippy::too_many_arguments, reason = "those of `run`")]
    unsafe fn run_on_copy(
        &self,
        pool: &Pool,
        input: &Input<'_>,
        merge: bool,
        weights: &[PackedView<'_>],
        out: Option<*mut u8>,
        stride: usize,
        sink: Option<&BlockSink<'_>>,
    ) -> Result<(), ConvError> {
        let Geometry { batch, channels, dimensions, .. } = &self.geometry;
        let padded = if merge { PaddedCopy::new(dimensions) } else { PaddedCopy::plain(dimensions) };
        let (element, copy) = self.gemm.row_pack_fn(input.element)?;
        let bytes = element.byte_width();
        let mut strides = vec![*channels; dimensions.len()];
        let sizes = padded.sizes();
        for at in (0..sizes.len() - 1).rev() {
            strides[at] = strides[at + 1] * sizes[at + 1];
        }
        let image = strides[0] * sizes[0];
        let memory = self.gemm.scratch_buffer(image.saturating_mul(*batch).saturating_mul(bytes))?;
        let source = CopySource {
            data: input.data,
            element: input.element,
            batch_stride: input.batch_stride,
            channel_stride: input.channel_stride,
            strides: input.strides,
            batch: *batch,
            channels: *channels,
        };
        let copied = Input {
            data: memory.as_ptr(),
            element,
            channel_stride: 1,
            batch_stride: image,
            strides: &strides,
        };
        // SAFETY: guaranteed by the caller; the memory has space for all images.
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
        lines: &[AxisTaps],
        merged: usize,
        weights: &[PackedView<'_>],
        out: Option<*mut u8>,
        stride: usize,
        sink: Option<&BlockSink<'_>>,
    ) -> Result<(), ConvError> {
        let Geometry { channels, outputs, groups, .. } = self.geometry;
        let bytes = input.element.byte_width();
        let strides: Vec<usize> = input.strides.iter().map(|stride| stride * bytes).collect();
        let (run, n) = (channels / groups * merged, outputs / groups);
        let taps: usize = lines.iter().map(|line| line.window).product();
        let shape = Shape { m: self.rows(), n, k: taps * run };
        let sum = self.gemm.compute_type().accumulator().byte_width();
        if let [_, _, ..] = weights {
            let rows = self.tap_rows(input, lines, &strides, run, 0);
            let target = GemmTarget { out, stride, rounded: false, accumulate: false, sink, origin: (0, 0) };
            // SAFETY: guaranteed by the caller; addresses are those of pixels with all their channels.
            if unsafe { multiply_groups(&self.gemm, pool, shape, &rows, weights, target)? } {
                return Ok(());
            }
        }
        for (group, &weights) in weights.iter().enumerate() {
            let rows = self.tap_rows(input, lines, &strides, run, group);
            let out = out.map(|out| out.wrapping_add(group * n * sum));
            let target =
                GemmTarget { out, stride, rounded: false, accumulate: false, sink, origin: (0, group * n) };
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            if merged > 1 && run <= im2col::MAX_RUN && self.gemm.loads_strided_rows() {
                // SAFETY: guaranteed by the caller; CPUs with AMX have AVX-512BW.
                if unsafe { im2col::multiply(&self.gemm, pool, shape.m, &rows, weights, target)? } {
                    continue;
                }
            }
            // SAFETY: guaranteed by the caller.
            unsafe { self.gemm.multiply_rows(pool, shape, &rows, weights, target)? };
        }
        Ok(())
    }

    /// The taps of a group, whose pixels have `run` elements each.
    fn tap_rows<'a>(
        &'a self,
        input: &Input<'_>,
        lines: &'a [AxisTaps],
        strides: &'a [usize],
        run: usize,
        group: usize,
    ) -> TapRows<'a> {
        let bytes = input.element.byte_width();
        TapRows {
            data: input.data.wrapping_add(group * run * bytes),
            lines,
            batch_stride: input.batch_stride * bytes,
            strides,
            run,
            element: input.element,
            zeros: self.zeros.as_ptr(),
        }
    }
}
