//! Each routine held to what defines its result.

use super::matrix::{Matrix, Z};
use crate::{Interpreter, Options, Value};
use warpforge_diag::Source;
use warpforge_snakeburger::text;
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

fn random(rows: usize, cols: usize, complex: bool, seed: u64) -> Tensor {
    let mut rng = fastrand::Rng::with_seed(seed);
    let element = if complex { ElementType::C128 } else { ElementType::F64 };
    let mut part = || rng.f64() * 2.0 - 1.0;
    let values: Vec<Scalar> = (0..rows * cols)
        .map(|_| if complex { Scalar::Complex(part(), part()) } else { Scalar::Float(part()) })
        .collect();
    Tensor::from_scalars(element, Shape::new([rows, cols]).unwrap(), values).unwrap()
}

fn matrix(tensor: &Tensor) -> Matrix {
    let &[rows, cols] = tensor.dims() else { panic!("{tensor:?}") };
    Matrix::new(rows, cols, tensor.iter().map(Z::from).collect())
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let mut c = Matrix::new(a.rows(), b.cols(), Vec::new());
    for i in 0..a.rows() {
        for j in 0..b.cols() {
            c[(i, j)] = (0..a.cols()).fold(Z::ZERO, |sum, k| sum + a[(i, k)] * b[(k, j)]);
        }
    }
    c
}

fn assert_close(a: &Matrix, b: &Matrix) {
    assert_eq!((a.rows(), a.cols()), (b.rows(), b.cols()));
    for i in 0..a.rows() {
        for j in 0..a.cols() {
            assert!((a[(i, j)] - b[(i, j)]).abs() < 1e-10, "{i},{j}: {a:?} {b:?}");
        }
    }
}

/// `a` with its conjugate transpose added: Hermitian.
fn hermitian(a: &Tensor) -> Tensor {
    let m = matrix(a);
    let t = m.transposed(Z::conj);
    let sum = m.into_values().into_iter().zip(t.into_values()).map(|(a, b)| a + b);
    let scalar = |z: Z| match a.element_type() {
        ElementType::F64 => Scalar::Float(z.re),
        _ => Scalar::Complex(z.re, z.im),
    };
    Tensor::from_scalars(a.element_type(), a.shape().clone(), sum.map(scalar)).unwrap()
}

/// Calls a routine; `{e}` and `{r}` in the types stand for the element type and its real part.
fn call(routine: &str, config: &str, inputs: &[Tensor], results: &[&str]) -> Vec<Tensor> {
    let complex = inputs[0].element_type() == ElementType::C128;
    let (letter, element) = if complex { ("z", "complex<f64>") } else { ("d", "f64") };
    let name = |tensor: &Tensor| {
        let dims: String = tensor.dims().iter().map(|dim| format!("{dim}x")).collect();
        format!("tensor<{dims}{}>", tensor.element_type())
    };
    let types: Vec<String> = inputs.iter().map(name).collect();
    let results: Vec<String> = results
        .iter()
        .map(|ty| format!("tensor<{}>", ty.replace("{e}", element).replace("{r}", "f64")))
        .collect();
    let arguments: Vec<String> = (0..inputs.len()).map(|at| format!("%a{at}")).collect();
    let declared: Vec<String> =
        arguments.iter().zip(&types).map(|(name, ty)| format!("{name}: {ty}")).collect();
    let (types, outs) = (types.join(", "), results.join(", "));
    let given: Vec<String> = (0..results.len()).map(|at| format!("%0#{at}")).collect();
    let (bind, given) = if results.len() == 1 {
        ("%0".into(), "%0".into())
    } else {
        (format!("%0:{}", results.len()), given.join(", "))
    };
    let text = format!(
        "func.func @main({}) -> ({outs}) {{
          {bind} = stablehlo.custom_call @lapack_{letter}{routine}_ffi({}) {{mhlo.backend_config = {{{config}}}}} \
         : ({types}) -> ({outs})
          func.return {given} : {outs}\n}}",
        declared.join(", "),
        arguments.join(", ")
    );
    let module = text::parse(&Source::new("m", text), &text::Options::default()).unwrap();
    let inputs = inputs.iter().cloned().map(Value::Tensor).collect();
    let values = Interpreter::new(&module, Options::default()).run("main", inputs).unwrap();
    values.iter().map(|value| value.as_tensor().unwrap().clone()).collect()
}

