//! Images and boxes as torchvision's `GeneralizedRCNNTransform` prepares them: normalised, resized, padded to a batch.

use crate::picture::Picture;
use crate::{Error, Result};

/// How images are prepared.
#[derive(Debug, Clone, PartialEq)]
pub struct Transform {
    /// What the shorter side becomes.
    pub min_size: usize,
    /// The most that the longer side may become; the shorter is less then.
    pub max_size: usize,
    /// What is subtracted from red, green and blue, which are between 0 and 1.
    pub mean: [f32; 3],
    /// What they are divided by then.
    pub std: [f32; 3],
    /// Width and height of a batch are multiples of it.
    pub size_divisible: usize,
}

impl Default for Transform {
    /// That of torchvision's Faster R-CNN.
    fn default() -> Self {
        Self {
            min_size: 800,
            max_size: 1333,
            mean: [0.485, 0.456, 0.406],
            std: [0.229, 0.224, 0.225],
            size_divisible: 32,
        }
    }
}

/// A prepared image: three planes of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// Its width.
    pub width: usize,
    /// Its height.
    pub height: usize,
    /// Red, green and blue, each row by row.
    pub values: Vec<f32>,
}

/// Images of one size, with zeros right of and below the smaller ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// How many, 3, height and width.
    pub dims: [usize; 4],
    /// The images one after the other.
    pub values: Vec<f32>,
    /// Height and width of each without the zeros.
    pub sizes: Vec<(usize, usize)>,
}

/// The longest side that an image may be resized to.
const LONGEST: usize = 1 << 14;

impl Transform {
    /// The width and height that an image of a width and height gets.
    ///
    /// # Errors
    ///
    /// When no pixel would be left of one of them, or too many would be made.
    pub fn size(&self, width: usize, height: usize) -> Result<(usize, usize)> {
        let (shorter, longer) = (width.min(height) as f64, width.max(height) as f64);
        let scale = (self.min_size as f64 / shorter).min(self.max_size as f64 / longer);
        let [new_width, new_height] = [width, height].map(|size| (size as f64 * scale).floor() as usize);
        if new_width == 0 || new_height == 0 || new_width.max(new_height) > LONGEST {
            return Err(Error::Size { from: (width, height), to: (new_width, new_height) });
        }
        Ok((new_width, new_height))
    }

    /// An image, normalised and resized.
    ///
    /// # Errors
    ///
    /// As [`Self::size`].
    pub fn image(&self, picture: &Picture) -> Result<Prepared> {
        let (width, height) = self.size(picture.width, picture.height)?;
        let (columns, rows) = (weights(picture.width, width), weights(picture.height, height));
        let mut values = vec![0.0; 3 * width * height];
        for (channel, plane) in values.chunks_exact_mut(width * height).enumerate() {
            let normal = |value: u8| (f32::from(value) / 255.0 - self.mean[channel]) / self.std[channel];
            let table: Vec<f32> = (0..=255).map(normal).collect();
            let pixel = |row: usize, column: usize| {
                table[usize::from(picture.pixels[(row * picture.width + column) * 3 + channel])]
            };
            for (line, down) in plane.chunks_exact_mut(width).zip(&rows) {
                for (value, across) in line.iter_mut().zip(&columns) {
                    let in_row = |row: usize| {
                        pixel(row, across.first) * across.of_first
                            + pixel(row, across.second) * across.of_second
                    };
                    *value = in_row(down.first) * down.of_first + in_row(down.second) * down.of_second;
                }
            }
        }
        Ok(Prepared { width, height, values })
    }

    /// Prepared images as one batch, each in the upper left corner of a canvas that has room for all.
    pub fn batch(&self, images: &[Prepared]) -> Batch {
        let most = |size: fn(&Prepared) -> usize| {
            images.iter().map(size).max().unwrap_or(0).next_multiple_of(self.size_divisible.max(1))
        };
        let (width, height) = (most(|image| image.width), most(|image| image.height));
        let mut values = vec![0.0; images.len() * 3 * width * height];
        for (image, canvas) in images.iter().zip(values.chunks_exact_mut((3 * width * height).max(1))) {
            let lines = image.values.chunks_exact(image.width).enumerate();
            for (index, line) in lines {
                let (channel, row) = (index / image.height, index % image.height);
                let start = (channel * height + row) * width;
                canvas[start..start + image.width].copy_from_slice(line);
            }
        }
        let sizes = images.iter().map(|image| (image.height, image.width)).collect();
        Batch { dims: [images.len(), 3, height, width], values, sizes }
    }
}

