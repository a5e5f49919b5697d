//! The weights of a decoder, from a file or a seed, as its programs take them.

use std::collections::BTreeMap;
use std::path::Path;

use half::bf16;
use warpforge::{QuantizationRecipe, Tensor};

use super::formats;
use super::program::{Program, Stored};
use super::sizes::Sizes;
use crate::benchmark::BenchmarkError;

/// The parts of a checkpoint, as every format has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::suites) enum Part {
    Embedding,
    Norm,
    Head,
    AttentionNorm(usize),
    Query(usize),
    Key(usize),
    Value(usize),
    Output(usize),
    MlpNorm(usize),
    Gate(usize),
    Up(usize),
    Down(usize),
}

/// A decoder's weights.
pub(in crate::suites) struct Checkpoint {
    pub(in crate::suites) sizes: Sizes,
    /// Whether the embedding is the last matrix too.
    pub(in crate::suites) tied: bool,
    weights: BTreeMap<String, Vec<f32>>,
    /// How matrices are quantized by programs, and what they are then: what references multiply.
    pub(super) recipe: Option<QuantizationRecipe>,
    restored: BTreeMap<String, Vec<f32>>,
}

impl Checkpoint {
    /// The weights in a folder or a file, told apart by what is in them.
    ///
    /// # Errors
    /// A file that cannot be read, or that is of another architecture.
    pub(in crate::suites) fn open(path: &Path) -> Result<Self, BenchmarkError> {
        formats::open(path)
            .map_err(|reason| BenchmarkError::BadInput(format!("{}: {reason}", path.display())))
    }

    /// Weights from a seed, of magnitudes that keep sums of one magnitude.
    pub(in crate::suites) fn seeded(sizes: Sizes, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut uniform = |rows: usize, columns: usize, deviation: f64| -> Vec<f32> {
            let width = (deviation * 12f64.sqrt()) as f32;
            std::iter::repeat_with(|| (random.f32() - 0.5) * width).take(rows * columns).collect()
        };
        let mut weights = BTreeMap::new();
        weights.insert("embedding".to_owned(), uniform(sizes.vocabulary, sizes.hidden, 0.5));
        weights.insert("norm".to_owned(), vec![1.0; sizes.hidden]);
        for layer in 0..sizes.layers {
            for norm in ["norm.attention", "norm.mlp"] {
                weights.insert(format!("layer.{layer}.{norm}"), vec![1.0; sizes.hidden]);
            }
            for (name, rows, columns) in sizes.matrices() {
                let values = uniform(rows, columns, (columns as f64).powf(-0.5));
                weights.insert(format!("layer.{layer}.{name}"), values);
            }
        }
        Self { sizes, tied: true, weights, recipe: None, restored: BTreeMap::new() }
    }

    /// Puts the parts of a checkpoint together. `take` gives a part's values, the rows of matrices being outputs; where
    /// `interleaved`, the channels that are rotated together are neighbours, not halves of a head.
    ///
    /// # Errors
    /// A part that is missing or of another size.
    pub(in crate::suites) fn assemble(
        sizes: Sizes,
        interleaved: bool,
        take: impl Fn(Part) -> Result<Option<Vec<f32>>, String>,
    ) -> Result<Self, String> {
        let needed = |part: Part, rows: usize, columns: usize| -> Result<Vec<f32>, String> {
            let values = take(part)?.ok_or_else(|| format!("there is no {part:?}"))?;
            match values.len() == rows * columns {
                true => Ok(values),
                false => Err(format!("{part:?} has {} values, not {rows}x{columns}", values.len())),
            }
        };
        let (hidden, inner) = (sizes.hidden, sizes.intermediate);
        let mut weights = BTreeMap::new();
        weights.insert("embedding".to_owned(), needed(Part::Embedding, sizes.vocabulary, hidden)?);
        weights.insert("norm".to_owned(), needed(Part::Norm, 1, hidden)?);
        for layer in 0..sizes.layers {
            let mut add =
                |name: &str, values: Vec<f32>| weights.insert(format!("layer.{layer}.{name}"), values);
            add("norm.attention", needed(Part::AttentionNorm(layer), 1, hidden)?);
            add("norm.mlp", needed(Part::MlpNorm(layer), 1, hidden)?);
            let mut qkv = needed(Part::Query(layer), sizes.queries(), hidden)?;
            let mut key = needed(Part::Key(layer), sizes.keys(), hidden)?;
            if interleaved {
                qkv = in_halves(&qkv, hidden, sizes.channels);
                key = in_halves(&key, hidden, sizes.channels);
            }
            qkv.extend(key);
            qkv.extend(needed(Part::Value(layer), sizes.keys(), hidden)?);
            add("qkv", qkv);
            add("output", needed(Part::Output(layer), hidden, sizes.queries())?);
            let mut both = needed(Part::Gate(layer), inner, hidden)?;
            both.extend(needed(Part::Up(layer), inner, hidden)?);
            add("gate_up", both);
            add("down", needed(Part::Down(layer), hidden, inner)?);
        }
        let head = take(Part::Head)?;
        let tied = head.is_none();
        if head.is_some() {
            weights.insert("head".to_owned(), needed(Part::Head, sizes.vocabulary, hidden)?);
        }
        Ok(Self { sizes, tied, weights, recipe: None, restored: BTreeMap::new() })
    }

