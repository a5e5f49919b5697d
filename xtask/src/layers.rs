//! Holds the layering: a crate may use those above it in the table of `docs/ARCHITECTURE.md`, never those below.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::command::{cargo, output, root};
use crate::modules;

/// The crates of the table, in order.
fn documented() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let table = text.split("## The crates").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(name, _)| name.to_owned()).collect()
}

/// Each folder under `crates/` with the folders of the workspace's crates it uses.
fn actual() -> BTreeMap<String, Vec<String>> {
    let text = output(cargo().args(["metadata", "--format-version=1", "--no-deps", "--offline"])).unwrap();
    let metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
    let folder =
        |path: &str| path.rsplit_once("/crates/").map(|(_, rest)| rest.split('/').next().unwrap().to_owned());
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .filter_map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap();
            let uses = dependencies.iter().filter_map(|dependency| folder(dependency["path"].as_str()?));
            Some((folder(package["manifest_path"].as_str().unwrap())?, uses.collect()))
        })
        .collect()
}

#[test]
fn every_crate_uses_only_those_above_it() {
    let order = documented();
    let place = |name: &str| order.iter().position(|known| known == name);
    for (name, uses) in actual() {
        let own =
            place(&name).unwrap_or_else(|| panic!("`{name}` is not in the table of docs/ARCHITECTURE.md"));
        for used in uses {
            let other = place(&used).unwrap_or_else(|| panic!("`{used}` is not in the table"));
            assert!(other < own, "`{name}` uses `{used}`, which stands below it in docs/ARCHITECTURE.md");
        }
    }
}

#[test]
fn the_table_names_only_crates_that_exist() {
    let actual = actual();
    assert!(!documented().is_empty());
    for name in documented() {
        assert!(actual.contains_key(&name), "docs/ARCHITECTURE.md has `{name}`, but there is no such crate");
    }
}

/// Where unsafe code may be: all of `kernels` and `probes`, which are loops on raw memory, and single modules of other crates.
const UNSAFE: [(&str, &[&str]); 8] = [
    ("backend-cpu", &["executable.rs", "kernel/mod.rs", "observer.rs", "once.rs", "value_memory.rs"]),
    (
        "backend-gpu",
        &[
            "blas/mod.rs",
            "collectives/mod.rs",
            "dnn/cudnn/mod.rs",
            "dnn/miopen/mod.rs",
            "driver/mod.rs",
            "fake/mod.rs",
            "library/mod.rs",
            "solver/mod.rs",
        ],
    ),
    ("bio", &["align/simd/mod.rs"]),
    ("collective", &["library.rs", "mpi.rs", "ucc/mod.rs", "ucc/oob.rs", "ucc/sys.rs"]),
    ("kernels", &[]),
    (
        "linalg",
        &[
            "lu.rs",
            "matrix.rs",
            "panel.rs",
            "product.rs",
            "triangular.rs",
            "update.rs",
            "vector.rs",
            "view.rs",
        ],
    ),
    ("probes", &[]),
    ("tensor", &["io/map.rs"]),
];

#[test]
fn unsafe_code_is_in_its_named_places_only() {
    for name in documented() {
        let folder = root().join("crates").join(&name).join("src");
        let text =
            ["lib.rs", "main.rs"].iter().find_map(|file| std::fs::read_to_string(folder.join(file)).ok());
        let forbids = text.unwrap().contains("#![forbid(unsafe_code)]");
        let place = UNSAFE.iter().find(|(known, _)| *known == name);
        assert_eq!(
            forbids,
            place.is_none(),
            "`{name}`: unsafe code belongs in kernel and library modules only"
        );
        // The workspace denies unsafe code, so a module has it only where it says so.
        let Some((_, modules)) = place.filter(|(_, modules)| !modules.is_empty()) else { continue };
        for file in sources(&folder) {
            let inside = file.strip_prefix(&folder).unwrap().to_str().unwrap();
            let allows = std::fs::read_to_string(&file).unwrap().contains("allow(unsafe_code)");
            assert_eq!(allows, modules.contains(&inside), "`{name}`: unsafe code in {inside}");
        }
    }
}

/// The source files in a folder and those below.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// Crates whose source files must not depend on each other in a cycle.
const ACYCLIC: [&str; 5] = ["backend-cpu", "backend-gpu", "codegen", "fusion", "kernels"];

#[test]
fn files_have_no_dependency_cycles() {
    for name in ACYCLIC {
        let cycles = modules::cycles(&root().join("crates").join(name).join("src"));
        assert!(cycles.is_empty(), "`{name}`: files depend on each other in cycles: {cycles:?}");
    }
}
