//! Constant attention masks, read and classified at compile time.

use std::collections::HashMap;

use warpforge_fusion::{Graph, NodeId};
use warpforge_tensor::ElementType;

use super::DeviceLayout;
use crate::driver::Stream;
use crate::error::{GpuError, Result};
use crate::lower::{Mask, MaskKind, mask_kind};

/// Classified masks.
#[derive(Default)]
pub(crate) struct Masks {
    known: HashMap<NodeId, MaskKind>,
}

impl Masks {
    /// Reads a mask from the device, after the setup tasks.
    pub(crate) fn classify(
        &mut self,
        mask: &Mask,
        graph: &Graph,
        layout: &DeviceLayout,
        stream: &Stream,
    ) -> Result<MaskKind> {
        if let Some(&known) = self.known.get(&mask.value) {
            return Ok(known);
        }
        let node = graph.node(mask.value);
        if node.element != ElementType::Bool {
            return Err(GpuError::Other(format!("a mask of {}", node.element)));
        }
        let mut values = vec![0u8; node.bytes()];
        stream.read(layout.address(mask.value), &mut values)?;
        let kind = classify(mask, &values);
        self.known.insert(mask.value, kind);
        Ok(kind)
    }
}

fn classify(mask: &Mask, values: &[u8]) -> MaskKind {
    let at = |row: usize, column: usize| {
        let index = mask.offset + row * mask.strides[0] + column * mask.strides[1];
        values.get(index).is_some_and(|&value| value != 0)
    };
    mask_kind(mask.dims, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_masks_are_classified() {
        let mask = Mask { value: NodeId(0), offset: 0, dims: [3, 3], strides: [3, 1] };
        assert_eq!(classify(&mask, &[1, 0, 0, 1, 1, 0, 1, 1, 1]), MaskKind::Causal);
        assert_eq!(classify(&mask, &[1; 9]), MaskKind::All);
        assert_eq!(classify(&mask, &[1, 0, 0, 0, 1, 0, 1, 1, 1]), MaskKind::Other);
        // Elements out of bounds are masked.
        assert_eq!(classify(&mask, &[1; 8]), MaskKind::Other);
        let transposed = Mask { strides: [1, 3], ..mask };
        assert_eq!(classify(&transposed, &[1, 1, 1, 0, 1, 1, 0, 0, 1]), MaskKind::Causal);
    }
}