    /// The values of a weight.
    pub(in crate::suites) fn weight(&self, name: &str) -> &[f32] {
        self.weights.get(name).map_or(&[], Vec::as_slice)
    }

    /// The values that a matrix multiplies by.
    pub(super) fn matrix(&self, name: &str) -> &[f32] {
        self.restored.get(name).map_or_else(|| self.weight(name), Vec::as_slice)
    }

    /// The last matrix.
    pub(in crate::suites) fn head(&self) -> &[f32] {
        self.matrix(if self.tied { "embedding" } else { "head" })
    }

    /// Quantizes what references multiply by; programs do so while they are compiled.
    ///
    /// # Errors
    /// When groups do not fill the rows of a matrix, or a weight is no number.
    pub(super) fn quantize(&mut self, recipe: QuantizationRecipe) -> Result<(), String> {
        let sizes = &self.sizes;
        let layers = (0..sizes.layers).flat_map(|layer| {
            sizes.matrices().map(|(name, _, columns)| (format!("layer.{layer}.{name}"), columns))
        });
        let head = if self.tied { "embedding" } else { "head" };
        for (name, columns) in layers.chain([(head.to_owned(), sizes.hidden)]) {
            let values = recipe.restored_weights(self.weight(&name), columns);
            self.restored.insert(name, values.map_err(|error| error.to_string())?);
        }
        self.recipe = Some(recipe);
        Ok(())
    }

    /// Rounds the weights that are stored in that type to it.
    pub(in crate::suites) fn round(&mut self, stored: Stored) {
        if stored == Stored::F32 {
            return;
        }
        for (name, values) in &mut self.weights {
            if !name.contains("norm") {
                values.iter_mut().for_each(|value| *value = rounded(*value, stored));
            }
        }
    }

    /// The parameters of a program, in the types that it wants.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub(in crate::suites) fn tensors(
        &self,
        program: &Program<'_>,
    ) -> Result<BTreeMap<String, Tensor>, BenchmarkError> {
        let [cos, sin] = self.sizes.rotations(program.positions());
        let mut tensors = BTreeMap::new();
        for (name, dims, element) in program.parameters() {
            let values = match name.as_str() {
                "rotary.cos" => &cos,
                "rotary.sin" => &sin,
                name => self.weight(name),
            };
            let tensor = match element {
                "bf16" => {
                    let narrow: Vec<bf16> = values.iter().copied().map(bf16::from_f32).collect();
                    Tensor::from_slice(&dims, &narrow)
                }
                _ => Tensor::from_slice(&dims, values),
            };
            tensors.insert(name, tensor.map_err(|error| BenchmarkError::Failed(error.to_string()))?);
        }
        Ok(tensors)
    }
}

/// A number as it is stored.
pub(in crate::suites) fn rounded(value: f32, stored: Stored) -> f32 {
    match stored {
        Stored::F32 => value,
        Stored::Bf16 => bf16::from_f32(value).to_f32(),
    }
}

/// The rows of each head in another order: of pairs of neighbours, the first ones and then the second ones.
fn in_halves(rows: &[f32], width: usize, channels: usize) -> Vec<f32> {
    let mut halves = Vec::with_capacity(rows.len());
    for head in rows.chunks(channels * width) {
        for second in [0, 1] {
            for pair in head.chunks(2 * width) {
                halves.extend(&pair[second * width..(second + 1) * width]);
            }
        }
    }
    halves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_become_halves() {
        let rows: Vec<f32> = (0..16).map(|at| at as f32).collect();
        let halves = in_halves(&rows, 2, 4);
        assert_eq!(halves[..8], [0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0]);
        assert_eq!(halves[8..], [8.0, 9.0, 12.0, 13.0, 10.0, 11.0, 14.0, 15.0]);
    }

    #[test]
    fn a_part_that_is_missing_or_too_small_is_named() {
        let mut sizes = Sizes::generated();
        (sizes.vocabulary, sizes.hidden, sizes.layers) = (5, 4, 1);
        let none = Checkpoint::assemble(sizes.clone(), false, |_| Ok(None)).err().unwrap();
        assert!(none.contains("no Embedding"), "{none}");
        let small = Checkpoint::assemble(sizes, false, |part| {
            Ok(Some(vec![0.0; if part == Part::Embedding { 20 } else { 3 }]))
        });
        let small = small.err().unwrap();
        assert!(small.contains("Norm has 3 values, not 1x4"), "{small}");
    }
}
