//! Peak rates of a GPU.

use libtest_mimic::{Failed, Trial};
use warpforge_backend_gpu::Vendor;
use warpforge_backend_gpu::probe::{CopyProbe, Direction, FmaProbe, GemmProbe, NumericFormat, Probe};

use crate::NEEDS_GPU;

/// The tests of the probes.
pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test("probe/peak_rates_are_measured", peak_rates_are_measured).with_kind(NEEDS_GPU)]
}

fn peak_rates_are_measured() -> Result<(), Failed> {
    let probe = Probe::open(Vendor::Cuda, 0)?;
    let mut rates = vec![CopyProbe::new(&probe, Direction::Within, 64 << 20)?.rate()?];
    for format in [NumericFormat::F32, NumericFormat::I8] {
        rates.push(GemmProbe::new(&probe, format, 512)?.rate()?);
        rates.push(FmaProbe::new(&probe, format)?.ok_or("no such units")?.rate()?);
    }
    if rates.iter().all(|&rate| rate > 1e9) { Ok(()) } else { Err(format!("{rates:?}").into()) }
}
