//! The programs of a decoder on the engine: prefill, and decoding with its cache as state.

use warpforge::{CompileOptions, CompiledModel, Inputs, Model, Outputs, RunOptions, Tensor};

use super::checkpoint::Checkpoint;
use super::program::{Program, Step, Stored};
use crate::benchmark::BenchmarkError;

/// Anything that goes wrong in a program.
pub(in crate::suites) fn failed(error: impl std::fmt::Display) -> BenchmarkError {
    BenchmarkError::Failed(error.to_string())
}

/// The token with the largest logit; the first of equal ones.
pub(in crate::suites) fn greedy(logits: &[f32]) -> usize {
    let mut best = 0;
    for (token, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = token;
        }
    }
    best
}

fn compile_error(error: warpforge::Error) -> BenchmarkError {
    match error.is_not_offered() {
        true => BenchmarkError::NotPossible(error.to_string()),
        false => failed(error),
    }
}

/// The model of a program, its weights bound.
fn model(of: &Checkpoint, program: &Program<'_>) -> Result<Model, BenchmarkError> {
    let mut model = Model::from_text("decoder.mlir", program.module()).map_err(failed)?;
    model.bind_weights(&of.tensors(program)?).map_err(failed)?;
    Ok(model)
}

/// Prompts of one length at once.
pub(in crate::suites) struct Prefill {
    program: CompiledModel,
    dims: [usize; 2],
}

impl Prefill {
    /// Compiles the program for so many prompts of so many tokens.
    ///
    /// # Errors
    /// What the device has no kernels for, and everything else that goes wrong.
    pub(in crate::suites) fn new(
        of: &Checkpoint,
        stored: Stored,
        [batch, tokens]: [usize; 2],
        options: &CompileOptions,
    ) -> Result<Self, BenchmarkError> {
        let program = Program { of: &of.sizes, batch, step: Step::Prefill { tokens }, stored, tied: of.tied };
        let program = model(of, &program)?.compile(options).map_err(compile_error)?;
        Ok(Self { program, dims: [batch, tokens] })
    }

    /// The logits after the prompts and their keys and values.
    pub(in crate::suites) fn run(&self, ids: &[i64]) -> Result<Outputs, BenchmarkError> {
        let ids = Tensor::from_slice(&self.dims, ids).map_err(failed)?;
        self.program.run_in_order(&[ids], &RunOptions::default()).map_err(failed)
    }
}

/// Decoding, a token of each sequence at a time.
pub(in crate::suites) struct Decode {
    program: CompiledModel,
    batch: usize,
    layers: usize,
}

impl Decode {
    /// Compiles the program for so many sequences of at most `capacity` tokens.
    ///
    /// # Errors
    /// As [`Prefill::new`].
    pub(in crate::suites) fn new(
        of: &Checkpoint,
        stored: Stored,
        [batch, capacity]: [usize; 2],
        options: &CompileOptions,
    ) -> Result<Self, BenchmarkError> {
        let step = Step::Decode { capacity };
        let program = Program { of: &of.sizes, batch, step, stored, tied: of.tied };
        let model = model(of, &program)?;
        let program = model.compile_with_state(options, Inputs::new()).map_err(compile_error)?;
        Ok(Self { program, batch, layers: of.sizes.layers })
    }

