//! Machines made of files, for tests.

use std::path::Path;

use tempfile::TempDir;

/// A folder with these files, to be read as if it were `/`.
pub(crate) fn tree<P: AsRef<str>, T: AsRef<[u8]>>(files: &[(P, T)]) -> TempDir {
    let root = tempfile::tempdir().expect("a temporary folder");
    for (path, content) in files {
        write(root.path(), path.as_ref(), content);
    }
    root
}

fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().expect("a file in a folder")).expect("its folder");
    std::fs::write(&path, content).expect("the file");
}

/// A folder with these files below one of its folders.
pub(crate) fn tree_at(folder: &str, files: &[(&str, &str)]) -> TempDir {
    let below: Vec<_> = files.iter().map(|(path, content)| (format!("{folder}/{path}"), content)).collect();
    tree(&below)
}

/// A machine with a PCI device at a folder of sysfs: its identifiers as in `10de:2335`, its class, and further files.
pub(crate) fn pci_device(folder: &str, ids: &str, class: &str, more: &[(&str, &str)]) -> TempDir {
    let (vendor, device) = ids.split_once(':').expect("vendor and device");
    let root = tree_at(folder, more);
    for (name, digits) in [("vendor", vendor), ("device", device), ("class", class)] {
        write(root.path(), &format!("{folder}/{name}"), format!("0x{digits}\n"));
    }
    root
}

/// Adds files to such a folder.
pub(crate) fn add(root: &TempDir, files: &[(&str, &str)]) {
    for (path, content) in files {
        write(root.path(), path, content);
    }
}

/// A link in such a folder; the folders it needs are made, its target need not exist.
pub(crate) fn link(root: &TempDir, path: &str, target: impl AsRef<Path>) {
    let path = root.path().join(path);
    std::fs::create_dir_all(path.parent().expect("a link in a folder")).expect("its folder");
    std::os::unix::fs::symlink(target, path).expect("the link");
}

/// A folder with these programs.
pub(crate) fn programs(scripts: &[(&str, &str)]) -> TempDir {
    let root = tree_at("", &[]);
    for (path, script) in scripts {
        program(&root, path, script);
    }
    root
}

/// A program in such a folder: a script for the shell.
pub(crate) fn program(root: &TempDir, path: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = root.path().join(path);
    std::fs::create_dir_all(path.parent().expect("a program in a folder")).expect("its folder");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("the program");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its permissions");
}
