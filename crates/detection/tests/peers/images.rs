//! Decoded and prepared images beside those of PIL and torchvision.

use std::path::{Path, PathBuf};

use libtest_mimic::Failed;
use serde::Deserialize;
use warpforge_detection::picture::Picture;
use warpforge_detection::transform::{Transform, resize_boxes};

use crate::{Outcome, data, python};

/// What torchvision made of an image.
#[derive(Deserialize)]
struct Line {
    file: PathBuf,
    min_size: usize,
    max_size: usize,
    boxes: Vec<[f32; 4]>,
    dims: [usize; 4],
    /// Height and width before the zeros.
    size: (usize, usize),
}

/// How far ours are from theirs.
#[derive(Default)]
struct Distance {
    /// Of decoded pixels, of 255.
    pixels: u8,
    /// Of prepared values, as a part of the range between black and white.
    values: f32,
}

/// The images of COCO: decoded exactly, prepared within 1/255 of the range of pixels, boxes exactly.
pub(crate) fn of_coco() -> Outcome {
    let folder = data::folder()?;
    compare(folder.to_str().ok_or("a name that is no text")?)
}

/// Random ones of all kinds: greyscale, CMYK, tiny, progressive, rotated by EXIF, with restart markers.
pub(crate) fn random() -> Outcome {
    compare("random")
}

fn compare(what: &str) -> Outcome {
    let out = tempfile::tempdir()?;
    let folder = out.path().to_str().ok_or("a name that is no text")?;
    let lines = python::run(include_str!("images.py"), &[folder, what], &[])?;
    let lines: Vec<Line> =
        serde_json::Deserializer::from_slice(&lines).into_iter().collect::<Result<_, _>>()?;
    let mut distance = Distance::default();
    for (index, line) in lines.iter().enumerate() {
        one(line, &out.path().join(index.to_string()), &mut distance)
            .map_err(|error| format!("{}: {}", line.file.display(), error.message().unwrap_or_default()))?;
    }
    let Distance { pixels, values } = distance;
    eprintln!("{} images: pixels within {pixels} of 255, values within {values:e} of the range", lines.len());
    if lines.is_empty() || pixels > 0 || values > 1.0 / 255.0 {
        return Err("too far from PIL and torchvision".into());
    }
    Ok(())
}

fn one(line: &Line, path: &Path, distance: &mut Distance) -> Outcome {
    let read = |kind: &str| std::fs::read(path.with_extension(kind));
    let picture = Picture::read(&line.file)?;
    let theirs = read("rgb")?;
    assert_eq!(theirs.len(), picture.pixels.len());
    let differences = picture.pixels.iter().zip(&theirs).map(|(a, b)| a.abs_diff(*b));
    distance.pixels = distance.pixels.max(differences.max().unwrap_or(0));
    let transform = Transform { min_size: line.min_size, max_size: line.max_size, ..Transform::default() };
    let image = transform.image(&picture)?;
    let batch = transform.batch(std::slice::from_ref(&image));
    assert_eq!((batch.dims, batch.sizes[0]), (line.dims, line.size));
    let theirs = floats(&read("f32")?);
    let plane = batch.dims[2] * batch.dims[3];
    for (index, (a, b)) in batch.values.iter().zip(&theirs).enumerate() {
        let range = 1.0 / transform.std[index / plane];
        distance.values = distance.values.max((a - b).abs() / range);
    }
    let (from, to) = ((picture.width, picture.height), (image.width, image.height));
    let boxes: Vec<f32> = resize_boxes(&line.boxes, from, to).concat();
    if boxes != floats(&read("boxes")?) {
        return Err(Failed::from("the boxes differ"));
    }
    Ok(())
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}
