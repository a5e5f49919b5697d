//! From modules to portable artifacts.

mod attrs;
mod location;
mod mesh;
mod needs;
mod ops;
mod pool;
mod types;

use warpforge_ir::Module;

use super::version::Version;

/// Which version of StableHLO an artifact is written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The oldest from [`Version::OLDEST_WRITTEN`] on that has all that the module uses, so that as many tools as can
    /// read it do.
    #[default]
    Compatible,
    /// This one.
    Version(Version),
}

/// Why a module cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The module has in it what artifacts have no place for: every such thing, once.
    #[error("a portable artifact has no place for {}", .0.join("; "))]
    NotPortable(Vec<String>),
    /// The module needs a newer version than asked for.
    #[error("StableHLO {asked} does not have {what}: version {needed} does")]
    TooOld {
        /// The version asked for.
        asked: Version,
        /// The version needed.
        needed: Version,
        /// What needs it.
        what: String,
    },
    /// The version asked for is not one that is written.
    #[error("StableHLO {0} is not written: versions from {oldest} to {current} are", oldest = Version::OLDEST_WRITTEN, current = Version::CURRENT)]
    UnknownVersion(Version),
}

/// Writes a module.
pub(super) fn module(module: &Module, target: Target) -> Result<Vec<u8>, WriteError> {
    if let Target::Version(version) = target
        && (version.is_future() || version.is_before(Version::OLDEST_WRITTEN))
    {
        return Err(WriteError::UnknownVersion(version));
    }
    let needed = needs::of_module(module);
    let version = match target {
        Target::Compatible => needed.version,
        Target::Version(asked) if asked.is_before(needed.version) => {
            return Err(WriteError::TooOld { asked, needed: needed.version, what: needed.what });
        }
        Target::Version(asked) => asked,
    };
    ops::Writer::new(module, version).file()
}
