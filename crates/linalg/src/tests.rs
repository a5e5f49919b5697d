//! The factorization beside a textbook one, solutions beside HPL's bound.

use std::num::NonZeroUsize;

use warpforge_kernels::pool::Pool;

use super::*;

/// Orders around the widths of panels, strips and blocks.
const ORDERS: [usize; 12] = [1, 2, 3, 15, 16, 17, 33, 64, 97, 150, 257, 530];
const BLOCKS: [usize; 4] = [1, 16, 48, 256];

/// An element by its row and column.
type Element = dyn Fn(usize, usize) -> f64;

fn pool(threads: usize) -> Pool {
    Pool::new(NonZeroUsize::new(threads).unwrap()).unwrap()
}

fn dense(rows: &[Vec<f64>], pool: &Pool) -> Matrix<f64> {
    Matrix::new(pool, rows.len(), |row, elements| elements.copy_from_slice(&rows[row])).unwrap()
}

fn random(order: usize, seed: u64) -> Vec<Vec<f64>> {
    let problem = Problem { order, seed, kind: Kind::Uniform };
    (0..order)
        .map(|row| {
            let mut elements = vec![0.0; order];
            problem.row(row, &mut elements);
            elements
        })
        .collect()
}

/// `P A`'s factors and the swaps, by the textbook; none where a column has no pivot. Swaps go through whole rows.
fn naive_lu(rows: &[Vec<f64>]) -> Option<(Vec<Vec<f64>>, Vec<usize>)> {
    let order = rows.len();
    let (mut a, mut pivots) = (rows.to_vec(), Vec::new());
    for column in 0..order {
        let mut pivot = column;
        for row in column + 1..order {
            if a[row][column].abs() > a[pivot][column].abs() {
                pivot = row;
            }
        }
        if a[pivot][column] == 0.0 {
            return None;
        }
        pivots.push(pivot);
        a.swap(column, pivot);
        let above = a[column].clone();
        for row in &mut a[column + 1..] {
            row[column] /= above[column];
            for at in column + 1..order {
                row[at] -= row[column] * above[at];
            }
        }
    }
    Some((a, pivots))
}

/// L below the diagonal with every swap applied, and U.
fn whole_factors(lu: &Lu<f64>, block: usize) -> Vec<Vec<f64>> {
    let order = lu.order();
    let mut rows: Vec<Vec<f64>> = (0..order).map(|row| lu.matrix.row(row).to_vec()).collect();
    for column in 0..order {
        // A panel's own columns have the swaps of the whole panel already.
        let panel = column / block * block;
        let other = lu.pivots()[column];
        if other != column {
            let (upper, lower) = rows.split_at_mut(other);
            upper[column][..panel].swap_with_slice(&mut lower[0][..panel]);
        }
    }
    rows
}

#[test]
fn factors_and_pivots_are_those_of_the_textbook() {
    for order in ORDERS {
        let rows = random(order, 7);
        let (wanted, pivots) = naive_lu(&rows).unwrap();
        for block in BLOCKS {
            let pool = pool(3);
            let mut factorizer = Factorizer::new(Precision::F64, block).unwrap();
            let lu = factorizer.factor(&pool, dense(&rows, &pool)).unwrap();
            assert_eq!(lu.pivots(), pivots, "order {order}, block {block}");
            let found = whole_factors(&lu, block);
            for (row, column) in (0..order).flat_map(|row| (0..order).map(move |column| (row, column))) {
                let (found, wanted) = (found[row][column], wanted[row][column]);
                let error = (found - wanted).abs();
                assert!(error < 1e-10 * wanted.abs().max(1.0), "{order} {block} {row} {column}: {error}");
            }
        }
    }
}

#[test]
fn the_result_does_not_depend_on_the_threads() {
    // The larger one has panels that threads divide, and pivots that are equal in the parts of several.
    for (order, block) in [(300, 64), (2200, 256)] {
        let mut rows = random(order, 3);
        if order > 2048 {
            rows.iter_mut().flatten().for_each(|element| *element = (*element * 8.0).round());
        }
        let factors = |threads| {
            let pool = pool(threads);
            let mut factorizer = Factorizer::new(Precision::F64, block).unwrap();
            let lu = factorizer.factor(&pool, dense(&rows, &pool)).unwrap();
            let bits =
                (0..order).flat_map(|row| lu.matrix.row(row).to_vec()).map(f64::to_bits).collect::<Vec<_>>();
            (bits, lu.pivots().to_vec())
        };
        assert!(factors(1) == factors(3), "order {order}");
    }
}

