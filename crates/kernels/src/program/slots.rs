//! Places of values in scratch memory.

use super::domain::Output;
use super::step::Step;

/// Bytes that places are aligned to, and kept apart beyond their size.
const LINE: usize = 64;

/// Places handed out one after the other; those of values that are read no more are handed out again.
pub(super) struct Slots {
    capacity: usize,
    bytes: usize,
    /// Free places by the width of their elements.
    free: Vec<(usize, usize)>,
}

impl Slots {
    /// Places for so many elements each.
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, bytes: 0, free: Vec::new() }
    }

    /// Bytes that all places take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A place that is never given back.
    pub(super) fn own(&mut self, width: usize) -> usize {
        let place = self.bytes;
        self.bytes += (self.capacity * width).next_multiple_of(LINE) + LINE;
        place
    }

    fn take(&mut self, width: usize) -> usize {
        match self.free.iter().rposition(|&(free, _)| free == width) {
            Some(at) => self.free.swap_remove(at).1,
            None => self.own(width),
        }
    }

    /// A place for the value of each step. Values that are computed once for many tiles keep theirs.
    pub(super) fn place(
        &mut self,
        steps: &[Step],
        outputs: &[Output],
        widths: &[usize],
        once: &[bool],
    ) -> Vec<usize> {
        let mut last: Vec<usize> = (0..steps.len()).collect();
        for (at, step) in steps.iter().enumerate() {
            step.operands().for_each(|operand| last[operand.0] = at);
        }
        outputs.iter().for_each(|output| last[output.value.0] = steps.len());
        let mut places = Vec::with_capacity(steps.len());
        for at in 0..steps.len() {
            // A step's own place is taken before those of its operands are free: its loop must not overwrite them.
            places.push(if once[at] { self.own(widths[at]) } else { self.take(widths[at]) });
            for (value, _) in last[..=at].iter().enumerate().filter(|&(_, &last)| last == at) {
                if !once[value] {
                    self.free.push((widths[value], places[value]));
                }
            }
        }
        places
    }
}
