//! Libraries of arithmetic and communication: found where the loader, the toolkits and Python's packages have them.

mod table;
mod version;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::command::{self, Deadline};
use super::host::Host;
use super::packages;
use crate::sysfs;

use table::{Known, LIBRARIES};

/// A library.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Library {
    /// Its name.
    pub name: String,
    /// Its version; null where neither its file nor its package has it.
    pub version: Option<String>,
    /// The file.
    pub path: String,
}

/// Where to look.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The files that the loader knows.
    pub(super) cached: Vec<PathBuf>,
    /// The folders of CUDA's and ROCm's toolkits.
    pub(super) toolkits: Vec<PathBuf>,
    /// The folders of Python installations.
    pub(super) prefixes: Vec<PathBuf>,
    /// The folders of Python packages.
    pub(super) packages: Vec<PathBuf>,
}

/// The files in the loader's cache that are on the list.
pub(super) fn loader_cache(host: &Host, deadline: Deadline) -> Vec<PathBuf> {
    let Some(program) = host.program("ldconfig", &["/sbin", "/usr/sbin"]) else { return Vec::new() };
    let text = command::output(&program, &["-p"], deadline).unwrap_or_default();
    // "	libnccl.so.2 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libnccl.so.2"
    let files = text.lines().filter_map(|line| line.split_once(" => ")).map(|(_, path)| host.at(path.trim()));
    files.filter(|path| file_name(path).is_some_and(|name| of_file(name).is_some())).collect()
}

/// The libraries at these places, each file once, in the order of the list.
pub(super) fn find(host: &Host, places: Places) -> Vec<Library> {
    let mut files = places.cached;
    let mut folders = host.folders("LD_LIBRARY_PATH");
    for toolkit in &places.toolkits {
        folders.extend(["lib64", "lib"].map(|name| toolkit.join(name)));
    }
    folders.extend(places.prefixes.iter().map(|prefix| prefix.join("lib")));
    for name in ["mkl", "dnnl", "mpi", "ccl", "tbb"] {
        folders.push(host.at("/opt/intel/oneapi").join(name).join("latest/lib"));
    }
    folders.push(host.at("/usr/lib/wsl/lib"));
    for folder in &folders {
        files.extend(
            sysfs::names(folder).iter().filter(|name| of_file(name).is_some()).map(|name| folder.join(name)),
        );
    }
    let debian = version::DebianPackages::read(host);
    let mut seen = HashSet::new();
    let mut found: Vec<(usize, Library)> = Vec::new();
    for file in files {
        let (Some(place), Some(real)) = (file_name(&file).and_then(of_file), host.real(&file)) else {
            continue;
        };
        if seen.insert((LIBRARIES[place].name, real.clone())) && real.is_file() {
            let version = version::of(host, &LIBRARIES[place], &real, &debian);
            found.push((place, Library::new(host, &LIBRARIES[place], version, &file)));
        }
    }
    for folder in &places.packages {
        found.extend(in_wheels(host, folder));
    }
    found.sort_by_key(|(place, _)| *place);
    // One library under two stems, such as Open MPI's, is one entry.
    found.dedup_by(|(_, next), (_, library)| {
        next.name == library.name && same_folder(&next.path, &library.path)
    });
    found.into_iter().map(|(_, library)| library).collect()
}

impl Library {
    fn new(host: &Host, known: &Known, version: Option<String>, file: &Path) -> Self {
        Self { name: known.name.to_owned(), version, path: host.shown(file) }
    }
}

/// NVIDIA's libraries that came as Python packages into `nvidia/*/lib`.
fn in_wheels(host: &Host, folder: &Path) -> Vec<(usize, Library)> {
    let parts = sysfs::names(folder.join("nvidia"));
    if parts.is_empty() {
        return Vec::new();
    }
    let installed = packages::read(folder, |name| name.starts_with("nvidia-"));
    let mut found = Vec::new();
    for part in parts {
        let lib = folder.join("nvidia").join(part).join("lib");
        for name in sysfs::names(&lib) {
            let Some(place) = of_file(&name) else { continue };
            let known = &LIBRARIES[place];
            let package = installed.iter().find(|package| {
                let wheel =
                    package.name.strip_prefix("nvidia-").and_then(|rest| rest.strip_prefix(known.wheel?));
                wheel.is_some_and(|rest| rest.is_empty() || rest.starts_with("-cu"))
            });
            let version = package.and_then(|package| package.version.clone());
            found.push((place, Library::new(host, known, version, &lib.join(&name))));
        }
    }
    found
}

