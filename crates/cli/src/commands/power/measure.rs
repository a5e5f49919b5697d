//! Measuring energy for a time, or while a command runs.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use warpforge_inventory::live::{
    Attribution, Energy, EnergyMeter, OwnShare, ProcessEnergy, ProcessSampler, Sampler,
};

use crate::exit::{Exit, Failure};

/// How often the command and the signals are looked at.
const LOOK: Duration = Duration::from_millis(10);

/// What to measure.
pub(crate) struct Request<'a> {
    pub(crate) root: &'a Path,
    pub(crate) interval: Duration,
    /// How long, without a command.
    pub(crate) duration: Duration,
    /// A command and its arguments; none if empty.
    pub(crate) command: &'a [OsString],
    /// Whether standard output is for the record alone: what the command writes there goes to standard error.
    pub(crate) stdout_is_taken: bool,
    pub(crate) processes: bool,
}

/// What was measured.
pub(crate) struct Measured {
    pub(crate) energy: Energy,
    /// Processes, or why they are not known, where they were asked for.
    pub(crate) processes: Option<Result<Vec<ProcessEnergy>, String>>,
    pub(crate) command: Option<CommandEnergy>,
}

/// What a command used.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CommandEnergy {
    /// The command and its arguments.
    pub(crate) arguments: Vec<String>,
    /// How it ended; null where a signal ended it.
    pub(crate) exit_code: Option<i32>,
    /// The part of all busy processor time that it took, from 0 to 1; null where the kernel does not say.
    pub(crate) cpu_share: Option<f64>,
    /// That part of the energy of processors and memory; null where one of the two is not known.
    pub(crate) attributed_joules: Option<f64>,
}

impl CommandEnergy {
    /// A command that failed is a check that failed.
    pub(crate) fn exit(&self) -> Exit {
        if self.exit_code == Some(0) { Exit::Pass } else { Exit::CheckFailed }
    }
}

/// Samples until the time is over, the command has ended or `stop` says so.
pub(crate) fn measure(request: &Request<'_>, stop: &dyn Fn() -> bool) -> Result<Measured, Failure> {
    let mut processes = request.processes.then(ProcessSampler::new);
    let mut sampler = Sampler::at(request.root);
    let (mut meter, mut attribution) = (EnergyMeter::new(), Attribution::new());
    let share = OwnShare::start(request.root);
    let mut child = start(request)?;
    let begin = Instant::now();
    let mut due = request.interval;
    let status = loop {
        let status = match &mut child {
            Some(child) => ended(child, stop)?,
            None => None,
        };
        let over = status.is_some() || (child.is_none() && (begin.elapsed() >= request.duration || stop()));
        if over || begin.elapsed() >= due {
            let record = sampler.sample();
            meter.add(&record);
            if let Some(Ok(processes)) = &mut processes {
                attribution.add(&record, &processes.sample());
            }
            while due <= begin.elapsed() {
                due += request.interval;
            }
        }
        if over {
            break status;
        }
        let left = if child.is_some() { LOOK } else { request.duration.saturating_sub(begin.elapsed()) };
        thread::sleep(left.min(due.saturating_sub(begin.elapsed())).min(LOOK));
    };
    let energy = meter.energy();
    let command = status.map(|status| {
        let cpu_share = share.finish();
        let joules = cpu_share.zip(energy.processor_joules()).map(|(share, joules)| share * joules);
        CommandEnergy {
            arguments: request.command.iter().map(|part| part.to_string_lossy().into_owned()).collect(),
            exit_code: status.code(),
            cpu_share,
            attributed_joules: joules,
        }
    });
    let processes = processes.map(|processes| match processes {
        Ok(_) => attribution.processes(),
        Err(error) => Err(format!("processes cannot be listed: {error}")),
    });
    Ok(Measured { energy, processes, command })
}

/// Whether anything reports its power, which a first sample tells.
pub(crate) fn reports_power(root: &Path) -> bool {
    let mut meter = EnergyMeter::new();
    meter.add(&Sampler::at(root).sample());
    !meter.energy().sources.is_empty()
}

fn start(request: &Request<'_>) -> Result<Option<Child>, Failure> {
    let Some((program, arguments)) = request.command.split_first() else { return Ok(None) };
    let mut command = Command::new(program);
    if request.stdout_is_taken {
        command.stdout(Stdio::from(std::io::stderr()));
    }
    let child = command
        .args(arguments)
        .spawn()
        .with_context(|| format!("cannot start `{}`", program.to_string_lossy()))
        .map_err(Failure::bad_input)?;
    Ok(Some(child))
}

/// How the command ended, if it has. When we are to stop, it is asked to end first, so that it is measured to its end.
fn ended(child: &mut Child, stop: &dyn Fn() -> bool) -> Result<Option<ExitStatus>, Failure> {
    let failed = |error: std::io::Error| Failure::not_possible(error);
    if let Some(status) = child.try_wait().map_err(failed)? {
        return Ok(Some(status));
    }
    if !stop() {
        return Ok(None);
    }
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended meanwhile.
        let _ = kill_process(pid, Signal::TERM);
    }
    child.wait().map(Some).map_err(failed)
}
