//! The board and the firmware, from `/sys/class/dmi/id`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::sysfs;

/// The machine as its maker calls it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Platform {
    /// Who made the machine.
    pub vendor: Option<String>,
    /// The machine's model.
    pub product: Option<String>,
    /// The board's model.
    pub board: Option<String>,
    /// The firmware's version.
    pub firmware_version: Option<String>,
    /// The firmware's date.
    pub firmware_date: Option<String>,
}

impl Platform {
    pub(super) fn read(root: &Path) -> Self {
        let field = |name: &str| {
            let none =
                ["To Be Filled By O.E.M.", "System manufacturer", "System Product Name", "Default string"];
            sysfs::text(root.join("sys/class/dmi/id").join(name))
                .filter(|text| !none.contains(&text.as_str()))
        };
        let device_tree = |name: &str| {
            let text = sysfs::text(root.join("proc/device-tree").join(name))?;
            Some(text.trim_matches('\0').to_owned())
        };
        Self {
            vendor: field("sys_vendor"),
            product: field("product_name").or_else(|| device_tree("model")),
            board: field("board_name"),
            firmware_version: field("bios_version"),
            firmware_date: field("bios_date"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::tree;

    #[test]
    fn makers_placeholders_are_unknown() {
        let root = tree(&[
            ("sys/class/dmi/id/sys_vendor", "Supermicro\n"),
            ("sys/class/dmi/id/product_name", "To Be Filled By O.E.M.\n"),
        ]);
        let platform = Platform::read(root.path());
        assert_eq!((platform.vendor.as_deref(), platform.product), (Some("Supermicro"), None));
    }
}
