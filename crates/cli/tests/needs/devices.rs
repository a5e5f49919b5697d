//! Device nodes as outputs: they are written to, and stay device nodes.

use std::fs::OpenOptions;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use libtest_mimic::Trial;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use crate::trial;
use crate::warpt::Warpt;

/// Makes a node of the device that takes everything.
fn null(path: &Path) -> std::io::Result<()> {
    mknodat(CWD, path, FileType::CharacterDevice, Mode::from_raw_mode(0o600), makedev(1, 3))?;
    OpenOptions::new().write(true).open(path).map(drop)
}

/// Why there is nothing to test with.
pub(crate) fn missing() -> Option<String> {
    let warpt = Warpt::new();
    let error = null(&warpt.path("null")).err()?;
    Some(format!("no device node can be made and opened ({error})"))
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("a_device_is_written_to_and_stays_one", a_device_is_written_to_and_stays_one)]
}

fn a_device_is_written_to_and_stays_one() {
    let warpt = Warpt::new();
    let node = warpt.path("null");
    null(&node).unwrap();
    let text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  func.return %x : tensor<2xf32>\n}\n";
    std::fs::write(warpt.path("model.mlir"), text).unwrap();
    let run = ["run", "model.mlir", "--seed", "1"];
    for arguments in [
        vec!["opt", "model.mlir", "-o", "null"],
        vec!["list", "--export-file", "null"],
        [&run[..], &["--outputs", "null"]].concat(),
        [&run[..], &["--profile", "null"]].concat(),
        [&run[..], &["--trace", "null"]].concat(),
    ] {
        let done = warpt.run(&arguments);
        assert_eq!(done.code, 0, "{arguments:?}: {}", done.stderr);
        let found = std::fs::symlink_metadata(&node).unwrap();
        assert!(found.file_type().is_char_device(), "{arguments:?} replaced the device");
    }
}
