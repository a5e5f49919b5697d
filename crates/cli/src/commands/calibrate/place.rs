//! Where a profile is kept: a whole one in its file, one that is not complete beside it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use warpforge::io::output::is_standard;
use warpforge_calibrate::Profile;
use warpforge_calibrate::profile::{self, ProfileError};

/// The file of a profile, and that of one that is not complete: a whole profile stays until there is another.
pub(super) struct Place {
    pub(super) whole: PathBuf,
    pub(super) partial: PathBuf,
}

impl Place {
    /// The place of a profile: `FILE`, with `FILE.partial` beside it.
    pub(super) fn new(whole: &Path) -> Self {
        let mut partial = OsString::from(whole);
        partial.push(".partial");
        Self { whole: whole.to_owned(), partial: partial.into() }
    }

    /// Whether the file is a pipe or a device, which gets the profile once, at the end.
    pub(super) fn is_through(&self) -> bool {
        is_standard(&self.whole) || self.whole.exists() && !self.whole.is_file()
    }

    /// The file that a profile belongs in.
    pub(super) fn of(&self, profile: &Profile) -> &Path {
        if profile.complete || self.is_through() { &self.whole } else { &self.partial }
    }

    /// Writes a profile. A whole one replaces what was left of it.
    pub(super) fn keep(&self, profile: &Profile) -> Result<(), ProfileError> {
        profile::write(self.of(profile), profile)?;
        if profile.complete && !self.is_through() && self.partial.exists() {
            let failed = |source| ProfileError::Io { path: self.partial.clone(), source };
            std::fs::remove_file(&self.partial).map_err(failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn profile(complete: bool) -> Profile {
        let whole: Value = json!({
            "schema_version": 1, "tool_version": "0.1.0", "created": "2026-11-16T12:00:00Z", "quick": true,
            "complete": complete,
            "machine": {"fingerprint": "", "hardware_name": "", "cpu": "", "isa": [], "caches": [], "threads": 1},
            "conditions": {"load_average_1m": null, "foreign_cpu_percent": null, "steal_percent": null, "min_mhz": null,
                "max_mhz": null, "throttle_events": null, "max_temperature_celsius": null, "governor": null},
        });
        profile::read_str(&whole.to_string(), "test").unwrap()
    }

    #[test]
    fn a_whole_profile_stays_until_there_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(&folder.path().join("machine.json"));
        place.keep(&profile(true)).unwrap();
        let good = std::fs::read(&place.whole).unwrap();
        place.keep(&profile(false)).unwrap();
        assert_eq!(std::fs::read(&place.whole).unwrap(), good);
        assert!(!profile::read(&folder.path().join("machine.json.partial")).unwrap().complete);
        place.keep(&profile(true)).unwrap();
        assert!(!place.partial.exists());
        let pipe = Place::new(Path::new("-"));
        assert_eq!(pipe.of(&profile(false)), Path::new("-"));
    }
}
