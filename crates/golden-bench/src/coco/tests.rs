//! Data of detection: images of all kinds, annotations that contradict each other, and what a second pass refuses.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::description::{Description, Overrides};

/// Images of `crates/detection`, with their widths and heights.
const IMAGES: [(&str, usize, usize); 5] = [
    ("baseline-420.jpg", 19, 21),
    ("grey.jpg", 19, 21),
    ("cmyk.jpg", 19, 21),
    ("rotated.jpg", 19, 21),
    ("pixel.jpg", 1, 1),
];

struct Folder(tempfile::TempDir);

impl Folder {
    /// A golden folder with images of all kinds, of which the first has an object.
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        let source = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../detection/tests/images"));
        std::fs::create_dir(folder.path("images")).unwrap();
        for (name, ..) in IMAGES {
            std::fs::copy(source.join(name), folder.path("images").join(name)).unwrap();
        }
        folder.write("train.json", &annotations());
        folder.write("eval.json", &annotations());
        folder.write("images.json", &json!({"train": {}, "eval": {}}));
        folder.write(
            "detection.json",
            &json!({
                "schema_version": 1, "min_size": 32, "max_size": 64, "canvas": 64, "classes": 4,
                "mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25],
                "proposals": {"before": 10, "after": 5, "threshold": 0.7},
                "training_proposals": {"before": 10, "after": 5, "threshold": 0.7},
                "anchor_samples": {"count": 8, "positive": 0.5},
                "region_samples": {"count": 4, "positive": 0.25},
                "detections": {"score": 0.05, "threshold": 0.5, "most": 10},
                "images": {"train": "images", "eval": "images"},
            }),
        );
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &Value) {
        std::fs::write(self.path(name), content.to_string()).unwrap();
    }

    fn load(&self) -> Result<Coco, String> {
        let plan =
            Description::find("coco-detection").unwrap().plan(Some("tiny"), &Overrides::default()).unwrap();
        let loaded = Coco::load(&plan, self.0.path(), &self.path("train.json"), &self.path("eval.json"));
        loaded.map_err(|error| error.to_string())
    }
}

fn annotations() -> Value {
    let images = IMAGES.iter().enumerate().map(|(at, (name, width, height))| {
        json!({"id": at + 1, "file_name": name, "width": width, "height": height})
    });
    json!({
        "images": images.collect::<Vec<_>>(),
        "categories": [{"id": 1, "name": "square"}, {"id": 3, "name": "disc"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 3, "bbox": [-4.0, 2.0, 9.0, 99.0], "area": 10.0},
            {"id": 2, "image_id": 2, "category_id": 1, "bbox": [2.0, 2.0, 0.0, 9.0], "area": 0.0},
        ],
    })
}

#[test]
fn images_of_all_kinds_are_prepared() {
    let folder = Folder::new();
    let coco = folder.load().unwrap();
    // Only the first has an object of some area inside of it; its mirror image is the other example.
    assert_eq!((coco.examples("train"), coco.examples("eval")), (2, 5));
    let inputs = coco.evaluation_batch(&[0, 1, 2, 3, 4]).unwrap();
    let images = inputs.get("images").unwrap();
    assert_eq!(images.dims(), [5, 3, 64, 64]);
    assert!(images.as_slice::<f32>().unwrap().iter().all(|value| value.is_finite()));
    // The lower right corner is empty: 19×21 pixels become 32×35.
    assert_eq!(images.at(&[0, 0, 63, 63]).unwrap().to_f64(), 0.0);
    let row = coco.row("train", 1);
    let numbers: Vec<i64> =
        row[..32].as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
    assert_eq!(numbers, [1, 19, 21, 1]);
    let boxes: Vec<f32> =
        row[32..48].as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    // Clipped to five pixels at the left, which are at the right of the mirrored image.
    assert_eq!(boxes, [14.0, 2.0, 19.0, 21.0]);
    assert_eq!(row[48..], 3i64.to_le_bytes());
}

#[test]
fn an_image_that_is_not_as_it_was_is_refused() {
    let folder = Folder::new();
    folder.write("images.json", &json!({"train": {"1": 7}, "eval": {}}));
    let error = folder.load().unwrap().batch(&[0]).unwrap_err().to_string();
    assert!(error.contains("baseline-420.jpg: it is not the image that the golden run had"), "{error}");

    let path = folder.path("images/grey.jpg");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = folder.load().unwrap().evaluation_batch(&[1]).unwrap_err().to_string();
    assert!(error.contains("grey.jpg: ") && error.contains("cut off"), "{error}");

    std::fs::remove_file(&path).unwrap();
    assert!(matches!(folder.load().unwrap().evaluation_batch(&[1]), Err(Error::Io { .. })));

    let mut content = annotations();
    content["images"][2]["width"] = json!(20);
    folder.write("eval.json", &content);
    let error = folder.load().unwrap().evaluation_batch(&[2]).unwrap_err().to_string();
    assert!(error.contains("cmyk.jpg: it has 19×21 pixels, its annotation says 20×21"), "{error}");
}

#[test]
fn files_that_contradict_each_other_are_refused() {
    for (file, pointer, value, says) in [
        ("eval.json", "/categories/0/name", json!("cube"), "category 1 is `square` in one file and `cube`"),
        ("train.json", "/annotations/0/category_id", json!(9), "there is no category 9"),
        ("train.json", "/annotations/0/image_id", json!(9), "there is no image 9"),
        ("train.json", "/annotations/0/bbox/2", json!(-1.0), "is none"),
        ("detection.json", "/classes", json!(91), "categories up to 3 are not those of 91 classes"),
        ("detection.json", "/schema_version", json!(2), "record it again"),
        ("detection.json", "/canvas", json!(32), "sizes that contradict each other"),
        ("detection.json", "/images", json!({}), "names no images of train"),
        ("images.json", "/train", json!([]), "images.json cannot be read"),
    ] {
        let folder = Folder::new();
        let mut content: Value = serde_json::from_slice(&std::fs::read(folder.path(file)).unwrap()).unwrap();
        *content.pointer_mut(pointer).unwrap() = value;
        folder.write(file, &content);
        let error = folder.load().map(|_| ()).unwrap_err();
        assert!(error.contains(says), "{file} {pointer}: {error}");
    }
}
