//! Whether this is a container or a virtual machine, and whose.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::host::Host;
use crate::sysfs;

/// What lies between this process and the hardware.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// The container's engine, such as `docker`, `podman` or `kubernetes`; null if no container was recognised.
    pub container: Option<String>,
    /// Whether this is a virtual machine; null if the processor does not report it.
    pub virtual_machine: Option<bool>,
    /// The hypervisor, such as `kvm`, `firecracker`, `vmware`, `hyper-v` or `xen`.
    pub hypervisor: Option<String>,
}

impl Environment {
    pub(super) fn read(host: &Host, cpuid: &Cpuid) -> Self {
        let hypervisor = hypervisor(host, cpuid);
        let virtual_machine = if hypervisor.is_some() { Some(true) } else { cpuid.virtual_machine };
        Self { container: container(host), virtual_machine, hypervisor }
    }
}

/// What the processor says.
#[derive(Debug, Clone, Default)]
pub(super) struct Cpuid {
    pub(super) virtual_machine: Option<bool>,
    pub(super) hypervisor: Option<String>,
}

impl Cpuid {
    #[cfg(target_arch = "x86_64")]
    pub(super) fn of_this_cpu() -> Self {
        use raw_cpuid::{CpuId, Hypervisor};
        let cpuid = CpuId::new();
        let name = cpuid.get_hypervisor_info().and_then(|info| match info.identify() {
            Hypervisor::KVM => Some("kvm"),
            Hypervisor::VMware => Some("vmware"),
            Hypervisor::HyperV => Some("hyper-v"),
            Hypervisor::Xen => Some("xen"),
            Hypervisor::QEMU => Some("qemu"),
            Hypervisor::Bhyve => Some("bhyve"),
            Hypervisor::QNX => Some("qnx"),
            Hypervisor::ACRN => Some("acrn"),
            Hypervisor::Unknown(..) => None,
        });
        Self {
            virtual_machine: cpuid.get_feature_info().map(|info| info.has_hypervisor()),
            hypervisor: name.map(str::to_owned),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn of_this_cpu() -> Self {
        Self::default()
    }
}

/// The engine of a container, the most specific sign first.
fn container(host: &Host) -> Option<String> {
    let exists = |path: &str| host.at(path).exists();
    let name = if host.variable("KUBERNETES_SERVICE_HOST").is_some()
        || exists("/var/run/secrets/kubernetes.io")
        || cgroup_names(host, "kubepods")
    {
        "kubernetes"
    } else if host.variable("APPTAINER_CONTAINER").is_some() {
        "apptainer"
    } else if host.variable("SINGULARITY_CONTAINER").is_some() {
        "singularity"
    } else if exists("/run/.containerenv") || cgroup_names(host, "libpod") {
        "podman"
    } else if exists("/.dockerenv") || cgroup_names(host, "docker") {
        "docker"
    } else if cgroup_names(host, "lxc") {
        "lxc"
    } else if cgroup_names(host, "containerd") {
        "containerd"
    } else {
        // systemd and LXC leave the engine's name in one of these.
        return sysfs::text(host.at("/run/systemd/container"))
            .or_else(|| host.variable("container").map(str::to_owned));
    };
    Some(name.to_owned())
}

/// Whether the first process's control group has a part of this name.
fn cgroup_names(host: &Host, name: &str) -> bool {
    let groups = sysfs::text(host.at("/proc/1/cgroup")).unwrap_or_default();
    groups.lines().filter_map(|line| line.splitn(3, ':').nth(2)).any(|path| {
        Path::new(path).iter().any(|part| part.to_string_lossy().trim_end_matches(".slice").starts_with(name))
    })
}

fn hypervisor(host: &Host, cpuid: &Cpuid) -> Option<String> {
    let release = sysfs::text(host.at("/proc/sys/kernel/osrelease")).unwrap_or_default();
    if release.to_ascii_lowercase().contains("microsoft") {
        return Some("wsl".to_owned());
    }
    // The firmware names the maker where the processor only says "kvm".
    by_firmware(host)
        .map(str::to_owned)
        .or_else(|| cpuid.hypervisor.clone())
        .or_else(|| sysfs::text(host.at("/sys/hypervisor/type")))
        .or_else(|| {
            let compatible = sysfs::text(host.at("/proc/device-tree/hypervisor/compatible"))?;
            Some(if compatible.starts_with("linux,kvm") {
                "kvm".to_owned()
            } else {
                compatible.replace('\0', " ")
            })
        })
}

fn by_firmware(host: &Host) -> Option<&'static str> {
    // The maker of the first ACPI table; readable by root only.
    let table = sysfs::head(host.at("/sys/firmware/acpi/tables/FACP"), 16).unwrap_or_default();
    if table.get(10..).is_some_and(|maker| maker.starts_with("FIRECK")) {
        return Some("firecracker");
    }
    let field = |name: &str| sysfs::text(host.at("/sys/class/dmi/id").join(name)).unwrap_or_default();
    let (vendor, product) = (field("sys_vendor"), field("product_name"));
    Some(match (vendor.as_str(), product.as_str()) {
        ("VMware, Inc.", _) => "vmware",
        ("Microsoft Corporation", "Virtual Machine") => "hyper-v",
        ("innotek GmbH", _) | (_, "VirtualBox") => "virtualbox",
        ("Xen", _) => "xen",
        ("Parallels Software International Inc." | "Parallels International GmbH.", _) => "parallels",
        ("Cloud Hypervisor", _) => "cloud-hypervisor",
        (_, "Firecracker") => "firecracker",
        // Amazon's machines without ".metal" in their name run on its own KVM.
        ("Amazon EC2", product) if !product.contains("metal") => "kvm",
        ("Google", "Google Compute Engine") | (_, "KVM") => "kvm",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::tree;

    fn engine(files: &[(&str, &str)], variables: &[(&str, &str)]) -> Option<String> {
        container(&Host::fake(tree(files).path(), variables))
    }

    #[test]
    fn engines_are_recognised() {
        assert_eq!(engine(&[(".dockerenv", "")], &[]).as_deref(), Some("docker"));
        assert_eq!(engine(&[("run/.containerenv", "")], &[]).as_deref(), Some("podman"));
        let pod = [(".dockerenv", ""), ("proc/1/cgroup", "0::/kubepods.slice/kubepods-pod1.slice/x\n")];
        assert_eq!(engine(&pod, &[]).as_deref(), Some("kubernetes"));
        assert_eq!(engine(&[("proc/1/cgroup", "1:name=systemd:/lxc/c1\n")], &[]).as_deref(), Some("lxc"));
        assert_eq!(
            engine(&[("run/systemd/container", "systemd-nspawn\n")], &[]).as_deref(),
            Some("systemd-nspawn")
        );
        assert_eq!(engine(&[("proc/1/cgroup", "0::/init.scope\n:::\nx\n")], &[]), None);
        assert_eq!(engine(&[("proc/1/cgroup", "0::/user.slice/not-a-docker\n")], &[]), None);
    }

    #[test]
    fn hypervisors_are_recognised() {
        let machine = |files: &[(&str, &str)], cpuid: Cpuid| {
            Environment::read(&Host::fake(tree(files).path(), &[]), &cpuid)
        };
        let kvm = Cpuid { virtual_machine: Some(true), hypervisor: Some("kvm".to_owned()) };
        let metal = Cpuid { virtual_machine: Some(false), hypervisor: None };
        let fire = machine(
            &[("sys/firmware/acpi/tables/FACP", "FACP\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}FIRECK")],
            kvm.clone(),
        );
        assert_eq!(fire.hypervisor.as_deref(), Some("firecracker"));
        assert_eq!(machine(&[("x", "")], kvm).hypervisor.as_deref(), Some("kvm"));
        assert_eq!(machine(&[("x", "")], metal).virtual_machine, Some(false));
        let xen = machine(&[("sys/hypervisor/type", "xen\n")], Cpuid::default());
        assert_eq!((xen.virtual_machine, xen.hypervisor.as_deref()), (Some(true), Some("xen")));
        assert_eq!(machine(&[("x", "")], Cpuid::default()).virtual_machine, None);
    }
}
