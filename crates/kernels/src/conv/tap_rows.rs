//! Pointers to the taps of output pixels.

use warpforge_tensor::ElementType;

use super::geometry::AxisTaps;
use crate::gemm::rows::LhsRows;

/// The left-hand operand of an implicit GEMM: a row for each output pixel, with a run of channels for each tap.
pub(super) struct TapRows<'a> {
    /// The first channel (of the group) of the first pixel.
    pub(super) data: *const u8,
    /// The spatial dimensions, the outermost first.
    pub(super) lines: &'a [AxisTaps],
    /// From one image to the next, in bytes.
    pub(super) batch_stride: usize,
    /// From one element to the next along each spatial dimension, in bytes.
    pub(super) strides: &'a [usize],
    /// Contiguous elements of each tap.
    pub(super) run: usize,
    /// The type of the elements.
    pub(super) element: ElementType,
    /// As many zeros as a run has elements.
    pub(super) zeros: *const u8,
}

// SAFETY: the caller guarantees that nothing writes to its input during the call.
unsafe impl Sync for TapRows<'_> {}

impl LhsRows for TapRows<'_> {
    fn taps(&self) -> usize {
        self.lines.iter().map(|line| line.window).product()
    }

    fn element(&self) -> ElementType {
        self.element
    }

    fn run(&self) -> usize {
        self.run
    }

    fn addresses(&self, first: usize, count: usize, table: &mut [*const u8]) {
        if let ([down, across], [row, column]) = (self.lines, self.strides) {
            return self.of_two_dimensions((down, *row), (across, *column), first, count, table);
        }
        let image = self.lines.iter().map(|line| line.outputs).product::<usize>().max(1);
        for at in 0..count {
            let (image, pixel) = ((first + at) / image, (first + at) % image);
            let data = self.data.wrapping_add(image * self.batch_stride);
            self.pixel(self.lines, pixel, data, &mut table[at..], count);
        }
    }
}

impl TapRows<'_> {
    /// The two-dimensional case: only the index of the first pixel is divided.
    fn of_two_dimensions(
        &self,
        (down, row): (&AxisTaps, usize),
        (across, column): (&AxisTaps, usize),
        first: usize,
        count: usize,
        table: &mut [*const u8],
    ) {
        let (lines, pixels) = (down.outputs.max(1), across.outputs.max(1));
        let (mut image, mut line) = (first / (lines * pixels), first / pixels % lines);
        let mut pixel = first % pixels;
        for at in 0..count {
            let data = self.data.wrapping_add(image * self.batch_stride);
            let inputs = across.at(pixel);
            for (tap, input_index) in down.at(line).iter().enumerate() {
                let taps = table[at..].iter_mut().step_by(count).skip(tap * across.window);
                let line = input_index.map(|input_index| data.wrapping_add(input_index as usize * row));
                for (address, input_index) in taps.zip(inputs) {
                    *address = match (line, input_index) {
                        (Some(line), Some(input_index)) => line.wrapping_add(*input_index as usize * column),
                        _ => self.zeros,
                    };
                }
            }
            pixel += 1;
            if pixel == pixels {
                (pixel, line) = (0, line + 1);
            }
            if line == lines {
                (line, image) = (0, image + 1);
            }
        }
    }

    /// Writes the pointers of the taps of a pixel to every `pitch`th entry of the table.
    fn pixel(
        &self,
        lines: &[AxisTaps],
        pixel: usize,
        data: *const u8,
        table: &mut [*const u8],
        pitch: usize,
    ) {
        // Recurses once per dimension.
        let Some((line, inner)) = lines.split_first() else {
            table[0] = data;
            return;
        };
        let stride = self.strides[self.lines.len() - lines.len()];
        let below: usize = inner.iter().map(|line| line.outputs).product::<usize>().max(1);
        let taps: usize = inner.iter().map(|line| line.window).product();
        for (at, input_index) in line.at(pixel / below).iter().enumerate() {
            let table = &mut table[at * taps * pitch..];
            match (input_index, inner.is_empty()) {
                (Some(input_index), true) => table[0] = data.wrapping_add(*input_index as usize * stride),
                (Some(input_index), false) => {
                    let data = data.wrapping_add(*input_index as usize * stride);
                    self.pixel(inner, pixel % below, data, table, pitch);
                }
                (None, _) => (0..taps).for_each(|tap| table[tap * pitch] = self.zeros),
            }
        }
    }
}
