//! What the machine is made of and what it is doing right now.
//!
//! [`list`] takes the inventory that `warpt list` shows: [`hardware`] and [`software`]. [`live`] samples what
//! `warpt monitor` shows: load, memory, power, temperatures, clocks. Neither needs root, and what the machine does not
//! tell is `None`, never zero.

#![forbid(unsafe_code)]

pub mod export;
#[cfg(test)]
mod fake;
pub mod hardware;
pub mod live;
mod nvml;
pub mod software;
mod sysfs;

use serde::{Deserialize, Serialize};

/// The whole inventory: the export shape of `warpt list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListOutput {
    /// Processors, memory, storage, network and accelerators.
    #[serde(default)]
    pub hardware: hardware::Hardware,
    /// Operating system, tools, frameworks and libraries.
    #[serde(default)]
    pub software: software::Software,
    /// What the user should know, such as a device that no driver serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Takes the inventory of this machine.
#[must_use]
pub fn list() -> ListOutput {
    let mut warnings = Vec::new();
    let (hardware, software) = std::thread::scope(|scope| {
        let software = scope.spawn(software::Software::detect);
        (hardware::Hardware::detect(&mut warnings), joined(software))
    });
    ListOutput { hardware, software, warnings }
}

/// What a thread returns; its panic, if it has one, goes on here.
fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