#[test]
fn factors_multiply_to_the_matrix() {
    for complex in [false, true] {
        let a = random(4, 4, complex, 1);
        let lu = call("getrf", "", std::slice::from_ref(&a), &["4x4x{e}", "4xi32", "i32"]);
        let packed = matrix(&lu[0]);
        let (mut l, mut u) = (Matrix::identity(4, 4), Matrix::new(4, 4, Vec::new()));
        for i in 0..4 {
            for j in 0..4 {
                if j < i { l[(i, j)] = packed[(i, j)] } else { u[(i, j)] = packed[(i, j)] }
            }
        }
        let mut permuted = matrix(&a);
        for (row, pivot) in lu[1].iter().enumerate() {
            permuted.swap_rows(row, pivot.to_i128() as usize - 1);
        }
        assert_close(&product(&l, &u), &permuted);

        let m = matrix(&random(4, 4, complex, 2));
        let positive = product(&m, &m.transposed(Z::conj));
        let values = positive.clone().into_values().into_iter();
        let scalars = values.map(|z| if complex { Scalar::Complex(z.re, z.im) } else { Scalar::Float(z.re) });
        let tensor = Tensor::from_scalars(a.element_type(), a.shape().clone(), scalars).unwrap();
        for (uplo, lower) in [(76, true), (85, false)] {
            let done = call(
                "potrf",
                &format!("uplo = {uplo} : ui8"),
                std::slice::from_ref(&tensor),
                &["4x4x{e}", "i32"],
            );
            let mut factor = matrix(&done[0]);
            for i in 0..4 {
                for j in 0..4 {
                    if (j > i) == lower && i != j {
                        factor[(i, j)] = Z::ZERO;
                    }
                }
            }
            let other = factor.transposed(Z::conj);
            let whole = if lower { product(&factor, &other) } else { product(&other, &factor) };
            assert_close(&whole, &positive);
            assert_eq!(done[1].get(0), Scalar::Int(0));
        }
    }
}

#[test]
fn a_matrix_that_is_not_positive_is_told_by_its_minor() {
    let tensor = Tensor::from_slice(&[2, 2], &[1.0f64, 2.0, 2.0, 1.0]).unwrap();
    let done = call("potrf", "uplo = 76 : ui8", &[tensor], &["2x2x{e}", "i32"]);
    assert_eq!(done[1].get(0), Scalar::Int(2));
}

#[test]
fn triangles_are_solved_from_every_side() {
    for complex in [false, true] {
        let (a, b) = (random(3, 3, complex, 3), random(3, 3, complex, 4));
        for side in ['L', 'R'] {
            for uplo in ['L', 'U'] {
                for trans in ['N', 'T', 'C'] {
                    for diag in ['N', 'U'] {
                        let config = format!(
                            "side = {} : ui8, uplo = {} : ui8, trans_x = {} : ui8, diag = {} : ui8",
                            side as u8, uplo as u8, trans as u8, diag as u8
                        );
                        let x = matrix(&call("trsm", &config, &[a.clone(), b.clone()], &["3x3x{e}"])[0]);
                        let mut t = matrix(&a);
                        for i in 0..3 {
                            for j in 0..3 {
                                if (uplo == 'L' && j > i) || (uplo == 'U' && j < i) {
                                    t[(i, j)] = Z::ZERO;
                                }
                            }
                            if diag == 'U' {
                                t[(i, i)] = Z::ONE;
                            }
                        }
                        let t = match trans {
                            'N' => t,
                            'C' => t.transposed(Z::conj),
                            _ => t.transposed(|z| z),
                        };
                        let back = if side == 'L' { product(&t, &x) } else { product(&x, &t) };
                        assert_close(&back, &matrix(&b));
                    }
                }
            }
        }
    }
}

