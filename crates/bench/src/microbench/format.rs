//! Formats that have no kernels: values rounded as they hold them, for accuracy alone.

use std::fmt;
use std::str::FromStr;

use warpforge::{ElementType, FloatType};

use super::graph::{Function, Graph, Reduction, Value};
use super::layers::{F8E4M3, LEAST_SCALE};

const F4E2M1: ElementType = ElementType::Float(FloatType::F4E2M1Fn);

/// The largest values of f8E4M3FN and f4E2M1FN.
const MOST_F8: f64 = 448.0;
const MOST_F4: f64 = 6.0;

/// A format of weights, or of weights and activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// f8E4M3FN in blocks of 32, scales powers of two: OCP's microscaling format.
    Mxfp8,
    /// f4E2M1FN in blocks of 16, scales f8E4M3FN, and a scale in f32 for all of them.
    Nvfp4,
    /// Weights of 1 to 8 bits with a scale and a zero point for each group.
    Uintx {
        /// Bits of a code.
        bits: u32,
        /// Weights of an output that share a scale.
        group: u32,
    },
}

impl Format {
    /// The groups that `uintx` of the original has.
    const GROUPS: [u32; 4] = [32, 64, 128, 256];

    /// Values that share a scale; they lie along the reduction depth.
    #[must_use]
    pub fn block(self) -> usize {
        match self {
            Self::Mxfp8 => 32,
            Self::Nvfp4 => 16,
            Self::Uintx { group, .. } => group as usize,
        }
    }

    /// Bytes of so many weights.
    pub(super) fn bytes(self, count: u64) -> u64 {
        let blocks = count / self.block() as u64;
        match self {
            Self::Mxfp8 => count + blocks,
            Self::Nvfp4 => count / 2 + blocks + 4,
            Self::Uintx { bits, .. } => (count * u64::from(bits)).div_ceil(8) + 4 * blocks,
        }
    }

    /// Both operands of `input · weightsᵀ` as the format holds them, in f32.
    pub(super) fn rounded(self, graph: &mut Graph, input: Value, weights: Value) -> (Value, Value) {
        match self {
            Self::Mxfp8 => (graph.mxfp8(input, self.block()), graph.mxfp8(weights, self.block())),
            Self::Nvfp4 => (graph.nvfp4(input, self.block()), graph.nvfp4(weights, self.block())),
            Self::Uintx { bits, .. } => {
                (graph.convert(input, ElementType::F32), graph.uintx(weights, bits, self.block()))
            }
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mxfp8 => f.write_str("mxfp8"),
            Self::Nvfp4 => f.write_str("nvfp4"),
            Self::Uintx { bits, group } => write!(f, "uintx-{bits}-{group}"),
        }
    }
}

/// A name that is no format: what one looks like.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}`: uintx-BITS-GROUP has 1 to 8 bits in groups of {groups}", groups = Format::GROUPS.map(|group| group.to_string()).join(", "))]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let uintx = |text: &str| {
            let (bits, group) = text.strip_prefix("uintx-")?.split_once('-')?;
            let found = Self::Uintx { bits: bits.parse().ok()?, group: group.parse().ok()? };
            let Self::Uintx { bits, group } = found else { return None };
            let known = (1..=8).contains(&bits) && Self::GROUPS.contains(&group);
            (known && found.to_string() == text).then_some(found)
        };
        match text {
            "mxfp8" => Ok(Self::Mxfp8),
            "nvfp4" => Ok(Self::Nvfp4),
            _ => uintx(text).ok_or_else(|| UnknownFormat(text.to_owned())),
        }
    }
}

impl Graph {
    /// A matrix of f32 as blocks of its rows.
    fn blocks(&mut self, of: Value, size: usize) -> Value {
        let wide = self.convert(of, ElementType::F32);
        let [rows, columns] = [0, 1].map(|at: usize| self.dims(of)[at]);
        self.reshape(wide, &[rows, columns / size, size])
    }

