//! Versions of StableHLO, which portable artifacts are stamped with.

use std::fmt;
use std::str::FromStr;

/// A version of StableHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Counts breaks of compatibility.
    pub major: u32,
    /// Counts changes of the operations and their attributes.
    pub minor: u32,
    /// Counts changes that no artifact shows.
    pub patch: u32,
}

/// Why text is no version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no version: three numbers with points between them, such as 1.20.0")]
pub struct BadVersion(String);

impl Version {
    /// The newest version that is read and written.
    pub const CURRENT: Version = Version::new(1, 20);
    /// The oldest version that is read: the first with guarantees of compatibility.
    pub const OLDEST: Version = Version::new(0, 9);
    /// The oldest version that is written: the first that other tools keep reading for years.
    pub const OLDEST_WRITTEN: Version = Version::new(1, 0);

    /// The first patch of a version.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor, patch: 0 }
    }

    /// The version that an artifact names as its producer; `None` for bytecode that is no portable artifact.
    pub(super) fn of_producer(producer: &str) -> Option<Result<Self, BadVersion>> {
        producer.strip_prefix(PRODUCER).map(str::parse)
    }

    /// What an artifact of this version names as its producer.
    pub(super) fn producer(self) -> String {
        format!("{PRODUCER}{self}")
    }

    /// Whether artifacts of this version may have in them what is not known here. Patches do not matter.
    pub fn is_future(self) -> bool {
        Self::CURRENT.is_before(self)
    }

    /// Whether a version came before another. Patches do not matter.
    pub(super) fn is_before(self, other: Version) -> bool {
        (self.major, self.minor) < (other.major, other.minor)
    }
}

const PRODUCER: &str = "StableHLO_v";

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for Version {
    type Err = BadVersion;

    fn from_str(text: &str) -> Result<Self, BadVersion> {
        let bad = || BadVersion(text.chars().take(40).collect());
        let mut numbers = text.split('.').map(|part| {
            let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            part.parse::<u32>().ok().filter(|_| digits)
        });
        match (numbers.next(), numbers.next(), numbers.next(), numbers.next()) {
            (Some(Some(major)), Some(Some(minor)), Some(Some(patch)), None) => {
                Ok(Self { major, minor, patch })
            }
            _ => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_read_back_and_compare_by_number() {
        let version: Version = "1.9.2".parse().unwrap();
        assert_eq!(version, Version { major: 1, minor: 9, patch: 2 });
        assert_eq!(version.to_string(), "1.9.2");
        assert!(version < Version::new(1, 10));
        assert!("1.9".parse::<Version>().is_err());
        assert!("1.9.+2".parse::<Version>().is_err());
        assert!("1.9.2.0".parse::<Version>().is_err());
    }

    #[test]
    fn a_patch_is_no_future_version() {
        let patched = Version { patch: 7, ..Version::CURRENT };
        assert!(!patched.is_future());
        assert!(Version::new(1, 21).is_future());
        assert!(Version::new(2, 0).is_future());
    }

    #[test]
    fn producers_name_versions() {
        assert_eq!(Version::of_producer("StableHLO_v1.20.0"), Some(Ok(Version::CURRENT)));
        assert_eq!(Version::CURRENT.producer(), "StableHLO_v1.20.0");
        assert!(matches!(Version::of_producer("StableHLO_vx"), Some(Err(_))));
        assert_eq!(Version::of_producer("MLIR23.0.0git"), None);
    }
}
