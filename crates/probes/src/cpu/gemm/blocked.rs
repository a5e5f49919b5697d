//! The loops around the innermost kernel: who computes what, and in an order that keeps blocks in the caches.

use std::ops::AddAssign;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::element::Element;
use super::kernel::{MicroKernel, Sum};
use super::matrix::Matrix;
use super::{RunProduct, Shape, pack};
use crate::memory::MemoryError;
use crate::team::Team;

/// Bytes of the block of left panels that is read again for every right panel: part of an L2 cache.
const LEFT_BLOCK_BYTES: usize = 256 << 10;

/// Two matrices in row-major order, the right one's panels, and the result.
pub(super) struct Blocked<K: MicroKernel> {
    kernel: K,
    shape: Shape,
    left: Matrix<K::Input>,
    right: Matrix<K::Input>,
    right_panels: Matrix<K::Input>,
    /// For each thread, room for the panels of the block of rows that it works on.
    left_blocks: Vec<Mutex<Matrix<K::Input>>>,
    result: Matrix<Sum<K>>,
}

impl<K: MicroKernel> Blocked<K> {
    /// Columns of the left matrix, and rows of the right one, in a block.
    const DEEP: usize =
        (K::RIGHT_BLOCK_BYTES / (K::COLUMNS * size_of::<K::Input>())).next_multiple_of(K::LEFT_GROUP);
    /// Panels in a block of the left matrix.
    const PANELS: usize = LEFT_BLOCK_BYTES / (Self::DEEP * K::ROWS * size_of::<K::Input>());

    /// Random matrices of this shape, for teams of up to so many threads.
    ///
    /// # Errors
    /// If the system has not enough memory to give.
    pub(super) fn random(kernel: K, shape: Shape, threads: usize) -> Result<Self, MemoryError> {
        let Shape { m, n, k } = shape;
        let block = || Matrix::zeroed(Self::PANELS * K::ROWS * Self::DEEP).map(Mutex::new);
        let mut product = Self {
            kernel,
            shape,
            left: Matrix::zeroed(m * k)?,
            right: Matrix::zeroed(k * n)?,
            right_panels: Matrix::zeroed(n.next_multiple_of(K::COLUMNS) * k.next_multiple_of(K::LEFT_GROUP))?,
            left_blocks: (0..threads).map(|_| block()).collect::<Result<_, _>>()?,
            result: Matrix::zeroed(m * n)?,
        };
        let mut random = fastrand::Rng::with_seed(0x5eed);
        for element in product.left.iter_mut().chain(product.right.iter_mut()) {
            *element = Element::random(&mut random);
        }
        Ok(product)
    }

    /// Fills the panels of the right matrix, each thread an equal share of them.
    fn pack(&mut self, team: &mut Team) -> Duration {
        let Shape { n, k, .. } = self.shape;
        let size = K::COLUMNS * k.next_multiple_of(K::LEFT_GROUP);
        let share = share(self.right_panels.len() / size, team);
        let shares = shares(&mut self.right_panels, share * size);
        team.run(|rank| {
            if let Some(mut panels) = part(&shares, rank) {
                for (at, panel) in panels.chunks_exact_mut(size).enumerate() {
                    pack::right::<K>(panel, &self.right, (rank * share + at) * K::COLUMNS, n);
                }
            }
        })
    }

    /// Computes the result, each thread an equal share of the rows.
    fn multiply(&mut self, team: &mut Team) -> Duration {
        let Shape { n, k, .. } = self.shape;
        let rows = share(self.shape.m.div_ceil(K::ROWS), team) * K::ROWS;
        let shares = shares(&mut self.result, rows * n);
        team.run(|rank| {
            if let (Some(mut result), Some(mut block)) = (part(&shares, rank), part(&self.left_blocks, rank))
            {
                let left = &self.left[rank * rows * k..];
                Self::multiply_rows(self.kernel, left, &mut block, &self.right_panels, &mut result, (n, k));
            }
        })
    }

