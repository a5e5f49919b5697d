//! Runs a fuzz target on the inputs that fuzzing has kept. Tests include this file.

use std::path::Path;

/// Runs a target on every file of a folder, which is named from the root of the repository.
pub fn replay(folder: &str, target: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut inputs = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        eprintln!("{}", path.display());
        target(&std::fs::read(&path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "{} is empty", folder.display());
}
