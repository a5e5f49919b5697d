//! Images and what is to be found in them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use warpforge_detection::coco::{Dataset, Image, Target};
use warpforge_detection::jpeg;
use warpforge_detection::picture::Picture;
use warpforge_detection::transform::{Prepared, Transform, mirror_boxes};

use crate::Error;

/// The images of a part.
pub(super) struct Examples {
    list: Vec<(Image, Target)>,
    folder: PathBuf,
    /// CRC-32 of the files that the golden run read, by the number of the image.
    checksums: BTreeMap<String, u32>,
}

impl Examples {
    /// Images in the order of the file, at most so many; `objects` leaves out those without any.
    pub(super) fn new(
        dataset: &Dataset,
        folder: PathBuf,
        checksums: BTreeMap<String, u32>,
        objects: bool,
        limit: Option<usize>,
    ) -> Self {
        let all = dataset.images().iter().cloned().zip(dataset.targets());
        let list = all.filter(|(_, target)| !objects || !target.boxes.is_empty());
        Self { list: list.take(limit.unwrap_or(usize::MAX)).collect(), folder, checksums }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn image(&self, index: usize) -> &Image {
        &self.list[index].0
    }

    pub(super) fn example(&self, index: usize) -> &(Image, Target) {
        &self.list[index]
    }

    /// What identifies an example: its number, size and whether it is mirrored, then boxes and labels.
    pub(super) fn row(&self, index: usize, mirrored: bool) -> Vec<u8> {
        let (image, target) = &self.list[index];
        let head = [image.id, i64::from(image.width), i64::from(image.height), i64::from(mirrored)];
        let boxes = match mirrored {
            true => mirror_boxes(&target.boxes, image.width as usize),
            false => target.boxes.clone(),
        };
        let mut bytes: Vec<u8> = head.iter().flat_map(|number| number.to_le_bytes()).collect();
        bytes.extend(boxes.iter().flatten().flat_map(|number| number.to_le_bytes()));
        bytes.extend(target.labels.iter().flat_map(|number| number.to_le_bytes()));
        bytes
    }

    /// An image as the detector gets it.
    pub(super) fn prepared(
        &self,
        index: usize,
        mirrored: bool,
        transform: &Transform,
    ) -> Result<Prepared, Error> {
        let image = self.image(index);
        let path = self.folder.join(&image.file_name);
        let wrong = |reason: String| Error::data(&path, reason);
        let bytes = std::fs::read(&path).map_err(Error::io(&path))?;
        match self.checksums.get(&image.id.to_string()) {
            Some(recorded) if *recorded != crc32fast::hash(&bytes) => {
                return Err(wrong("it is not the image that the golden run had; is it cut off?".to_owned()));
            }
            _ => {}
        }
        let picture = jpeg::decode(&bytes).map_err(|error| wrong(error.to_string()))?;
        let Picture { width, height, .. } = picture;
        if (width, height) != (image.width as usize, image.height as usize) {
            let (w, h) = (image.width, image.height);
            return Err(wrong(format!("it has {width}×{height} pixels, its annotation says {w}×{h}")));
        }
        let picture = if mirrored { picture.mirrored() } else { picture };
        transform.image(&picture).map_err(|error| wrong(error.to_string()))
    }
}
