//! CUDA and ROCm: the drivers and the toolkits that are installed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::host::Host;
use crate::{nvml, sysfs};

/// CUDA.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cuda {
    /// The version of NVIDIA's driver.
    pub driver_version: Option<String>,
    /// The newest CUDA that the driver can run.
    pub driver_cuda_version: Option<String>,
    /// The toolkits.
    pub toolkits: Vec<Toolkit>,
}

/// ROCm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rocm {
    /// The version of AMD's driver, where it is not the kernel's own.
    pub driver_version: Option<String>,
    /// The installations.
    pub toolkits: Vec<Toolkit>,
}

/// An installed toolkit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Toolkit {
    /// Its version.
    pub version: Option<String>,
    /// Its folder.
    pub path: String,
}

impl Cuda {
    /// CUDA on this machine; `None` if there is neither driver nor toolkit.
    pub(super) fn find(host: &Host) -> Option<Self> {
        let nvml = nvml::nvml().ok();
        let cuda = Self {
            driver_version: nvml
                .and_then(|nvml| nvml.sys_driver_version().ok())
                .or_else(|| sysfs::text(host.at("/sys/module/nvidia/version"))),
            driver_cuda_version: nvml
                .and_then(|nvml| nvml.sys_cuda_driver_version().ok())
                .filter(|&version| version > 0)
                .map(|version| format!("{}.{}", version / 1000, version % 1000 / 10)),
            toolkits: toolkits(
                host,
                &["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"],
                &[("/usr/local", "cuda"), ("/opt", "cuda"), ("/usr/lib", "cuda")],
                cuda_version,
                "bin/nvcc",
            ),
        };
        (cuda != Self::default()).then_some(cuda)
    }
}

impl Rocm {
    /// ROCm on this machine; `None` if there is no installation and no driver of its own.
    pub(super) fn find(host: &Host) -> Option<Self> {
        let rocm = Self {
            driver_version: sysfs::text(host.at("/sys/module/amdgpu/version")),
            toolkits: toolkits(
                host,
                &["ROCM_PATH", "ROCM_HOME"],
                &[("/opt", "rocm")],
                rocm_version,
                "bin/rocminfo",
            ),
        };
        (rocm != Self::default()).then_some(rocm)
    }
}

/// The toolkits in the folders that variables name or that begin with a name at the usual place, each once.
fn toolkits(
    host: &Host,
    variables: &[&str],
    usual: &[(&str, &str)],
    version: fn(&Path) -> Option<String>,
    program: &str,
) -> Vec<Toolkit> {
    let mut folders: Vec<PathBuf> = variables.iter().filter_map(|name| host.folder(name)).collect();
    for (place, name) in usual {
        let place = host.at(place);
        let named = sysfs::names(&place).into_iter().filter(|entry| {
            entry.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        });
        folders.extend(named.map(|entry| place.join(entry)));
    }
    let mut found: Vec<(PathBuf, Toolkit)> = Vec::new();
    for folder in folders {
        let Some(real) = host.real(&folder) else { continue };
        let version = version(&real);
        // A folder without a version and without the program is what an uninstaller left.
        let installed = version.is_some() || real.join(program).exists();
        if installed && !found.iter().any(|(known, _)| *known == real) {
            found.push((real, Toolkit { version, path: host.shown(&folder) }));
        }
    }
    found.into_iter().map(|(_, toolkit)| toolkit).collect()
}

fn cuda_version(folder: &Path) -> Option<String> {
    let modern = || {
        let text = sysfs::head(folder.join("version.json"), 1 << 20)?;
        let json: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some(json.get("cuda")?.get("version")?.as_str()?.to_owned())
    };
    let old = || Some(sysfs::text(folder.join("version.txt"))?.strip_prefix("CUDA Version ")?.to_owned());
    // Packages that install only parts of a toolkit leave no such file, but the header or the folder's name has it.
    let header = || {
        let text = sysfs::head(folder.join("include/cuda.h"), 4 << 20)?;
        let number: u32 =
            text.split_once("#define CUDA_VERSION ")?.1.split_whitespace().next()?.parse().ok()?;
        Some(format!("{}.{}", number / 1000, number % 1000 / 10))
    };
    let name = || Some(folder.file_name()?.to_str()?.strip_prefix("cuda-")?.to_owned());
    modern().or_else(old).or_else(header).or_else(name).filter(|version| is_version(version))
}

fn rocm_version(folder: &Path) -> Option<String> {
    let text = sysfs::text(folder.join(".info/version"))?;
    // "6.2.0-66" has the build behind the version.
    let version = text.split('-').next()?.to_owned();
    is_version(&version).then_some(version)
}

fn is_version(text: &str) -> bool {
    text.len() < 40 && text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{link, tree};

    #[test]
    fn toolkits_are_listed_once_with_their_version() {
        let root = tree(&[
            ("usr/local/cuda-12.4/version.json", r#"{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}}"#),
            ("usr/local/cuda-11.8/version.json", r#"{"cuda": 7}"#),
            ("usr/local/cuda-13/include/cuda.h", "/* */\n#define CUDA_VERSION 13020\n"),
            ("opt/cuda/bin/nvcc", ""),
            ("usr/lib/cuda/left-over", ""),
            ("usr/local/cudnn/version.txt", "CUDA Version 1.0"),
            ("opt/rocm-6.2.0/.info/version", "6.2.0-66\n"),
        ]);
        link(&root, "usr/local/cuda", "cuda-12.4");
        let host = Host::fake(root.path(), &[("CUDA_HOME", "/usr/local/cuda")]);
        let found = Cuda::find(&host).unwrap().toolkits;
        let pairs: Vec<_> = found.iter().map(|kit| (kit.path.as_str(), kit.version.as_deref())).collect();
        let expected = [
            ("/usr/local/cuda", Some("12.4.1")),
            ("/usr/local/cuda-11.8", Some("11.8")),
            ("/usr/local/cuda-13", Some("13.2")),
            ("/opt/cuda", None),
        ];
        assert_eq!(pairs, expected);
        let rocm = Rocm::find(&host).unwrap().toolkits;
        assert_eq!((rocm[0].path.as_str(), rocm[0].version.as_deref()), ("/opt/rocm-6.2.0", Some("6.2.0")));
    }

    #[test]
    fn a_machine_without_rocm_has_none() {
        let root = tree(&[("opt/other", "")]);
        assert_eq!(Rocm::find(&Host::fake(root.path(), &[])), None);
    }
}
