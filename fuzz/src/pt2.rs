//! The targets that read PyTorch's exported programs.

// The same changes to the same graphs that the importer's own test makes at random.
#[path = "../../crates/snakegrinder/tests/mutations/archive.rs"]
mod around;
#[path = "../../crates/snakegrinder/tests/mutations/mutate.rs"]
mod mutate;
#[path = "../../crates/snakegrinder/tests/common/zip.rs"]
mod zip;

use serde_json::Value;
use warpforge_diag::Severity;
use warpforge_ir::{Blob, print, verify};
use warpforge_snakegrinder::{Archive, ImportOptions};

use self::mutate::Choices;

const NODES: &str = include_str!("../../crates/snakegrinder/tests/mutations/nodes.jsonl");

/// The most places of a graph that are changed at once: with more, hardly any graph gets past the reader.
const CHANGES: usize = 6;

/// A whole archive: opened and imported as it is, and again with checksums that fit its bytes.
pub fn archive(data: &[u8]) {
    import(data.to_vec());
    let mut mended = data.to_vec();
    if mend_checksums(&mut mended).is_some() && mended != data {
        import(mended);
    }
}

/// A graph in a sound archive: the input is its JSON, or says which collected graph is taken and how it is changed.
pub fn graph(data: &[u8]) {
    let program = match std::str::from_utf8(data) {
        Ok(text) if text.trim_start().starts_with('{') => text.to_owned(),
        _ => changed(Bytes(data)).to_string(),
    };
    import(around::around(&program));
}

/// What comes of an archive is an error or a module that is sound, with its weights and without.
fn import(file: Vec<u8>) {
    let Ok(archive) = Archive::from_blob(Blob::from(file)) else { return };
    let _ = archive.verify_checksums();
    let _ = archive.module_values();
    let Ok(imported) = archive.import(&ImportOptions::default()) else { return };
    let errors: Vec<String> = verify(&imported.module)
        .iter()
        .filter(|found| found.severity == Severity::Error)
        .map(|found| found.message.clone())
        .collect();
    assert!(
        errors.is_empty(),
        "the imported module is not sound: {errors:#?}\n{}",
        print::print(&imported.module)
    );
    print::print(&imported.module);
    let _ = imported.into_self_contained();
}

/// Decisions from the bytes of the input; when they are used up, the first choice each time.
struct Bytes<'a>(&'a [u8]);

impl Choices for Bytes<'_> {
    fn below(&mut self, count: usize) -> usize {
        let Some((taken, rest)) = self.0.split_first_chunk() else { return 0 };
        self.0 = rest;
        usize::from(u16::from_le_bytes(*taken)) % count.max(1)
    }
}

fn changed(mut bytes: Bytes<'_>) -> Value {
    let line = NODES.lines().nth(bytes.below(NODES.lines().count())).unwrap_or_default();
    let seed: Value = serde_json::from_str(line).expect("the collected nodes are JSON");
    let mut program = around::program(&seed);
    for _ in 0..CHANGES {
        if !bytes.0.is_empty() {
            mutate::mutate(&mut program, &mut bytes);
        }
    }
    program
}

/// Writes the checksum that each member's bytes have into its two headers; none where the file is no zip.
fn mend_checksums(file: &mut [u8]) -> Option<()> {
    let end = file.windows(4).rposition(|bytes| bytes == b"PK\x05\x06")?;
    let count = u16::from_le_bytes(*file.get(end + 10..)?.first_chunk()?);
    let mut at = number(file, end + 16)?;
    for _ in 0..count {
        let (size, header) = (number(file, at + 24)?, number(file, at + 42)?);
        let lengths = |file: &[u8], at: usize| Some(short(file, at)? + short(file, at + 2)?);
        let start = header + 30 + lengths(file, header + 26)?;
        let crc = crc32fast::hash(file.get(start..start + size)?).to_le_bytes();
        file.get_mut(header + 14..header + 18)?.copy_from_slice(&crc);
        file.get_mut(at + 16..at + 20)?.copy_from_slice(&crc);
        at += 46 + lengths(file, at + 28)? + short(file, at + 32)?;
    }
    Some(())
}

fn number(file: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(*file.get(at..)?.first_chunk()?)).ok()
}

fn short(file: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(*file.get(at..)?.first_chunk()?)))
}
