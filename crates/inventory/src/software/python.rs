//! Python interpreters, found on the search path and in the folders of the usual installers.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::command::{self, Deadline};
use super::host::{Host, is_program};
use crate::sysfs;

/// A Python interpreter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Python {
    /// The program.
    pub path: String,
    /// Its version.
    pub version: Option<String>,
    /// What kind of installation it is: `system`, `venv`, `conda`, `pyenv` or `uv`.
    pub kind: String,
    /// The folder of the installation.
    pub prefix: String,
    /// Whether `python3` means this one here.
    pub active: bool,
}

/// The interpreters: that of the active environment first, then those on the search path, then those of installers.
pub(super) fn find(host: &Host, deadline: Deadline) -> Vec<Python> {
    let mut found: Vec<(PathBuf, Python)> = Vec::new();
    let active = active_prefix(host);
    for program in candidates(host) {
        let Some(real) = host.real(&program) else { continue };
        let prefix = prefix(host, &program, &real);
        // A virtual environment's interpreter is a link to another's but has packages of its own.
        let known = |(_, python): &(PathBuf, Python)| python.prefix == host.shown(&prefix);
        let same_program = |(other, python): &(PathBuf, Python)| *other == real && python.kind != "venv";
        let kind = kind(&prefix);
        if found.iter().any(|entry| known(entry) && (kind == "venv" || same_program(entry))) || !is_elf(&real)
        {
            continue;
        }
        let python = Python {
            path: host.shown(&program),
            version: version(&prefix, kind),
            kind: kind.to_owned(),
            active: active.as_ref() == Some(&prefix),
            prefix: host.shown(&prefix),
        };
        found.push((real, python));
    }
    let mut pythons: Vec<_> = found.into_iter().map(|(_, python)| python).collect();
    ask(host, &mut pythons, deadline);
    pythons
}

/// Programs that may be interpreters.
fn candidates(host: &Host) -> Vec<PathBuf> {
    let mut programs = Vec::new();
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        programs.extend(host.folder(variable).map(|prefix| prefix.join("bin/python3")));
    }
    for folder in host.folders("PATH") {
        let mut names = sysfs::names(&folder);
        names.retain(|name| is_interpreter_name(name));
        // Of the names of one program, the usual one is shown.
        names.sort_by_key(|name| name != "python3");
        programs.extend(names.iter().map(|name| folder.join(name)));
    }
    let home = host.folder("HOME");
    let in_home = |name: &str| home.as_ref().map(|home| home.join(name));
    for prefix in ["miniconda3", "miniforge3", "anaconda3"].iter().filter_map(|name| in_home(name)) {
        programs.push(prefix.join("bin/python3"));
    }
    programs.push(host.at("/opt/conda/bin/python3"));
    let uv = in_home(".local/share/uv/python");
    for versions in [pyenv_versions(host), uv].into_iter().flatten() {
        let mut names = sysfs::names(&versions);
        names.sort_by_cached_key(|name| numbers(name));
        programs.extend(names.iter().map(|name| versions.join(name).join("bin/python3")));
    }
    programs.retain(|program| is_program(program));
    programs
}

/// The folder of the versions that pyenv has installed.
fn pyenv_versions(host: &Host) -> Option<PathBuf> {
    let root = host.folder("PYENV_ROOT").or_else(|| Some(host.folder("HOME")?.join(".pyenv")))?;
    Some(root.join("versions"))
}

/// The installation that `python3` means.
fn active_prefix(host: &Host) -> Option<PathBuf> {
    let environment = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().find_map(|name| host.folder(name));
    if let Some(prefix) = environment.and_then(|prefix| host.real(&prefix)) {
        return Some(prefix);
    }
    let program = host.program("python3", &[])?;
    let real = host.real(&program)?;
    if is_elf(&real) {
        return Some(prefix(host, &program, &real));
    }
    // A shim of pyenv: the version is in a variable or in a file.
    let versions = pyenv_versions(host)?;
    let file = || sysfs::text(versions.parent()?.join("version"));
    let name = host.variable("PYENV_VERSION").map(str::to_owned).or_else(file)?;
    host.real(&versions.join(name.split([':', '\n']).next()?))
}

/// The numbers in a name, so that 3.9 comes before 3.10.
fn numbers(name: &str) -> Vec<u32> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

/// `python`, `python3`, `python3.12`, but not `python3-config`.
fn is_interpreter_name(name: &str) -> bool {
    name.strip_prefix("python").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// Whether a file is a program for the processor; the shims of pyenv are scripts.
fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"\x7fELF"
}

/// The installation's folder: that of the link for a virtual environment, else that of the real program.
fn prefix(host: &Host, program: &Path, real: &Path) -> PathBuf {
    let above = |path: &Path| path.parent().and_then(Path::parent).map(Path::to_owned);
    let linked = above(program).filter(|prefix| prefix.join("pyvenv.cfg").is_file());
    let linked = linked.and_then(|prefix| host.real(&prefix));
    linked.or_else(|| above(real)).unwrap_or_else(|| host.root().to_owned())
}