#[test]
fn solutions_pass_hpls_check() {
    for order in ORDERS {
        for kind in Kind::ALL {
            let problem = Problem { order, seed: 1, kind };
            // A single unknown has no other element in its row to be the sum of.
            if order == 1 && kind == Kind::DiagonallyDominant {
                continue;
            }
            let pool = pool(2);
            let mut factorizer = Factorizer::new(Precision::F64, 64).unwrap();
            let lu = factorizer.factor(&pool, problem.matrix(&pool).unwrap()).unwrap();
            let mut x = problem.rhs();
            lu.solve(&pool, &mut x);
            let residual = problem.residual(&pool, &x);
            assert!(residual.passes(), "{order} {kind:?}: {residual:?}");
        }
    }
}

#[test]
fn a_corrupted_solution_fails_hpls_check() {
    let problem = Problem { order: 200, seed: 5, kind: Kind::Uniform };
    let pool = pool(2);
    let mut factorizer = Factorizer::new(Precision::F64, 32).unwrap();
    let lu = factorizer.factor(&pool, problem.matrix(&pool).unwrap()).unwrap();
    let mut x = problem.rhs();
    lu.solve(&pool, &mut x);
    assert!(problem.residual(&pool, &x).passes());
    for (at, value) in [(0, x[0] + 1e-8), (199, f64::NAN), (50, f64::INFINITY), (100, 0.0)] {
        let mut corrupted = x.clone();
        corrupted[at] = value;
        let residual = problem.residual(&pool, &corrupted);
        assert!(!residual.passes(), "element {at} is {value}: {residual:?}");
    }
    let other = Problem { seed: 6, ..problem };
    assert!(!other.residual(&pool, &x).passes(), "a solution of another system");
}

#[test]
fn singular_matrices_are_errors_and_not_solutions() {
    let pool = pool(2);
    for order in [1, 5, 40, 300] {
        for empty in [0, order / 2, order - 1] {
            let mut rows = random(order, 9);
            rows.iter_mut().for_each(|row| row[empty] = 0.0);
            let mut factorizer = Factorizer::<f64>::new(Precision::F64, 32).unwrap();
            let error = factorizer.factor(&pool, dense(&rows, &pool)).unwrap_err();
            assert_eq!(error, LinalgError::Singular { column: empty }, "order {order}");
            assert!(naive_lu(&rows).is_none());
        }
    }
    let mut rows = random(20, 9);
    rows[3][0] = f64::NAN;
    rows.iter_mut().for_each(|row| row[0] = f64::NAN);
    let mut factorizer = Factorizer::<f64>::new(Precision::F64, 32).unwrap();
    assert_eq!(
        factorizer.factor(&pool, dense(&rows, &pool)).unwrap_err(),
        LinalgError::Singular { column: 0 }
    );
}

#[test]
fn ill_conditioned_matrices_have_small_residuals() {
    let pool = pool(2);
    // The Hilbert matrix, one with rows of very different size, and one with subnormal elements.
    let hilbert = |row: usize, column: usize| 1.0 / (row + column + 1) as f64;
    let graded =
        |row: usize, column: usize| ((row * 7 + column * 3) % 11) as f64 * 10.0_f64.powi(-(row as i32) / 2);
    let tiny = |row: usize, column: usize| {
        let element = ((row * 5 + column * column) % 13) as f64 + if row == column { 20.0 } else { 0.0 };
        element * 1e-310
    };
    let cases: [(&str, &Element, usize); 3] =
        [("hilbert", &hilbert, 12), ("graded", &graded, 11), ("tiny", &tiny, 37)];
    for (name, element, order) in cases {
        let rows: Vec<Vec<f64>> = (0..order)
            .map(|row| {
                (0..order)
                    .map(|column| {
                        element(row, column) + if name == "graded" && row == column { 1.0 } else { 0.0 }
                    })
                    .collect()
            })
            .collect();
        let mut factorizer = Factorizer::new(Precision::F64, 8).unwrap();
        let lu = factorizer.factor(&pool, dense(&rows, &pool)).unwrap();
        let ones = vec![1.0; order];
        let b: Vec<f64> = rows.iter().map(|row| row.iter().zip(&ones).map(|(a, x)| a * x).sum()).collect();
        let mut x = b.clone();
        lu.solve(&pool, &mut x);
        let r: Vec<f64> = rows
            .iter()
            .zip(&b)
            .map(|(row, b)| row.iter().zip(&x).map(|(a, x)| a * x).sum::<f64>() - b)
            .collect();
        let norm_a = rows.iter().map(|row| row.iter().map(|a| a.abs()).sum()).fold(0.0, f64::max);
        // Subnormal elements have fewer digits.
        let slack = if name == "tiny" { 1e3 } else { 1.0 };
        let residual = Residual::of(order, problem::norm(&r), norm_a, problem::norm(&x), problem::norm(&b));
        assert!(residual.scaled < 16.0 * slack, "{name}: {residual:?}");
    }
}

