//! The hardware, as text.

use warpforge_inventory::hardware::cpu::{Cache, CacheKind};
use warpforge_inventory::hardware::gpu::{Connection, PciePath};
use warpforge_inventory::hardware::storage::StorageKind;
use warpforge_inventory::hardware::{
    Accelerator, Cpu, Gpu, GpuLink, Hardware, Memory, NetworkInterface, PcieLink, Platform, StorageDevice,
};

use super::page::{Page, joined};
use super::units::{bytes, clock, counted, disk_bytes, network_speed};

/// Writes the sections of the hardware.
pub(super) fn render(page: &mut Page, hardware: &Hardware) {
    platform(page, &hardware.platform);
    cpu(page, &hardware.cpu);
    memory(page, &hardware.memory);
    if !(hardware.gpus.is_empty() && hardware.accelerators.is_empty()) {
        page.heading("GPUs and accelerators");
        hardware.gpus.iter().for_each(|gpu| self::gpu(page, gpu));
        page.row("Links", &links(&hardware.gpu_links));
        hardware.accelerators.iter().for_each(|device| accelerator(page, device));
    }
    if !hardware.storage.is_empty() {
        page.heading("Storage");
        hardware.storage.iter().for_each(|device| storage(page, device));
    }
    if !hardware.network.is_empty() {
        page.heading("Network");
        hardware.network.iter().for_each(|interface| network(page, interface));
    }
}

fn platform(page: &mut Page, platform: &Platform) {
    let machine = joined([
        platform.vendor.clone(),
        platform.product.clone(),
        platform.firmware_version.as_ref().map(|version| format!("firmware {version}")),
    ]);
    if !machine.is_empty() {
        page.heading("Machine");
        page.row("Model", &machine);
    }
}

fn cpu(page: &mut Page, cpu: &Cpu) {
    page.heading("CPU");
    page.row("Model", &joined([cpu.model.clone(), cpu.vendor.clone(), cpu.architecture.clone()]));
    let limited = cpu.usable_threads.filter(|usable| Some(*usable) != cpu.threads);
    page.row(
        "Cores",
        &joined([
            cpu.physical_cores.map(|count| counted(count, "core")),
            cpu.threads.map(|count| counted(count, "thread")),
            cpu.sockets.map(|count| counted(count, "socket")),
            limited.map(|usable| format!("{usable} usable here")),
        ]),
    );
    for kind in &cpu.core_kinds {
        let boost = kind.boost_mhz.map(|mhz| format!("up to {}", clock(mhz)));
        page.row("", &joined([Some(format!("{} cores: CPUs {}", kind.name, kind.cpus)), boost]));
    }
    page.row(
        "Clock",
        &joined([
            cpu.current_mhz.map(|mhz| format!("{} now", clock(mhz))),
            cpu.base_mhz.map(|mhz| format!("{} base", clock(mhz))),
            cpu.boost_mhz.map(|mhz| format!("{} boost", clock(mhz))),
            cpu.governor.as_ref().map(|governor| format!("governor {governor}")),
        ]),
    );
    page.row("Instructions", &instructions(&cpu.instruction_sets));
    page.row("Caches", &cpu.caches.iter().map(cache).collect::<Vec<_>>().join(", "));
    if cpu.numa_nodes.len() > 1 {
        for node in &cpu.numa_nodes {
            let memory = node.memory_bytes.map(bytes);
            page.row(
                &format!("NUMA node {}", node.id),
                &joined([node.cpus.as_ref().map(|cpus| format!("CPUs {cpus}")), memory]),
            );
        }
    }
}

/// The sets from SSE 4.2 on, the families AVX-512 and AMX taken together.
fn instructions(sets: &[String]) -> String {
    let left_out = ["sse2", "sse3", "ssse3", "sse4.1", "sse4a", "popcnt", "bmi1", "bmi2", "pclmulqdq"];
    let mut parts: Vec<String> = Vec::new();
    let mut families: [(&str, Vec<&str>); 2] = [("avx512", Vec::new()), ("amx-", Vec::new())];
    for set in sets.iter().filter(|set| !left_out.contains(&set.as_str())) {
        match families.iter_mut().find(|(prefix, _)| set.starts_with(prefix)) {
            Some((prefix, members)) => members.push(&set[prefix.len()..]),
            None => parts.push(set.clone()),
        }
    }
    for (prefix, members) in families.iter().filter(|(_, members)| !members.is_empty()) {
        parts.push(format!("{} ({})", prefix.trim_end_matches('-'), members.join(" ")));
    }
    parts.join(", ")
}

