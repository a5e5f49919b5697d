//! The addresses of the taps of output pixels.

use warpforge_tensor::ElementType;

use super::geometry::Line;
use crate::gemm::rows::Rows;

/// The left operand of a convolution's product: a row for each output pixel, with a run of channels for each tap.
pub(super) struct Taps<'a> {
    /// The first channel (of the group) of the first pixel.
    pub(super) data: *const u8,
    /// The spatial dimensions, the outermost first.
    pub(super) lines: &'a [Line],
    /// From one image to the next, in bytes.
    pub(super) batch_stride: usize,
    /// From one element to the next along each spatial dimension, in bytes.
    pub(super) strides: &'a [usize],
    /// Elements that lie side by side for each tap.
    pub(super) run: usize,
    /// The type of the elements.
    pub(super) element: ElementType,
    /// As many zeros as a run has elements.
    pub(super) zeros: *const u8,
}

// SAFETY: who runs the convolution promises that nobody writes to its input meanwhile.
unsafe impl Sync for Taps<'_> {}

impl Rows for Taps<'_> {
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

impl Taps<'_> {
    /// The addresses where there are two dimensions, which most images have: nothing is divided but the first pixel's number.
    fn of_two_dimensions(
        &self,
        (down, row): (&Line, usize),
        (across, column): (&Line, usize),
        first: usize,
        count: usize,
        table: &mut [*const u8],
    ) {
        let (lines, pixels) = (down.outputs.max(1), across.outputs.max(1));
        let (mut image, mut line) = (first / (lines * pixels), first / pixels % lines);
        let mut pixel = first % pixels;
        for at in 0..count {
            let data = self.data.wrapping_add(image * self.batch_stride);
            let places = across.at(pixel);
            for (tap, place) in down.at(line).iter().enumerate() {
                let taps = table[at..].iter_mut().step_by(count).skip(tap * across.window);
                let line = place.map(|place| data.wrapping_add(place as usize * row));
                for (address, place) in taps.zip(places) {
                    *address = match (line, place) {
                        (Some(line), Some(place)) => line.wrapping_add(*place as usize * column),
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

    /// Writes the addresses of a pixel's taps to every `pitch`th place of the table.
    fn pixel(&self, lines: &[Line], pixel: usize, data: *const u8, table: &mut [*const u8], pitch: usize) {
        // The innermost two dimensions in one loop each; further ones by calling itself, once for each dimension.
        let Some((line, inner)) = lines.split_first() else {
            table[0] = data;
            return;
        };
        let stride = self.strides[self.lines.len() - lines.len()];
        let below: usize = inner.iter().map(|line| line.outputs).product::<usize>().max(1);
        let taps: usize = inner.iter().map(|line| line.window).product();
        for (at, place) in line.at(pixel / below).iter().enumerate() {
            let table = &mut table[at * taps * pitch..];
            match (place, inner.is_empty()) {
                (Some(place), true) => table[0] = data.wrapping_add(*place as usize * stride),
                (Some(place), false) => {
                    let data = data.wrapping_add(*place as usize * stride);
                    self.pixel(inner, pixel % below, data, table, pitch);
                }
                (None, _) => (0..taps).for_each(|tap| table[tap * pitch] = self.zeros),
            }
        }
    }
}