    /// The largest magnitude of each block.
    fn largest(&mut self, blocks: Value) -> Value {
        let sizes = self.map(Function::Abs, &[blocks]);
        self.reduced(sizes, 2, Reduction::Magnitude)
    }

    /// Blocks divided by their scales, rounded to a float type and multiplied again, as a matrix.
    fn scaled_blocks(
        &mut self,
        of: Value,
        blocks: Value,
        scale: Value,
        (to, most): (ElementType, f64),
    ) -> Value {
        let least = self.splat(LEAST_SCALE, scale);
        let scale = self.map(Function::Maximum, &[scale, least]);
        let (dims, sizes) = (self.dims(of).to_vec(), self.dims(blocks).to_vec());
        let scale = self.repeated(scale, &[0, 1], &sizes);
        let steps = self.map(Function::Divide, &[blocks, scale]);
        let (high, low) = (self.splat(most, steps), self.splat(-most, steps));
        let steps = self.map(Function::Minimum, &[steps, high]);
        let steps = self.map(Function::Maximum, &[steps, low]);
        let codes = self.convert(steps, to);
        let steps = self.convert(codes, ElementType::F32);
        let values = self.map(Function::Multiply, &[steps, scale]);
        self.reshape(values, &dims)
    }

    /// The scale of a block is the power of two of its largest magnitude, less the exponent of the largest f8E4M3FN.
    fn mxfp8(&mut self, of: Value, size: usize) -> Value {
        let blocks = self.blocks(of, size);
        let largest = self.largest(blocks);
        let power = self.power_of_two(largest);
        let part = self.splat(1.0 / 256.0, power);
        let scale = self.map(Function::Multiply, &[power, part]);
        self.scaled_blocks(of, blocks, scale, (F8E4M3, MOST_F8))
    }

    /// The scale of all makes the largest block scale the largest f8E4M3FN.
    fn nvfp4(&mut self, of: Value, size: usize) -> Value {
        let blocks = self.blocks(of, size);
        let largest = self.largest(blocks);
        let all = self.reduced(largest, 1, Reduction::Magnitude);
        let all = self.reduced(all, 0, Reduction::Magnitude);
        let part = self.splat(1.0 / (MOST_F4 * MOST_F8), all);
        let all = self.map(Function::Multiply, &[all, part]);
        let least = self.splat(LEAST_SCALE, all);
        let all = self.map(Function::Maximum, &[all, least]);
        let sizes = self.dims(largest).to_vec();
        let all = self.repeated(all, &[], &sizes);
        let part = self.splat(1.0 / MOST_F4, largest);
        let scale = self.map(Function::Multiply, &[largest, part]);
        let scale = self.map(Function::Divide, &[scale, all]);
        let codes = self.convert(scale, F8E4M3);
        let scale = self.convert(codes, ElementType::F32);
        let scale = self.map(Function::Multiply, &[scale, all]);
        self.scaled_blocks(of, blocks, scale, (F4E2M1, MOST_F4))
    }

    /// Codes from the least to the largest value of a group, 0 among them.
    fn uintx(&mut self, of: Value, bits: u32, size: usize) -> Value {
        let blocks = self.blocks(of, size);
        let (dims, sizes) = (self.dims(of).to_vec(), self.dims(blocks).to_vec());
        let negative = self.map(Function::Negate, &[blocks]);
        let most = f64::from((1u32 << bits) - 1);
        let [largest, smallest] = [blocks, negative].map(|values| {
            let largest = self.reduced(values, 2, Reduction::Maximum);
            let zero = self.splat(0.0, largest);
            self.map(Function::Maximum, &[largest, zero])
        });
        let range = self.map(Function::Add, &[largest, smallest]);
        let part = self.splat(1.0 / most, range);
        let scale = self.map(Function::Multiply, &[range, part]);
        let least = self.splat(LEAST_SCALE, scale);
        let scale = self.map(Function::Maximum, &[scale, least]);
        let zero = self.map(Function::Divide, &[smallest, scale]);
        let zero = self.map(Function::Round, &[zero]);
        let [scale, zero] = [scale, zero].map(|value| self.repeated(value, &[0, 1], &sizes));
        let steps = self.map(Function::Divide, &[blocks, scale]);
        let steps = self.map(Function::Round, &[steps]);
        let codes = self.map(Function::Add, &[steps, zero]);
        let (low, high) = (self.splat(0.0, codes), self.splat(most, codes));
        let codes = self.map(Function::Maximum, &[codes, low]);
        let codes = self.map(Function::Minimum, &[codes, high]);
        let steps = self.map(Function::Subtract, &[codes, zero]);
        let values = self.map(Function::Multiply, &[steps, scale]);
        self.reshape(values, &dims)
    }
}

