//! Bytes into a file: inside the system, from file to file, where they are mapped from one.

use std::fs::File;
use std::io::{self, Write as _};

use super::output::Output;
use crate::Blob;

/// Fewer bytes are written sooner than the system is asked to copy them.
const LEAST: usize = 1 << 18;

/// Writes bytes behind those that were written before.
pub(super) fn write(to: &mut Output, bytes: &Blob) -> io::Result<()> {
    let copied = match bytes.place_in_file() {
        Some((from, start)) if bytes.len() >= LEAST => copied(from, start, to.flushed()?, bytes.len()),
        _ => 0,
    };
    to.write_all(&bytes[copied..])
}

/// How many bytes the system copied. What it did not is written from memory, and an error that stays is found then.
#[cfg(target_os = "linux")]
fn copied(from: &File, start: u64, to: &File, count: usize) -> usize {
    let (mut at, mut done) = (start, 0);
    while done < count {
        match rustix::fs::copy_file_range(from, Some(&mut at), to, None, count - done) {
            Ok(0) | Err(_) => break,
            Ok(more) => done += more,
        }
    }
    done
}

#[cfg(not(target_os = "linux"))]
fn copied(_: &File, _: u64, _: &File, _: usize) -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::map_file;

    #[test]
    fn parts_of_files_and_of_memory_stand_behind_each_other() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("from");
        let bytes: Vec<u8> = (0..3 * LEAST).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &bytes).expect("writable");
        let mapped = map_file(&path).expect("mapped").slice(7..2 * LEAST).expect("inside");
        let target = folder.path().join("to");
        let mut to = Output::create(&target).expect("writable");
        to.write_all(b"head").expect("writable");
        for part in [&mapped, &Blob::from(vec![1, 2, 3]), &mapped.slice(1..LEAST + 2).expect("inside")] {
            write(&mut to, part).expect("writable");
        }
        to.finish().expect("writable");
        let found = std::fs::read(&target).expect("readable");
        let expected = [b"head", &bytes[7..2 * LEAST], &[1, 2, 3], &bytes[8..LEAST + 9]].concat();
        assert!(found == expected, "{} of {} bytes", found.len(), expected.len());
    }
}
