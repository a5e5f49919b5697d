//! A file of annotations.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Deserializer};

use crate::error::of_file;
use crate::{Error, Result};

/// An image that is annotated.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Image {
    /// Its number.
    pub id: i64,
    /// Its file, in the folder of the images.
    #[serde(default)]
    pub file_name: String,
    /// Its width in pixels.
    pub width: u32,
    /// Its height in pixels.
    pub height: u32,
}

/// A kind of object.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Category {
    /// Its number, which is also the label that a detector gives.
    pub id: i64,
    /// What it is called.
    #[serde(default)]
    pub name: String,
}

/// An object in an image.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Annotation {
    /// Its number.
    pub id: i64,
    /// The image.
    pub image_id: i64,
    /// The category.
    pub category_id: i64,
    /// x, y, width and height in pixels.
    pub bbox: [f64; 4],
    /// The area of the object itself, which sorts it into small, medium and large.
    pub area: f64,
    /// Whether the box is around many objects that are not annotated one by one.
    #[serde(default, rename = "iscrowd", deserialize_with = "flag")]
    pub crowd: bool,
}

/// `0`, `1`, `false` or `true`.
fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Flag {
        Bool(bool),
        Number(i64),
    }
    Ok(match Flag::deserialize(deserializer)? {
        Flag::Bool(value) => value,
        Flag::Number(value) => value != 0,
    })
}

/// What a detector is trained to find in an image.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Target {
    /// Left, top, right and bottom of each object, in pixels.
    pub boxes: Vec<[f32; 4]>,
    /// The category of each.
    pub labels: Vec<i64>,
}

/// The content of a file of annotations. Numbers are unique and what refers to each other exists.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Dataset {
    images: Vec<Image>,
    categories: Vec<Category>,
    annotations: Vec<Annotation>,
}

impl Dataset {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// See [`Self::parse`]; and where the file cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        of_file(path, Self::parse)
    }

    /// The dataset of a JSON text.
    ///
    /// # Errors
    ///
    /// Where the text is not COCO's JSON, a number is used twice, an annotation is of an unknown image or category, or a
    /// box is not finite or of negative size. `pycocotools` takes a match with annotation 0 for no match, so that number
    /// is refused too.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let dataset: Self = serde_json::from_slice(text)?;
        dataset.check()?;
        Ok(dataset)
    }

    /// A dataset of parts.
    ///
    /// # Errors
    ///
    /// As [`Self::parse`].
    pub fn new(images: Vec<Image>, categories: Vec<Category>, annotations: Vec<Annotation>) -> Result<Self> {
        let dataset = Self { images, categories, annotations };
        dataset.check()?;
        Ok(dataset)
    }

    fn check(&self) -> Result<()> {
        let images = unique("image", self.images.iter().map(|image| image.id))?;
        let categories = unique("category", self.categories.iter().map(|category| category.id))?;
        unique("annotation", self.annotations.iter().map(|annotation| annotation.id))?;
        for annotation in &self.annotations {
            let refuse =
                |reason: String| Err(Error::Annotations(format!("annotation {}: {reason}", annotation.id)));
            if annotation.id == 0 {
                return refuse(
                    "the number 0 means no match to pycocotools; number annotations from 1".into(),
                );
            }
            if !images.contains(&annotation.image_id) {
                return refuse(format!("there is no image {}", annotation.image_id));
            }
            if !categories.contains(&annotation.category_id) {
                return refuse(format!("there is no category {}", annotation.category_id));
            }
            let [_, _, width, height] = annotation.bbox;
            let finite = annotation.bbox.iter().all(|value| value.is_finite()) && annotation.area.is_finite();
            if !finite || width < 0.0 || height < 0.0 {
                return refuse(format!("the box {:?} is none", annotation.bbox));
            }
        }
        Ok(())
    }

    /// The images, in the order of the file.
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// The categories, in the order of the file.
    pub fn categories(&self) -> &[Category] {
        &self.categories
    }

    /// The annotations, in the order of the file.
    pub fn annotations(&self) -> &[Annotation] {
        &self.annotations
    }

    /// What a detector is trained to find in each image, in the order of [`Self::images`], as torchvision's reference
    /// scripts make it: crowds are left out, boxes are clipped to the image, and those without an area are left out.
    pub fn targets(&self) -> Vec<Target> {
        let places: HashMap<i64, usize> =
            self.images.iter().enumerate().map(|(place, image)| (image.id, place)).collect();
        let mut targets = vec![Target::default(); self.images.len()];
        for annotation in self.annotations.iter().filter(|annotation| !annotation.crowd) {
            let Some(&place) = places.get(&annotation.image_id) else { continue };
            let (width, height) = (self.images[place].width as f32, self.images[place].height as f32);
            // The sums are of f32, as those of the tensors that torchvision's scripts make of the JSON.
            let [x, y, w, h] = annotation.bbox.map(|value| value as f32);
            let [left, right] = [x, x + w].map(|value| value.clamp(0.0, width));
            let [top, bottom] = [y, y + h].map(|value| value.clamp(0.0, height));
            if right > left && bottom > top {
                targets[place].boxes.push([left, top, right, bottom]);
                targets[place].labels.push(annotation.category_id);
            }
        }
        targets
    }

    /// Checks that another dataset, such as the one for the evaluation, has the same categories.
    ///
    /// # Errors
    ///
    /// Where a category is missing in one of them or has another name.
    pub fn same_categories(&self, other: &Self) -> Result<()> {
        let names = |dataset: &Self| -> HashMap<i64, String> {
            dataset.categories.iter().map(|category| (category.id, category.name.clone())).collect()
        };
        let (ours, theirs) = (names(self), names(other));
        let mut ids: Vec<i64> = ours.keys().chain(theirs.keys()).copied().collect();
        ids.sort_unstable();
        let differs = ids.into_iter().find(|id| ours.get(id) != theirs.get(id));
        let shown = |name: Option<&String>| name.map_or("missing".to_owned(), |name| format!("`{name}`"));
        differs.map_or(Ok(()), |id| {
            let (ours, theirs) = (shown(ours.get(&id)), shown(theirs.get(&id)));
            Err(Error::Annotations(format!("category {id} is {ours} in one file and {theirs} in the other")))
        })
    }
}

/// The numbers, which must differ.
fn unique(what: &str, ids: impl Iterator<Item = i64>) -> Result<HashSet<i64>> {
    let mut seen = HashSet::new();
    for id in ids {
        if !seen.insert(id) {
            return Err(Error::Annotations(format!("the {what} {id} is there twice")));
        }
    }
    Ok(seen)
}
