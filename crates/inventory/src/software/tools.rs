//! Compilers and container engines.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::command::{self, Deadline};
use super::host::Host;

/// A program and its version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tool {
    /// The program's name.
    pub name: String,
    /// Its version; null if it did not answer in time.
    pub version: Option<String>,
    /// Where it is.
    pub path: String,
}

/// Container engines and what lets them use GPUs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerTools {
    /// Docker's client.
    pub docker: Option<Tool>,
    /// Podman.
    pub podman: Option<Tool>,
    /// Apptainer, or Singularity as it was called.
    pub apptainer: Option<Tool>,
    /// NVIDIA's container toolkit.
    pub nvidia_container_toolkit: Option<Tool>,
}

const COMPILERS: &[&str] = &[
    "gcc", "g++", "gfortran", "clang", "clang++", "icx", "icpx", "ifx", "nvcc", "nvc++", "hipcc", "amdclang",
    "rustc",
];

/// Folders of compilers that are often not on the search path.
const ELSEWHERE: &[&str] = &["/usr/local/cuda/bin", "/opt/rocm/bin", "/opt/intel/oneapi/compiler/latest/bin"];

/// The compilers, in the order of the list.
pub(super) fn compilers(host: &Host, deadline: Deadline) -> Vec<Tool> {
    let found: Vec<_> =
        COMPILERS.iter().filter_map(|&name| Some((name, host.program(name, ELSEWHERE)?))).collect();
    ask(host, &found, deadline)
}

/// The container engines.
pub(super) fn containers(host: &Host, deadline: Deadline) -> ContainerTools {
    // Of names for the same thing, the first that is there.
    let names = [
        &["docker"][..],
        &["podman"],
        &["apptainer", "singularity"],
        &["nvidia-ctk", "nvidia-container-cli"],
    ];
    let found = names
        .iter()
        .filter_map(|names| names.iter().find_map(|&name| Some((name, host.program(name, &[])?))));
    let tools = ask(host, &found.collect::<Vec<_>>(), deadline);
    let take = |index: usize| tools.iter().find(|tool| names[index].contains(&tool.name.as_str())).cloned();
    ContainerTools { docker: take(0), podman: take(1), apptainer: take(2), nvidia_container_toolkit: take(3) }
}

/// Asks all of them at once.
fn ask(host: &Host, programs: &[(&str, PathBuf)], deadline: Deadline) -> Vec<Tool> {
    let mut tools: Vec<_> = programs
        .iter()
        .map(|(name, path)| Tool { name: (*name).to_owned(), version: None, path: host.shown(path) })
        .collect();
    std::thread::scope(|scope| {
        for (tool, (_, path)) in tools.iter_mut().zip(programs) {
            scope.spawn(move || {
                let text = command::output(path, &["--version"], deadline);
                tool.version = text.as_deref().and_then(command::version_in);
            });
        }
    });
    tools
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fake::programs;

    #[test]
    fn compilers_answer_with_their_version_or_none() {
        let root = programs(&[
            ("bin/gcc", "echo 'gcc (GCC) 14.2.0'"),
            ("bin/clang", "exit 1"),
            ("usr/local/cuda/bin/nvcc", "echo 'release 12.8, V12.8.93'"),
        ]);
        let host = Host::fake(root.path(), &[("PATH", "/bin")]);
        let tools = compilers(&host, Deadline::after(Duration::from_secs(60)));
        let pairs: Vec<_> = tools.iter().map(|tool| (tool.path.as_str(), tool.version.as_deref())).collect();
        let expected = [
            ("/bin/gcc", Some("14.2.0")),
            ("/bin/clang", None),
            ("/usr/local/cuda/bin/nvcc", Some("12.8.93")),
        ];
        assert_eq!(pairs, expected);
    }

    #[test]
    fn the_newer_name_of_a_tool_is_preferred() {
        let root = programs(&[
            ("bin/nvidia-ctk", "echo 'NVIDIA Container Toolkit CLI version 1.17.4'"),
            ("bin/nvidia-container-cli", "echo 'cli-version: 1.0.0'"),
            ("bin/singularity", "echo 'singularity-ce version 4.1.0'"),
        ]);
        let host = Host::fake(root.path(), &[("PATH", "/bin")]);
        let tools = containers(&host, Deadline::after(Duration::from_secs(60)));
        assert_eq!(tools.nvidia_container_toolkit.unwrap().version.as_deref(), Some("1.17.4"));
        assert_eq!(tools.apptainer.unwrap().name, "singularity");
        assert_eq!(tools.docker, None);
    }
}
