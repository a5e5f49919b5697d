//! Boxes as four numbers: left, top, right and bottom.

/// Boxes relative to others, as networks give them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoxCoder {
    /// What the offsets of x and y and the logarithms of width and height are multiplied by.
    pub weights: [f32; 4],
}

/// The middle, width and height of a box.
fn middle([left, top, right, bottom]: [f32; 4]) -> [f32; 4] {
    let (width, height) = (right - left, bottom - top);
    [left + 0.5 * width, top + 0.5 * height, width, height]
}

impl BoxCoder {
    /// That of the first stage.
    pub const PROPOSALS: Self = Self { weights: [1.0; 4] };
    /// That of the second stage.
    pub const DETECTIONS: Self = Self { weights: [10.0, 10.0, 5.0, 5.0] };

    /// A box relative to another.
    #[must_use]
    pub fn encode(&self, of: [f32; 4], to: [f32; 4]) -> [f32; 4] {
        let ([x, y, width, height], [at_x, at_y, from_width, from_height]) = (middle(of), middle(to));
        let [by_x, by_y, by_width, by_height] = self.weights;
        [
            by_x * (x - at_x) / from_width,
            by_y * (y - at_y) / from_height,
            by_width * (width / from_width).ln(),
            by_height * (height / from_height).ln(),
        ]
    }

    /// The box that is relative to another.
    #[must_use]
    pub fn decode(&self, code: [f32; 4], to: [f32; 4]) -> [f32; 4] {
        /// The largest growth: 1000 / 16, as a logarithm.
        const MOST: f32 = 4.135_166_6;
        let [at_x, at_y, width, height] = middle(to);
        let scaled: [f32; 4] = std::array::from_fn(|index| code[index] / self.weights[index]);
        let (x, y) = (scaled[0] * width + at_x, scaled[1] * height + at_y);
        let grown = |by: f32, size: f32| 0.5 * (if by > MOST { MOST } else { by }.exp() * size);
        let (half_width, half_height) = (grown(scaled[2], width), grown(scaled[3], height));
        [x - half_width, y - half_height, x + half_width, y + half_height]
    }
}

/// The intersection over the union of two boxes.
#[must_use]
pub fn overlap(a: [f32; 4], b: [f32; 4]) -> f32 {
    let area = |[left, top, right, bottom]: [f32; 4]| (right - left) * (bottom - top);
    let width = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0);
    let height = (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    let both = width * height;
    both / (area(a) + area(b) - both)
}

/// A box inside of an image of a height and width.
#[must_use]
pub fn clip([left, top, right, bottom]: [f32; 4], (height, width): (usize, usize)) -> [f32; 4] {
    let (height, width) = (height as f32, width as f32);
    [left.clamp(0.0, width), top.clamp(0.0, height), right.clamp(0.0, width), bottom.clamp(0.0, height)]
}

/// Which of the four levels of a pyramid, from the finest, has the features of a box: that where a box of 224 pixels has the
/// third, by twice and half the size.
#[must_use]
pub fn level_of([left, top, right, bottom]: [f32; 4]) -> usize {
    let size = ((right - left) * (bottom - top)).sqrt();
    let level = (4.0 + (size / 224.0).log2() + 1e-6).floor();
    level.clamp(2.0, 5.0) as usize - 2
}

/// Whether both sides of a box have a length.
pub(super) fn has_sides([left, top, right, bottom]: [f32; 4], length: f32) -> bool {
    right - left >= length && bottom - top >= length
}
