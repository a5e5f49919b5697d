//! Reading and writing profiles.

use std::path::{Path, PathBuf};

use warpforge_tensor::io::{input, output};

use super::{Profile, SCHEMA_VERSION, validate};

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file ends too early.
    #[error(
        "{origin}: the profile is cut off at line {line}, column {column}; `warpt calibrate --resume` needs a whole one, \
         calibrate again"
    )]
    CutOff {
        /// The file.
        origin: String,
        /// The last line.
        line: usize,
        /// Its last column.
        column: usize,
    },
    /// The text is no profile.
    #[error("{origin}: not a profile of `warpt calibrate`: {reason}")]
    Malformed {
        /// The file.
        origin: String,
        /// Where and why.
        reason: serde_json::Error,
    },
    /// Something that must be a number is none, or not one that can be measured.
    #[error("{origin}: {place}: {found} is no measurement; calibrate again")]
    NotANumber {
        /// The file.
        origin: String,
        /// Which field or which line.
        place: String,
        /// What is there.
        found: String,
    },
    /// The profile was written by a newer program.
    #[error(
        "{origin}: profile version {found}, this program reads up to {SCHEMA_VERSION}; use a newer warpt, or calibrate again"
    )]
    TooNew {
        /// The file.
        origin: String,
        /// Its version.
        found: u32,
    },
    /// The profile is of another machine.
    #[error("{origin}: the profile of another machine ({profile} and {here}): {}; calibrate this one", differences.join("; "))]
    OtherMachine {
        /// The file.
        origin: String,
        /// The profile's fingerprint.
        profile: String,
        /// The fingerprint of this machine.
        here: String,
        /// What differs, each as `what: profile and here`.
        differences: Vec<String>,
    },
    /// The profile lacks measurements that were asked for.
    #[error(
        "{origin}: the calibration was interrupted, and the profile is not complete; `warpt calibrate --resume` goes on with it"
    )]
    Incomplete {
        /// The file.
        origin: String,
    },
    /// The profile has nothing about a device.
    #[error("{origin}: the profile has nothing about {device}; it is about {}", devices.join(", "))]
    NoDevice {
        /// The file.
        origin: String,
        /// The device that was asked for.
        device: String,
        /// The devices that it has.
        devices: Vec<String>,
    },
}

/// Reads a profile from a file.
///
/// # Errors
///
/// When the file cannot be read, is cut off, is no profile, is of a newer version, or has what is no measurement.
pub fn read(path: &Path) -> Result<Profile, ProfileError> {
    let text = input::read_text(path).map_err(|source| ProfileError::Io { path: path.to_owned(), source })?;
    read_str(&text, &path.display().to_string())
}

/// Reads a profile from text; `origin` says in errors where the text came from.
///
/// # Errors
///
/// As [`read`].
pub fn read_str(text: &str, origin: &str) -> Result<Profile, ProfileError> {
    #[derive(serde::Deserialize)]
    struct Version {
        #[serde(default)]
        schema_version: u32,
    }
    let refused = |reason: serde_json::Error| refused(text, origin, reason);
    let Version { schema_version: found } = serde_json::from_str(text).map_err(refused)?;
    if found > SCHEMA_VERSION {
        return Err(ProfileError::TooNew { origin: origin.to_owned(), found });
    }
    let profile: Profile = serde_json::from_str(text).map_err(refused)?;
    validate::check(&profile).map_err(|(place, found)| ProfileError::NotANumber {
        origin: origin.to_owned(),
        place,
        found,
    })?;
    Ok(profile)
}

fn refused(text: &str, origin: &str, reason: serde_json::Error) -> ProfileError {
    let origin = origin.to_owned();
    let (line, column) = (reason.line(), reason.column());
    if reason.is_eof() {
        return ProfileError::CutOff { origin, line, column };
    }
    // Writers that are no JSON writers put these where a number is unknown.
    let rest = text.lines().nth(line.saturating_sub(1)).and_then(|text| text.get(column.saturating_sub(1)..));
    let is_word = |word: &&str| rest.is_some_and(|rest| rest.starts_with(*word));
    match ["NaN", "nan", "Infinity", "-Infinity", "inf"].iter().find(|word| is_word(word)) {
        Some(word) => ProfileError::NotANumber {
            origin,
            place: format!("line {line}, column {column}"),
            found: (*word).to_owned(),
        },
        None => ProfileError::Malformed { origin, reason },
    }
}

/// Writes a profile whole or not at all.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write(path: &Path, profile: &Profile) -> Result<(), ProfileError> {
    let io = |source| ProfileError::Io { path: path.to_owned(), source };
    let mut text = serde_json::to_string_pretty(profile).map_err(|error| io(error.into()))?;
    text.push('\n');
    output::write(path, text.as_bytes()).map_err(io)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile;

    fn refused(text: &str) -> String {
        read_str(text, "p.json").unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_reads_back() {
        let folder = tempfile();
        let path = folder.join("profile.json");
        let written = profile();
        write(&path, &written).unwrap();
        assert_eq!(read(&path).unwrap(), written);
        std::fs::remove_dir_all(folder).unwrap();
    }

    fn tempfile() -> PathBuf {
        let folder = std::env::temp_dir().join(format!("warpforge-profile-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn what_is_no_profile_is_refused_with_its_place() {
        let whole = serde_json::to_string_pretty(&profile()).unwrap();
        let newer = whole.replacen("\"schema_version\": 1", "\"schema_version\": 2", 1);
        assert!(refused(&newer).contains("version 2, this program reads up to 1"), "{}", refused(&newer));
        let cut = refused(&whole[..whole.len() / 2]);
        assert!(cut.contains("cut off at line") && cut.contains("calibrate again"), "{cut}");
        assert!(refused("").contains("cut off"));
        assert!(refused("[1]").contains("not a profile"));
        assert!(refused("{\"schema_version\": 1}").contains("tool_version"));
    }

    #[test]
    fn what_is_no_measurement_is_refused_by_name() {
        let whole = serde_json::to_string_pretty(&profile()).unwrap();
        let nan = refused(&whole.replacen("\"gops\": 100.0", "\"gops\": NaN", 1));
        assert!(nan.contains("NaN is no measurement") && nan.contains("line "), "{nan}");
        let null = refused(&whole.replacen("\"gops\": 100.0", "\"gops\": null", 1));
        assert!(null.contains("null") && null.contains("line "), "{null}");
        for (text, value) in [("0.0", "0"), ("-5.0", "-5"), ("1e400", "number out of range")] {
            let error = refused(&whole.replacen("\"gops\": 100.0", &format!("\"gops\": {text}"), 1));
            assert!(error.contains(value), "{error}");
        }
        let zero = refused(&whole.replacen("\"gops\": 100.0", "\"gops\": 0.0", 1));
        assert!(zero.contains("peaks[0].gops"), "{zero}");
    }
}
