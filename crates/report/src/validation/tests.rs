use std::path::Path;

use warpforge_golden::{Folder, Options, validate};
use warpforge_tensor::Tensor;
use warpforge_tensor::io::safetensors;

use super::*;
use crate::Screen;

/// Two runs: an activation that differs, a gradient that is missing, and an output that is the same.
fn validation() -> Validation {
    let runs = tempfile::tempdir().unwrap();
    let write = |run: &str, file: &str, name: &str, values: &[f32]| {
        let folder = runs.path().join(run);
        std::fs::create_dir_all(&folder).unwrap();
        let tensor = Tensor::from_slice(&[values.len()], values).unwrap();
        safetensors::write(&folder.join(file), [(name, &tensor)]).unwrap();
    };
    for (run, value) in [("golden", 1.0), ("candidate", 1.25)] {
        write(run, "activations.safetensors", "relu_1", &[0.5, value, -2.0]);
        write(run, "outputs.safetensors", "out0", &[3.0]);
    }
    write("golden", "gradients.safetensors", "fc.weight", &[1.0]);
    write("candidate", "weights.safetensors", "new", &[1.0]);
    let manifest = "{\"schema_version\": 1, \"seed\": 3, \"model\": \"net:make\", \"nodes\": [{\"name\": \"relu_1\", \
                    \"target\": \"aten.relu.default\", \"module\": \"block.0\", \"source\": \"net.py:7\"}]}";
    std::fs::write(runs.path().join("golden/manifest.json"), manifest).unwrap();
    let open = |run: &str| Folder::open(&Path::new(runs.path()).join(run)).unwrap();
    validate(&open("golden"), &open("candidate"), &Options::default())
}

#[test]
fn the_terminal_shows_the_first_operation_with_both_values() {
    let page = text(&validation(), Screen::PLAIN);
    for expected in [
        "(net:make, seed 3)",
        "first operation out of tolerance: relu_1 (aten.relu.default) in block.0, net.py:7\n",
        "activations `relu_1`: 1 of 3 elements out of tolerance, max abs 0.250, max rel 0.250",
        "worst at [1]: golden 1.0, candidate 1.25\n",
        "unknown: no model is given to replay it with\n",
        "1e-1 to 1e0         1  ███",
        "extra: weights new\n",
        "FAIL: 2 tensors compared, 2 failed, 1 identical, 1 missing, 1 extra, 1 of 4 elements out of tolerance\n",
    ] {
        assert!(page.contains(expected), "no {expected:?} in\n{page}");
    }
    assert!(
        !page.contains('\u{1b}')
            && text(&validation(), Screen { colour: true, columns: None }).contains("\u{1b}[31m")
    );
}

#[test]
fn markdown_has_the_same_in_tables() {
    let page = markdown(&validation());
    for expected in [
        "## Validation: FAIL\n",
        "| activations | FAIL | 1 | 0 | 1 | 0 | 0 | 0.250 |",
        "### First operation out of tolerance\n\n**relu\\_1 (aten.relu.default) in block.0, net.py:7**\n",
        "| gradients | fc.weight | f32\\[1\\] | missing |",
        "### Remarks\n\n- extra: weights new\n",
    ] {
        assert!(page.contains(expected), "no {expected:?} in\n{page}");
    }
}

#[test]
fn junit_counts_mismatches_and_skips_what_is_only_reported() {
    let xml = junit(&validation()).unwrap();
    assert!(xml.contains("tests=\"4\" skipped=\"1\" failures=\"2\""), "{xml}");
    assert!(xml.contains("worst at [1]: golden 1.0, candidate 1.25"), "{xml}");
    assert!(xml.contains("relu_1 (aten.relu.default) in block.0, net.py:7"), "{xml}");
    assert!(xml.contains("<skipped message=\"extra\""), "{xml}");
}
