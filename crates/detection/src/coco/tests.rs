use super::*;

const FILE: &str = r#"{
  "info": {}, "licenses": [],
  "images": [{"id": 9, "file_name": "9.jpg", "width": 20, "height": 10, "license": 3}],
  "categories": [{"id": 1, "name": "person", "supercategory": "person"}, {"id": 3, "name": "car"}],
  "annotations": [
    {"id": 4, "image_id": 9, "category_id": 3, "bbox": [-1.5, 2, 5, 20], "area": 8.25, "iscrowd": 0, "segmentation": [[1, 2]]},
    {"id": 5, "image_id": 9, "category_id": 1, "bbox": [1, 2, 3, 4], "area": 12, "iscrowd": 1, "segmentation": {"counts": [3]}},
    {"id": 6, "image_id": 9, "category_id": 1, "bbox": [30, 2, 3, 4], "area": 12},
    {"id": 7, "image_id": 9, "category_id": 1, "bbox": [1, 2, 0, 4], "area": 0, "iscrowd": false}
  ]
}"#;

#[test]
fn a_file_of_coco_is_read() {
    let dataset = Dataset::parse(FILE.as_bytes()).unwrap();
    assert_eq!(dataset.images()[0], Image { id: 9, file_name: "9.jpg".into(), width: 20, height: 10 });
    assert_eq!(dataset.categories()[1], Category { id: 3, name: "car".into() });
    let crowds: Vec<bool> = dataset.annotations().iter().map(|annotation| annotation.crowd).collect();
    assert_eq!(crowds, [false, true, false, false]);
}

#[test]
fn targets_are_clipped_and_those_without_an_area_left_out() {
    let targets = Dataset::parse(FILE.as_bytes()).unwrap().targets();
    assert_eq!(targets, [Target { boxes: vec![[0.0, 2.0, 3.5, 10.0]], labels: vec![3] }]);
}

#[test]
fn contradictions_are_refused_and_named() {
    let refused = |from: &str, to: &str| {
        assert!(FILE.contains(from));
        Dataset::parse(FILE.replacen(from, to, 1).as_bytes()).unwrap_err().to_string()
    };
    assert_eq!(refused("\"id\": 5", "\"id\": 4"), "the annotation 4 is there twice");
    assert_eq!(refused("\"category_id\": 3", "\"category_id\": 2"), "annotation 4: there is no category 2");
    assert_eq!(refused("\"image_id\": 9", "\"image_id\": 8"), "annotation 4: there is no image 8");
    assert_eq!(
        refused("[1, 2, 3, 4]", "[1, 2, -3, 4]"),
        "annotation 5: the box [1.0, 2.0, -3.0, 4.0] is none"
    );
    assert_eq!(refused("\"id\": 3", "\"id\": 1"), "the category 1 is there twice");
    assert!(refused("\"id\": 4", "\"id\": 0").contains("number annotations from 1"));
    assert!(refused("[1, 2, 3, 4]", "[1, 2, 3]").contains("line 7"));
    assert!(refused("\"area\": 12, ", "").contains("missing field `area`"));
    assert!(Dataset::parse(&FILE.as_bytes()[..200]).is_err());
}

#[test]
fn categories_that_disagree_are_named() {
    let dataset = Dataset::parse(FILE.as_bytes()).unwrap();
    dataset.same_categories(&dataset).unwrap();
    let other = Dataset::parse(FILE.replace("\"car\"", "\"cat\"").as_bytes()).unwrap();
    let error = dataset.same_categories(&other).unwrap_err().to_string();
    assert_eq!(error, "category 3 is `car` in one file and `cat` in the other");
}

#[test]
fn detections_are_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("detections.json");
    let detections = vec![Detection { image_id: 9, category_id: 3, bbox: [0.1, 2.0, 1e-7, 4.0], score: 0.3 }];
    std::fs::write(&path, write_detections(&detections).unwrap()).unwrap();
    assert_eq!(read_detections(&path).unwrap(), detections);
    std::fs::write(&path, "{}").unwrap();
    assert!(read_detections(&path).unwrap_err().to_string().contains("detections.json: invalid type"));
    let nan = vec![Detection { score: f64::NAN, ..detections[0].clone() }];
    assert!(write_detections(&nan).is_err());
}
