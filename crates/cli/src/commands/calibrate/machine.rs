//! The profile that a command works with.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use warpforge::Device;
use warpforge_calibrate::profile::{self, ProfileError};
use warpforge_calibrate::{CostModel, Profile, default_path};

use crate::exit::Failure;

/// A profile and the file it came from.
pub(crate) struct Found {
    pub(crate) profile: Profile,
    pub(crate) path: PathBuf,
}

impl Found {
    /// Where it came from, for messages.
    pub(crate) fn origin(&self) -> String {
        self.path.display().to_string()
    }

    /// The cost model of a device.
    pub(crate) fn cost_model(&self, device: Device) -> Result<CostModel, Failure> {
        CostModel::new(&self.profile, &device.to_string(), &self.origin()).map_err(refused)
    }

    /// Refuses a profile of another machine.
    pub(crate) fn of_this_machine(self) -> Result<Self, Failure> {
        self.profile.is_of_this_machine(&self.origin()).map_err(refused)?;
        Ok(self)
    }
}

fn refused(error: ProfileError) -> Failure {
    Failure::bad_input(error)
}

/// Reads a profile.
pub(crate) fn read(path: &Path) -> Result<Found, Failure> {
    let profile = profile::read(path).map_err(refused)?;
    Ok(Found { profile, path: path.to_owned() })
}

/// The profile that was named, or the one that `warpt calibrate` wrote for the device.
pub(crate) fn named_or_default(path: Option<&Path>, device: Device) -> Result<Found, Failure> {
    if let Some(path) = path {
        return read(path);
    }
    let missing = |place: &str| {
        let flag = if device == Device::Cpu { String::new() } else { format!(" --device {device}") };
        Failure::bad_input(anyhow!(
            "there is no profile of this machine{place}: run `warpt calibrate{flag}` first"
        ))
    };
    let path = default_path(device).ok_or_else(|| missing(""))?;
    if !path.exists() {
        return Err(missing(&format!(" at {}", path.display())));
    }
    read(&path)
}

/// The cost model of the profile at its default place, where there is one that is of this machine and can be used.
pub(crate) fn of_here(device: Device) -> Option<CostModel> {
    let path = default_path(device).filter(|path| path.exists())?;
    let found = read(&path).and_then(Found::of_this_machine).and_then(|found| found.cost_model(device));
    found
        .map_err(|failure| {
            crate::term::tell!("warpt: the machine's profile is not used: {}", failure.reason());
        })
        .ok()
}
