//! Both passes of a detector: torchvision trains, this engine trains, and the two are compared.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libtest_mimic::Trial;
use serde_json::Value;

use crate::python::record;
use crate::trial;
use crate::warpt::{Finished, Warpt, copy};

/// Why there is nothing to test with.
pub(crate) fn missing() -> Option<String> {
    crate::python::missing("PIL, pycocotools, torch, torchvision, warpforge")
}

pub(crate) fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 3] = [
        ("a_detector_agrees_with_torchvision", a_detector_agrees_with_torchvision),
        ("data_that_changed_are_refused", data_that_changed_are_refused),
        ("a_folder_of_coco_is_recorded_or_refused", a_folder_of_coco_is_recorded_or_refused),
    ];
    let slow: [(&str, fn()); 1] = [("the_tiny_preset_agrees_with_torchvision", the_tiny_preset_agrees)];
    let slow = slow.into_iter().filter(|_| crate::slow());
    tests.into_iter().chain(slow).map(|(name, test)| trial(name, test)).collect()
}

/// A ResNet-18 on pictures of 96 pixels, whose learning rate falls after the first epoch of four steps.
const SHAPES: &str = r#"
schema_version = 1
name = "shapes"
[model]
architecture = "faster-rcnn"
licence = "MIT"
[model.config]
backbone = "resnet18"
representation_size = 64
min_size = 64
max_size = 96
rpn_batch_size_per_image = 64
rpn_post_nms_top_n_train = 100
rpn_post_nms_top_n_test = 50
box_batch_size_per_image = 32
[data]
format = "coco"
generated = { examples = 8, evaluation = 5 }
licence = "MIT"
[training]
steps = 6
batch_size = 2
[optimizer]
name = "sgd"
lr = 1e-3
momentum = 0.9
weight_decay = 1e-4
[schedule]
shape = "milestones"
milestones = [1]
[record]
every = 10
activations = "none"
noise = true
[metrics.average_precision]
"#;

fn succeeded(done: &Finished) {
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
}

/// The golden run of the small detector, and its description.
fn shapes() -> &'static (PathBuf, PathBuf) {
    static HOME: OnceLock<(Warpt, (PathBuf, PathBuf))> = OnceLock::new();
    let (_, paths) = HOME.get_or_init(|| {
        let warpt = Warpt::new();
        let description = warpt.path("shapes.toml");
        std::fs::write(&description, SHAPES).unwrap();
        succeeded(&record(&warpt, &["shapes.toml", "--out", "golden"]));
        let paths = (warpt.path("golden"), description);
        (warpt, paths)
    });
    paths
}

fn second_pass(warpt: &Warpt, benchmark: &str, golden: &Path) -> Finished {
    let golden = golden.to_str().unwrap();
    warpt.run(&["golden", "run", benchmark, "--compare-golden", golden, "--out", "candidate", "--json"])
}

/// Runs the second pass, compares it, and gives what it printed.
fn agreed(warpt: &Warpt, benchmark: &str, golden: &Path) -> Value {
    let done = second_pass(warpt, benchmark, golden);
    succeeded(&done);
    let golden = golden.to_str().unwrap();
    let flags = ["validate", "--golden", golden, "--candidate", "candidate", "--fail-on-mismatch", "--json"];
    let report = warpt.run(&flags);
    let report: Value = serde_json::from_str(&report.stdout).unwrap_or_else(|_| panic!("{}", report.stderr));
    let failed: Vec<&Value> =
        report["tensors"].as_array().unwrap().iter().filter(|one| one["failed"] == true).collect();
    assert_eq!(report["verdict"], "PASS", "{failed:#?}");
    for class in ["weights", "gradients", "losses", "metrics"] {
        let summary = report["classes"].as_array().unwrap().iter().find(|one| one["class"] == class);
        assert_eq!(summary.unwrap()["verdict"], "PASS", "{class}");
    }
    serde_json::from_str(&done.stdout).unwrap()
}

