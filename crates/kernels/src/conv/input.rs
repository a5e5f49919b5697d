//! Inputs of convolutions.

use warpforge_tensor::ElementType;

/// An input in memory.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The first channel of the first pixel of the first image.
    pub data: *const u8,
    /// The type of the elements.
    pub element: ElementType,
    /// From one channel to the next, in elements: 1 but for runs that say otherwise.
    pub channel_stride: usize,
    /// From one image to the next, in elements.
    pub batch_stride: usize,
    /// From one element to the next along each spatial dimension, in elements.
    pub strides: &'a [usize],
}