fn kind(prefix: &Path) -> &'static str {
    let passes = |part: &str| prefix.to_string_lossy().contains(part);
    match () {
        () if prefix.join("pyvenv.cfg").is_file() => "venv",
        () if prefix.join("conda-meta").is_dir() => "conda",
        () if passes("pyenv/versions/") => "pyenv",
        () if passes("/uv/python/") => "uv",
        () => "system",
    }
}

/// The version that the installation's own files name.
fn version(prefix: &Path, kind: &str) -> Option<String> {
    let folder = prefix.file_name()?.to_str()?;
    match kind {
        "venv" => {
            let settings = sysfs::text(prefix.join("pyvenv.cfg"))?;
            let line = settings.lines().find_map(|line| {
                let (key, value) = line.split_once('=')?;
                matches!(key.trim(), "version" | "version_info").then(|| value.trim().to_owned())
            })?;
            // "version_info = 3.12.1.final.0" has more than the version.
            Some(line.split('.').take(3).collect::<Vec<_>>().join("."))
        }
        "conda" => sysfs::names(prefix.join("conda-meta")).iter().find_map(|name| {
            let version = name.strip_prefix("python-")?.split('-').next()?;
            version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
        }),
        "pyenv" => folder.starts_with(|c: char| c.is_ascii_digit()).then(|| folder.to_owned()),
        "uv" => folder.split('-').nth(1).map(str::to_owned),
        _ => None,
    }
    .filter(|version| version.len() < 40 && version.contains('.'))
}

/// Asks the interpreters whose version is not known yet.
fn ask(host: &Host, pythons: &mut [Python], deadline: Deadline) {
    std::thread::scope(|scope| {
        for python in pythons.iter_mut().filter(|python| python.version.is_none()) {
            let program = host.at(&python.path);
            scope.spawn(move || {
                python.version = command::output(&program, &["--version"], deadline)
                    .as_deref()
                    .and_then(command::version_in);
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fake::{link, program, tree};

    fn elf(root: &tempfile::TempDir, path: &str) {
        program(root, path, "");
        std::fs::write(root.path().join(path), b"\x7fELF").unwrap();
    }

    #[test]
    fn installations_are_found_once_and_told_apart() {
        let root = tree(&[
            ("venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.12.3\n"),
            ("opt/conda/conda-meta/python-3.11.5-h955ad1f_0.json", "{}"),
            ("opt/conda/conda-meta/python-dateutil-2.8.2-x.json", "{}"),
        ]);
        elf(&root, "home/u/.pyenv/versions/3.13.0/bin/python3.13");
        link(&root, "home/u/.pyenv/versions/3.13.0/bin/python3", "python3.13");
        elf(&root, "opt/conda/bin/python3");
        link(&root, "venv/bin/python3", "../../opt/conda/bin/python3");
        link(&root, "venv/bin/python", "python3");
        program(&root, "shims/python3", "exec something");
        program(&root, "venv/bin/python3-config", "");
        let variables =
            [("PATH", "/shims:/venv/bin:/opt/conda/bin"), ("VIRTUAL_ENV", "/venv"), ("HOME", "/home/u")];
        let found = find(&Host::fake(root.path(), &variables), Deadline::after(Duration::ZERO));
        let told: Vec<_> = found
            .iter()
            .map(|p| (p.path.as_str(), p.kind.as_str(), p.version.as_deref(), p.active))
            .collect();
        let expected = [
            ("/venv/bin/python3", "venv", Some("3.12.3"), true),
            ("/opt/conda/bin/python3", "conda", Some("3.11.5"), false),
            ("/home/u/.pyenv/versions/3.13.0/bin/python3", "pyenv", Some("3.13.0"), false),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_shim_leads_to_the_version_that_pyenv_uses() {
        let root = tree(&[("pyenv/version", "3.10.1\n3.9.0\n")]);
        for version in ["3.9.0", "3.10.1"] {
            elf(&root, &format!("pyenv/versions/{version}/bin/python3"));
        }
        program(&root, "pyenv/shims/python3", "exec something");
        let host = Host::fake(root.path(), &[("PATH", "/pyenv/shims"), ("PYENV_ROOT", "/pyenv")]);
        let found = find(&host, Deadline::after(Duration::ZERO));
        let told: Vec<_> = found.iter().map(|python| (python.version.as_deref(), python.active)).collect();
        assert_eq!(told, [(Some("3.9.0"), false), (Some("3.10.1"), true)]);
    }

    #[test]
    fn names_of_other_programs_are_not_taken() {
        assert!(is_interpreter_name("python3.12") && is_interpreter_name("python"));
        assert!(!is_interpreter_name("python3-config") && !is_interpreter_name("pythonw"));
    }
}
