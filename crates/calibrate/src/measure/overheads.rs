//! What it costs to begin something: an empty dispatch of the thread pool, a run, a kernel.

use std::time::Duration;

use warpforge::{CompileOptions, Device, Model, Tensor};
use warpforge_probes::affinity;
use warpforge_probes::team::Team;

use super::Session;
use super::program::Clock;
use super::timing::alone;
use crate::error::{Error, Result};
use crate::profile::Overhead;

/// Kernels of the longer chain.
const LONG: usize = 33;

/// Measures those that are missing.
pub(super) fn measure(session: &mut Session<'_>) -> Result<()> {
    if session.settings.device == Device::Cpu && !is_known(session, "dispatch") {
        let time = dispatch(session.settings.thread_count())?;
        note(session, "dispatch", time.as_secs_f64());
    }
    let (run, launch) = match session.settings.device {
        Device::Cpu => ("run", "kernel"),
        _ => ("graph launch", "kernel launch"),
    };
    if is_known(session, run) && is_known(session, launch) {
        return Ok(());
    }
    let (one, many) = (chain(session, 1)?, chain(session, LONG)?);
    let kernel = ((many - one) / (LONG - 1) as f64).max(1e-9);
    note(session, run, (one - kernel).max(1e-9));
    note(session, launch, kernel);
    Ok(())
}

fn is_known(session: &Session<'_>, what: &str) -> bool {
    let threads = session.settings.thread_count();
    session
        .profile
        .overheads
        .iter()
        .any(|known| known.device == session.device && known.what == what && known.threads == threads)
}

/// Adds what is not known yet: two come of one measurement, and one of them may be.
fn note(session: &mut Session<'_>, what: &str, seconds: f64) {
    if is_known(session, what) {
        return;
    }
    session.profile.overheads.push(Overhead {
        device: session.device.clone(),
        what: what.to_owned(),
        threads: session.settings.thread_count(),
        us: seconds * 1e6,
    });
}

/// The least time of an empty dispatch to all threads.
fn dispatch(threads: usize) -> Result<Duration> {
    const CALLS: u32 = 1000;
    let mut cpus = affinity::allowed()?;
    cpus.truncate(threads);
    let mut team = Team::new(&cpus)?;
    let size = team.size();
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..11 {
        let (time, ()) = team.run_shared(|pool| {
            for _ in 0..CALLS {
                pool.run(size, &|_, _| {});
            }
        });
        times.push(time / CALLS);
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// Seconds of a run of so many kernels, each with next to nothing to do.
fn chain(session: &Session<'_>, kernels: usize) -> Result<f64> {
    let y = "tensor<16xf32>";
    let mut text = format!("func.func @main(%x0: {y}) -> ({}) {{\n", vec![y; kernels].join(", "));
    for at in 1..=kernels {
        text += &format!("  %x{at} = stablehlo.tanh %x{} : {y}\n", at - 1);
    }
    let values: Vec<String> = (1..=kernels).map(|at| format!("%x{at}")).collect();
    text += &format!("  func.return {} : {}\n}}\n", values.join(", "), vec![y; kernels].join(", "));
    let options = CompileOptions {
        device: session.settings.device,
        threads: session.settings.threads,
        ..CompileOptions::default()
    };
    let compiled = Model::from_text("chain.mlir", text)?.compile(&options)?;
    let inputs = [Tensor::from_slice(&[16], &[0.5f32; 16]).map_err(Error::from)?];
    let executable = compiled.prepare(&inputs)?;
    let mut clock = match executable.bind(&inputs)? {
        Some(bound) => Clock::Device(bound),
        None => Clock::Host(executable.as_ref(), &inputs),
    };
    Ok(alone(session, &mut clock)?.seconds)
}
