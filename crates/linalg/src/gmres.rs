//! GMRES without restarts, for an operator that is given as a function.

use crate::vector::{dot, subtract_scaled};

/// What one call has found.
pub(crate) struct Found {
    /// The approximate solution.
    pub(crate) x: Vec<f64>,
    /// Applications of the operator.
    pub(crate) steps: usize,
}

/// Solves `operator(x) = b` approximately from zero: until the residual has shrunk by `tolerance`, or after so many
/// steps. Arnoldi vectors are made orthogonal by modified Gram–Schmidt, the least-squares problem is solved by Givens
/// rotations.
pub(crate) fn gmres(
    b: &[f64],
    tolerance: f64,
    most_steps: usize,
    mut operator: impl FnMut(&[f64]) -> Vec<f64>,
) -> Found {
    let norm = dot(b, b).sqrt();
    if norm == 0.0 || !norm.is_finite() {
        return Found { x: vec![0.0; b.len()], steps: 0 };
    }
    let mut basis = vec![scaled(b, 1.0 / norm)];
    // The columns of the Hessenberg matrix after all rotations, which make it triangular.
    let mut columns: Vec<Vec<f64>> = Vec::new();
    let mut rotations: Vec<(f64, f64)> = Vec::new();
    // The right-hand side of the least-squares problem; the magnitude of its last element is the residual.
    let mut target = vec![norm];
    for step in 0..most_steps {
        let mut next = operator(&basis[step]);
        let mut column = Vec::with_capacity(step + 2);
        for vector in &basis {
            let projection = dot(&next, vector);
            subtract_scaled(&mut next, projection, vector);
            column.push(projection);
        }
        let length = dot(&next, &next).sqrt();
        for (at, &(cosine, sine)) in rotations.iter().enumerate() {
            let (upper, lower) = (column[at], column[at + 1]);
            column[at] = cosine * upper + sine * lower;
            column[at + 1] = cosine * lower - sine * upper;
        }
        let diagonal = column[step].hypot(length);
        if diagonal == 0.0 || !diagonal.is_finite() {
            break;
        }
        let (cosine, sine) = (column[step] / diagonal, length / diagonal);
        column[step] = diagonal;
        rotations.push((cosine, sine));
        columns.push(column);
        let last = target[step];
        target[step] = cosine * last;
        target.push(-sine * last);
        if target[step + 1].abs() <= tolerance * norm || length == 0.0 {
            break;
        }
        basis.push(scaled(&next, 1.0 / length));
    }
    let steps = columns.len();
    let mut weights = target;
    weights.truncate(steps);
    for row in (0..steps).rev() {
        for later in row + 1..steps {
            weights[row] -= columns[later][row] * weights[later];
        }
        weights[row] /= columns[row][row];
    }
    let mut x = vec![0.0; b.len()];
    for (weight, vector) in weights.iter().zip(&basis) {
        subtract_scaled(&mut x, -weight, vector);
    }
    Found { x, steps }
}

fn scaled(vector: &[f64], factor: f64) -> Vec<f64> {
    vector.iter().map(|element| element * factor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(matrix: &[[f64; 4]; 4], x: &[f64]) -> Vec<f64> {
        matrix.iter().map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
    }

    #[test]
    fn as_many_steps_as_unknowns_solve_any_system() {
        // Nonsymmetric, with eigenvalues that a plain iteration would diverge on.
        let matrix =
            [[1.0, 5.0, 0.0, -2.0], [-3.0, 0.5, 2.0, 0.0], [0.0, 7.0, -1.0, 1.0], [4.0, 0.0, 1.0, 3.0]];
        let b = [1.0, -2.0, 0.5, 3.0];
        let found = gmres(&b, 1e-13, 10, |x| apply(&matrix, x));
        assert!(found.steps <= 4, "{}", found.steps);
        for (found, wanted) in apply(&matrix, &found.x).iter().zip(b) {
            assert!((found - wanted).abs() < 1e-11, "{found} {wanted}");
        }
    }

    #[test]
    fn an_identity_takes_one_step_and_nothing_takes_none() {
        let found = gmres(&[0.0, 4.0], 1e-10, 5, <[f64]>::to_vec);
        assert_eq!((found.steps, found.x), (1, vec![0.0, 4.0]));
        assert_eq!(gmres(&[0.0, 0.0], 1e-10, 5, <[f64]>::to_vec).steps, 0);
        assert_eq!(gmres(&[f64::NAN, 0.0], 1e-10, 5, <[f64]>::to_vec).steps, 0);
        assert_eq!(gmres(&[1.0, 0.0], 1e-10, 5, |_| vec![0.0; 2]).steps, 0, "a singular operator");
    }
}
