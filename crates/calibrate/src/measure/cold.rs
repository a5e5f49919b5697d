//! Linear layers whose weights come from further away: a model reads all its weights before it comes round to the same ones.

use warpforge::Device;

use super::program::{Clock, Prepared};
use super::timing::alone;
use super::{Session, Settings};
use crate::cases::{Dtype, Family, Scale, linear};
use crate::error::{Error, Result};
use crate::profile::{ColdWeights, Operation};

/// Rows of the layers, inputs and outputs, and the bytes of all weights.
fn sizes(settings: &Settings) -> (&'static [usize], usize, usize) {
    match (settings.scale, settings.device) {
        (Scale::Smoke, _) => (&[8], 64, 64 << 10),
        (_, Device::Cpu) => (&[1, 32, 128, 512], 1024, 64 << 20),
        // Beyond the second-level cache of every GPU.
        _ => (&[1, 32, 128, 512], 1024, 256 << 20),
    }
}

/// Measures the missing ones of the layers of each type whose times alone are known.
pub(super) fn measure(session: &mut Session<'_>) -> Result<()> {
    if !session.settings.families.contains(&Family::Linear) {
        return Ok(());
    }
    let (rows, side, all) = sizes(session.settings);
    for dtype in session.settings.dtypes() {
        for &m in rows {
            match layer(session, dtype, [m, side, side], all) {
                // What the device has no kernel for was noted when it was measured alone.
                Ok(()) | Err(Error::Model(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn layer(session: &mut Session<'_>, dtype: Dtype, [m, k, n]: [usize; 3], all: usize) -> Result<()> {
    let threads = session.settings.thread_count();
    let alone_is = |known: &&Operation| {
        known.op == "linear"
            && known.shape == [m, k, n]
            && known.dtype == dtype.name()
            && known.device == session.device
            && known.threads == threads
    };
    let is_known = |known: &ColdWeights| {
        known.shape == [m, k, n]
            && known.dtype == dtype.name()
            && known.device == session.device
            && known.threads == threads
    };
    if session.profile.cold_weights.iter().any(is_known) {
        return Ok(());
    }
    let Some(warm) = session.profile.operations.iter().find(alone_is).map(|known| known.ms) else {
        return Ok(());
    };
    let case = session.settings.fitted(linear(m, k, n, dtype));
    let width = if dtype.narrow().is_some() { 2 } else { 4 };
    let weight_bytes = width * k * n;
    let layers: Vec<Prepared> = (0..all.div_ceil(weight_bytes))
        .map(|_| Prepared::new(session.settings, &case, false))
        .collect::<Result<_>>()?;
    let cold = session.steadily(|session| {
        let clocks = layers.iter().map(Prepared::clock).collect::<Result<Vec<_>>>()?;
        alone(session, &mut Clock::InTurn(clocks, 0))
    })?;
    session.profile.cold_weights.push(ColdWeights {
        dtype: dtype.name().to_owned(),
        device: session.device.clone(),
        threads,
        shape: [m, k, n],
        weight_bytes: weight_bytes as u64,
        working_set_bytes: (weight_bytes * layers.len()) as u64,
        warm_ms: warm,
        cold_ms: cold.seconds * 1e3,
    });
    Ok(())
}
