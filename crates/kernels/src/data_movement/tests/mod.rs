//! Data movement against loops over every index.

mod copy;
mod dynamic_slice;
mod gather;
mod pad;
mod scatter;
mod sort;

use warpforge_tensor::ElementType;

use super::Indices;

/// Indices into an operand, and what windows may still use of it.
struct RandomIndices {
    operand: Vec<usize>,
    /// The batch dimensions of the indices.
    batch: Vec<usize>,
    /// The dimensions of the operand that no batch has.
    free: Vec<usize>,
    indices: Indices,
}

/// Any indices of i32 into any operand of one to four dimensions.
fn random_indices(random: &mut fastrand::Rng) -> RandomIndices {
    let rank = random.usize(1..5);
    let operand: Vec<usize> = (0..rank).map(|_| random.usize(1..8)).collect();
    let mut free: Vec<usize> = (0..rank).collect();
    random.shuffle(&mut free);
    let mut batch: Vec<usize> = (0..random.usize(..3)).map(|_| random.usize(1..6)).collect();
    let mut batching = Vec::new();
    if rank > 1 && random.bool() {
        let dim = free.pop().unwrap();
        batch.push(operand[dim]);
        batching.push((dim, batch.len() - 1));
    }
    let map = free[..random.usize(1..=free.len())].to_vec();
    let vector_dim = random.usize(..=batch.len());
    let mut dims = batch.clone();
    dims.insert(vector_dim, map.len());
    for (_, other) in &mut batching {
        *other += usize::from(*other >= vector_dim);
    }
    let indices = Indices { element: ElementType::I32, dims, vector_dim, map, batching };
    RandomIndices { operand, batch, free, indices }
}
