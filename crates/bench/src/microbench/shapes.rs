//! The matrix shapes of a file.

/// `m × k` times `k × n`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatrixShape {
    /// The name of the generator, with a part where it has several.
    pub name: String,
    /// Rows.
    pub m: usize,
    /// The reduction depth.
    pub k: usize,
    /// Columns.
    pub n: usize,
}

/// A generator of shapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Generator {
    /// Shapes as they are written.
    Custom(Vec<[usize; 3]>),
    /// The weights of LLaMa 2 70B on one node, attention and gates fused.
    Llama,
    /// Squares of powers of two.
    Pow2(u32, u32),
    /// The same, and one and a half times each.
    Pow2Extended(u32, u32),
    /// Every combination of powers of two.
    Sweep(u32, u32),
}

/// The names of generators.
pub const GENERATORS: [&str; 5] = ["custom", "llama", "pow2", "pow2_extended", "sweep"];

/// The largest power of two.
pub const MOST_POWER: u32 = 24;

/// Rows of the shapes of LLaMa.
const LLAMA_ROWS: usize = 16_384;

impl Generator {
    /// How many shapes there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        let powers = |low: u32, high: u32| u64::from((high + 1).saturating_sub(low));
        match self {
            Self::Custom(shapes) => shapes.len() as u64,
            Self::Llama => 4,
            Self::Pow2(low, high) => powers(*low, *high),
            Self::Pow2Extended(low, high) => 2 * powers(*low, *high),
            Self::Sweep(low, high) => powers(*low, *high).pow(3),
        }
    }

    /// The shapes.
    #[must_use]
    pub fn shapes(&self) -> Vec<MatrixShape> {
        let shape = |name: &str, [m, k, n]: [usize; 3]| MatrixShape { name: name.to_owned(), m, k, n };
        match self {
            Self::Custom(shapes) => shapes.iter().map(|&sizes| shape("custom", sizes)).collect(),
            Self::Llama => [
                ("llama attn.wqkv", 8192, 1280),
                ("llama attn.w0", 1024, 8192),
                ("llama ffn.w13", 8192, 7168),
                ("llama ffn.w2", 3584, 8192),
            ]
            .map(|(name, k, n)| shape(name, [LLAMA_ROWS, k, n]))
            .to_vec(),
            Self::Pow2(low, high) => (*low..=*high).map(|power| shape("pow2", [1 << power; 3])).collect(),
            Self::Pow2Extended(low, high) => (*low..=*high)
                .flat_map(|power| [1usize << power, (1 << power) + (1 << power) / 2])
                .map(|size| shape("pow2_extended", [size; 3]))
                .collect(),
            Self::Sweep(low, high) => {
                let powers = || (*low..=*high).map(|power| 1usize << power);
                powers()
                    .flat_map(|m| powers().map(move |k| (m, k)))
                    .flat_map(|(m, k)| powers().map(move |n| [m, k, n]))
                    .map(|sizes| shape("sweep", sizes))
                    .collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generators_make_what_the_original_makes() {
        let sizes = |generator: Generator| -> Vec<[usize; 3]> {
            let shapes = generator.shapes();
            assert_eq!(shapes.len() as u64, generator.count(), "{generator:?}");
            shapes.iter().map(|shape| [shape.m, shape.k, shape.n]).collect()
        };
        assert_eq!(sizes(Generator::Pow2(10, 11)), [[1024; 3], [2048; 3]]);
        assert_eq!(sizes(Generator::Pow2Extended(10, 11)), [[1024; 3], [1536; 3], [2048; 3], [3072; 3]]);
        assert_eq!(sizes(Generator::Sweep(8, 9)).len(), 8);
        assert_eq!(sizes(Generator::Sweep(8, 15)).len(), 512);
        assert_eq!(sizes(Generator::Llama)[2], [16_384, 8192, 7168]);
        assert_eq!(sizes(Generator::Custom(vec![[1, 2, 3]])), [[1, 2, 3]]);
    }
}
