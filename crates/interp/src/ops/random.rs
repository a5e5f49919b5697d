//! Random numbers.

use warpforge_ir::OpKind;
use warpforge_ir::attr::{RngAlgorithm, RngDistribution};
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use super::Evaluator;
use super::shape::first_element;
use crate::Value;
use crate::cx::{Cx, missing, one};
use crate::error::{Result, invalid, unsupported};

pub(super) fn evaluator(kind: OpKind) -> Option<Evaluator> {
    Some(match kind {
        OpKind::Rng => rng,
        OpKind::RngBitGenerator => rng_bit_generator,
        _ => return None,
    })
}

/// Threefry-2x32 with 20 rounds (Salmon and others, "Parallel random numbers: as easy as 1, 2, 3").
fn threefry(key: u64, counter: u64) -> [u32; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let [k0, k1] = halves(key);
    let keys = [k0, k1, 0x1bd1_1bda ^ k0 ^ k1];
    let [mut x, mut y] = halves(counter);
    x = x.wrapping_add(keys[0]);
    y = y.wrapping_add(keys[1]);
    for group in 0..5usize {
        for rotation in ROTATIONS[group % 2] {
            x = x.wrapping_add(y);
            y = y.rotate_left(rotation) ^ x;
        }
        x = x.wrapping_add(keys[(group + 1) % 3]);
        y = y.wrapping_add(keys[(group + 2) % 3]).wrapping_add(group as u32 + 1);
    }
    [x, y]
}

/// Philox-4x32 with 10 rounds, of the same paper.
fn philox(key: u64, counter: u128) -> [u32; 4] {
    let [mut k0, mut k1] = halves(key);
    let (low, high) = (halves(counter as u64), halves((counter >> 64) as u64));
    let mut x = [low[0], low[1], high[0], high[1]];
    for _ in 0..10 {
        let [low0, high0] = halves(u64::from(x[0]) * 0xd251_1f53);
        let [low1, high1] = halves(u64::from(x[2]) * 0xcd9e_8d57);
        x = [high1 ^ x[1] ^ k0, low1, high0 ^ x[3] ^ k1, low0];
        k0 = k0.wrapping_add(0x9e37_79b9);
        k1 = k1.wrapping_add(0xbb67_ae85);
    }
    x
}

/// The low and the high half.
fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

