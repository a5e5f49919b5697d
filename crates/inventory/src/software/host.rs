//! Where software is looked for: a root folder and the environment's variables.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The system that is looked at. Tests look at a folder of their own, with variables of their own.
#[derive(Debug, Clone)]
pub(super) struct Host {
    root: PathBuf,
    variables: HashMap<String, String>,
}

impl Host {
    /// This machine, as this process sees it.
    pub(super) fn this() -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self { root: PathBuf::from("/"), variables }
    }

    #[cfg(test)]
    pub(super) fn fake(root: &Path, variables: &[(&str, &str)]) -> Self {
        let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        Self { root: root.to_owned(), variables: variables.iter().map(own).collect() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// An absolute path of the system, below the root.
    pub(super) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A path below the root as the system's user writes it.
    pub(super) fn shown(&self, path: &Path) -> String {
        let inside = path.strip_prefix(&self.root).unwrap_or(path);
        Path::new("/").join(inside).display().to_string()
    }

    /// The file that a path leads to by all its links.
    pub(super) fn real(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }

    /// A variable that is set to something.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The folder that a variable names; relative ones are not followed.
    pub(super) fn folder(&self, variable: &str) -> Option<PathBuf> {
        let path = Path::new(self.variable(variable)?);
        path.is_absolute().then(|| self.at(path))
    }

    /// The folders that a variable lists, separated by colons.
    pub(super) fn folders(&self, variable: &str) -> Vec<PathBuf> {
        let list = self.variable(variable).unwrap_or_default().split(':');
        let mut folders = Vec::new();
        for folder in list.map(Path::new).filter(|folder| folder.is_absolute()) {
            let folder = self.at(folder);
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        folders
    }

    /// The program of this name: on the search path, else in one of the other folders.
    pub(super) fn program(&self, name: &str, elsewhere: &[&str]) -> Option<PathBuf> {
        let others = elsewhere.iter().map(|folder| self.at(folder));
        self.folders("PATH")
            .into_iter()
            .chain(others)
            .map(|folder| folder.join(name))
            .find(|path| is_program(path))
    }
}

/// Whether a file may be run.
pub(super) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{program, tree};

    #[test]
    fn only_programs_on_absolute_folders_are_found() {
        let root = tree(&[("usr/bin/gcc", "no program")]);
        program(&root, "opt/bin/gcc", "");
        program(&root, "gcc", "");
        let host = Host::fake(root.path(), &[("PATH", ":.:/usr/bin:/opt/bin")]);
        let found = host.program("gcc", &[]).unwrap();
        assert_eq!(host.shown(&found), "/opt/bin/gcc");
        assert_eq!(host.program("clang", &["/opt/bin"]), None);
    }

    #[test]
    fn relative_and_empty_variables_name_no_folder() {
        let host = Host::fake(Path::new("/x"), &[("CUDA_HOME", "cuda"), ("ROCM_PATH", ""), ("A", "/a")]);
        assert_eq!((host.folder("CUDA_HOME"), host.folder("ROCM_PATH")), (None, None));
        assert_eq!(host.folder("A"), Some(PathBuf::from("/x/a")));
    }
}
