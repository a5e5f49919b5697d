//! Masks that are there before a run, looked at: which of them need not be read again.

use std::collections::HashMap;

use warpforge_fusion::{Graph, NodeId};
use warpforge_tensor::ElementType;

use super::Layout;
use crate::driver::Stream;
use crate::error::{GpuError, Result};
use crate::lower::{Mask, Seen, seen};

/// Masks that were looked at.
#[derive(Default)]
pub(crate) struct Masks {
    known: HashMap<NodeId, Seen>,
}

impl Masks {
    /// Reads a mask from the device, where what computes it once has run.
    pub(crate) fn look(
        &mut self,
        mask: &Mask,
        graph: &Graph,
        layout: &Layout,
        stream: &Stream,
    ) -> Result<Seen> {
        if let Some(&known) = self.known.get(&mask.value) {
            return Ok(known);
        }
        let node = graph.node(mask.value);
        if node.element != ElementType::Bool {
            return Err(GpuError::Other(format!("a mask of {}", node.element)));
        }
        let mut values = vec![0u8; node.bytes()];
        stream.read(layout.address(mask.value), &mut values)?;
        let seen = look(mask, &values);
        self.known.insert(mask.value, seen);
        Ok(seen)
    }
}

fn look(mask: &Mask, values: &[u8]) -> Seen {
    let at = |row: usize, column: usize| {
        let place = mask.offset + row * mask.strides[0] + column * mask.strides[1];
        values.get(place).is_some_and(|&value| value != 0)
    };
    seen(mask.dims, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_known_by_what_they_let_through() {
        let mask = Mask { value: NodeId(0), offset: 0, dims: [3, 3], strides: [3, 1] };
        assert_eq!(look(&mask, &[1, 0, 0, 1, 1, 0, 1, 1, 1]), Seen::UpToItself);
        assert_eq!(look(&mask, &[1; 9]), Seen::All);
        assert_eq!(look(&mask, &[1, 0, 0, 0, 1, 0, 1, 1, 1]), Seen::Other);
        // A mask that ends before its last element lets nothing through there.
        assert_eq!(look(&mask, &[1; 8]), Seen::Other);
        let turned = Mask { strides: [1, 3], ..mask };
        assert_eq!(look(&turned, &[1, 1, 1, 0, 1, 1, 0, 0, 1]), Seen::UpToItself);
    }
}
