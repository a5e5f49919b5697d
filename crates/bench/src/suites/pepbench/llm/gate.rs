//! The gate of language models: tokens and logits of plain loops.

use warpforge::{Outputs, QuantizationRecipe, Tensor};

use super::checkpoint::Checkpoint;
use super::decoder::{failed, greedy};
use super::program::{Program, Stored};
use super::reference::Reference;
use crate::benchmark::BenchmarkError;

/// How far numbers may be from the reference's, relative to the largest of them. In bf16, and where activations are quantized, a sum in
/// another order may be rounded the other way, and later layers multiply the difference.
pub(in crate::suites) fn tolerance(of: &Checkpoint, stored: Stored) -> f32 {
    let rounds = of.recipe.is_some_and(QuantizationRecipe::quantizes_activations);
    match stored {
        Stored::F32 if !rounds => 1e-4,
        _ => 3e-2,
    }
}

/// Holds the logits of one sequence to the reference's: all of them within the tolerance, and the largest the same. A
/// token whose logit is the largest but for less than the tolerance is as right.
pub(in crate::suites) fn held(
    found: &[f32],
    right: &[f32],
    tolerance: f32,
    at: usize,
) -> Result<(), BenchmarkError> {
    let bound = close(found, right, tolerance).map_err(|error| failed(format!("position {at}: {error}")))?;
    let (token, wanted) = (greedy(found), greedy(right));
    if token == wanted || right[wanted] - right[token] <= bound {
        return Ok(());
    }
    Err(failed(format!("wrong answer: position {at} gives token {token}, the reference {wanted}")))
}

/// Holds a token to the reference's logits, within the tolerance of logits.
pub(in crate::suites) fn chosen(
    token: i64,
    right: &[f32],
    tolerance: f32,
    at: usize,
) -> Result<(), BenchmarkError> {
    let largest = right.iter().map(|value| value.abs()).fold(0.0, f32::max);
    let wanted = greedy(right);
    let logit = usize::try_from(token).ok().and_then(|token| right.get(token));
    match logit.is_some_and(|logit| right[wanted] - logit <= tolerance * largest) {
        true => Ok(()),
        false => {
            Err(failed(format!("wrong answer: position {at} gives token {token}, the reference {wanted}")))
        }
    }
}

/// Says by how much numbers may be apart, where none is further from the reference's.
fn close(found: &[f32], right: &[f32], tolerance: f32) -> Result<f32, String> {
    let largest = right.iter().map(|value| value.abs()).fold(0.0, f32::max);
    let bound = tolerance * largest;
    let apart = |(found, right): (&f32, &f32)| match (found - right).abs() {
        distance if distance.is_nan() => f32::INFINITY,
        distance => distance,
    };
    let worst = found.iter().zip(right).map(apart).fold(0.0, f32::max);
    if worst <= bound && found.len() == right.len() {
        return Ok(bound);
    }
    Err(format!("wrong answer: {worst:.1e} from the reference's, at most {bound:.1e} is right"))
}

/// A cache's numbers.
fn floats(tensor: &Tensor) -> Result<Vec<f32>, BenchmarkError> {
    Ok(match tensor.as_slice::<half::bf16>() {
        Ok(narrow) => narrow.iter().map(|value| value.to_f32()).collect(),
        Err(_) => tensor.as_slice::<f32>().map_err(failed)?.to_vec(),
    })
}

/// A reference whose cache is what a prefill gave for one of its sequences.
pub(in crate::suites) fn after<'a>(
    of: &'a Checkpoint,
    stored: Stored,
    filled: &Outputs,
    sequence: usize,
    [tokens, capacity]: [usize; 2],
) -> Result<Reference<'a>, BenchmarkError> {
    let mut reference = Reference::new(of, stored, capacity);
    let channels = of.sizes.channels;
    for layer in 0..of.sizes.layers {
        for (part, name) in ["k", "v"].into_iter().enumerate() {
            let name = Program::cache(name, layer);
            let cache = filled.get(&name).ok_or_else(|| failed(format!("there is no `{name}`")))?;
            let cache = floats(cache)?;
            let each = tokens * channels;
            for (head, from) in cache.chunks(each).skip(sequence * of.sizes.kv_heads).enumerate() {
                if head < of.sizes.kv_heads {
                    let first = reference.place(head, 0).start;
                    reference.cache[layer][part][first..first + each].copy_from_slice(from);
                }
            }
        }
    }
    Ok(reference)
}

/// Holds a prefill to the reference at some positions of a sequence. Each position is computed anew from the keys and
/// values that the prefill gave for those before it: its own must be the reference's, and so must be the logits of the last.
pub(in crate::suites) fn prefilled(
    of: &Checkpoint,
    stored: Stored,
    filled: &Outputs,
    sequence: usize,
    ids: &[i64],
) -> Result<(), BenchmarkError> {
    let (tokens, tolerance) = (ids.len(), tolerance(of, stored));
    let given = after(of, stored, filled, sequence, [tokens, tokens])?;
    let mut reference = after(of, stored, filled, sequence, [tokens, tokens])?;
    let logits = filled.get("logits").ok_or_else(|| failed("the prefill gave no logits"))?;
    let logits = logits.as_slice::<f32>().map_err(failed)?;
    let vocabulary = of.sizes.vocabulary;
    let positions = [0, 1, 2, tokens / 3, tokens / 2, tokens.saturating_sub(2), tokens - 1];
    let mut checked: Vec<usize> = positions.into_iter().filter(|&at| at < tokens).collect();
    checked.sort_unstable();
    checked.dedup();
    for at in checked {
        let right = reference.step(ids[at] as usize, at);
        for layer in 0..of.sizes.layers {
            for part in 0..2 {
                let [found, right] = [&given, &reference].map(|side| -> Vec<f32> {
                    let heads = 0..of.sizes.kv_heads;
                    heads.flat_map(|head| side.cache[layer][part][side.place(head, at)].to_vec()).collect()
                });
                close(&found, &right, tolerance)
                    .map_err(|error| failed(format!("cache of position {at}, layer {layer}: {error}")))?;
            }
        }
        if at + 1 == tokens {
            let found = &logits[sequence * vocabulary..(sequence + 1) * vocabulary];
            held(found, &right, tolerance, at)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_token_or_logit_is_found_and_a_tie_is_none() {
        let right = [0.0, 10.0, 9.0, -3.0];
        held(&right, &right, 1e-4, 0).unwrap();
        let error = held(&[0.0, 10.0, 9.0, -2.9], &right, 1e-4, 3).unwrap_err().to_string();
        assert!(error.contains("position 3"), "{error}");
        assert!(held(&[0.0, f32::NAN, 9.0, -3.0], &right, 1e-4, 0).is_err());
        assert!(held(&right[..3], &right, 1e-4, 0).is_err());
        chosen(1, &right, 1e-4, 0).unwrap();
        for wrong in [2, -1, 4] {
            assert!(chosen(wrong, &right, 1e-4, 0).is_err());
        }
        // Two logits that are as good as equal may change places.
        held(&[0.0, 9.9, 10.0], &[0.0, 10.0, 9.9], 3e-2, 0).unwrap();
        assert!(held(&[0.0, 9.9996, 9.9999], &[0.0, 10.0, 9.998], 1e-4, 0).is_err());
    }
}
