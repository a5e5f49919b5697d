//! Which machine this is, and whether a profile is of it.

use sha2::{Digest as _, Sha256};
use warpforge_inventory::hardware::cpu::{Cache, CacheKind};
use warpforge_inventory::hardware::{Cpu, gpus};

use crate::profile::{Machine, Profile, ProfileError};

/// This machine, with the GPU of a device name such as `cuda:0` where it is not `cpu`.
#[must_use]
pub fn machine(device: &str, name: Option<&str>) -> Machine {
    let cpu = Cpu::detect();
    let caches = cpu.caches.iter().filter(|cache| cache.kind != CacheKind::Instruction).map(shown).collect();
    let (gpu, driver) = if device == "cpu" { (None, None) } else { gpu(device) };
    let model = cpu.model.clone().unwrap_or_else(|| "unknown processor".to_owned());
    let mut machine = Machine {
        fingerprint: String::new(),
        hardware_name: name.map_or_else(|| gpu.clone().unwrap_or_else(|| model.clone()), str::to_owned),
        cpu: model,
        isa: cpu.instruction_sets,
        caches,
        threads: cpu.usable_threads.unwrap_or(1),
        gpu,
        driver,
    };
    machine.fingerprint = fingerprint(&machine);
    machine
}

fn shown(cache: &Cache) -> String {
    format!("L{} {} KiB x{}", cache.level, cache.size_bytes >> 10, cache.instances)
}

/// The model and the driver of a GPU. Vendors number devices as the inventory lists them.
fn gpu(device: &str) -> (Option<String>, Option<String>) {
    let (kind, number) = device.split_once(':').unwrap_or((device, "0"));
    let vendor = if kind == "hip" { "AMD" } else { "NVIDIA" };
    let mut own = gpus().into_iter().filter(|gpu| gpu.vendor == vendor);
    let found = own.nth(number.parse().unwrap_or(0));
    found.map_or((None, None), |gpu| (gpu.model, gpu.driver_version))
}

/// A hash of what makes the machine, as sixteen digits.
fn fingerprint(machine: &Machine) -> String {
    let mut hash = Sha256::new();
    for (_, fact) in facts(machine) {
        hash.update(fact.as_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// What makes a machine, by name.
fn facts(machine: &Machine) -> [(&'static str, String); 6] {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    [
        ("CPU", machine.cpu.clone()),
        ("instruction sets", machine.isa.join(" ")),
        ("caches", machine.caches.join(", ")),
        ("threads", machine.threads.to_string()),
        ("GPU", text(&machine.gpu)),
        ("driver", text(&machine.driver)),
    ]
}

impl Profile {
    /// What differs between the machine of the profile and another, each as `what: profile and other`.
    #[must_use]
    pub fn differences(&self, other: &Machine) -> Vec<String> {
        let pairs = facts(&self.machine).into_iter().zip(facts(other));
        pairs
            .filter(|((_, ours), (_, theirs))| ours != theirs)
            .map(|((name, ours), (_, theirs))| match name {
                "instruction sets" => format!("{name}: {}", set_difference(&ours, &theirs)),
                _ => format!("{name}: {ours} and {theirs}"),
            })
            .collect()
    }

    /// Refuses a profile that is not of this machine.
    ///
    /// # Errors
    ///
    /// When something differs: all of it is named.
    pub fn is_of_this_machine(&self, origin: &str) -> Result<(), ProfileError> {
        let device = self.devices().into_iter().find(|device| device != "cpu");
        let here = machine(device.as_deref().unwrap_or("cpu"), None);
        let differences = self.differences(&here);
        if differences.is_empty() {
            return Ok(());
        }
        Err(ProfileError::OtherMachine {
            origin: origin.to_owned(),
            profile: self.machine.fingerprint.clone(),
            here: here.fingerprint,
            differences,
        })
    }
}

/// Words that only one of two lists has.
fn set_difference(ours: &str, theirs: &str) -> String {
    let only = |list: &str, other: &str| {
        let words: Vec<&str> =
            list.split(' ').filter(|word| !other.split(' ').any(|known| known == *word)).collect();
        if words.is_empty() { "none".to_owned() } else { words.join(" ") }
    };
    format!("only the profile has {}, only the other {}", only(ours, theirs), only(theirs, ours))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile;

    #[test]
    fn this_machine_is_itself_whatever_it_is_called() {
        let here = machine("cpu", None);
        let named = machine("cpu", Some("mine"));
        assert_eq!(here.fingerprint, named.fingerprint);
        assert_eq!(here.fingerprint.len(), 16);
        assert_eq!(named.hardware_name, "mine");
        let own = Profile { machine: named, ..profile() };
        assert!(own.differences(&here).is_empty());
        own.is_of_this_machine("p.json").unwrap();
    }

    #[test]
    fn what_differs_is_named() {
        let here = machine("cpu", None);
        let mut other = Profile { machine: here.clone(), ..profile() };
        other.machine.threads += 6;
        other.machine.cpu = "Z80".to_owned();
        other.machine.isa.push("amx_fp8".to_owned());
        let error = other.is_of_this_machine("p.json").unwrap_err().to_string();
        for part in ["p.json: ", "CPU: Z80 and ", "threads: ", "only the profile has amx_fp8"] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(other.differences(&here).len(), 3);
    }
}
