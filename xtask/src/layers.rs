//! Holds the layering: a crate may use those above it in the table of `docs/ARCHITECTURE.md`, never those below.

use std::collections::BTreeMap;

use crate::command::{cargo, output, root};

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

#[test]
fn every_crate_but_the_ones_with_kernels_forbids_unsafe_code() {
    for name in documented() {
        let folder = root().join("crates").join(&name).join("src");
        let text =
            ["lib.rs", "main.rs"].iter().find_map(|file| std::fs::read_to_string(folder.join(file)).ok());
        let forbids = text.unwrap().contains("#![forbid(unsafe_code)]");
        assert_eq!(
            forbids,
            name != "probes",
            "`{name}`: unsafe code belongs in kernel and library modules only"
        );
    }
}
