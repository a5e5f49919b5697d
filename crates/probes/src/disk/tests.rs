//! The parts together, on a real file system.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::drive::{Course, drive};
use super::mapping::cached_pages;
use super::*;

const BYTES: u64 = (3 << 20) + 8192;

/// A test file, or none, with the reason printed, where the folder for temporary files knows no direct I/O.
fn scratch(folder: &Path) -> Option<ScratchFile> {
    match ScratchFile::create(folder, BYTES) {
        Err(error @ DiskError::NotDirect { .. }) => {
            eprintln!("skipped: {error}");
            None
        }
        outcome => Some(outcome.unwrap()),
    }
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

/// Visits every 4 KiB block once, last one first, and keeps what is in it.
#[derive(Default)]
struct Contents {
    left: u64,
    found: HashMap<u64, Vec<u8>>,
}

impl Course for Contents {
    fn next(&mut self, _now: Instant) -> Option<u64> {
        self.left = self.left.checked_sub(4096)?;
        Some(self.left)
    }

    fn ended(&mut self, offset: u64, block: &[u8], _started: Instant, _now: Instant) {
        self.found.insert(offset, block.to_vec());
    }
}

fn contents(file: &ScratchFile) -> HashMap<u64, Vec<u8>> {
    let (mut queue, _) = queue::open(file.handle(), 5, 4096).unwrap();
    let mut course = Contents { left: BYTES, ..Contents::default() };
    drive(&mut *queue, Operation::Read, &mut course).unwrap();
    course.found
}

#[test]
fn the_layout_fills_the_file_with_data_that_does_not_repeat() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = scratch(folder.path()) else { return };
    assert!(file.lay_out(&|| false).unwrap());
    assert_eq!(file.handle().metadata().unwrap().len(), BYTES);
    let contents = contents(&file);
    assert_eq!(contents.len() as u64, BYTES / 4096);
    let distinct: std::collections::HashSet<_> = contents.values().collect();
    assert_eq!(distinct.len(), contents.len());
    for (offset, block) in &contents {
        let zeros = block.iter().filter(|&&byte| byte == 0).count();
        assert!(zeros < 200, "{zeros} zeros at {offset}");
    }
    assert_eq!(cached_pages(file.handle(), BYTES as usize).unwrap(), 0);
}

#[test]
fn writes_change_the_file_and_reads_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = scratch(folder.path()) else { return };
    file.lay_out(&|| false).unwrap();
    let before = contents(&file);
    for (operation, changes) in [(Operation::Read, false), (Operation::Write, true)] {
        for pattern in [Pattern::Sequential, Pattern::Random] {
            let workload = Workload { pattern, operation, block_bytes: 4096, queue_depth: 4 };
            let seen = measure(&file, &workload, Duration::from_millis(20), &|| false).unwrap();
            assert!(!seen.rates.is_empty() && seen.rates.iter().all(|&rate| rate > 0.0));
            assert!(seen.latencies.count() > 0);
            assert_eq!(contents(&file) != before, changes, "{pattern} {operation}");
        }
    }
}

#[test]
fn nothing_remains_after_success_error_and_stop() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = scratch(folder.path()) else { return };
    assert!(is_empty(folder.path()), "the file has a name");
    assert!(!file.lay_out(&|| true).unwrap(), "a stopped layout is not a whole one");
    let workload =
        Workload { pattern: Pattern::Random, operation: Operation::Read, block_bytes: 4096, queue_depth: 2 };
    // The stopped layout left holes, but the file has its size, so reads succeed; past its end they fail.
    file.handle().set_len(0).unwrap();
    let error = measure(&file, &workload, Duration::from_millis(5), &|| false).unwrap_err();
    assert!(matches!(error, DiskError::Transfer { .. }), "{error}");
    drop(file);
    assert!(is_empty(folder.path()));
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

#[test]
fn memory_is_not_taken_for_a_disk() {
    let shared_memory = Path::new("/dev/shm");
    let facts = rustix::fs::statfs(shared_memory).map(|facts| facts.f_type as u64);
    if facts != Ok(0x0102_1994) {
        eprintln!("skipped: {} is no tmpfs", shared_memory.display());
        return;
    }
    let folder = tempfile::tempdir_in(shared_memory).unwrap();
    let error = ScratchFile::create(folder.path(), 4096).unwrap_err();
    assert!(matches!(error, DiskError::NotDirect { .. } | DiskError::NoSpace { .. }), "{error}");
    assert!(is_empty(folder.path()));
}