    /// Computes whole rows of the result on the calling thread.
    fn multiply_rows(
        kernel: K,
        left: &[K::Input],
        left_block: &mut [K::Input],
        right_panels: &[K::Input],
        result: &mut [Sum<K>],
        (n, k): (usize, usize),
    ) {
        let session = kernel.session();
        let mut edge = vec![Sum::<K>::default(); K::ROWS * K::COLUMNS];
        let rows = Self::PANELS * K::ROWS;
        let padded = k.next_multiple_of(K::LEFT_GROUP);
        for from in (0..k).step_by(Self::DEEP) {
            let (to, padded_to) = (k.min(from + Self::DEEP), padded.min(from + Self::DEEP));
            let panel = K::ROWS * (padded_to - from);
            for (left, result) in left.chunks(rows * k).zip(result.chunks_mut(rows * n)) {
                if from == 0 {
                    result.fill(Sum::<K>::default());
                }
                for (left, panel) in left.chunks(K::ROWS * k).zip(left_block.chunks_exact_mut(panel)) {
                    pack::left::<K>(panel, left, k, from, to);
                }
                for (at, right) in right_panels.chunks_exact(K::COLUMNS * padded).enumerate() {
                    let right = &right[from * K::COLUMNS..padded_to * K::COLUMNS];
                    let first_column = at * K::COLUMNS;
                    for (left, rows) in left_block.chunks_exact(panel).zip(result.chunks_mut(K::ROWS * n)) {
                        if rows.len() == K::ROWS * n && first_column + K::COLUMNS <= n {
                            kernel.add_tile(&session, left, right, &mut rows[first_column..], n);
                        } else {
                            edge.fill(Sum::<K>::default());
                            kernel.add_tile(&session, left, right, &mut edge, K::COLUMNS);
                            add_edge(&edge, K::COLUMNS, rows, n, first_column);
                        }
                    }
                }
            }
        }
    }
}

impl<K: MicroKernel> RunProduct for Blocked<K> {
    fn run(&mut self, team: &mut Team) -> Duration {
        assert!(team.size() <= self.left_blocks.len(), "the team is larger than the product was made for");
        self.pack(team) + self.multiply(team)
    }
}

/// Adds what of a tile lies within the rows of the result, which are `n` long, from a column on.
fn add_edge<T: Copy + AddAssign>(tile: &[T], columns: usize, rows: &mut [T], n: usize, first_column: usize) {
    for (row, tile) in rows.chunks_exact_mut(n).zip(tile.chunks_exact(columns)) {
        row[first_column..].iter_mut().zip(tile).for_each(|(sum, &part)| *sum += part);
    }
}

/// How many of these things each thread gets, at most.
fn share(things: usize, team: &Team) -> usize {
    things.div_ceil(team.size())
}

/// A part of the slice for each thread; the last ones may have none.
fn shares<T>(all: &mut [T], size: usize) -> Vec<Mutex<&mut [T]>> {
    all.chunks_mut(size).map(Mutex::new).collect()
}

/// The part of one thread, which no other thread touches.
fn part<T>(shares: &[Mutex<T>], rank: usize) -> Option<MutexGuard<'_, T>> {
    Some(shares.get(rank)?.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Multiplies matrices of many shapes on teams of one and of three, and compares with the plain sum of products.
#[cfg(test)]
pub(super) fn check<K: MicroKernel>()
where
    Sum<K>: Into<f64>,
{
    let Some(kernel) = K::detect() else {
        return eprintln!("not checked, the processor cannot run it: {}", std::any::type_name::<K>());
    };
    let cpu = crate::affinity::allowed().unwrap()[0];
    let mut teams = [Team::new(&[cpu]).unwrap(), Team::new(&[cpu; 3]).unwrap()];
    let (deep, tall) = (Blocked::<K>::DEEP, Blocked::<K>::PANELS * K::ROWS);
    for (m, n, k) in [
        (1, 1, 1),
        (K::ROWS, K::COLUMNS, K::LEFT_GROUP),
        (2, 3, 5),
        (K::ROWS + 1, K::COLUMNS + 1, K::LEFT_GROUP + 1),
        (3 * K::ROWS - 1, 2 * K::COLUMNS - 1, 70),
        (K::ROWS, K::COLUMNS + 3, 2 * deep + 7),
        (2 * tall + K::ROWS + 1, 3, K::LEFT_GROUP + 2),
    ] {
        for team in &mut teams {
            let mut product = Blocked::random(kernel, Shape { m, n, k }, team.size()).unwrap();
            for repetition in 0..2 {
                product.run(team);
                for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
                    let terms = (0..k)
                        .map(|i| product.left[row * k + i].value() * product.right[i * n + column].value());
                    let (expected, scale) =
                        terms.fold((0.0, 0.0), |(sum, scale), term| (sum + term, scale + term.abs()));
                    let got: f64 = product.result[row * n + column].into();
                    let tolerance = scale * 1e-6;
                    assert!(
                        (got - expected).abs() <= tolerance,
                        "{m}x{n}x{k} on {}, run {repetition}: [{row}, {column}] is {got}, not {expected}",
                        team.size()
                    );
                }
            }
        }
    }
}
