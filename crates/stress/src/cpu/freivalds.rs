//! Freivalds' check: a product C = A·B is compared with its operands by C·x = A·(B·x) for a random vector x of signs,
//! which costs three passes over the matrices instead of another multiplication.

use half::bf16;
use warpforge_probes::cpu::{Dtype, Product, Shape};

use crate::load::Work;
use crate::workers::Workers;

/// How the elements of a matrix are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    F64,
    F32,
    Bf16,
    I8,
    I32,
}

impl Stored {
    fn of_operand(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F64 => Self::F64,
            Dtype::F32 => Self::F32,
            Dtype::Bf16 => Self::Bf16,
            Dtype::Int8 => Self::I8,
        }
    }

    fn of_result(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F64 => Self::F64,
            Dtype::F32 | Dtype::Bf16 => Self::F32,
            Dtype::Int8 => Self::I32,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::F64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::Bf16 => 2,
            Self::I8 => 1,
        }
    }

    /// The unit roundoff of sums in this type.
    fn roundoff(self) -> f64 {
        match self {
            Self::F64 => f64::EPSILON / 2.0,
            Self::F32 => f64::from(f32::EPSILON) / 2.0,
            Self::Bf16 => 1.0 / 256.0,
            Self::I8 | Self::I32 => 0.0,
        }
    }
}

/// What the check of one product needs to know beforehand.
#[derive(Debug)]
pub(super) struct Checker {
    operand: Stored,
    result: Stored,
    shape: Shape,
    /// The sums of magnitudes |A|·|B|·1, which bound what rounding may do to each row.
    magnitudes: Vec<f64>,
}

impl Checker {
    pub(super) fn new(product: &Product, workers: &mut Workers) -> Self {
        let (operand, shape) = (Stored::of_operand(product.dtype()), product.shape());
        let ones = vec![1.0; shape.n];
        let right = rows(workers, shape.k, |row| {
            dot(operand, row_of(product.right(), row, shape.n, operand), &ones, f64::abs)
        });
        let magnitudes = rows(workers, shape.m, |row| {
            dot(operand, row_of(product.left(), row, shape.k, operand), &right, f64::abs)
        });
        Self { operand, result: Stored::of_result(product.dtype()), shape, magnitudes }
    }

    /// Notes each row of a result that does not fit the operands.
    pub(super) fn check(
        &self,
        product: &Product,
        result: &[u8],
        workers: &mut Workers,
        seed: u64,
        work: &mut Work,
    ) {
        let Shape { m, n, k } = self.shape;
        let mut random = fastrand::Rng::with_seed(seed);
        let signs: Vec<f64> = (0..n).map(|_| if random.bool() { 1.0 } else { -1.0 }).collect();
        let same = |value: f64| value;
        let right = rows(workers, k, |row| {
            dot(self.operand, row_of(product.right(), row, n, self.operand), &signs, same)
        });
        let expected = rows(workers, m, |row| {
            dot(self.operand, row_of(product.left(), row, k, self.operand), &right, same)
        });
        let found =
            rows(workers, m, |row| dot(self.result, row_of(result, row, n, self.result), &signs, same));
        // Sums of k products in the type of the result, and the sums of the check itself, in f64.
        let roundoff = k as f64 * self.result.roundoff() + 2.0 * (n + k) as f64 * f64::EPSILON;
        for (row, ((expected, found), magnitude)) in
            expected.iter().zip(&found).zip(&self.magnitudes).enumerate()
        {
            let allowed = 2.0 * roundoff * magnitude;
            let difference = (expected - found).abs();
            if difference.is_nan() || difference > allowed {
                work.mismatch(
                    format!("Freivalds' check of the {} product", product.dtype()),
                    format!("row {row}"),
                    format!("{expected:e} ± {allowed:e}"),
                    format!("{found:e}"),
                );
            }
        }
    }

    /// Where in the result a byte lies.
    pub(super) fn place(&self, byte: usize) -> String {
        let element = byte / self.result.bytes();
        format!("row {}, column {}", element / self.shape.n, element % self.shape.n)
    }

