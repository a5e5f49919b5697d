//! Search path of vendor libraries.

use std::path::{Path, PathBuf};

use crate::vendor::Vendor;

/// The directories to search, most specific first, without duplicates.
pub(super) fn folders(vendor: Vendor) -> Vec<PathBuf> {
    let variables: &[&str] = match vendor {
        Vendor::Cuda => &["CUDA_HOME", "CUDA_PATH"],
        Vendor::Hip => &["ROCM_PATH", "ROCM_HOME", "HIP_PATH"],
    };
    let mut roots: Vec<PathBuf> = variables.iter().filter_map(std::env::var_os).map(PathBuf::from).collect();
    let mut all: Vec<PathBuf> = roots.drain(..).flat_map(|root| library_folders(&root)).collect();
    all.extend(environments().iter().flat_map(|environment| packages(environment, vendor)));
    let installed = match vendor {
        Vendor::Cuda => "/usr/local/cuda",
        Vendor::Hip => "/opt/rocm",
    };
    all.extend(library_folders(Path::new(installed)));
    let mut seen = Vec::new();
    all.retain(|folder| {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        !seen.contains(&real) && {
            seen.push(real);
            true
        }
    });
    all
}

/// Library directories of an installation.
fn library_folders(root: &Path) -> Vec<PathBuf> {
    ["lib64", "lib", "targets/x86_64-linux/lib"]
        .iter()
        .map(|name| root.join(name))
        .filter(|path| path.is_dir())
        .collect()
}

/// Python environments: the active one, and those of the interpreters on `PATH`.
fn environments() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(std::env::var_os).map(PathBuf::from).collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path) {
        for name in ["python3", "python"] {
            let interpreter = folder.join(name);
            if interpreter.is_file() {
                // An interpreter in `bin` may be a link into another environment.
                let beside = std::fs::read_link(&interpreter).ok().map(|target| folder.join(target));
                for program in [Some(interpreter), beside].into_iter().flatten() {
                    found.extend(program.parent().and_then(Path::parent).map(Path::to_owned));
                }
            }
        }
    }
    found
}

/// Library directories of the vendor's Python packages.
fn packages(environment: &Path, vendor: Vendor) -> Vec<PathBuf> {
    let pattern = match vendor {
        Vendor::Cuda => "nvidia",
        Vendor::Hip => "_rocm_sdk_core",
    };
    let mut found = Vec::new();
    for lib in ["lib", "lib64"] {
        for version in children(&environment.join(lib)) {
            for site in ["site-packages", "dist-packages"] {
                let package = version.join(site).join(pattern);
                found.extend(std::iter::once(package.join("lib")).filter(|path| path.is_dir()));
                let parts = children(&package);
                found.extend(parts.iter().map(|part| part.join("lib")).filter(|path| path.is_dir()));
            }
        }
    }
    found
}

/// Subdirectories, sorted by name.
fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_python_packages_are_found() {
        let environment = tempfile::tempdir().unwrap();
        let site = environment.path().join("lib/python3.12/site-packages/nvidia");
        for part in ["cu13/lib", "cudnn/lib", "cudnn/include"] {
            std::fs::create_dir_all(site.join(part)).unwrap();
        }
        let found = packages(environment.path(), Vendor::Cuda);
        assert_eq!(found, [site.join("cu13/lib"), site.join("cudnn/lib")]);
        assert!(packages(environment.path(), Vendor::Hip).is_empty());
    }
}
