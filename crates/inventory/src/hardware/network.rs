//! Network interfaces, from `/sys/class/net`.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sysinfo::Networks;

use super::pci::PciDevice;
use crate::sysfs;

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkInterface {
    /// The kernel's name of it.
    pub name: String,
    /// What it is: `ethernet`, `wifi`, `infiniband`, `loopback`, `bridge`, `bond`, `vlan`, `tunnel` or `virtual`.
    pub kind: Option<String>,
    /// The model, of an interface that is a PCI device.
    pub model: Option<String>,
    /// The driver that serves it.
    pub driver: Option<String>,
    /// Whether it works, in the kernel's words: `up`, `down`, `dormant`, …
    pub state: Option<String>,
    /// The speed of the link, while it is up.
    pub speed_mbps: Option<u64>,
    /// Its addresses with the length of the network's prefix, as in `192.0.2.1/24`.
    pub addresses: Vec<String>,
    /// Its hardware address.
    pub mac: Option<String>,
    /// The largest packet.
    pub mtu_bytes: Option<u64>,
    /// The node whose memory is close to it.
    pub numa_node: Option<u32>,
}

/// The addresses of each interface.
pub(super) type Addresses = HashMap<String, Vec<String>>;

/// The addresses that the system reports; none if it does not.
pub(super) fn addresses() -> Addresses {
    let networks = match Networks::new_with_refreshed_list() {
        Ok(networks) => networks,
        Err(error) => {
            tracing::warn!("the interfaces' addresses cannot be read: {error}");
            return Addresses::new();
        }
    };
    let texts = |data: &sysinfo::NetworkData| {
        let mut texts: Vec<_> = data.ip_networks().iter().map(ToString::to_string).collect();
        texts.sort();
        texts
    };
    networks.iter().map(|(name, data)| (name.to_string_lossy().into_owned(), texts(data))).collect()
}

pub(super) fn read(root: &Path, mut addresses: Addresses) -> Vec<NetworkInterface> {
    let folder = root.join("sys/class/net");
    sysfs::names(&folder)
        .into_iter()
        .filter(|name| folder.join(name).is_dir())
        .map(|name| {
            let addresses = addresses.remove(&name).unwrap_or_default();
            read_one(&folder.join(&name), name, addresses)
        })
        .collect()
}

fn read_one(folder: &Path, name: String, addresses: Vec<String>) -> NetworkInterface {
    let pci = PciDevice::at(&folder.join("device"));
    NetworkInterface {
        kind: kind(folder, &name).map(str::to_owned),
        model: pci.as_ref().and_then(PciDevice::model).map(str::to_owned),
        driver: sysfs::link_name(folder.join("device/driver")),
        state: sysfs::text(folder.join("operstate")).filter(|state| state != "unknown"),
        speed_mbps: sysfs::positive(folder.join("speed")).filter(|&speed| speed < u64::from(u32::MAX)),
        addresses,
        mac: sysfs::text(folder.join("address")).filter(|mac| mac.bytes().any(|byte| !b"0:".contains(&byte))),
        mtu_bytes: sysfs::positive(folder.join("mtu")),
        numa_node: pci.as_ref().and_then(PciDevice::numa_node),
        name,
    }
}

/// What an interface is, by the kernel's hardware type and the folders it has.
fn kind(folder: &Path, name: &str) -> Option<&'static str> {
    let has = |part: &str| folder.join(part).exists();
    Some(match sysfs::number::<u32>(folder.join("type"))? {
        772 => "loopback",
        32 => "infiniband",
        768..=779 | 65534 => "tunnel",
        1 if has("wireless") || has("phy80211") => "wifi",
        1 if has("bridge") => "bridge",
        1 if has("bonding") => "bond",
        1 if has("device") => "ethernet",
        1 if name.contains('.') => "vlan",
        1 => "virtual",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{add, link, pci_device};

    #[test]
    fn a_card_a_bridge_and_the_loop() {
        let card = "sys/devices/pci0000:00/0000:01:00.0";
        let root = pci_device(card, "15b3:1021", "020000", &[("numa_node", "1\n")]);
        add(
            &root,
            &[
                ("sys/class/net/eth0/type", "1\n"),
                ("sys/class/net/eth0/operstate", "up\n"),
                ("sys/class/net/eth0/speed", "400000\n"),
                ("sys/class/net/eth0/mtu", "9000\n"),
                ("sys/class/net/eth0/address", "02:00:00:00:00:01\n"),
                ("sys/class/net/br0/bridge/x", ""),
                ("sys/class/net/br0/type", "1\n"),
                ("sys/class/net/br0/speed", "-1\n"),
                ("sys/class/net/lo/type", "772\n"),
                ("sys/class/net/lo/operstate", "unknown\n"),
                ("sys/class/net/lo/address", "00:00:00:00:00:00\n"),
                ("sys/class/net/bonding_masters", "bond0\n"),
            ],
        );
        link(&root, "sys/class/net/eth0/device", format!("../../../../{card}"));
        link(&root, &format!("{card}/driver"), "../../../bus/pci/drivers/mlx5_core");
        let addresses = Addresses::from([("eth0".to_owned(), vec!["192.0.2.1/24".to_owned()])]);
        let [bridge, card, loopback] = &read(root.path(), addresses)[..] else { panic!("three interfaces") };
        assert_eq!((card.speed_mbps, card.mtu_bytes, card.numa_node), (Some(400_000), Some(9000), Some(1)));
        assert_eq!((card.driver.as_deref(), card.kind.as_deref()), (Some("mlx5_core"), Some("ethernet")));
        assert!(card.model.as_deref().is_some_and(|model| model.contains("ConnectX-7")), "{card:?}");
        assert_eq!(card.addresses, ["192.0.2.1/24"]);
        assert_eq!((bridge.kind.as_deref(), bridge.speed_mbps), (Some("bridge"), None));
        assert_eq!(
            (loopback.kind.as_deref(), &loopback.state, &loopback.mac),
            (Some("loopback"), &None, &None)
        );
    }
}