#[test]
fn low_precision_factors_are_refined_to_hpls_accuracy() {
    let pool = pool(2);
    for (kind, precision, order) in [
        (Kind::DiagonallyDominant, Precision::Bf16, 300),
        (Kind::DiagonallyDominant, Precision::F32, 257),
        (Kind::Uniform, Precision::F32, 200),
        (Kind::Uniform, Precision::Bf16, 100),
    ] {
        let problem = Problem { order, seed: 11, kind };
        let mut factorizer = Factorizer::<f32>::new(precision, 64).unwrap();
        let lu = factorizer.factor(&pool, problem.matrix(&pool).unwrap()).unwrap();
        let a = problem.matrix::<f64>(&pool).unwrap();
        let refined = refine(&pool, &a, problem.norm(&pool), &lu, &problem.rhs());
        let residual = problem.residual(&pool, &refined.x);
        assert!(residual.passes() && refined.residual.passes(), "{kind:?} {precision:?}: {residual:?}");
        assert!((1..200).contains(&refined.steps), "{kind:?} {precision:?}: {} steps", refined.steps);
    }
}

#[test]
fn factors_that_do_not_help_do_not_pass() {
    let pool = pool(2);
    let problem = Problem { order: 150, seed: 2, kind: Kind::Uniform };
    let other = Problem { seed: 3, ..problem };
    let mut factorizer = Factorizer::<f32>::new(Precision::F32, 64).unwrap();
    let lu = factorizer.factor(&pool, other.matrix(&pool).unwrap()).unwrap();
    let a = problem.matrix::<f64>(&pool).unwrap();
    let refined = refine(&pool, &a, problem.norm(&pool), &lu, &problem.rhs());
    assert!(!refined.residual.passes() && !problem.residual(&pool, &refined.x).passes(), "{refined:?}");
}

#[test]
fn what_cannot_be_is_refused() {
    assert!(Factorizer::<f64>::new(Precision::F32, 64).is_none());
    assert!(Factorizer::<f64>::new(Precision::Bf16, 64).is_none());
    assert!(Factorizer::<f32>::new(Precision::F64, 64).is_none());
    assert!(Factorizer::<f64>::new(Precision::F64, 0).is_none());
    let huge = Problem { order: 1 << 40, seed: 1, kind: Kind::Uniform };
    assert_eq!(huge.matrix::<f64>(&pool(1)).unwrap_err(), LinalgError::Memory { order: 1 << 40 });
}

#[test]
fn elements_depend_on_seed_and_place_alone() {
    let problem = Problem { order: 50, seed: 4, kind: Kind::Uniform };
    let (one, three) = (pool(1), pool(3));
    let (a, b) = (problem.matrix::<f64>(&one).unwrap(), problem.matrix::<f64>(&three).unwrap());
    assert!((0..50).all(|row| a.row(row) == b.row(row)));
    let all: Vec<f64> = (0..50).flat_map(|row| a.row(row).to_vec()).collect();
    assert!(all.iter().all(|element| (-0.5..0.5).contains(element)));
    let mean = all.iter().sum::<f64>() / 2500.0;
    assert!(mean.abs() < 0.03, "{mean}");
    assert_ne!(a.row(0), Problem { seed: 5, ..problem }.matrix::<f64>(&one).unwrap().row(0));
    let dominant = Problem { kind: Kind::DiagonallyDominant, ..problem }.matrix::<f64>(&one).unwrap();
    let others: f64 = (0..50).filter(|&at| at != 7).map(|at| dominant.row(7)[at].abs()).sum();
    assert!((dominant.row(7)[7] - others).abs() < 1e-12);
}

#[test]
fn columns_have_the_elements_of_the_rows() {
    let (pool, order) = (pool(2), 37);
    for kind in Kind::ALL {
        let problem = Problem { order, seed: 5, kind };
        let (first, count) = (30, 7);
        let mut columns = vec![0.0; count * order];
        problem.columns(&pool, first, &mut columns);
        let mut elements = vec![0.0; order];
        for row in 0..order {
            problem.row(row, &mut elements);
            for column in 0..count {
                assert_eq!(
                    columns[column * order + row],
                    elements[first + column],
                    "{kind:?} {row} {column}"
                );
            }
        }
    }
}
