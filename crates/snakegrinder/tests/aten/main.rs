//! Every lowering against PyTorch: graphs of one operation, with what PyTorch computed for them.
//!
//! `cargo xtask aten-cases` writes the files in `cases`, two for each file of lowerings: `FAMILY.jsonl` has a graph a
//! line, `FAMILY.safetensors` the inputs and PyTorch's outputs. There is one test for each operation, and
//! `src/lower/ops/covered.rs` tests that no operation is left out. Nothing here needs PyTorch.

#[allow(dead_code, reason = "the programs of single nodes are for the mutations")]
#[path = "../mutations/archive.rs"]
mod archive;
mod case;
mod program;
#[path = "../common/zip.rs"]
mod zip;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use warpforge_tensor::Blob;
use warpforge_tensor::io::safetensors;

use case::Case;

/// What all cases together may take, in bytes.
const LARGEST: u64 = 8_000_000;

fn main() {
    let arguments = Arguments::from_args();
    let trials = families().and_then(|families| {
        let mut trials = vec![Trial::test("manifest", || manifest().map_err(Failed::from))];
        for family in families {
            trials.extend(of_family(&family)?);
        }
        Ok(trials)
    });
    match trials {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit(),
        Err(error) => {
            eprintln!("the cases cannot be read: {error}");
            std::process::exit(1);
        }
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/aten/cases")
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The hashes that the manifest has, by file.
fn hashes() -> Result<BTreeMap<String, String>, String> {
    let manifest: Value =
        serde_json::from_slice(&read(&folder().join("manifest.json"))?).map_err(|error| error.to_string())?;
    let listed = manifest["sha256"].as_object().ok_or("the manifest lists no files")?;
    let hash = |(name, hash): (&String, &Value)| Some((name.clone(), hash.as_str()?.to_owned()));
    listed.iter().map(hash).collect::<Option<_>>().ok_or_else(|| "a hash is no text".to_owned())
}

/// The families that have cases.
fn families() -> Result<Vec<String>, String> {
    Ok(hashes()?.keys().filter_map(|name| name.strip_suffix(".jsonl")).map(str::to_owned).collect())
}

/// One test for each operation of a family.
fn of_family(family: &str) -> Result<Vec<Trial>, String> {
    let tensors = Blob::from(read(&folder().join(format!("{family}.safetensors")))?);
    let mut tensors = safetensors::decode(&tensors).map_err(|error| format!("{family}: {error}"))?;
    let text = String::from_utf8(read(&folder().join(format!("{family}.jsonl")))?)
        .map_err(|error| format!("{family}: {error}"))?;
    let mut cases: BTreeMap<String, Vec<Case>> = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let case =
            Case::new(line, at, &mut tensors).map_err(|error| format!("{family}, line {at}: {error}"))?;
        cases.entry(case.op.clone()).or_default().push(case);
    }
    if let Some(unused) = tensors.keys().next() {
        return Err(format!("{family}: no graph has the tensor `{unused}`"));
    }
    let trial = |(op, cases): (String, Vec<Case>)| {
        let judge = move || {
            let wrong: Vec<String> = cases.iter().filter_map(|case| case.judge().err()).collect();
            if wrong.is_empty() { Ok(()) } else { Err(Failed::from(wrong.join("\n"))) }
        };
        Trial::test(format!("{}::{op}", family.replace('/', "::")), judge)
    };
    Ok(cases.into_iter().map(trial).collect())
}

/// The files are those of the manifest, with the content that they were written with.
fn manifest() -> Result<(), String> {
    let listed = hashes()?;
    let mut found = BTreeSet::new();
    let size = files(&folder(), &mut found)?;
    let expected: BTreeSet<PathBuf> =
        listed.keys().map(String::as_str).chain(["manifest.json"]).map(|name| folder().join(name)).collect();
    let differ: Vec<_> = found.symmetric_difference(&expected).collect();
    if !differ.is_empty() {
        return Err(format!("in the folder or in the manifest, but not in both: {differ:?}"));
    }
    for (name, hash) in &listed {
        let actual = Sha256::digest(read(&folder().join(name))?);
        let actual: String = actual.iter().map(|byte| format!("{byte:02x}")).collect();
        if actual != *hash {
            return Err(format!("{name} is not what `cargo xtask aten-cases` wrote"));
        }
    }
    if size > LARGEST {
        return Err(format!("the cases take {size} bytes, more than {LARGEST}"));
    }
    Ok(())
}

/// Adds the files below a folder and returns their size.
fn files(folder: &Path, found: &mut BTreeSet<PathBuf>) -> Result<u64, String> {
    let mut size = 0;
    for entry in std::fs::read_dir(folder).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_dir() {
            size += files(&path, found)?;
        } else {
            size += path.metadata().map_err(|error| error.to_string())?.len();
            found.insert(path);
        }
    }
    Ok(size)
}
