use super::*;
use warpforge_tensor::io::{npy, safetensors};

fn tensor(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap()
}

fn write(folder: &Path, name: &str, tensors: &[(&str, &Tensor)]) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    safetensors::write(&path, tensors.iter().copied()).unwrap();
}

fn keys(folder: &Folder) -> Vec<(&str, Class, &str)> {
    folder.items().map(|(key, _)| (key.step.as_str(), key.class, key.name.as_str())).collect()
}

#[test]
fn files_are_found_by_their_names_in_steps_and_class_folders() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let one = tensor(&[1.0]);
    write(root, "weights.safetensors", &[("fc.weight", &one)]);
    write(root, "step_000/gradients.safetensors", &[("fc.weight", &one)]);
    write(root, "step_000/activations/layer1.safetensors", &[("relu", &one)]);
    write(root, "result.safetensors", &[("out0", &one)]);
    npy::write(&root.join("logits.npy"), &one).unwrap();
    std::fs::write(root.join("losses.json"), "{\"loss\": [2.0, NaN]}").unwrap();
    std::fs::write(root.join("checkpoint.pt"), "pickle").unwrap();
    std::fs::write(root.join("config.json"), "{\"layers\": 2}").unwrap();
    let folder = Folder::open(root).unwrap();
    assert_eq!(
        keys(&folder),
        [
            ("", Class::Weights, "fc.weight"),
            ("", Class::Losses, "loss"),
            ("", Class::Outputs, "logits"),
            ("", Class::Outputs, "out0"),
            ("step_000", Class::Activations, "layer1/relu"),
            ("step_000", Class::Gradients, "fc.weight"),
        ]
    );
    let skipped: Vec<&str> = folder.skipped().iter().map(|file| file.path.as_str()).collect();
    assert_eq!(skipped, ["checkpoint.pt", "config.json"]);
    assert!(folder.skipped()[0].reason.contains("pickled"));
    assert_eq!(folder.tensor("", Class::Losses, "loss").unwrap().dims(), [2]);
}

/// A folder with one file and a manifest that lists it under a hash.
fn with_manifest(root: &Path, name: &str, sha256: &str, version: u64) {
    write(root, "outputs.safetensors", &[("out0", &tensor(&[1.0]))]);
    let manifest = serde_json::json!({
        "schema_version": version, "seed": 7, "model": "m:make", "unknown": [1],
        "files": {name: {"sha256": sha256, "bytes": 1}},
        "nodes": [{"name": "relu", "target": "aten.relu.default", "module": "", "source": "m.py:3", "tensors": ["relu"]}],
    });
    std::fs::write(root.join("manifest.json"), manifest.to_string()).unwrap();
}

#[test]
fn a_manifest_is_read_and_its_hashes_are_held() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    with_manifest(root, "outputs.safetensors", "", 1);
    let actual = hash::sha256(&root.join("outputs.safetensors")).unwrap();
    with_manifest(root, "outputs.safetensors", &actual.to_uppercase(), 1);
    let folder = Folder::open(root).unwrap();
    assert_eq!(folder.files()[0].sha256.as_deref(), Some(actual.as_str()));
    let manifest = folder.manifest().unwrap();
    assert_eq!((manifest.seed, manifest.nodes[0].source.as_deref()), (Some(7), Some("m.py:3")));

    for (name, sha256, version, expected) in [
        ("outputs.safetensors", "00", 1, "has changed since the run"),
        ("gone.safetensors", actual.as_str(), 1, "`gone.safetensors`, which is not there"),
        ("../outputs.safetensors", actual.as_str(), 1, "which is not there"),
        ("outputs.safetensors", actual.as_str(), 2, "newer"),
    ] {
        with_manifest(root, name, sha256, version);
        let error = Folder::open(root).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn the_model_is_found_beside_the_folder_and_nowhere_else() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().join("model.golden");
    std::fs::create_dir(&root).unwrap();
    let manifest = |file: &str| {
        let text = serde_json::json!({"schema_version": 1, "archive": {"file": file}}).to_string();
        std::fs::write(root.join("manifest.json"), text).unwrap();
        Folder::open(&root).unwrap().model_file()
    };
    assert_eq!(manifest("model.pt2"), None);
    std::fs::write(temporary.path().join("model.pt2"), "").unwrap();
    assert!(manifest("model.pt2").unwrap().ends_with("model.pt2"));
    assert_eq!(manifest("../model.pt2"), None);
}

#[test]
fn damaged_and_doubled_files_are_errors_with_their_names() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let one = tensor(&[1.0]);
    write(root, "model-1.safetensors", &[("w", &one)]);
    write(root, "model-2.safetensors", &[("w", &one)]);
    let error = Folder::open(root).unwrap_err().to_string();
    assert!(error.contains("model-1.safetensors and model-2.safetensors both have weights `w`"), "{error}");
    std::fs::write(root.join("model-2.safetensors"), "not").unwrap();
    assert!(Folder::open(root).unwrap_err().to_string().contains("model-2.safetensors"));
    std::fs::remove_file(root.join("model-2.safetensors")).unwrap();
    std::fs::write(root.join("losses.json"), "{").unwrap();
    assert!(Folder::open(root).unwrap_err().to_string().contains("losses.json"));
    assert!(matches!(Folder::open(&root.join("nowhere")), Err(Error::Io { .. })));
}
