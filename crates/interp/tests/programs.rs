//! Runs every program beside this file; each states what it expects in its own checks.

use std::path::Path;

use warpforge_interp::conformance::{Judge, Mode, Status, files_below, run_file};

#[test]
fn every_program_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let files = files_below(&folder).expect("the folder of programs");
    assert!(!files.is_empty());
    for file in files {
        for case in run_file(&file, &Judge::default()) {
            let reason = case.reason.unwrap_or_default();
            assert_eq!(case.mode, Mode::Execute, "{}:{}: nothing is checked; {reason}", case.file, case.line);
            assert_eq!(case.status, Status::Passed, "{}:{}: {reason}", case.file, case.line);
        }
    }
}
