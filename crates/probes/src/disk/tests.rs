//! What a test file refuses. What it needs direct I/O for is in `tests/hardware.rs`.

use std::path::Path;

use super::*;

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn an_absurd_size_and_a_folder_that_is_none_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for bytes in [1 << 60, u64::MAX] {
        let error = ScratchFile::create(folder.path(), bytes).unwrap_err();
        assert!(matches!(error, DiskError::NoSpace { free, .. } if free > 0), "{error}");
        assert!(error.to_string().contains(&folder.path().display().to_string()), "{error}");
    }
    assert!(is_empty(folder.path()));

    let missing = folder.path().join("missing");
    assert!(matches!(ScratchFile::create(&missing, 4096), Err(DiskError::BadFolder { .. })));
    std::fs::write(&missing, "a file").unwrap();
    assert!(matches!(ScratchFile::create(&missing, 4096), Err(DiskError::BadFolder { .. })));
}
