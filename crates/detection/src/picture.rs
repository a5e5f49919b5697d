//! Decoded images.

use std::path::Path;

use crate::error::of_file;
use crate::{Error, Result, jpeg};

/// An image of red, green and blue, 8 bits each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Its width in pixels.
    pub width: usize,
    /// Its height in pixels.
    pub height: usize,
    /// Its pixels, row by row.
    pub pixels: Vec<u8>,
}

impl Picture {
    /// Reads a JPEG file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or [`jpeg::decode`] fails.
    pub fn read(path: &Path) -> Result<Self> {
        of_file(path, |bytes| Ok(jpeg::decode(bytes)?))
    }

    /// Reads the file of an annotated image from the folder of the images.
    ///
    /// # Errors
    ///
    /// As [`Self::read`]; and when the size is not the annotated one.
    pub fn of(image: &crate::coco::Image, folder: &Path) -> Result<Self> {
        let path = folder.join(&image.file_name);
        let picture = Self::read(&path)?;
        if (picture.width, picture.height) != (image.width as usize, image.height as usize) {
            let (w, h) = (picture.width, picture.height);
            let cause =
                format!("it has {w}×{h} pixels, its annotation says {}×{}", image.width, image.height);
            let cause = Box::new(Error::Annotations(cause));
            return Err(Error::File { path: path.display().to_string(), cause });
        }
        Ok(picture)
    }

    /// The same, mirrored: left becomes right.
    pub fn mirrored(&self) -> Self {
        let rows = self.pixels.chunks_exact(self.width * 3);
        let pixels = rows.flat_map(|row| row.chunks_exact(3).rev().flatten().copied()).collect();
        Self { width: self.width, height: self.height, pixels }
    }
}
