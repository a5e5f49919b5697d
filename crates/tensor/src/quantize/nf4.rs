//! NF4: codes of 4 bits in blocks of 64 whose scales are quantized to 8 bits in blocks of 256.

use super::DynamicMap;

/// Values that share a scale.
pub const NF4_BLOCK: usize = 64;

/// The values of the codes: quantiles of the normal distribution.
pub const NF4_CODES: [f32; 16] = [
    -1.0,
    -0.696_192_8,
    -0.525_073_05,
    -0.394_917_5,
    -0.284_441_38,
    -0.184_773_43,
    -0.091_050_036,
    0.0,
    0.079_580_3,
    0.160_930_2,
    0.246_112_3,
    0.337_915_24,
    0.440_709_83,
    0.562_617,
    0.722_956_84,
    1.0,
];

/// Lanes that PyTorch adds in on x86-64: the mean of the scales is a sum whose order they decide.
const LANES: usize = 8;

/// A quantized tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Nf4 {
    /// Two codes in a byte, the first in its upper half.
    pub packed: Vec<u8>,
    /// The code of each block's scale, in the signed dynamic map.
    pub scale_codes: Vec<u8>,
    /// The scale of each block of scales.
    pub scale_absmax: Vec<f32>,
    /// What was subtracted from all scales: their mean.
    pub scale_offset: f32,
    /// Values.
    pub len: usize,
}

impl Nf4 {
    /// Quantizes values as `bitsandbytes` does on a CPU. PyTorch divides sums of more than 32768 scales among its threads; the mean is
    /// that of one thread.
    #[must_use]
    pub fn quantize(values: &[f32]) -> Self {
        let mut codes = Vec::with_capacity(values.len().next_multiple_of(2));
        let mut scales = Vec::with_capacity(values.len().div_ceil(NF4_BLOCK));
        for block in values.chunks(NF4_BLOCK) {
            let largest = block.iter().fold(0.0f32, |most, value| most.max(value.abs()));
            let whole = block.len() == NF4_BLOCK;
            let divisor = largest.max(1e-38);
            // A last block that is not full is divided, the others are multiplied by the inverse.
            let scaled = |value: &f32| if whole { value * (1.0 / divisor) } else { value / divisor };
            codes.extend(block.iter().map(|value| code(scaled(value).clamp(-1.0, 1.0))));
            scales.push(if whole { largest } else { divisor });
        }
        if codes.len() % 2 == 1 {
            codes.push(code(0.0));
        }
        let packed = codes.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        let scale_offset = mean(&scales);
        scales.iter_mut().for_each(|scale| *scale -= scale_offset);
        let (scale_codes, scale_absmax) = DynamicMap::signed().quantize(&scales);
        Self { packed, scale_codes, scale_absmax, scale_offset, len: values.len() }
    }

    /// The values of the codes.
    #[must_use]
    pub fn dequantize(&self) -> Vec<f32> {
        let scales = DynamicMap::signed().dequantize(&self.scale_codes, &self.scale_absmax);
        let codes = self.packed.iter().flat_map(|byte| [byte >> 4, byte & 15]).take(self.len);
        codes
            .enumerate()
            .map(|(at, code)| NF4_CODES[usize::from(code)] * (scales[at / NF4_BLOCK] + self.scale_offset))
            .collect()
    }
}

/// The nearest code: the number of midpoints below the value.
fn code(value: f32) -> u8 {
    NF4_CODES.windows(2).take_while(|pair| (pair[0] + pair[1]) / 2.0 < value).count() as u8
}

/// The mean as PyTorch computes it: vectors of lanes, four of them side by side, in cascades.
fn mean(values: &[f32]) -> f32 {
    let (vectors, rest) = values.as_chunks::<LANES>();
    let mut total = 0.0;
    for value in rest {
        total += value;
    }
    row_sum(vectors).iter().for_each(|lane| total += lane);
    total / values.len() as f32
}

/// Vectors added four side by side.
fn row_sum(vectors: &[[f32; LANES]]) -> [f32; LANES] {
    let (groups, rest) = vectors.as_chunks::<4>();
    let mut sums = cascade(groups);
    for vector in rest {
        add(&mut sums[0], vector);
    }
    let [mut first, others @ ..] = sums;
    others.iter().for_each(|other| add(&mut first, other));
    first
}

/// Sums of four rows, each over several levels, so that no level adds many numbers.
fn cascade(groups: &[[[f32; LANES]; 4]]) -> [[f32; LANES]; 4] {
    const LEVELS: usize = 4;
    let size = groups.len();
    let ceil_log2 = if size <= 2 { 1 } else { (size - 1).ilog2() as usize + 1 };
    let power = (ceil_log2 / LEVELS).max(4);
    let (step, mask) = (1usize << power, (1usize << power) - 1);
    let mut levels = [[[0.0; LANES]; 4]; LEVELS];
    let add_all = |to: &mut [[f32; LANES]; 4], from: &[[f32; LANES]; 4]| {
        to.iter_mut().zip(from).for_each(|(to, from)| add(to, from));
    };
    let (whole, rest) = groups.split_at(size - size % step);
    for (at, block) in whole.chunks(step).enumerate() {
        block.iter().for_each(|group| add_all(&mut levels[0], group));
        let done = (at + 1) * step;
        for level in 1..LEVELS {
            let below = std::mem::replace(&mut levels[level - 1], [[0.0; LANES]; 4]);
            add_all(&mut levels[level], &below);
            if done & (mask << (level * power)) != 0 {
                break;
            }
        }
    }
    rest.iter().for_each(|group| add_all(&mut levels[0], group));
    let [mut first, others @ ..] = levels;
    others.iter().for_each(|other| add_all(&mut first, other));
    first
}

fn add(to: &mut [f32; LANES], from: &[f32; LANES]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}
