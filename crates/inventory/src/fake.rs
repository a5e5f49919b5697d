//! Machines made of files, for tests.

use std::path::Path;

use tempfile::TempDir;

/// A folder with these files, to be read as if it were `/`.
pub(crate) fn tree<P: AsRef<str>, T: AsRef<[u8]>>(files: &[(P, T)]) -> TempDir {
    let root = tempfile::tempdir().expect("a temporary folder");
    for (path, content) in files {
        let path = root.path().join(path.as_ref());
        std::fs::create_dir_all(path.parent().expect("a file in a folder")).expect("its folder");
        std::fs::write(&path, content).expect("the file");
    }
    root
}

/// A link in such a folder; the folders it needs are made, its target need not exist.
pub(crate) fn link(root: &TempDir, path: &str, target: impl AsRef<Path>) {
    let path = root.path().join(path);
    std::fs::create_dir_all(path.parent().expect("a link in a folder")).expect("its folder");
    std::os::unix::fs::symlink(target, path).expect("the link");
}

/// A program in such a folder: a script for the shell.
pub(crate) fn program(root: &TempDir, path: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = root.path().join(path);
    std::fs::create_dir_all(path.parent().expect("a program in a folder")).expect("its folder");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("the program");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its permissions");
}
