//! Dense linear systems on a GPU, checked on the host.

use libtest_mimic::{Failed, Trial};
use warpforge_backend_gpu::Vendor;
use warpforge_backend_gpu::probe::{FactorType, LinearSystem, Probe};

use crate::NEEDS_GPU;

/// Not a multiple of a tile.
const ORDER: usize = 777;

/// The tests of the solvers.
pub(crate) fn trials() -> Vec<Trial> {
    let all = [FactorType::F64].into_iter().chain(FactorType::REFINED);
    let mut trials: Vec<Trial> = all
        .map(|factors| {
            let name = format!("linear_system/{}_has_the_accuracy_of_f64", factors.name());
            Trial::test(name, move || is_accurate(factors)).with_kind(NEEDS_GPU)
        })
        .collect();
    trials.push(
        Trial::test("linear_system/a_singular_matrix_is_an_error", singular_is_an_error).with_kind(NEEDS_GPU),
    );
    trials
}

/// An element: pseudo-random, with a diagonal that keeps the condition number small.
fn element(row: usize, column: usize) -> f64 {
    let mut bits = (row * ORDER + column + 1) as u64;
    for _ in 0..2 {
        bits = (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    let random = (bits >> 11) as f64 * 2.0_f64.powi(-53) - 0.5;
    random + if row == column { 50.0 } else { 0.0 }
}

fn system<'p>(
    probe: &'p Probe,
    factors: FactorType,
    element: impl Fn(usize, usize) -> f64,
) -> Result<LinearSystem<'p>, Failed> {
    let mut system = LinearSystem::new(probe, ORDER, factors)?;
    system.fill(|first, elements| {
        for (at, number) in elements.iter_mut().enumerate() {
            *number = element(at % ORDER, first + at / ORDER);
        }
    })?;
    Ok(system)
}

fn is_accurate(factors: FactorType) -> Result<(), Failed> {
    let probe = Probe::open(Vendor::Cuda, 0)?;
    let mut system = system(&probe, factors, element)?;
    let b: Vec<f64> = (0..ORDER).map(|row| (row as f64).sin()).collect();
    // Twice: the matrix on the device must stay as it is.
    for _ in 0..2 {
        let found = system.solve(&b)?;
        let x = &found.x;
        let mut largest: f64 = 0.0;
        for (row, right) in b.iter().enumerate() {
            let sum: f64 = x.iter().enumerate().map(|(column, x)| element(row, column) * x).sum();
            largest = largest.max((sum - right).abs());
        }
        let steps_fit = found.steps.is_some() == (factors != FactorType::F64);
        // The right-hand side is of magnitude 1, the rows of the matrix of about 250.
        if largest.is_nan() || largest > 1e-12 || !steps_fit || found.time.is_zero() {
            return Err(format!("residual {largest:e}, {:?} steps, {:?}", found.steps, found.time).into());
        }
    }
    Ok(())
}

fn singular_is_an_error() -> Result<(), Failed> {
    let probe = Probe::open(Vendor::Cuda, 0)?;
    let mut system = system(&probe, FactorType::F64, |row, _| if row == 5 { 0.0 } else { 1.0 })?;
    match system.solve(&[1.0; ORDER]) {
        Err(error) if error.to_string().contains("singular") => Ok(()),
        outcome => Err(format!("{outcome:?}").into()),
    }
}
