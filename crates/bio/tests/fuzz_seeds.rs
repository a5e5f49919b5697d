//! Replays the inputs that fuzzing has kept: each was a seed or a finding once.

// It is a library for the fuzz targets, and only here a module that nothing else can see.
#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/sequences.rs"]
mod fuzz;

use std::path::Path;

fn replay(folder: &str, target: impl Fn(&[u8])) {
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

#[test]
fn sequences() {
    replay("fuzz/seeds/sequences", fuzz::sequences);
}

#[test]
fn alignment() {
    replay("fuzz/seeds/alignment", fuzz::alignment);
}
