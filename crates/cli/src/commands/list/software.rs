//! The software, as text.

use std::path::Path;

use warpforge_inventory::software::{Environment, Framework, Library, Python, Software, Tool, Toolkit};

use super::page::{Page, joined};

/// Writes the section of the software.
pub(super) fn render(page: &mut Page, software: &Software) {
    page.heading("Software");
    let kernel = [&software.os.kernel, &software.os.kernel_release]
        .map(|part| part.clone().unwrap_or_default())
        .join(" ");
    page.row("System", &joined([software.os.name.clone(), Some(kernel.trim().to_owned())]));
    page.row("Environment", &environment(&software.environment));
    if let Some(cuda) = &software.cuda {
        let newest = cuda.driver_cuda_version.as_ref().map(|version| format!("runs CUDA up to {version}"));
        let driver = cuda.driver_version.as_ref().map(|version| format!("driver {version}"));
        page.row("CUDA", &joined([driver, newest, toolkits(&cuda.toolkits)]));
    }
    if let Some(rocm) = &software.rocm {
        let driver = rocm.driver_version.as_ref().map(|version| format!("driver {version}"));
        page.row("ROCm", &joined([driver, toolkits(&rocm.toolkits)]));
    }
    let containers = &software.containers;
    let engines =
        [&containers.docker, &containers.podman, &containers.apptainer, &containers.nvidia_container_toolkit];
    page.row("Containers", &joined(engines.map(|engine| engine.as_ref().map(tool))));
    page.row("Compilers", &software.compilers.iter().map(tool).collect::<Vec<_>>().join(", "));
    pythons(page, &software.python);
    frameworks(page, &software.frameworks);
    page.row("Libraries", &libraries(&software.libraries));
}

fn environment(environment: &Environment) -> String {
    let machine = match (&environment.hypervisor, environment.virtual_machine) {
        (Some(name), _) => Some(format!("{name} virtual machine")),
        (None, Some(true)) => Some("virtual machine".to_owned()),
        (None, Some(false)) => Some("bare metal".to_owned()),
        (None, None) => None,
    };
    joined([environment.container.as_ref().map(|name| format!("{name} container")), machine])
}

fn toolkits(toolkits: &[Toolkit]) -> Option<String> {
    let one = |kit: &Toolkit| {
        format!("toolkit {} in {}", kit.version.as_deref().unwrap_or("of unknown version"), kit.path)
    };
    Some(toolkits.iter().map(one).collect::<Vec<_>>().join(", "))
}

fn tool(tool: &Tool) -> String {
    format!("{} {}", tool.name, tool.version.as_deref().unwrap_or("(version unknown)"))
}

/// The interpreters: a row each, those that an installer keeps side by side in one.
fn pythons(page: &mut Page, pythons: &[Python]) {
    let beside = |python: &Python| {
        let folder = Path::new(&python.prefix).parent().map(|folder| folder.display().to_string());
        folder.filter(|_| matches!(python.kind.as_str(), "pyenv" | "uv") && !python.active)
    };
    let mut label = "Python";
    for group in pythons.chunk_by(|a, b| beside(a).is_some() && beside(a) == beside(b)) {
        let version =
            |python: &Python| python.version.clone().unwrap_or_else(|| "version unknown".to_owned());
        let versions = group.iter().map(version).collect::<Vec<_>>().join(", ");
        let Some(first) = group.first() else { continue };
        let place = beside(first).unwrap_or_else(|| first.path.clone());
        let notes = [
            Some(&first.kind).filter(|kind| *kind != "system").cloned(),
            first.active.then(|| "active".to_owned()),
        ];
        let notes = notes.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let notes = if notes.is_empty() { notes } else { format!(" ({notes})") };
        page.row(label, &format!("{versions} in {place}{notes}"));
        label = "";
    }
}

/// The packages, a row for each folder.
fn frameworks(page: &mut Page, frameworks: &[Framework]) {
    let mut label = "Frameworks";
    for folder in frameworks.chunk_by(|a, b| a.location == b.location) {
        let one =
            |package: &Framework| format!("{} {}", package.name, package.version.as_deref().unwrap_or("?"));
        let packages = folder.iter().map(one).collect::<Vec<_>>().join(", ");
        let location = folder.first().map(|package| package.location.as_str()).unwrap_or_default();
        page.row(label, &format!("{packages} (in {location})"));
        label = "";
    }
}

/// The libraries, those of the same name and version once.
fn libraries(libraries: &[Library]) -> String {
    let mut names: Vec<String> =
        libraries.iter().map(|library| joined_name(&library.name, library.version.as_deref())).collect();
    names.dedup();
    names.join(", ")
}

fn joined_name(name: &str, version: Option<&str>) -> String {
    version.map_or_else(|| name.to_owned(), |version| format!("{name} {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_library_twice_is_shown_once() {
        let library = |name: &str, version: Option<&str>, path: &str| Library {
            name: name.to_owned(),
            version: version.map(str::to_owned),
            path: path.to_owned(),
        };
        let list = [
            library("NCCL", Some("2.21"), "/a"),
            library("NCCL", Some("2.21"), "/b"),
            library("UCX", None, "/c"),
        ];
        assert_eq!(libraries(&list), "NCCL 2.21, UCX");
    }

    #[test]
    fn an_environment_is_named_as_far_as_it_is_known() {
        let told = |container: Option<&str>, virtual_machine, hypervisor: Option<&str>| {
            environment(&Environment {
                container: container.map(str::to_owned),
                virtual_machine,
                hypervisor: hypervisor.map(str::to_owned),
            })
        };
        assert_eq!(told(Some("docker"), Some(true), Some("kvm")), "docker container, kvm virtual machine");
        assert_eq!(told(None, Some(false), None), "bare metal");
        assert_eq!(told(None, None, None), "");
    }
}