fn cache(cache: &Cache) -> String {
    let kind = match cache.kind {
        CacheKind::Data => "d",
        CacheKind::Instruction => "i",
        CacheKind::Unified => "",
    };
    let shared = match cache.shared_by_threads {
        Some(threads) if threads > 1 => format!(" shared by {threads}"),
        _ => String::new(),
    };
    format!("L{}{kind} {} × {}{shared}", cache.level, bytes(cache.size_bytes), cache.instances)
}

fn memory(page: &mut Page, memory: &Memory) {
    page.heading("Memory");
    let lower = memory.limit_bytes.filter(|&limit| memory.total_bytes.is_none_or(|total| limit < total));
    let limit = lower.map(|limit| format!("limited to {} here", bytes(limit)));
    let available = memory.available_bytes.map(|available| format!("{} available", bytes(available)));
    page.row("Total", &joined([memory.total_bytes.map(bytes), available, limit]));
    if let Some(swap) = memory.swap_total_bytes.filter(|&swap| swap > 0) {
        page.row(
            "Swap",
            &joined([Some(bytes(swap)), memory.swap_free_bytes.map(|free| format!("{} free", bytes(free)))]),
        );
    }
    let ecc = memory.ecc.map(|ecc| if ecc { "ECC" } else { "no ECC" }.to_owned());
    let count = u32::try_from(memory.modules.len()).ok().filter(|&count| count > 0);
    let modules = joined([
        count.map(|count| counted(count, "module")),
        memory.kind.clone(),
        memory.speed_mts.map(|speed| format!("{speed} MT/s")),
        memory.channels.map(|channels| counted(channels, "channel")),
        ecc,
    ]);
    let unknown = memory.modules_note.as_ref().map(|note| format!("not known: {note}"));
    page.row("Modules", if modules.is_empty() { unknown.as_deref().unwrap_or_default() } else { &modules });
}

fn gpu(page: &mut Page, gpu: &Gpu) {
    let model = gpu.model.clone().unwrap_or_else(|| format!("{} GPU", gpu.vendor));
    let capability = gpu.compute_capability.as_ref().map(|version| format!("compute capability {version}"));
    let ecc = gpu.ecc.map(|ecc| if ecc { "ECC" } else { "no ECC" }.to_owned());
    page.row(
        &format!("GPU {}", gpu.index),
        &joined([Some(model), gpu.memory_bytes.map(bytes), gpu.architecture.clone(), capability, ecc]),
    );
    let max = |mhz: Option<u32>, what: &str| mhz.map(|mhz| format!("{what} up to {}", clock(f64::from(mhz))));
    page.row(
        "",
        &joined([
            max(gpu.clocks.core_max_mhz, "core"),
            max(gpu.clocks.memory_max_mhz, "memory"),
            gpu.power_limit_watts.map(|watts| format!("power limit {watts:.0} W")),
            gpu.nvlinks_active.filter(|&links| links > 0).map(|links| counted(links, "NVLink")),
            gpu.mig.filter(|&mig| mig).map(|_| "MIG".to_owned()),
        ]),
    );
    page.row(
        "",
        &joined([
            pcie(&gpu.pcie),
            gpu.pci_address.clone(),
            gpu.numa_node.map(|node| format!("NUMA node {node}")),
            driver(gpu.driver.as_deref(), gpu.driver_version.as_deref()),
        ]),
    );
    page.row("", gpu.uuid.as_deref().unwrap_or_default());
}

fn accelerator(page: &mut Page, device: &Accelerator) {
    let name = match (&device.vendor, &device.model) {
        (Some(vendor), Some(model)) => format!("{vendor} {model}"),
        (vendor, model) => {
            model.clone().or_else(|| vendor.clone()).unwrap_or_else(|| "unknown model".to_owned())
        }
    };
    page.row(
        "Accelerator",
        &joined([
            Some(name),
            device.memory_bytes.map(bytes),
            pcie(&device.pcie),
            device.pci_address.clone(),
            driver(device.driver.as_deref(), device.driver_version.as_deref()),
            device.path.clone(),
        ]),
    );
}

fn driver(name: Option<&str>, version: Option<&str>) -> Option<String> {
    name.map(|name| format!("driver {name} {}", version.unwrap_or_default()).trim_end().to_owned())
}

