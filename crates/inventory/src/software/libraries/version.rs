//! The version of a library, from its file's name or from what the packager left beside it.

use std::collections::HashMap;
use std::path::Path;

use super::table::Known;
use crate::software::host::Host;
use crate::sysfs;

/// The versions of Debian's packages, read once.
#[derive(Debug, Default)]
pub(super) struct DebianPackages(HashMap<String, String>);

impl DebianPackages {
    pub(super) fn read(host: &Host) -> Self {
        let status = sysfs::text(host.at("/var/lib/dpkg/status")).unwrap_or_default();
        let mut versions = HashMap::new();
        for paragraph in status.split("\n\n") {
            let field =
                |name: &str| paragraph.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            if let (Some(name), Some(version)) = (field("Package:"), field("Version:"))
                && field("Status:").is_some_and(|status| status.ends_with(" installed"))
            {
                versions.insert(name.to_owned(), version.to_owned());
            }
        }
        Self(versions)
    }

    /// The version of the package whose name begins so; `1:4.1.4-3+b1` is version `4.1.4`.
    fn version(&self, prefix: &str) -> Option<String> {
        let begins =
            |name: &&String| name.starts_with(prefix) && !name.ends_with("-dev") && !name.ends_with("-doc");
        let name = self.0.keys().filter(begins).min()?;
        let version = self.0.get(name)?;
        let version = version.split_once(':').map_or(version.as_str(), |(_, rest)| rest);
        let version = version.rsplit_once('-').map_or(version, |(upstream, _)| upstream);
        Some(version.split(['+', '~']).next().unwrap_or(version).to_owned())
    }
}

/// The version of a library at its real path.
pub(super) fn of(host: &Host, known: &Known, real: &Path, debian: &DebianPackages) -> Option<String> {
    let file = real.file_name()?.to_str()?;
    let system = host.shown(real).starts_with("/usr/lib");
    in_release_name(file)
        .or_else(|| known.release_in_file.then(|| behind_so(file))?)
        .or_else(|| in_folder(real))
        .or_else(|| configured(known.config?, real.parent()?))
        .or_else(|| system.then(|| debian.version(known.debian?))?)
}

/// The version behind `.so.`, if it is more than the ABI version.
fn behind_so(file: &str) -> Option<String> {
    let version = file.split_once(".so.")?.1;
    (is_version(version) && version.contains('.')).then(|| version.to_owned())
}

/// The version in a name such as `libopenblasp-r0.3.21.so`.
fn in_release_name(file: &str) -> Option<String> {
    let version = file.split_once("-r")?.1.split(".so").next()?;
    is_version(version).then(|| version.to_owned())
}

/// The version in a folder such as `/opt/intel/oneapi/mkl/2024.0/lib`.
fn in_folder(path: &Path) -> Option<String> {
    let text = path.to_string_lossy();
    let parts: Vec<_> = text.split('/').collect();
    let at = parts.iter().position(|part| *part == "oneapi")?;
    parts.get(at + 2).filter(|part| is_version(part) && part.contains('.')).map(|part| (*part).to_owned())
}

/// The version in the pkg-config file or the CMake package beside a library.
fn configured(name: &str, folder: &Path) -> Option<String> {
    let package = || {
        let text = sysfs::head(folder.join("pkgconfig").join(format!("{name}.pc")), 64 << 10)?;
        let version = text.lines().find_map(|line| line.strip_prefix("Version:"))?.trim().to_owned();
        Some(version)
    };
    let cmake = || {
        let files = [format!("{name}-config-version.cmake"), format!("{name}ConfigVersion.cmake")];
        let text = files
            .iter()
            .find_map(|file| sysfs::head(folder.join("cmake").join(name).join(file), 64 << 10))?;
        let rest = text.split_once("PACKAGE_VERSION \"")?.1;
        Some(rest.split_once('"')?.0.to_owned())
    };
    package().or_else(cmake).filter(|version| is_version(version))
}

fn is_version(text: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || ".-+".contains(c);
    text.len() < 40 && text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(known)
}

#[cfg(test)]
mod tests {
    use super::super::table::LIBRARIES;
    use super::*;
    use crate::fake::tree;

    fn known(name: &str) -> &'static Known {
        LIBRARIES.iter().find(|known| known.name == name).unwrap()
    }

    fn named(name: &str, file: &str) -> Option<String> {
        of(&Host::fake(Path::new("/"), &[]), known(name), Path::new(file), &DebianPackages::default())
    }

    #[test]
    fn versions_in_names_and_folders() {
        assert_eq!(named("cuBLAS", "/x/libcublas.so.12.4.5.8").as_deref(), Some("12.4.5.8"));
        assert_eq!(named("cuBLAS", "/x/libcublas.so.12"), None);
        assert_eq!(named("OpenBLAS", "/x/libopenblasp-r0.3.21.so").as_deref(), Some("0.3.21"));
        assert_eq!(
            named("oneMKL", "/opt/intel/oneapi/mkl/2024.0/lib/libmkl_rt.so.2").as_deref(),
            Some("2024.0")
        );
        assert_eq!(named("UCX", "/x/libucp.so.0.0.0"), None, "what can be linked is not the release");
        assert_eq!(named("NCCL", "/x/libnccl.so.2.\u{1b}[31m"), None);
    }

    #[test]
    fn versions_beside_the_library() {
        let root = tree(&[
            ("lib/pkgconfig/ucx.pc", "Name: ucx\nVersion: 1.17.0\n"),
            ("lib/cmake/rocblas/rocblas-config-version.cmake", "set(PACKAGE_VERSION \"4.2.0\")\n"),
            ("lib/cmake/dnnl/dnnl-config-version.cmake", "set(PACKAGE_VERSION \"${X}\")\n"),
        ]);
        let host = Host::fake(root.path(), &[]);
        let at = |name: &str, file: &str| {
            of(&host, known(name), &root.path().join("lib").join(file), &DebianPackages::default())
        };
        assert_eq!(at("UCX", "libucp.so.0").as_deref(), Some("1.17.0"));
        assert_eq!(at("rocBLAS", "librocblas.so.4").as_deref(), Some("4.2.0"));
        assert_eq!(at("oneDNN", "libdnnl.so.3"), None);
    }

    #[test]
    fn debians_versions_lose_epoch_and_revision() {
        let root = tree(&[(
            "var/lib/dpkg/status",
            "Package: libopenmpi3\nStatus: install ok installed\nVersion: 1:4.1.4-3+b1\n\n\
             Package: libucx0\nStatus: deinstall ok config-files\nVersion: 1.13.1-1\n\nPackage: half\n",
        )]);
        let debian = DebianPackages::read(&Host::fake(root.path(), &[]));
        assert_eq!(debian.version("libopenmpi").as_deref(), Some("4.1.4"));
        assert_eq!(debian.version("libucx"), None);
    }
}
