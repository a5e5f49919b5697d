//! Iterative refinement: a solution as good as f64 gives, from factors of f32.
//!
//! Each round computes the residual in f64 and solves for the correction by GMRES, with the factors as preconditioner.
//! That converges for matrices on which classical refinement diverges, because the factors' error times the condition
//! number is larger than 1.

use std::sync::{Mutex, PoisonError};

use warpforge_kernels::pool::Pool;

use crate::gmres::gmres;
use crate::lu::Lu;
use crate::matrix::Matrix;
use crate::problem::{Residual, norm};
use crate::real::Real;
use crate::vector::dot;

/// Rows that a thread multiplies together.
const ROWS: usize = 32;
/// The refinement ends below this scaled residual, well inside HPL's 16.
const GOAL: f64 = 1.0;
/// How far GMRES shrinks a residual in one round: not further than the rounding of the factors lets it.
const TOLERANCE: f64 = 1e-6;
const MOST_STEPS: usize = 50;
const MOST_ROUNDS: usize = 20;

/// A refined solution.
#[derive(Debug, Clone, PartialEq)]
pub struct Refined {
    /// The solution.
    pub x: Vec<f64>,
    /// Steps of GMRES in all rounds; each is one product with the matrix and one solve with the factors.
    pub steps: usize,
    /// The scaled residual that the refinement ended with. Above [`Residual::passes`]' bound it did not converge.
    pub residual: Residual,
}

/// Solves `A x = b` with the factors of a rounded A. `norm_a` is the infinity norm of A.
///
/// # Panics
/// If the sizes differ.
#[must_use]
pub fn refine<T: Real>(pool: &Pool, a: &Matrix<f64>, norm_a: f64, lu: &Lu<T>, b: &[f64]) -> Refined {
    let order = a.order();
    assert!(lu.order() == order && b.len() == order, "sizes do not match");
    let norm_b = norm(b);
    let mut x = precondition(pool, lu, b);
    let mut steps = 0;
    let mut best: Option<(Residual, Vec<f64>)> = None;
    for _ in 0..MOST_ROUNDS {
        let r = product(pool, a, &x, |row, sum| b[row] - sum);
        let residual = Residual::of(order, norm(&r), norm_a, norm(&x), norm_b);
        let better = best.as_ref().is_none_or(|(known, _)| residual.scaled < known.scaled);
        if better {
            best = Some((residual, x.clone()));
        }
        // A round that made nothing better is the last: the next would do no more. Nor can a NaN get better.
        if residual.scaled < GOAL || !better || residual.scaled.is_nan() {
            break;
        }
        let found = gmres(&precondition(pool, lu, &r), TOLERANCE, MOST_STEPS, |v| {
            precondition(pool, lu, &product(pool, a, v, |_, sum| sum))
        });
        steps += found.steps;
        for (x, correction) in x.iter_mut().zip(found.x) {
            *x += correction;
        }
    }
    let (residual, x) = best.unwrap_or((Residual { scaled: f64::NAN }, x));
    Refined { x, steps, residual }
}

/// An approximate solution with the factors. The right-hand side is scaled to 1, so that f32 can hold it.
fn precondition<T: Real>(pool: &Pool, lu: &Lu<T>, b: &[f64]) -> Vec<f64> {
    let scale = norm(b);
    if scale == 0.0 {
        return vec![0.0; b.len()];
    }
    let mut rounded: Vec<T> = b.iter().map(|&element| T::from_f64(element / scale)).collect();
    lu.solve(pool, &mut rounded);
    rounded.into_iter().map(|element| element.to_f64() * scale).collect()
}

/// A function of the elements of `A x`.
fn product(pool: &Pool, a: &Matrix<f64>, x: &[f64], of: impl Fn(usize, f64) -> f64 + Sync) -> Vec<f64> {
    let mut result = vec![0.0; a.order()];
    let parts: Vec<Mutex<&mut [f64]>> = result.chunks_mut(ROWS).map(Mutex::new).collect();
    pool.run(parts.len(), &|part, _| {
        let mut targets = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
        for (at, target) in targets.iter_mut().enumerate() {
            let row = part * ROWS + at;
            *target = of(row, dot(a.row(row), x));
        }
    });
    drop(parts);
    result
}
