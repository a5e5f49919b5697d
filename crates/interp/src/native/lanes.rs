//! Operands of products whose elements lie at sums of offsets: a tensor's dimensions, or the windows of a convolution.

use std::ops::Range;

use super::matmul::{Lanes, Multiply};

/// An operand: element `d` of lane `l` of batch `b` is at `batches[b] + lanes[l] + depths[d]`, unless a window says that it
/// lies outside.
pub(crate) struct Strided<'a, A> {
    pub(crate) data: &'a [A],
    pub(crate) batches: &'a [i64],
    pub(crate) lanes: &'a [i64],
    pub(crate) depths: &'a [i64],
    pub(crate) window: Option<&'a Window>,
}

/// Which elements of windows lie outside: those count as zero.
pub(crate) struct Window {
    axes: Vec<WindowAxis>,
    /// For each lane whether all its elements are inside.
    whole: Vec<bool>,
}

/// One dimension of the windows.
pub(crate) struct WindowAxis {
    /// Where the window of each lane starts; negative in the padding.
    pub(crate) starts: Vec<i64>,
    /// How far into the window each depth is.
    pub(crate) steps: Vec<i64>,
    /// Size of the dimension.
    pub(crate) extent: i64,
}

impl Window {
    /// Windows in as many dimensions; all have the same numbers of lanes and depths.
    pub(crate) fn new(axes: Vec<WindowAxis>) -> Self {
        let mut whole = vec![true; axes.first().map_or(0, |axis| axis.starts.len())];
        for axis in &axes {
            let first = axis.steps.iter().copied().min().unwrap_or(0);
            let last = axis.steps.iter().copied().max().unwrap_or(0);
            for (whole, &start) in whole.iter_mut().zip(&axis.starts) {
                *whole &= axis.contains(start, first) && axis.contains(start, last);
            }
        }
        Self { axes, whole }
    }

    /// Whether an element is inside.
    pub(crate) fn has(&self, lane: usize, depth: usize) -> bool {
        self.axes.iter().all(|axis| axis.contains(axis.starts[lane], axis.steps[depth]))
    }

    /// Whether all elements of these lanes are inside.
    fn has_all(&self, lanes: Range<usize>) -> bool {
        self.axes.is_empty() || self.whole[lanes].iter().all(|&whole| whole)
    }
}

impl WindowAxis {
    fn contains(&self, start: i64, step: i64) -> bool {
        (0..self.extent).contains(&start.saturating_add(step))
    }
}

impl<A: Multiply> Lanes<A> for Strided<'_, A> {
    fn pack<const WIDTH: usize>(
        &self,
        batch: usize,
        lanes: Range<usize>,
        depth: Range<usize>,
        panel: &mut [[A; WIDTH]],
    ) {
        let mut starts = [0; WIDTH];
        for (start, &lane) in starts.iter_mut().zip(&self.lanes[lanes.clone()]) {
            *start = self.batches[batch].wrapping_add(lane);
        }
        let starts = &starts[..lanes.len()];
        let element = |start: i64, step: i64| self.data[start.wrapping_add(step) as usize];
        match self.window.filter(|window| !window.has_all(lanes.clone())) {
            None => {
                for (places, &step) in panel.iter_mut().zip(&self.depths[depth]) {
                    for (place, &start) in places.iter_mut().zip(starts) {
                        *place = element(start, step);
                    }
                }
            }
            Some(window) => {
                for (places, at) in panel.iter_mut().zip(depth) {
                    for ((place, &start), lane) in places.iter_mut().zip(starts).zip(lanes.clone()) {
                        *place = if window.has(lane, at) { element(start, self.depths[at]) } else { A::ZERO };
                    }
                }
            }
        }
    }
}