    /// The bytes of the element around a byte of the result.
    pub(super) fn element<'a>(&self, result: &'a [u8], byte: usize) -> &'a [u8] {
        let start = byte / self.result.bytes() * self.result.bytes();
        &result[start..start + self.result.bytes()]
    }
}

/// A value for each row, computed by all threads.
fn rows(workers: &mut Workers, count: usize, value: impl Fn(usize) -> f64 + Sync) -> Vec<f64> {
    let each = count.div_ceil(workers.count());
    let part = |rank: usize| (rank * each).min(count)..((rank + 1) * each).min(count);
    workers.each(|rank| part(rank).map(&value).collect::<Vec<f64>>()).concat()
}

fn row_of(matrix: &[u8], row: usize, columns: usize, stored: Stored) -> &[u8] {
    let bytes = columns * stored.bytes();
    &matrix[row * bytes..(row + 1) * bytes]
}

/// The scalar product of a row, its elements mapped, and a vector.
fn dot(stored: Stored, row: &[u8], vector: &[f64], map: impl Fn(f64) -> f64) -> f64 {
    match stored {
        Stored::F64 => sum(row, vector, |bytes| map(f64::from_ne_bytes(bytes))),
        Stored::F32 => sum(row, vector, |bytes| map(f32::from_ne_bytes(bytes).into())),
        Stored::Bf16 => sum(row, vector, |bytes| map(bf16::from_ne_bytes(bytes).to_f64())),
        Stored::I8 => sum(row, vector, |bytes| map(i8::from_ne_bytes(bytes).into())),
        Stored::I32 => sum(row, vector, |bytes| map(i32::from_ne_bytes(bytes).into())),
    }
}

fn sum<const WIDTH: usize>(row: &[u8], vector: &[f64], value: impl Fn([u8; WIDTH]) -> f64) -> f64 {
    /// Independent sums, so that additions need not wait for each other.
    const LANES: usize = 8;
    let (elements, _) = row.as_chunks::<WIDTH>();
    let mut sums = [0.0; LANES];
    let (blocks, rest) = elements.as_chunks::<LANES>();
    let (vectors, vector_rest) = vector.as_chunks::<LANES>();
    for (block, vector) in blocks.iter().zip(vectors) {
        for lane in 0..LANES {
            sums[lane] += value(block[lane]) * vector[lane];
        }
    }
    let rest: f64 = rest.iter().zip(vector_rest).map(|(bytes, x)| value(*bytes) * x).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::settings::{Resources, Settings};
    use warpforge_probes::cpu::gemms;

    fn workers() -> Workers {
        let settings =
            Settings { threads: Some(2), resources: Resources::default(), ..Settings::new(Duration::ZERO) };
        Workers::new(&settings).unwrap()
    }

    #[test]
    fn products_pass_and_every_wrong_element_is_found_in_its_row() {
        let mut workers = workers();
        for gemm in gemms() {
            let mut product = gemm.product(Shape { m: 37, n: 41, k: 70 }).unwrap();
            product.run(workers.team()).unwrap();
            let checker = Checker::new(&product, &mut workers);
            let mut work = Work::default();
            checker.check(&product, product.result(), &mut workers, 5, &mut work);
            assert_eq!(work.errors, 0, "{}: {:?}", gemm.dtype(), work.mismatches);
            for element in [0, 37 * 41 / 2, 37 * 41 - 1] {
                let mut wrong = product.result().to_vec();
                // The highest bit: the sign.
                let byte = (element + 1) * checker.result.bytes() - 1;
                wrong[byte] ^= 0x80;
                let mut work = Work::default();
                checker.check(&product, &wrong, &mut workers, 6, &mut work);
                assert_eq!(work.errors, 1, "{} element {element}", gemm.dtype());
                assert_eq!(work.mismatches[0].location, format!("row {}", element / 41));
                assert!(checker.place(byte).contains(&format!("column {}", element % 41)));
            }
        }
    }
}
