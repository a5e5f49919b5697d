//! How fast systems are solved: the best of some repetitions, in f64 and with refined factors.
//!
//! `cargo run --release -p warpforge-linalg --example lu -- [THREADS] [REPETITIONS] [N …]`

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use warpforge_kernels::pool::Pool;
use warpforge_linalg::{Factorizer, Kind, LinalgError, Precision, Problem, refine};

const BLOCK: usize = 256;

fn main() -> Result<(), LinalgError> {
    let mut arguments = std::env::args().skip(1).filter_map(|text| text.parse::<usize>().ok());
    let threads = arguments.next().and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MIN);
    let repetitions = arguments.next().unwrap_or(3);
    let named: Vec<usize> = arguments.collect();
    let orders = if named.is_empty() { vec![1024, 2048, 4096] } else { named };
    let pool = Pool::new(threads).expect("threads");
    let _entered = pool.enter();
    for order in orders {
        let operations = 2.0 / 3.0 * (order as f64).powi(3) + 1.5 * (order as f64).powi(2);
        let show = |name: &str, factored: Duration, whole: Duration, residual: f64, steps: usize| {
            let seconds = whole.as_secs_f64();
            println!(
                "{order:6} {name:5} {:9.1} GFLOP/s  {seconds:.4} s, factors {:.4} s, {steps} steps, residual \
                 {residual:.2e}",
                operations / seconds / 1e9,
                factored.as_secs_f64()
            );
        };
        let problem = Problem { order, seed: 1, kind: Kind::Uniform };
        let mut factorizer = Factorizer::<f64>::new(Precision::F64, BLOCK).expect("f64 in f64");
        let mut best = (Duration::MAX, Duration::MAX, Vec::new());
        for _ in 0..repetitions {
            let matrix = problem.matrix(&pool)?;
            let mut x = problem.rhs();
            let start = Instant::now();
            let lu = factorizer.factor(&pool, matrix)?;
            let factored = start.elapsed();
            lu.solve(&pool, &mut x);
            let whole = start.elapsed();
            if whole < best.1 {
                best = (factored, whole, x);
            }
        }
        show("f64", best.0, best.1, problem.residual(&pool, &best.2).scaled, 0);
        let problem = Problem { kind: Kind::DiagonallyDominant, ..problem };
        let (a, norm) = (problem.matrix::<f64>(&pool)?, problem.norm(&pool));
        for precision in [Precision::F32, Precision::Bf16] {
            let mut factorizer = Factorizer::<f32>::new(precision, BLOCK).expect("f32 in f32 or bf16");
            let mut best = (Duration::MAX, Duration::MAX, None);
            for _ in 0..repetitions {
                let matrix = problem.matrix(&pool)?;
                let start = Instant::now();
                let lu = factorizer.factor(&pool, matrix)?;
                let factored = start.elapsed();
                let refined = refine(&pool, &a, norm, &lu, &problem.rhs());
                let whole = start.elapsed();
                if whole < best.1 {
                    best = (factored, whole, Some(refined));
                }
            }
            if let Some(refined) = best.2 {
                let residual = problem.residual(&pool, &refined.x).scaled;
                show(precision.name(), best.0, best.1, residual, refined.steps);
            }
        }
    }
    Ok(())
}
