//! The operating system and its kernel.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::sysfs;

/// The operating system and its kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Os {
    /// The distribution with its version, such as `Debian GNU/Linux 12 (bookworm)`.
    pub name: Option<String>,
    /// The distribution's short name, such as `debian`.
    pub id: Option<String>,
    /// The distribution's version.
    pub version: Option<String>,
    /// The kernel's name, such as `Linux`.
    pub kernel: Option<String>,
    /// The kernel's release, such as `6.12.9-amd64`.
    pub kernel_release: Option<String>,
    /// The machine's name on the network.
    pub hostname: Option<String>,
}

impl Os {
    pub(super) fn read(root: &Path) -> Self {
        let release = sysfs::text(root.join("etc/os-release"))
            .or_else(|| sysfs::text(root.join("usr/lib/os-release")))
            .unwrap_or_default();
        let kernel = |name: &str| sysfs::text(root.join("proc/sys/kernel").join(name));
        Self {
            name: value(&release, "PRETTY_NAME").or_else(|| value(&release, "NAME")),
            id: value(&release, "ID"),
            version: value(&release, "VERSION_ID"),
            kernel: kernel("ostype"),
            kernel_release: kernel("osrelease"),
            hostname: kernel("hostname"),
        }
    }
}

/// The value of a line `KEY=value` or `KEY="value"`.
fn value(text: &str, key: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='))?;
    let value = value.trim().trim_matches(['"', '\'']);
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::tree;

    #[test]
    fn quotes_and_similar_keys_do_not_confuse() {
        let root = tree(&[
            (
                "etc/os-release",
                "VERSION_ID=\"24.04\"\nID_LIKE=debian\nID=ubuntu\nPRETTY_NAME='Ubuntu 24.04 LTS'\n",
            ),
            ("proc/sys/kernel/osrelease", "6.8.0-45-generic\n"),
        ]);
        let os = Os::read(root.path());
        assert_eq!(os.name.as_deref(), Some("Ubuntu 24.04 LTS"));
        assert_eq!((os.id.as_deref(), os.version.as_deref()), (Some("ubuntu"), Some("24.04")));
        assert_eq!((os.kernel_release.as_deref(), os.kernel), (Some("6.8.0-45-generic"), None));
    }
}
