//! Anchors: boxes of fixed shapes around every element of the features.

/// The shapes of anchors at one level of a pyramid.
#[derive(Debug, Clone, PartialEq)]
pub struct Anchors {
    /// The square root of the area of each level's anchors.
    pub sizes: Vec<f32>,
    /// Height over width of those at each element.
    pub ratios: Vec<f32>,
}

impl Default for Anchors {
    /// Those of torchvision's Faster R-CNN with a pyramid.
    fn default() -> Self {
        Self { sizes: vec![32.0, 64.0, 128.0, 256.0, 512.0], ratios: vec![0.5, 1.0, 2.0] }
    }
}

impl Anchors {
    /// The anchors of each level, whose features have these heights and widths in a batch of a height and width: row by row,
    /// the shapes of an element one after the other.
    #[must_use]
    pub fn levels(&self, image: (usize, usize), features: &[(usize, usize)]) -> Vec<Vec<[f32; 4]>> {
        let level = |(&(rows, columns), &size): (&(usize, usize), &f32)| {
            let shapes: Vec<[f32; 4]> = self.ratios.iter().map(|&ratio| shape(size, ratio)).collect();
            let (down, across) = (image.0 / rows.max(1), image.1 / columns.max(1));
            let mut anchors = Vec::with_capacity(rows * columns * shapes.len());
            for row in 0..rows {
                for column in 0..columns {
                    let (x, y) = ((column * across) as f32, (row * down) as f32);
                    let moved =
                        |[left, top, right, bottom]: &[f32; 4]| [x + left, y + top, x + right, y + bottom];
                    anchors.extend(shapes.iter().map(moved));
                }
            }
            anchors
        };
        features.iter().zip(&self.sizes).map(level).collect()
    }
}

/// An anchor around zero, in whole pixels.
fn shape(size: f32, ratio: f32) -> [f32; 4] {
    let by_height = ratio.sqrt();
    let (width, height) = (1.0 / by_height * size, by_height * size);
    [-width, -height, width, height].map(|side| (side / 2.0).round_ties_even())
}
