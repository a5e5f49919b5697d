//! What RoIAlign is asked for.

use warpforge_tensor::ElementType;

/// What is pooled, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct RoiAlignSpec {
    /// The element type of everything.
    pub element: ElementType,
    /// Images, channels, height and width of the features.
    pub features: [usize; 4],
    /// How many regions.
    pub regions: usize,
    /// Rows and columns of bins.
    pub bins: [usize; 2],
    /// What the coordinates of regions are multiplied by.
    pub spatial_scale: f64,
    /// Samples of a bin along each side; none takes as many as it has elements.
    pub sampling_ratio: Option<u32>,
    /// Whether coordinates are of the centres of elements.
    pub aligned: bool,
}
