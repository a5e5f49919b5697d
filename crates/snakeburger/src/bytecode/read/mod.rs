//! From bytecode to modules.

mod builtin;
mod location;
mod mesh;
mod ops;
mod properties;
mod scalars;
mod stablehlo;
mod tables;
mod vhlo;

use warpforge_ir::{Blob, Module};

use super::error::{Error, ErrorKind, Read};
use super::version::Version;
use super::wire::File;

/// Reads a file. Constants share the bytes of `blob`.
pub(super) fn module(blob: &Blob, keep_locations: bool) -> Read<Module> {
    let file = File::read(blob, accept)?;
    ops::Reader::new(tables::Tables::new(&file, blob), keep_locations).module()
}

/// The version of StableHLO that an artifact is of; `None` for bytecode that is none.
pub(super) fn version(bytes: &[u8]) -> Read<Option<Version>> {
    let file = File::read(bytes, |_, _| Ok(()))?;
    producer_version(&file.producer, file.producer_at)
}

/// Refuses artifacts of versions that cannot be read.
fn accept(producer: &str, at: usize) -> Read<()> {
    match producer_version(producer, at)? {
        Some(version) if version.is_future() => Err(Error::new(at, ErrorKind::FutureVersion(version))),
        Some(version) if version.is_before(Version::OLDEST) => {
            Err(Error::new(at, ErrorKind::TooOld(version)))
        }
        _ => Ok(()),
    }
}

fn producer_version(producer: &str, at: usize) -> Read<Option<Version>> {
    Version::of_producer(producer).transpose().map_err(|error| Error::malformed(at, error.to_string()))
}
