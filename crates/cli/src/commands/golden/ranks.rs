//! The ranks of a run: found by what a launcher says, or started here.

use std::num::NonZeroUsize;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use warpforge::{Device, RankGroup, backends};
use warpforge_collective::{Collectives, Communicator, Error, World};

use crate::exit::{Exit, Failure};
use crate::term;
use crate::values::RankDevice;

/// How long a rank that computes may go on when another is gone; then it is ended.
const GRACE: Duration = Duration::from_secs(3);

/// This process among its ranks, and those that it started. Dropped, it ends them.
pub(super) struct Ranks {
    group: Option<RankGroup>,
    device: Device,
    /// How many of them share this machine.
    local: usize,
    started: Mutex<Vec<Child>>,
}

impl Ranks {
    /// Joins the ranks that a launcher started, or starts as many as are wanted.
    pub(super) fn join(
        wanted: Option<NonZeroUsize>,
        engine: Option<Collectives>,
        device: RankDevice,
    ) -> Result<Self, Failure> {
        let wanted = wanted.map(NonZeroUsize::get);
        let found = World::from_environment().map_err(Failure::bad_input)?;
        let (world, others) = match (found, wanted) {
            (Some(world), Some(wanted)) if world.size != wanted => {
                let size = world.size;
                let said =
                    format!("--ranks {wanted}, but the launcher started {size} ranks; leave the option out");
                return Err(Failure::bad_input(anyhow::anyhow!(said)));
            }
            (Some(world), _) => (world, Vec::new()),
            (None, Some(wanted)) if wanted > 1 => World::parent(wanted).map_err(Failure::not_possible)?,
            (None, _) if engine.is_some_and(Collectives::is_of_devices) => (World::alone(), Vec::new()),
            (None, _) => {
                let (device, started) = (device.named(), Mutex::default());
                return Ok(Self { group: None, device, local: 1, started });
            }
        };
        let world = match engine {
            Some(engine) => world.over(engine).map_err(Failure::bad_input)?,
            None => world,
        };
        let device = match device.named() {
            named if world.local == 1 => named,
            named => {
                let backend = backends().iter().find(|backend| backend.serves(named));
                device.of(world.local_rank, backend.map_or(1, |backend| backend.devices().len()))
            }
        };
        let mut ranks = Self { group: None, device, local: world.local, started: Mutex::default() };
        for variables in others {
            let program = std::env::current_exe().map_err(Failure::not_possible)?;
            let mut command = Command::new(program);
            command
                .args(std::env::args_os().skip(1))
                .envs(variables)
                .stdin(Stdio::null())
                .stdout(Stdio::null());
            let child = command.spawn().map_err(Failure::not_possible)?;
            ranks.started.get_mut().unwrap_or_else(PoisonError::into_inner).push(child);
        }
        let communicator = Communicator::open(world, Arc::new(lost)).map_err(Failure::not_possible)?;
        let group = RankGroup::connect(Arc::new(communicator), device, engine)?;
        if let Some(reason) = group.why_on_host().filter(|_| group.communicator().rank() == 0) {
            term::tell!("warpt: gradients cross the hosts, over {}: {reason}", group.engine());
        }
        ranks.group = Some(group);
        Ok(ranks)
    }

    /// The group, where there are several ranks.
    pub(super) fn group(&self) -> Option<RankGroup> {
        self.group.clone()
    }

    /// Where this rank computes.
    pub(super) fn device(&self) -> Device {
        self.device
    }

    /// Threads of each rank, so that those of one machine share it.
    pub(super) fn threads(&self) -> Option<NonZeroUsize> {
        self.group.as_ref()?;
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        NonZeroUsize::new((cores / self.local).max(1))
    }

    /// Waits for the ranks that were started here.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        // GPUs that are connected are left by all ranks at the same time.
        self.group = None;
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, child) in started.iter_mut().enumerate() {
            let status = child.wait().map_err(Failure::not_possible)?;
            if !status.success() {
                return Err(Failure::check_failed(anyhow::anyhow!("rank {} ended with {status}", at + 1)));
            }
        }
        Ok(())
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        for child in self.started.get_mut().unwrap_or_else(PoisonError::into_inner) {
            // One that has ended is waited for only.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A rank is gone. Whoever waits for it ends with an error; whoever computes is ended. Checkpoints are whole at any time.
fn lost(error: &Error) {
    std::thread::sleep(GRACE);
    term::tell!("error: {error}");
    std::process::exit(Exit::CheckFailed as i32);
}
