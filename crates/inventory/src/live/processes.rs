//! What programs run, and what they use.

use std::collections::HashMap;
use std::io;

use serde::{Deserialize, Serialize};
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System, Uid, UpdateKind, Users};

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
}

/// Lists programs. This costs far more than a sample of the machine, so it is taken only where it is shown.
pub struct ProcessSampler {
    system: System,
    users: HashMap<Uid, String>,
}

impl ProcessSampler {
    /// A sampler of this machine's programs.
    ///
    /// # Errors
    /// If the system does not list its processes.
    pub fn new() -> io::Result<Self> {
        let users = Users::new_with_refreshed_list().map_err(io::Error::other)?;
        let users = users.iter().map(|user| (user.id().clone(), user.name().to_owned())).collect();
        let mut sampler = Self { system: System::new().map_err(io::Error::other)?, users };
        sampler.refresh();
        Ok(sampler)
    }

    /// The programs that run now, with the processor time they took since the last call.
    pub fn sample(&mut self) -> Vec<ProcessUsage> {
        self.refresh();
        let usage = self.system.processes().values().map(|process| ProcessUsage {
            pid: process.pid().as_u32(),
            name: process.name().to_string_lossy().into_owned(),
            user: process.user_id().map(|id| self.users.get(id).cloned().unwrap_or_else(|| id.to_string())),
            cpu_percent: f64::from(process.cpu_usage()),
            memory_bytes: process.memory(),
        });
        usage.collect()
    }

    fn refresh(&mut self) {
        let what = ProcessRefreshKind::nothing()
            .with_cpu()
            .with_memory()
            .with_user(UpdateKind::OnlyIfNotSet)
            .without_tasks();
        self.system.refresh_processes_specifics(ProcessesToUpdate::All, true, what);
    }
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
    }
}