/// The place in the list of the library in a file of this name.
fn of_file(name: &str) -> Option<usize> {
    let (stem, rest) = name.split_once(".so")?;
    let numbers = rest.is_empty()
        || rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    numbers.then(|| LIBRARIES.iter().position(|known| known.stem == stem))?
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn same_folder(a: &str, b: &str) -> bool {
    Path::new(a).parent() == Path::new(b).parent()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fake::{link, program, tree, tree_at};

    #[test]
    fn the_loaders_files_and_the_folders_files_are_one() {
        let root = tree(&[
            ("usr/lib/libnccl.so.2.21.5", ""),
            ("usr/lib/libc.so.6", ""),
            ("usr/local/cuda/lib64/libcublas.so.12.4.5.8", ""),
            ("usr/local/cuda/lib64/libcublas_static.a", ""),
        ]);
        link(&root, "usr/lib/libnccl.so.2", "libnccl.so.2.21.5");
        link(&root, "usr/local/cuda/lib64/libcublas.so.12", "libcublas.so.12.4.5.8");
        program(
            &root,
            "sbin/ldconfig",
            "printf '\\tlibnccl.so.2 (libc6) => /usr/lib/libnccl.so.2\\n\\tlibc.so.6 => /usr/lib/libc.so.6\\nx\\n'",
        );
        let host = Host::fake(root.path(), &[("LD_LIBRARY_PATH", "/usr/lib:/missing")]);
        let cached = loader_cache(&host, Deadline::after(Duration::from_secs(60)));
        assert_eq!(cached.len(), 1);
        let places =
            Places { cached, toolkits: vec![root.path().join("usr/local/cuda")], ..Places::default() };
        let found = find(&host, places);
        let told: Vec<_> =
            found.iter().map(|l| (l.name.as_str(), l.version.as_deref(), l.path.as_str())).collect();
        let expected = [
            ("cuBLAS", Some("12.4.5.8"), "/usr/local/cuda/lib64/libcublas.so.12"),
            ("NCCL", Some("2.21.5"), "/usr/lib/libnccl.so.2"),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn pythons_packages_have_their_version_in_the_metadata() {
        let site = "v/lib/python3.12/site-packages";
        let root = tree_at(
            site,
            &[
                ("nvidia/cudnn/lib/libcudnn.so.9", ""),
                ("nvidia/cudnn/lib/libcudnn_ops.so.9", ""),
                ("nvidia/cu13/lib/libcublas.so.13", ""),
                ("nvidia_cudnn_cu12-9.1.0.70.dist-info/METADATA", "Version: 9.1.0.70\n"),
                ("nvidia_cublas-13.1.0.3.dist-info/METADATA", "Version: 13.1.0.3\n"),
            ],
        );
        let host = Host::fake(root.path(), &[]);
        let found = find(&host, Places { packages: vec![root.path().join(site)], ..Places::default() });
        let told: Vec<_> = found.iter().map(|l| (l.name.as_str(), l.version.as_deref())).collect();
        assert_eq!(told, [("cuBLAS", Some("13.1.0.3")), ("cuDNN", Some("9.1.0.70"))]);
    }

    #[test]
    fn only_whole_names_are_taken() {
        assert!(of_file("libcublas.so").is_some() && of_file("libcublas.so.12").is_some());
        assert!(of_file("libcublasLt.so.12").is_none() && of_file("libcublas.so.x").is_none());
        assert!(of_file("libcublas.a").is_none() && of_file("").is_none());
    }
}
