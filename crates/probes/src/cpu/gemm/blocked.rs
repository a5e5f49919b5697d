//! The loops around the innermost kernel: who computes what, and in an order that keeps blocks in the caches.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::element::Element;
use super::kernel::{MicroKernel, Sum};
use super::matrix::Matrix;
use super::{RunProduct, Shape, pack};
use crate::memory::MemoryError;
use crate::team::Team;

/// Bytes of the block of left panels that is read again for every right panel: part of an L2 cache.
const LEFT_BLOCK_BYTES: usize = 256 << 10;

/// Two matrices in row-major order, their panels, and the result.
pub(super) struct Blocked<K: MicroKernel> {
    kernel: K,
    shape: Shape,
    left: Matrix<K::Input>,
    right: Matrix<K::Input>,
    left_panels: Matrix<K::Input>,
    right_panels: Matrix<K::Input>,
    result: Matrix<Sum<K>>,
}

impl<K: MicroKernel> Blocked<K> {
    /// Random matrices of this shape.
    ///
    /// # Errors
    /// If the system has not enough memory to give.
    pub(super) fn random(kernel: K, shape: Shape) -> Result<Self, MemoryError> {
        let Shape { m, n, k } = shape;
        let depth = k.next_multiple_of(K::LEFT_GROUP);
        let mut product = Self {
            kernel,
            shape,
            left: Matrix::zeroed(m * k)?,
            right: Matrix::zeroed(k * n)?,
            left_panels: Matrix::zeroed(m.next_multiple_of(K::ROWS) * depth)?,
            right_panels: Matrix::zeroed(n.next_multiple_of(K::COLUMNS) * depth)?,
            result: Matrix::zeroed(m * n)?,
        };
        let mut random = fastrand::Rng::with_seed(0x5eed);
        for element in product.left.iter_mut().chain(product.right.iter_mut()) {
            *element = Element::random(&mut random);
        }
        Ok(product)
    }

    /// Elements in a panel, for each row or column of it.
    fn depth(&self) -> usize {
        self.shape.k.next_multiple_of(K::LEFT_GROUP)
    }

    /// Fills the panels, each thread an equal share of either side.
    fn pack(&mut self, team: &mut Team) -> Duration {
        let Shape { n, k, .. } = self.shape;
        let depth = self.depth();
        let (left_size, right_size) = (K::ROWS * depth, K::COLUMNS * depth);
        let left_share = share(self.left_panels.len() / left_size, team);
        let right_share = share(self.right_panels.len() / right_size, team);
        let lefts = shares(&mut self.left_panels, left_share * left_size);
        let rights = shares(&mut self.right_panels, right_share * right_size);
        team.run(|rank| {
            with_share(&lefts, rank, |panels| {
                for (at, panel) in panels.chunks_exact_mut(left_size).enumerate() {
                    pack::left::<K>(panel, &self.left, (rank * left_share + at) * K::ROWS, k);
                }
            });
            with_share(&rights, rank, |panels| {
                for (at, panel) in panels.chunks_exact_mut(right_size).enumerate() {
                    pack::right::<K>(panel, &self.right, (rank * right_share + at) * K::COLUMNS, n);
                }
            });
        })
    }

    /// Computes the result from the panels, each thread an equal share of the rows.
    fn multiply(&mut self, team: &mut Team) -> Duration {
        let (kernel, n, depth) = (self.kernel, self.shape.n, self.depth());
        let rows = share(self.shape.m.div_ceil(K::ROWS), team) * K::ROWS;
        let results = shares(&mut self.result, rows * n);
        team.run(|rank| {
            with_share(&results, rank, |result| {
                let left = &self.left_panels[rank * rows * depth..];
                multiply_rows(kernel, left, &self.right_panels, result, n, depth);
            });
        })
    }
}

impl<K: MicroKernel> RunProduct for Blocked<K> {
    fn run(&mut self, team: &mut Team) -> Duration {
        self.pack(team) + self.multiply(team)
    }
}

/// Computes whole rows of the result on the calling thread.
fn multiply_rows<K: MicroKernel>(
    kernel: K,
    left_panels: &[K::Input],
    right_panels: &[K::Input],
    result: &mut [Sum<K>],
    n: usize,
    depth: usize,
) {
    let session = kernel.session();
    let element = size_of::<K::Input>();
    let deep = (K::RIGHT_BLOCK_BYTES / (K::COLUMNS * element)).next_multiple_of(K::LEFT_GROUP);
    let panels = (LEFT_BLOCK_BYTES / (deep * element * K::ROWS)).max(1);
    let mut edge = vec![Sum::<K>::default(); K::ROWS * K::COLUMNS];

    for from in (0..depth).step_by(deep) {
        let to = depth.min(from + deep);
        let blocks = left_panels.chunks(panels * K::ROWS * depth);
        for (left_block, result) in blocks.zip(result.chunks_mut(panels * K::ROWS * n)) {
            if from == 0 {
                result.fill(Sum::<K>::default());
            }
            for (at, right) in right_panels.chunks_exact(K::COLUMNS * depth).enumerate() {
                let right = &right[from * K::COLUMNS..to * K::COLUMNS];
                let first_column = at * K::COLUMNS;
                let lefts = left_block.chunks_exact(K::ROWS * depth);
                for (left, rows) in lefts.zip(result.chunks_mut(K::ROWS * n)) {
                    let left = &left[from * K::ROWS..to * K::ROWS];
                    if rows.len() == K::ROWS * n && first_column + K::COLUMNS <= n {
                        kernel.add_tile(&session, left, right, &mut rows[first_column..], n);
                    } else {
                        edge.fill(Sum::<K>::default());
                        kernel.add_tile(&session, left, right, &mut edge, K::COLUMNS);
                        for (row, tile) in rows.chunks_exact_mut(n).zip(edge.chunks_exact(K::COLUMNS)) {
                            row[first_column..].iter_mut().zip(tile).for_each(|(sum, &part)| *sum += part);
                        }
                    }
                }
            }
        }
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

/// Does something with the part of one thread, which no other thread touches.
fn with_share<T>(shares: &[Mutex<&mut [T]>], rank: usize, work: impl FnOnce(&mut [T])) {
    if let Some(share) = shares.get(rank) {
        work(&mut share.lock().unwrap_or_else(PoisonError::into_inner));
    }
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
    let deep = K::RIGHT_BLOCK_BYTES / (K::COLUMNS * size_of::<K::Input>());
    for (m, n, k) in [
        (1, 1, 1),
        (K::ROWS, K::COLUMNS, K::LEFT_GROUP),
        (2, 3, 5),
        (K::ROWS + 1, K::COLUMNS + 1, K::LEFT_GROUP + 1),
        (3 * K::ROWS - 1, 2 * K::COLUMNS - 1, 70),
        (K::ROWS, K::COLUMNS + 3, 2 * deep + 7),
    ] {
        for team in &mut teams {
            let mut product = Blocked::random(kernel, Shape { m, n, k }).unwrap();
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
