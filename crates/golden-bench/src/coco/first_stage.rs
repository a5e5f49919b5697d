//! What the first stage of a detector gives for a batch.

use warpforge::{Outputs, Tensor};
use warpforge_detection::select::{Anchors, Candidates, Proposals};

use crate::Error;

/// Levels of the pyramid; regions are read from all but the last.
pub(super) const LEVELS: usize = 5;

/// An output by its name.
pub(super) fn output<'o>(outputs: &'o Outputs, name: &str) -> Result<&'o Tensor, Error> {
    outputs.get(name).ok_or_else(|| Error::Stopped(format!("the model gives no output `{name}`")))
}

/// A list of numbers as boxes.
pub(super) fn boxes(values: &[f32]) -> &[[f32; 4]] {
    values.as_chunks::<4>().0
}

/// Anchors, how sure the stage is of each, and the box relative to it.
pub(super) struct FirstStage<'o> {
    /// The anchors of each level, the same for every image.
    pub(super) anchors: Vec<Vec<[f32; 4]>>,
    objectness: &'o [f32],
    deltas: &'o [[f32; 4]],
}

impl<'o> FirstStage<'o> {
    /// Of so many images on a canvas.
    pub(super) fn of(given: &'o Outputs, canvas: usize, images: usize) -> Result<Self, Error> {
        let grids = (0..LEVELS).map(|level| {
            let dims = output(given, &format!("features_{level}"))?.dims();
            match dims {
                &[_, _, rows, columns] => Ok((rows, columns)),
                _ => Err(Error::Stopped(format!("features of {dims:?} are no image"))),
            }
        });
        let grids = grids.collect::<Result<Vec<_>, Error>>()?;
        let anchors = Anchors::default().levels((canvas, canvas), &grids);
        let objectness = output(given, "objectness")?.as_slice::<f32>()?;
        let deltas = boxes(output(given, "deltas")?.as_slice::<f32>()?);
        let count: usize = anchors.iter().map(Vec::len).sum();
        if objectness.len() != count * images || deltas.len() != objectness.len() {
            let reason = format!("{} scores for {count} anchors in each of {images}", objectness.len());
            return Err(Error::Stopped(reason));
        }
        Ok(Self { anchors, objectness, deltas })
    }

    /// The proposals of each image; images have these heights and widths.
    pub(super) fn proposals(&self, rule: &Proposals, sizes: &[(usize, usize)]) -> Vec<Vec<[f32; 4]>> {
        let count: usize = self.anchors.iter().map(Vec::len).sum();
        let of_image = |(image, &size): (usize, &(usize, usize))| {
            let rows = image * count..(image + 1) * count;
            let candidates = Candidates {
                anchors: &self.anchors,
                objectness: self.objectness.get(rows.clone()).unwrap_or_default(),
                deltas: self.deltas.get(rows).unwrap_or_default(),
            };
            rule.of_image(&candidates, size)
        };
        sizes.iter().enumerate().map(of_image).collect()
    }
}