#[test]
fn q_is_unitary_and_times_r_the_matrix() {
    for complex in [false, true] {
        let a = random(5, 3, complex, 5);
        let done = call("geqrf", "", std::slice::from_ref(&a), &["5x3x{e}", "3x{e}"]);
        let routine = if complex { "ungqr" } else { "orgqr" };
        let q = matrix(&call(routine, "", &done, &["5x3x{e}"])[0]);
        assert_close(&product(&q.transposed(Z::conj), &q), &Matrix::identity(3, 3));
        let mut r = Matrix::new(3, 3, Vec::new());
        let packed = matrix(&done[0]);
        for i in 0..3 {
            for j in i..3 {
                r[(i, j)] = packed[(i, j)];
            }
        }
        assert_close(&product(&q, &r), &matrix(&a));
    }
}

#[test]
fn eigenvectors_are_turned_into_multiples_of_themselves() {
    for complex in [false, true] {
        for seed in 0..8 {
            let a = hermitian(&random(6, 6, complex, seed));
            let routine = if complex { "heevd" } else { "syevd" };
            let config = "mode = 86 : ui8, uplo = 76 : ui8";
            let done = call(routine, config, std::slice::from_ref(&a), &["6x6x{e}", "6x{r}", "i32"]);
            let v = matrix(&done[0]);
            assert_eq!(done[2].get(0), Scalar::Int(0));
            let mut scaled = v.clone();
            for j in 0..6 {
                let value = done[1].get(j).to_f64();
                assert!(j == 0 || value >= done[1].get(j - 1).to_f64());
                (0..6).for_each(|i| scaled[(i, j)] = v[(i, j)].scaled(value));
            }
            assert_close(&product(&matrix(&a), &v), &scaled);
            assert_close(&product(&v.transposed(Z::conj), &v), &Matrix::identity(6, 6));

            let a = random(6, 6, complex, seed + 100);
            let config = "compute_left = 78 : ui8, compute_right = 86 : ui8";
            let square = if complex { "6x6x{e}" } else { "6x6xcomplex<{r}>" };
            let results: &[&str] = if complex {
                &["6x{e}", square, square, "i32"]
            } else {
                &["6x{r}", "6x{r}", square, square, "i32"]
            };
            let done = call("geev", config, std::slice::from_ref(&a), results);
            let value = |j: usize| match complex {
                true => Z::from(done[0].get(j)),
                false => Z { re: done[0].get(j).to_f64(), im: done[1].get(j).to_f64() },
            };
            let v = matrix(&done[done.len() - 2]);
            let mut scaled = v.clone();
            for j in 0..6 {
                (0..6).for_each(|i| scaled[(i, j)] = v[(i, j)] * value(j));
            }
            assert_close(&product(&matrix(&a), &v), &scaled);
        }
    }
}

#[test]
fn singular_vectors_compose_to_the_matrix() {
    for complex in [false, true] {
        for (m, n) in [(5, 3), (3, 5), (4, 4)] {
            let mut a = random(m, n, complex, 9);
            for row in 0..m {
                // A column that depends on another: one value is zero.
                a.set(row * n + n - 1, a.get(row * n));
            }
            let k = m.min(n);
            for (mode, left, right) in [(83, k, k), (65, m, n)] {
                let shapes = [
                    format!("{m}x{n}x{{e}}"),
                    format!("{k}x{{r}}"),
                    format!("{m}x{left}x{{e}}"),
                    format!("{right}x{n}x{{e}}"),
                    "i32".to_owned(),
                ];
                let shapes: Vec<&str> = shapes.iter().map(String::as_str).collect();
                let done = call("gesdd", &format!("mode = {mode} : ui8"), std::slice::from_ref(&a), &shapes);
                let (mut u, vt) = (matrix(&done[2]), matrix(&done[3]));
                assert_close(&product(&u.transposed(Z::conj), &u), &Matrix::identity(left, left));
                assert_close(&product(&vt, &vt.transposed(Z::conj)), &Matrix::identity(right, right));
                let mut s = Matrix::new(left, right, Vec::new());
                (0..k).for_each(|i| s[(i, i)] = Z::real(done[1].get(i).to_f64()));
                u = product(&u, &s);
                assert_close(&product(&u, &vt), &matrix(&a));
            }
        }
    }
}
