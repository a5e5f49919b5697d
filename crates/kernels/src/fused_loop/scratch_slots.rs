//! Allocation of values in scratch memory.

use super::domain::Output;
use super::inst::Inst;

/// Alignment and padding of slots.
const LINE: usize = 64;

/// Allocates slots; those of dead values are reused.
pub(super) struct SlotAllocator {
    capacity: usize,
    bytes: usize,
    /// Free slots by element size.
    free: Vec<(usize, usize)>,
}

impl SlotAllocator {
    /// An allocator of slots with `capacity` elements.
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, bytes: 0, free: Vec::new() }
    }

    /// Bytes of all slots.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A slot that is never reused.
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

    /// Assigns a slot to each value. Hoisted values keep theirs.
    pub(super) fn place(
        &mut self,
        insts: &[Inst],
        outputs: &[Output],
        widths: &[usize],
        once: &[bool],
    ) -> Vec<usize> {
        let mut last: Vec<usize> = (0..insts.len()).collect();
        for (at, inst) in insts.iter().enumerate() {
            inst.operands().for_each(|operand| last[operand.0] = at);
        }
        outputs.iter().for_each(|output| last[output.value.0] = insts.len());
        let mut places = Vec::with_capacity(insts.len());
        for at in 0..insts.len() {
            // The slot of an instruction is allocated before those of its operands are freed: its loop must not
            // overwrite them.
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
