//! Components of lower resolution as large as the image, by libjpeg's rules: "fancy" triangle filters where a factor is 2,
//! repeated samples else.

use super::error::JpegError;

/// The samples of a component.
pub(super) struct Plane {
    pub(super) samples: Vec<u8>,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Plane {
    fn row(&self, row: usize) -> &[u8] {
        &self.samples[row * self.width..][..self.width]
    }

    /// A row and the nearer of its neighbours to an output row of twice the height; the row itself at the border.
    fn pair(&self, output: usize) -> (&[u8], &[u8]) {
        let row = output / 2;
        let near =
            if output.is_multiple_of(2) { row.saturating_sub(1) } else { (row + 1).min(self.height - 1) };
        (self.row(row), self.row(near))
    }
}

/// The plane of a component with sampling factors, in an image with the highest ones `most` of a width and height.
pub(super) fn upsample(
    plane: Plane,
    factors: (usize, usize),
    most: (usize, usize),
    (width, height): (usize, usize),
) -> Result<Vec<u8>, JpegError> {
    if !most.0.is_multiple_of(factors.0) || !most.1.is_multiple_of(factors.1) {
        return Err(JpegError::Unsupported("images with sampling factors that do not divide each other"));
    }
    let mut line = Vec::new();
    let mut output = Vec::with_capacity(width * height);
    let filtered = plane.width > 2;
    match (most.0 / factors.0, most.1 / factors.1) {
        (1, 1) => return Ok(plane.samples),
        (2, 1) if filtered => {
            for row in 0..height {
                across(plane.row(row), &mut line);
                output.extend_from_slice(&line[..width]);
            }
        }
        (1, 2) => {
            for row in 0..height {
                let (here, near) = plane.pair(row);
                let bias = if row.is_multiple_of(2) { 1 } else { 2 };
                let value = |(&a, &b): (&u8, &u8)| ((u32::from(a) * 3 + u32::from(b) + bias) >> 2) as u8;
                output.extend(here.iter().zip(near).map(value));
            }
        }
        (2, 2) if filtered => {
            for row in 0..height {
                let (here, near) = plane.pair(row);
                both(here, near, &mut line);
                output.extend_from_slice(&line[..width]);
            }
        }
        (across, down) => {
            for row in 0..height {
                let source = plane.row(row / down);
                output.extend((0..width).map(|column| source[column / across]));
            }
        }
    }
    Ok(output)
}

/// Twice as many samples: each is three quarters of the nearer and one quarter of the other.
fn across(source: &[u8], line: &mut Vec<u8>) {
    line.clear();
    let last = source.len() - 1;
    for (index, &value) in source.iter().enumerate() {
        let value = u32::from(value);
        let [left, right] = [index.saturating_sub(1), (index + 1).min(last)].map(|at| u32::from(source[at]));
        line.push(if index == 0 { value } else { (value * 3 + left + 1) >> 2 } as u8);
        line.push(if index == last { value } else { (value * 3 + right + 2) >> 2 } as u8);
    }
}

/// The same in both directions, of a row and the neighbour that is nearer to the output row.
fn both(here: &[u8], near: &[u8], line: &mut Vec<u8>) {
    line.clear();
    let sum = |index: usize| u32::from(here[index]) * 3 + u32::from(near[index]);
    let last = here.len() - 1;
    for index in 0..here.len() {
        let value = sum(index);
        let left = if index == 0 { value * 4 } else { value * 3 + sum(index - 1) };
        let right = if index == last { value * 4 } else { value * 3 + sum(index + 1) };
        line.push(((left + 8) >> 4) as u8);
        line.push(((right + 7) >> 4) as u8);
    }
}
