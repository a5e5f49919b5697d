//! Quantization in blocks as `bitsandbytes` computes it on CPUs: NF4 with quantized scales, and the 8-bit dynamic maps.

mod dynamic;
mod nf4;

pub use dynamic::{BLOCK, CELLS, DynamicMap};
pub use nf4::{NF4_BLOCK, NF4_CODES, Nf4};