#[cfg(test)]
mod tests {
    use warpforge::{CompileOptions, Model, RunOptions, Tensor};

    use super::*;

    /// Values of one row as a format holds them.
    fn held(format: Format, values: &[f32]) -> Vec<f32> {
        let mut graph = Graph::new(ElementType::F32);
        let x = graph.argument(&[1, values.len()], ElementType::F32);
        let (_, weights) = format.rounded(&mut graph, x, x);
        let text = graph.function(&[(x, "x".to_owned(), String::new())], &[weights]);
        let compiled = Model::from_text("m", text.as_str()).unwrap().compile(&CompileOptions::default());
        let input = Tensor::from_slice(&[1, values.len()], values).unwrap();
        let outputs = compiled.unwrap().run_in_order(&[input], &RunOptions::default()).unwrap();
        outputs.iter().next().unwrap().1.as_slice::<f32>().unwrap().to_vec()
    }

    /// As many values as a block has, the first as given.
    fn block(format: Format, first: &[f32]) -> Vec<f32> {
        let mut values = first.to_vec();
        values.resize(format.block(), 0.0);
        values
    }

    #[test]
    fn blocks_hold_what_the_formats_say() {
        // 500 is between 2⁸ and 2⁹: the scale is 1, and f8E4M3FN ends at 448.
        let values = block(Format::Mxfp8, &[500.0, 17.0, 0.001, -3.3]);
        let found = held(Format::Mxfp8, &values);
        assert_eq!(found[..4], [448.0, 16.0, 0.001_953_125, -3.25]);
        // Each block has a scale of its own.
        let two: Vec<f32> =
            block(Format::Mxfp8, &[500.0]).into_iter().chain(block(Format::Mxfp8, &[0.001])).collect();
        let found = held(Format::Mxfp8, &two)[32];
        assert!((found - 0.001).abs() < 0.001 / 16.0 && found != 0.0, "{found}");

        // Steps of f4E2M1FN are 0, 0.5, 1, 1.5, 2, 3, 4 and 6: here a largest value of 6 makes the scale 1, but for rounding.
        let found = held(Format::Nvfp4, &block(Format::Nvfp4, &[6.0, -4.6, 2.4, 0.1]));
        for (found, wanted) in found.iter().zip([6.0, -4.0, 2.0, 0.0]) {
            assert!((found - wanted).abs() < 1e-5, "{found} {wanted}");
        }

        // Four codes from -1 to 2: -1, 0, 1, 2.
        let format = Format::Uintx { bits: 2, group: 32 };
        assert_eq!(held(format, &block(format, &[-1.0, 2.0, 0.6, -0.4]))[..5], [-1.0, 2.0, 1.0, 0.0, 0.0]);
        for format in [Format::Mxfp8, Format::Nvfp4, format] {
            assert!(held(format, &block(format, &[])).iter().all(|&value| value == 0.0), "{format}");
        }
    }

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        for text in ["mxfp8", "nvfp4", "uintx-4-64", "uintx-1-256", "uintx-8-32"] {
            assert_eq!(text.parse::<Format>().unwrap().to_string(), text);
        }
        for text in
            ["mxfp4", "uintx-", "uintx-9-64", "uintx-0-64", "uintx-4-48", "uintx-04-64", "uintx-banana"]
        {
            assert!(text.parse::<Format>().is_err(), "{text}");
        }
    }
}
