//! The parts of a large window that are summed at a time.

use std::ops::Range;

use crate::conv::geometry::AxisTaps;

/// Lines that are summed at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) channels: Range<usize>,
    /// Elements of the window along the outermost dimension; one where lines are the only dimension.
    pub(super) window: Range<usize>,
}

/// A line of the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WindowLine {
    pub(super) channel: usize,
    /// Its place in the window along each dimension but the last.
    pub(super) window: Vec<usize>,
}

impl Chunk {
    /// The lines of the window in a chunk, in the order of the sums.
    pub(super) fn lines(&self, taps: &[AxisTaps]) -> Vec<WindowLine> {
        let mut lines: Vec<WindowLine> =
            self.channels.clone().map(|channel| WindowLine { channel, window: Vec::new() }).collect();
        for (at, axis) in taps.iter().enumerate() {
            let window = if at == 0 { self.window.clone() } else { 0..axis.window };
            let further = |line: WindowLine| {
                window.clone().map(move |element| {
                    let mut line = line.clone();
                    line.window.push(element);
                    line
                })
            };
            lines = lines.into_iter().flat_map(further).collect();
        }
        lines
    }
}
