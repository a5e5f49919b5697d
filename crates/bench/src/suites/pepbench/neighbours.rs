//! Nearest neighbours by exhaustive search: all scores by one matrix product, then the best of each row.

use std::cmp::Ordering;

use warpforge::{CompileOptions, CompiledModel, Model, Tensor};

use crate::benchmark::BenchmarkError;

/// A vector of the index with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Neighbour {
    pub(super) index: usize,
    pub(super) score: f32,
}

/// Unit vectors to search in.
pub(super) struct Index {
    vectors: Vec<f32>,
    width: usize,
    program: CompiledModel,
}

fn failed(error: impl std::fmt::Display) -> BenchmarkError {
    BenchmarkError::Failed(error.to_string())
}

impl Index {
    /// An index of these vectors for batches of so many queries.
    ///
    /// # Errors
    /// If the search cannot be compiled.
    pub(super) fn new(
        vectors: Vec<f32>,
        width: usize,
        queries: usize,
        options: &CompileOptions,
    ) -> Result<Self, BenchmarkError> {
        let count = vectors.len() / width;
        let text = format!(
            "func.func @main(%queries: tensor<{queries}x{width}xf32> {{warpforge.name = \"queries\"}}, \
             %index: tensor<{count}x{width}xf32> {{warpforge.name = \"index\", warpforge.role = \"parameter\"}}) \
             -> (tensor<{queries}x{count}xf32> {{warpforge.name = \"scores\"}}) {{\n\
             %scores = stablehlo.dot_general %queries, %index, contracting_dims = [1] x [1] : \
             (tensor<{queries}x{width}xf32>, tensor<{count}x{width}xf32>) -> tensor<{queries}x{count}xf32>\n\
             func.return %scores : tensor<{queries}x{count}xf32> }}"
        );
        let mut model = Model::from_text("search.mlir", text).map_err(failed)?;
        let weight = Tensor::from_slice(&[count, width], &vectors).map_err(failed)?;
        model.bind_weights(&[("index".to_owned(), weight)].into()).map_err(failed)?;
        let program = model.compile(options).map_err(failed)?;
        Ok(Self { vectors, width, program })
    }

    /// The best of the index for each query, the nearest first.
    ///
    /// # Errors
    /// What went wrong in the product.
    pub(super) fn search(
        &self,
        queries: &Tensor,
        wanted: usize,
    ) -> Result<Vec<Vec<Neighbour>>, BenchmarkError> {
        let outputs = self.program.run([("queries", queries.clone())]).map_err(failed)?;
        let scores = outputs.get("scores").ok_or_else(|| failed("the search gave no scores"))?;
        let scores = scores.as_slice::<f32>().map_err(failed)?;
        Ok(scores.chunks(self.vectors.len() / self.width).map(|row| best(row, wanted)).collect())
    }

    /// The score of each vector for a query, by plain sums in f64.
    fn plain(&self, query: &[f32]) -> Vec<f64> {
        let product =
            |vector: &[f32]| vector.iter().zip(query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        self.vectors.chunks(self.width).map(product).collect()
    }

    /// Holds what was found for a query to plain search. Vectors whose scores are the same but for rounding may change
    /// places.
    ///
    /// # Errors
    /// A neighbour that is none.
    pub(super) fn held(&self, query: &[f32], found: &[Neighbour]) -> Result<(), BenchmarkError> {
        const ROUNDING: f64 = 1e-5;
        let plain = self.plain(query);
        let mut right = plain.clone();
        right.sort_by(|a, b| b.total_cmp(a));
        for (place, (neighbour, right)) in found.iter().zip(&right).enumerate() {
            let is = plain[neighbour.index];
            if (is - right).abs() > ROUNDING || (f64::from(neighbour.score) - is).abs() > ROUNDING {
                return Err(failed(format!(
                    "wrong answer: neighbour {place} has the score {is:.6}, {right:.6} is right"
                )));
            }
        }
        Ok(())
    }
}

/// The best scores of a row, the highest first, those of the same score in order.
fn best(row: &[f32], wanted: usize) -> Vec<Neighbour> {
    let order = |a: &Neighbour, b: &Neighbour| -> Ordering {
        b.score.total_cmp(&a.score).then_with(|| a.index.cmp(&b.index))
    };
    let mut kept: Vec<Neighbour> = Vec::with_capacity(2 * wanted);
    let mut least = f32::NEG_INFINITY;
    for (index, &score) in row.iter().enumerate() {
        if kept.len() >= wanted && score <= least {
            continue;
        }
        kept.push(Neighbour { index, score });
        // Sorting once in a while costs less than keeping order.
        if kept.len() == 2 * wanted {
            kept.select_nth_unstable_by(wanted - 1, order);
            kept.truncate(wanted);
            least = kept.iter().map(|one| one.score).fold(f32::INFINITY, f32::min);
        }
    }
    kept.sort_by(order);
    kept.truncate(wanted);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_a_row_are_those_of_a_sort() {
        let mut random = fastrand::Rng::with_seed(5);
        for length in [1, 3, 10, 11, 500] {
            // Few different scores: ties everywhere.
            let row: Vec<f32> = (0..length).map(|_| f32::from(random.u8(..20))).collect();
            let mut sorted: Vec<(usize, f32)> = row.iter().copied().enumerate().collect();
            sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            sorted.truncate(10);
            let found: Vec<(usize, f32)> = best(&row, 10).iter().map(|one| (one.index, one.score)).collect();
            let scores = |list: &[(usize, f32)]| list.iter().map(|one| one.1).collect::<Vec<_>>();
            assert_eq!(scores(&found), scores(&sorted), "{length}");
        }
    }

    #[test]
    fn a_search_is_held_to_plain_sums() {
        let mut random = fastrand::Rng::with_seed(6);
        let vectors: Vec<f32> = (0..100 * 8).map(|_| random.f32() - 0.5).collect();
        let index = Index::new(vectors.clone(), 8, 2, &CompileOptions::default()).unwrap();
        let queries = Tensor::from_slice(&[2, 8], &vectors[80..96]).unwrap();
        let found = index.search(&queries, 5).unwrap();
        for (query, found) in vectors[80..96].chunks(8).zip(&found) {
            index.held(query, found).unwrap();
            let mut wrong = found.clone();
            wrong[0].index = found[4].index;
            assert!(index.held(query, &wrong).is_err());
        }
    }
}
