//! What programs run, and what they use.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;

use serde::{Deserialize, Serialize};
use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System, Uid, UpdateKind, Users};

use super::gpu::GpuProcesses;

/// One program that runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// The kernel's identifier of it.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Who it runs as: a name, or a user id without one.
    pub user: Option<String>,
    /// Its processor time as a share of one core, so more than 100 for one that keeps several busy.
    pub cpu_percent: f64,
    /// Its memory in RAM.
    pub memory_bytes: u64,
    /// The process that started it.
    #[serde(default)]
    pub parent: Option<u32>,
    /// Its command line; none of one that does not tell, such as the kernel's own.
    #[serde(default)]
    pub command: Option<String>,
    /// Its memory on all GPUs; none of one that has none, or where the driver does not tell.
    #[serde(default)]
    pub gpu_memory_bytes: Option<u64>,
}

/// Lists programs. This costs far more than a sample of the machine, so it is taken only where it is shown.
pub struct ProcessSampler {
    system: System,
    users: HashMap<Uid, String>,
    gpus: GpuProcesses,
}

impl ProcessSampler {
    /// A sampler of this machine's programs.
    ///
    /// # Errors
    /// If the system does not list its processes.
    pub fn new() -> io::Result<Self> {
        let users = Users::new_with_refreshed_list().map_err(io::Error::other)?;
        let users = users.iter().map(|user| (user.id().clone(), user.name().to_owned())).collect();
        let mut sampler =
            Self { system: System::new().map_err(io::Error::other)?, users, gpus: GpuProcesses::here() };
        sampler.refresh();
        Ok(sampler)
    }

    /// The programs that run now, with the processor time they took since the last call.
    pub fn sample(&mut self) -> Vec<ProcessUsage> {
        self.refresh();
        let gpu_memory = self.gpus.sample();
        let usage = self.system.processes().values().map(|process| ProcessUsage {
            pid: process.pid().as_u32(),
            name: process.name().to_string_lossy().into_owned(),
            user: process.user_id().map(|id| self.users.get(id).cloned().unwrap_or_else(|| id.to_string())),
            cpu_percent: f64::from(process.cpu_usage()),
            memory_bytes: process.memory(),
            parent: process.parent().map(Pid::as_u32),
            command: command_line(process.cmd()),
            gpu_memory_bytes: gpu_memory.get(&process.pid().as_u32()).copied(),
        });
        usage.collect()
    }

    fn refresh(&mut self) {
        let what = ProcessRefreshKind::nothing()
            .with_cpu()
            .with_memory()
            .with_user(UpdateKind::OnlyIfNotSet)
            .with_cmd(UpdateKind::Always)
            .without_tasks();
        self.system.refresh_processes_specifics(ProcessesToUpdate::All, true, what);
    }
}

/// The words of a command line, separated by spaces.
fn command_line(words: &[OsString]) -> Option<String> {
    let text = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_program_is_listed() {
        let processes = ProcessSampler::new().unwrap().sample();
        let own =
            processes.iter().find(|process| process.pid == std::process::id()).expect("our own process");
        assert!(own.memory_bytes > 0);
        assert!(!own.name.is_empty() && own.user.is_some());
        assert_eq!(own.parent, Some(std::os::unix::process::parent_id()));
        let first = std::env::args().next().expect("the program's own name");
        assert!(own.command.as_ref().is_some_and(|command| command.starts_with(&first)), "{own:?}");
    }
}