/// Two source pixels and their parts of an output pixel.
struct Weights {
    first: usize,
    second: usize,
    of_first: f32,
    of_second: f32,
}

/// Bilinear interpolation along one side, pixel centres at one half, as PyTorch's `interpolate` without antialiasing.
fn weights(from: usize, to: usize) -> Vec<Weights> {
    let scale = from as f32 / to as f32;
    let weight = |index: usize| {
        let place = (scale * (index as f32 + 0.5) - 0.5).max(0.0);
        let first = (place as usize).min(from - 1);
        let second = (first + 1).min(from - 1);
        let of_second = (place - first as f32).clamp(0.0, 1.0);
        Weights { first, second, of_first: 1.0 - of_second, of_second }
    };
    (0..to).map(weight).collect()
}

/// Boxes of an image of one width and height, in the image of another: left, top, right and bottom.
pub fn resize_boxes(boxes: &[[f32; 4]], from: (usize, usize), to: (usize, usize)) -> Vec<[f32; 4]> {
    let (x, y) = (to.0 as f32 / from.0 as f32, to.1 as f32 / from.1 as f32);
    boxes.iter().map(|[left, top, right, bottom]| [left * x, top * y, right * x, bottom * y]).collect()
}

/// Boxes of an image of a width, in the mirrored image.
pub fn mirror_boxes(boxes: &[[f32; 4]], width: usize) -> Vec<[f32; 4]> {
    let width = width as f32;
    boxes.iter().map(|[left, top, right, bottom]| [width - right, *top, width - left, *bottom]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(min_size: usize, max_size: usize) -> Transform {
        Transform { min_size, max_size, mean: [0.0; 3], std: [1.0 / 255.0; 3], size_divisible: 4 }
    }

    fn picture(width: usize, height: usize) -> Picture {
        let pixels = (0..width * height * 3).map(|at| (at / 3 * 10) as u8).collect();
        Picture { width, height, pixels }
    }

    #[test]
    fn the_shorter_side_decides_up_to_the_longest() {
        assert_eq!(Transform::default().size(640, 480).unwrap(), (1066, 800));
        assert_eq!(Transform::default().size(640, 427).unwrap(), (1199, 800));
        assert_eq!(Transform::default().size(300, 100).unwrap(), (1333, 444));
        assert_eq!(Transform::default().size(1, 1).unwrap(), (800, 800));
        assert!(Transform::default().size(1, 5000).is_err());
    }

    #[test]
    fn pixels_between_two_are_interpolated() {
        let image = plain(2, 4).image(&picture(2, 1)).unwrap();
        assert_eq!((image.width, image.height), (4, 2));
        let row = [0.0, 2.5, 7.5, 10.0];
        for (line, expected) in image.values.chunks(4).zip([row; 6]) {
            let near = line.iter().zip(expected).all(|(value, expected)| (value - expected).abs() < 1e-5);
            assert!(near, "{line:?}");
        }
    }

    #[test]
    fn a_batch_has_room_for_the_largest() {
        let transform = plain(2, 3);
        let images = [picture(3, 2), picture(2, 3)].map(|picture| transform.image(&picture).unwrap());
        let batch = transform.batch(&images);
        assert_eq!((batch.dims, batch.sizes.as_slice()), ([2, 3, 4, 4], &[(2, 3), (3, 2)][..]));
        let rounded: Vec<i32> = batch.values[..16].iter().map(|value| value.round() as i32).collect();
        assert_eq!(rounded, [0, 10, 20, 0, 30, 40, 50, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(transform.batch(&[]).dims, [0, 3, 0, 0]);
    }

    #[test]
    fn boxes_follow_their_image() {
        let boxes = [[1.0, 2.0, 3.0, 4.0]];
        assert_eq!(resize_boxes(&boxes, (10, 10), (20, 5)), [[2.0, 1.0, 6.0, 2.0]]);
        assert_eq!(mirror_boxes(&boxes, 10), [[7.0, 2.0, 9.0, 4.0]]);
        assert_eq!(picture(2, 1).mirrored().pixels, [10, 10, 10, 0, 0, 0]);
    }
}