/// The link as it can be, and as it is where that differs.
fn pcie(link: &PcieLink) -> Option<String> {
    let written = |generation: Option<u32>, width: Option<u32>| {
        let parts = [
            generation.map(|generation| format!("gen {generation}")),
            width.map(|width| format!("×{width}")),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    };
    let max = written(link.generation_max, link.width_max);
    let now = written(link.generation_current, link.width_current);
    match (max, now) {
        (Some(max), Some(now)) if max != now => Some(format!("PCIe {max} (now {now})")),
        (max, now) => max.or(now).map(|link| format!("PCIe {link}")),
    }
}

/// The connections, the pairs of a kind together.
fn links(links: &[GpuLink]) -> String {
    let mut kinds: Vec<(String, Vec<String>)> = Vec::new();
    for link in links {
        let (kind, pair) = (connection(link), format!("{}–{}", link.from, link.to));
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, pairs)) => pairs.push(pair),
            None => kinds.push((kind, vec![pair])),
        }
    }
    if let [(kind, pairs)] = kinds.as_slice()
        && pairs.len() > 1
    {
        return format!("all pairs by {kind}");
    }
    kinds.iter().map(|(kind, pairs)| format!("{} by {kind}", pairs.join(" "))).collect::<Vec<_>>().join("; ")
}

fn connection(link: &GpuLink) -> String {
    let path = link.pcie_path.map_or("", |path| match path {
        PciePath::SameBoard => "on one board",
        PciePath::SingleSwitch => "through one switch",
        PciePath::MultipleSwitches => "through several switches",
        PciePath::HostBridge => "through the host bridge",
        PciePath::NumaNode => "within the NUMA node",
        PciePath::System => "across NUMA nodes",
    });
    let count = link.link_count.map(|count| format!(" ×{count}")).unwrap_or_default();
    match link.connection {
        Connection::Nvlink => format!("NVLink{count}"),
        Connection::Xgmi => format!("XGMI{count}"),
        Connection::Pcie => format!("PCIe {path}").trim_end().to_owned(),
    }
}

fn storage(page: &mut Page, device: &StorageDevice) {
    let kind = device.kind.map(|kind| match kind {
        StorageKind::Hdd => "HDD",
        StorageKind::Ssd => "SSD",
        StorageKind::Nvme => "NVMe",
        StorageKind::Virtual => "virtual",
    });
    // "NVMe, nvme" would say it twice.
    let bus = device.bus.clone().filter(|bus| bus != "nvme");
    page.row(
        &device.path,
        &joined([device.capacity_bytes.map(disk_bytes), kind.map(str::to_owned), bus, device.model.clone()]),
    );
}

/// An interface, unless it is down and made by software.
fn network(page: &mut Page, interface: &NetworkInterface) {
    let hardware = interface.driver.is_some();
    let idle = interface.addresses.is_empty() && interface.state.as_deref() != Some("up");
    if interface.kind.as_deref() == Some("loopback") || (!hardware && idle) {
        return;
    }
    page.row(
        &interface.name,
        &joined([
            interface.state.clone(),
            interface.speed_mbps.map(network_speed),
            interface.kind.clone(),
            interface.model.clone(),
            driver(interface.driver.as_deref(), None),
            interface.mtu_bytes.map(|mtu| format!("MTU {mtu}")),
            Some(interface.addresses.join(" ")),
        ]),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_of_instructions_are_taken_together() {
        let sets = ["sse2", "avx2", "avx512f", "avx512bw", "amx-tile", "amx-bf16"].map(str::to_owned);
        assert_eq!(instructions(&sets), "avx2, avx512 (f bw), amx (tile bf16)");
        assert_eq!(instructions(&[]), "");
    }

    #[test]
    fn a_link_that_sleeps_is_shown_as_it_can_be() {
        let link = |current, max| PcieLink {
            generation_current: current,
            generation_max: max,
            width_current: Some(16),
            width_max: Some(16),
        };
        assert_eq!(pcie(&link(Some(1), Some(5))).as_deref(), Some("PCIe gen 5 ×16 (now gen 1 ×16)"));
        assert_eq!(pcie(&link(Some(5), Some(5))).as_deref(), Some("PCIe gen 5 ×16"));
        assert_eq!(pcie(&PcieLink::default()), None);
    }

    #[test]
    fn connections_are_grouped() {
        let link = |to, connection, link_count| GpuLink {
            from: 0,
            to,
            connection,
            link_count,
            pcie_path: Some(PciePath::System),
        };
        let nvlink = |to| link(to, Connection::Nvlink, Some(18));
        assert_eq!(links(&[nvlink(1), nvlink(2)]), "all pairs by NVLink ×18");
        let mixed = [nvlink(1), link(2, Connection::Pcie, None)];
        assert_eq!(links(&mixed), "0–1 by NVLink ×18; 0–2 by PCIe across NUMA nodes");
        assert_eq!(links(&[]), "");
    }
}