fn a_detector_agrees_with_torchvision() {
    let warpt = Warpt::new();
    let (golden, description) = shapes();
    let run = agreed(&warpt, description.to_str().unwrap(), golden);
    let steps = run["steps"].as_array().unwrap();
    let rates: Vec<f64> = steps.iter().map(|step| step["lr"].as_f64().unwrap()).collect();
    for (step, rate) in rates.iter().enumerate() {
        let expected = if step < 4 { 1e-3 } else { 1e-4 };
        assert!((rate / expected - 1.0).abs() < 1e-6, "{rates:?}");
    }
    for step in steps {
        let parts = ["loss_classifier", "loss_box_reg", "loss_objectness", "loss_rpn_box_reg"];
        let sum: f64 = parts.iter().map(|part| step[part].as_f64().unwrap()).sum();
        assert!((sum - step["loss"].as_f64().unwrap()).abs() < 1e-5, "{step}");
    }
    let found = &run["detections"];
    let [golden, own, paired] =
        ["golden", "own", "paired"].map(|name| found[name].as_u64().unwrap_or_else(|| panic!("{found}")));
    assert!(golden > 20 && paired * 50 >= golden * 49 && paired * 50 >= own * 49, "{found}");
    assert!(found["largest_score"].as_f64().unwrap() < 1e-3, "{found}");
    for (name, value) in run["golden_metrics"].as_object().unwrap() {
        let apart = (value.as_f64().unwrap() - run["metrics"][name].as_f64().unwrap()).abs();
        assert!(apart <= 0.3, "{name}: {} and {}", run["golden_metrics"], run["metrics"]);
    }
}

fn the_tiny_preset_agrees() {
    let warpt = Warpt::new();
    succeeded(&record(&warpt, &["coco-detection", "--preset", "tiny", "--out", "golden"]));
    let run = agreed(&warpt, "coco-detection", &warpt.path("golden"));
    assert_eq!(run["steps"].as_array().unwrap().len(), 20);
}

/// An image that is cut off, one of another size, and annotations that were changed.
fn data_that_changed_are_refused() {
    let (golden, description) = shapes();
    let annotations = "data/annotations/instances_train2017.json";
    let image = "data/train2017/000000000001.jpg";
    let cut = |path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    };
    for (file, says) in [
        (annotations, "is not the file that the golden run had"),
        (image, "is not the image that the golden run had"),
        ("detection.json", "detection.json cannot be read"),
        ("selection/run_000000.safetensors", "run_000000.safetensors"),
    ] {
        let warpt = Warpt::new();
        let copied = warpt.path("golden");
        copy(golden, &copied);
        // Every example is used in four steps, mirrored or not.
        cut(&copied.join(file));
        let done = second_pass(&warpt, description.to_str().unwrap(), &copied);
        assert!(done.code == 2 && done.stderr.contains(says), "{file}: {} {}", done.code, done.stderr);
    }
}

/// What `--data` names, and what is wrong with it.
fn a_folder_of_coco_is_recorded_or_refused() {
    let (golden, _) = shapes();
    let warpt = Warpt::new();
    std::fs::write(warpt.path("shapes.toml"), SHAPES.replace("steps = 6", "steps = 1")).unwrap();
    let annotations = |part: &str| format!("coco/annotations/instances_{part}2017.json");
    let change = |part: &str, change: &dyn Fn(&mut Value)| {
        copy(&golden.join("data"), &warpt.path("coco"));
        let path = warpt.path(&annotations(part));
        let mut content: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut content);
        std::fs::write(path, content.to_string()).unwrap();
        let done = record(&warpt, &["shapes.toml", "--data", "coco", "--out", "own"]);
        std::fs::remove_dir_all(warpt.path("coco")).unwrap();
        done
    };
    for (part, edit, says) in [
        ("val", set("/categories/0/name", "cube".into()), "have other categories"),
        ("train", set("/annotations/0/category_id", 99.into()), "there is no category 99"),
        ("train", set("/annotations/0/image_id", 99.into()), "there is no image 99"),
        ("train", narrow(), "its annotation says 7"),
        ("train", set("/images", Value::from(3)), "no annotations of COCO"),
    ] {
        let done = change(part, &edit);
        assert!(done.code != 0 && done.stderr.contains(says), "{says}: {}", done.stderr);
    }
    // Boxes outside the image are clipped, those of no area left out: in both passes.
    let done = change("train", &|content: &mut Value| {
        set("/annotations/0/bbox", serde_json::json!([-20.0, -30.0, 500.0, 500.0]))(content);
        set("/annotations/1/bbox", serde_json::json!([5.0, 5.0, 0.0, 9.0]))(content);
    });
    succeeded(&done);
}

/// Says that every image is seven pixels wide.
fn narrow() -> Box<dyn Fn(&mut Value)> {
    Box::new(|content: &mut Value| {
        let images = content["images"].as_array_mut().unwrap();
        images.iter_mut().for_each(|image| image["width"] = 7.into());
    })
}

/// Sets the value at a place of a JSON text.
fn set(pointer: &'static str, value: Value) -> Box<dyn Fn(&mut Value)> {
    Box::new(move |content: &mut Value| *content.pointer_mut(pointer).unwrap() = value.clone())
}