fn joined(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Random words of 32 or 64 bits for a shape, and by how much the counter advances.
fn threefry_words(key: u64, state: u64, shape: &Shape, wide: bool) -> (Vec<u64>, u64) {
    let count = shape.num_elements();
    if wide {
        let word = |at: u64| {
            let [low, high] = threefry(key, state.wrapping_add(at));
            joined(low, high)
        };
        return ((0..count as u64).map(word).collect(), count as u64);
    }
    // Narrow words come in pairs, neighbours along the first even dimension, else along the largest.
    let even = shape.dims().iter().position(|dim| dim % 2 == 0);
    let largest = || shape.dims().iter().enumerate().rev().max_by_key(|(_, dim)| **dim).map(|(axis, _)| axis);
    let Some(split) = even.or_else(largest) else {
        return (vec![u64::from(threefry(key, state)[0])], 1);
    };
    let mut half = shape.dims().to_vec();
    half[split] = half[split].div_ceil(2);
    let mut words = Vec::with_capacity(count);
    let mut indices = shape.indices();
    while let Some(index) = indices.advance() {
        let at = |axis: usize| if axis == split { index[axis] / 2 } else { index[axis] };
        let position = (0..half.len()).fold(0, |position, axis| position * half[axis] + at(axis));
        words.push(u64::from(threefry(key, state.wrapping_add(position as u64))[index[split] % 2]));
    }
    (words, half.iter().product::<usize>() as u64)
}

fn philox_words(key: u64, state: u128, count: usize, wide: bool) -> (Vec<u64>, u64) {
    let blocks = (count * if wide { 2 } else { 1 }).div_ceil(4) as u64;
    let block = |at: u64| {
        let x = philox(key, state.wrapping_add(u128::from(at)));
        if wide { vec![joined(x[0], x[1]), joined(x[2], x[3])] } else { x.map(u64::from).to_vec() }
    };
    ((0..blocks).flat_map(block).take(count).collect(), blocks)
}

fn rng_bit_generator(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let state = cx.tensor(0)?.clone();
    let algorithm: RngAlgorithm = cx.op.attr_enum("rng_algorithm").ok_or_else(|| missing("rng_algorithm"))?;
    let (shape, element) = (cx.result_shape(1)?, cx.result_element(1)?);
    let words: Vec<u64> = match state.element_type().bits() {
        64 => state.iter().map(|word| word.to_i128() as u64).collect(),
        32 => {
            let narrow: Vec<u32> = state.iter().map(|word| word.to_i128() as u32).collect();
            narrow.chunks(2).map(|pair| joined(pair[0], pair.get(1).copied().unwrap_or(0))).collect()
        }
        _ => return Err(unsupported("a state of elements other than 32 or 64 bits")),
    };
    let &[key, counter, ..] = words.as_slice() else {
        return Err(invalid("the state has fewer than two words"));
    };
    let wide = element.bits() > 32;
    let mut next = words.clone();
    let three_fry = match algorithm {
        RngAlgorithm::ThreeFry => true,
        // The specification leaves the default open; Philox is XLA's on the host.
        RngAlgorithm::Philox | RngAlgorithm::Default => false,
    };
    let bits = if three_fry {
        let (bits, used) = threefry_words(key, counter, &shape, wide);
        next[1] = counter.wrapping_add(used);
        bits
    } else {
        // A state of two words has no upper half of the counter; XLA takes the key in its place.
        let full = u128::from(counter) | u128::from(words.get(2).copied().unwrap_or(key)) << 64;
        let (bits, used) = philox_words(key, full, shape.num_elements(), wide);
        let advanced = full.wrapping_add(u128::from(used));
        next[1] = advanced as u64;
        if let Some(high) = next.get_mut(2) {
            *high = (advanced >> 64) as u64;
        }
        bits
    };
    let next_words: Vec<Scalar> = match state.element_type().bits() {
        64 => next.iter().map(|&word| Scalar::Int(i128::from(word))).collect(),
        _ => next.iter().flat_map(|&word| halves(word)).map(|half| Scalar::Int(i128::from(half))).collect(),
    };
    let next_words = next_words.into_iter().take(state.len());
    let state = Tensor::from_scalars(state.element_type(), state.shape().clone(), next_words)?;
    Ok(vec![state.into(), with_bits(element, shape, &bits)?.into()])
}

/// A tensor whose elements have the given bits, the upper ones dropped.
fn with_bits(element: ElementType, shape: Shape, words: &[u64]) -> Result<Tensor> {
    let width = element.byte_width();
    if element.is_complex() || element == ElementType::Bool {
        return Err(unsupported("random bits of truth values or complex numbers"));
    }
    let mask = if element.bits() < 8 { (1u8 << element.bits()) - 1 } else { 0xff };
    let bytes: Vec<u8> = words
        .iter()
        .flat_map(|word| word.to_le_bytes().into_iter().take(width))
        .map(|byte| byte & mask)
        .collect();
    Ok(Tensor::from_bytes(element, shape, &bytes)?)
}

/// Random numbers of a distribution. The specification leaves the generator open: here Philox, the same in every run.
fn rng(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let distribution: RngDistribution =
        cx.op.attr_enum("rng_distribution").ok_or_else(|| missing("rng_distribution"))?;
    let (a, b) = (first_element(cx.tensor(0)?)?, first_element(cx.tensor(1)?)?);
    let shape = cx.shape_from(&cx.operand_i64s(2)?)?;
    let element = cx.result_element(0)?;
    cx.machine.random_calls += 1;
    let (words, _) = philox_words(cx.machine.random_calls, 0, 2 * shape.num_elements(), true);
    // 53 random bits over (0, 1): never an end, so that the logarithm below is finite.
    let unit = |word: u64| ((word >> 11) as f64 + 0.5) * 0.5f64.powi(53);
    let values = words.chunks(2).map(|pair| match (distribution, element) {
        (RngDistribution::Normal, _) => {
            let radius = (-2.0 * unit(pair[0]).ln()).sqrt();
            Scalar::Float(a.to_f64() + b.to_f64() * radius * (std::f64::consts::TAU * unit(pair[1])).cos())
        }
        (RngDistribution::Uniform, ElementType::Float(float)) => {
            let drawn = a.to_f64() + (b.to_f64() - a.to_f64()) * unit(pair[0]);
            // Rounding must not reach the end that is excluded.
            Scalar::Float(if float.format().round(drawn) < b.to_f64() { drawn } else { a.to_f64() })
        }
        (RngDistribution::Uniform, _) => {
            let span = (b.to_i128() - a.to_i128()).max(1);
            Scalar::Int(a.to_i128() + i128::from(pair[0]) % span)
        }
    });
    one(Tensor::from_scalars(element, shape.clone(), values)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generators_are_those_of_the_paper() {
        // Known answers of the authors' own tests.
        assert_eq!(threefry(0, 0), [0x6b20_0159, 0x99ba_4efe]);
        assert_eq!(threefry(u64::MAX, u64::MAX), [0x1cb9_96fc, 0xbb00_2be7]);
        assert_eq!(philox(0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    }

    #[test]
    fn narrow_words_come_in_pairs() {
        let shape = Shape::new([2, 3]).expect("small");
        let (words, used) = threefry_words(7, 5, &shape, false);
        assert_eq!(used, 3);
        assert_eq!([words[1], words[4]], threefry(7, 6).map(u64::from));
    }
}