    /// Puts what a prefill gave at the beginning of the cache.
    pub(in crate::suites) fn fill(&self, filled: &Outputs) -> Result<(), BenchmarkError> {
        let state = self.program.state().ok_or_else(|| failed("the program has no state"))?;
        for layer in 0..self.layers {
            for part in ["k", "v"] {
                let name = Program::cache(part, layer);
                let from = filled.get(&name).ok_or_else(|| failed(format!("there is no `{name}`")))?;
                let mut cache = state.read(&name).map_err(failed)?;
                let dims = cache.dims().to_vec();
                let row = dims[3] * from.element_type().byte_width();
                let (each, kept) = (from.dims()[2] * row, dims[2] * row);
                let targets = cache.bytes_mut().chunks_mut(kept);
                for (to, from) in targets.zip(from.bytes().chunks(each)) {
                    to[..each].copy_from_slice(from);
                }
                state.write(&name, &cache).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// The logits after one more token of each sequence, at this position.
    pub(in crate::suites) fn step(&self, ids: &[i64], position: usize) -> Result<Tensor, BenchmarkError> {
        let ids = Tensor::from_slice(&[self.batch, 1], ids).map_err(failed)?;
        let position = Tensor::from_slice(&[], &[position as i64]).map_err(failed)?;
        let outputs = self.program.run_in_order(&[ids, position], &RunOptions::default()).map_err(failed)?;
        outputs.get("logits").cloned().ok_or_else(|| failed("the decoder gave no logits"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::gate;
    use super::super::reference::Reference;
    use super::super::sizes::Sizes;
    use super::*;

    fn tiny(stored: Stored) -> Checkpoint {
        let sizes = Sizes {
            vocabulary: 50,
            hidden: 24,
            layers: 2,
            heads: 6,
            kv_heads: 2,
            channels: 8,
            intermediate: 40,
            context: 64,
            epsilon: 1e-5,
            theta: 10_000.0,
        };
        let mut checkpoint = Checkpoint::seeded(sizes, 5);
        checkpoint.round(stored);
        checkpoint
    }

    fn options() -> CompileOptions {
        CompileOptions { no_fallback: true, ..CompileOptions::default() }
    }

    fn row(logits: &Tensor, sequence: usize) -> &[f32] {
        &logits.as_slice::<f32>().unwrap()[sequence * 50..(sequence + 1) * 50]
    }

    #[test]
    fn steps_with_a_cache_give_the_references_logits() {
        for stored in [Stored::F32, Stored::Bf16] {
            let checkpoint = tiny(stored);
            let decode = Decode::new(&checkpoint, stored, [2, 8], &options()).unwrap();
            let mut references = [0, 1].map(|_| Reference::new(&checkpoint, stored, 8));
            for position in 0..8 {
                let ids = [position as i64 * 7 % 50, 49 - position as i64];
                let logits = decode.step(&ids, position).unwrap();
                for (sequence, reference) in references.iter_mut().enumerate() {
                    let right = reference.step(ids[sequence] as usize, position);
                    let tolerance = gate::tolerance(&checkpoint, stored);
                    gate::held(row(&logits, sequence), &right, tolerance, position).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_prefill_is_many_steps_and_fills_the_cache() {
        for stored in [Stored::F32, Stored::Bf16] {
            let checkpoint = tiny(stored);
            let prefill = Prefill::new(&checkpoint, stored, [2, 5], &options()).unwrap();
            let ids: Vec<i64> = (0..10).map(|at| at * 11 % 50).collect();
            let filled = prefill.run(&ids).unwrap();
            for sequence in 0..2 {
                let ids = &ids[sequence * 5..(sequence + 1) * 5];
                gate::prefilled(&checkpoint, stored, &filled, sequence, ids).unwrap();
            }
            let decode = Decode::new(&checkpoint, stored, [2, 8], &options()).unwrap();
            decode.fill(&filled).unwrap();
            let found = decode.step(&[3, 4], 5).unwrap();
            let mut reference = gate::after(&checkpoint, stored, &filled, 1, [5, 8]).unwrap();
            let tolerance = gate::tolerance(&checkpoint, stored);
            gate::held(row(&found, 1), &reference.step(4, 5), tolerance, 5).unwrap();
            // A cache that was tampered with is found.
            let mut wrong = ids.clone();
            wrong[0] = 13;
            let other = prefill.run(&wrong).unwrap();
            assert!(gate::prefilled(&checkpoint, stored, &other, 0, &ids[..5]).is_err());
        }
    }

    #[test]
    fn the_cache_is_updated_in_place() {
        let checkpoint = tiny(Stored::Bf16);
        let decode = Decode::new(&checkpoint, Stored::Bf16, [1, 8], &options()).unwrap();
        let options = RunOptions { profile: true, ..RunOptions::default() };
        let inputs =
            [Tensor::from_slice(&[1, 1], &[1i64]).unwrap(), Tensor::from_slice(&[], &[0i64]).unwrap()];
        let outputs = decode.program.run_in_order(&inputs, &options).unwrap();
        let names: Vec<&str> = outputs.profile().events.iter().map(|event| event.name.as_str()).collect();
        assert!(names.iter().any(|name| name.contains("dynamic update slice")), "{names:?}");
        assert!(!names.iter().any(|name| name.contains("copy of state")), "{names:?}");
    }
}
