//! Weights of 4 bits that PyTorch packs for the matrix instructions of NVIDIA's GPUs, and products with them.
//!
//! A tile is 8 rows by 16 codes of the depth. A word of 32 bits has the codes of one thread of a warp in two tiles of the depth: thread
//! `4r + c` has row `r` and the codes `2c`, `2c + 1`, `2c + 8` and `2c + 9` of each. The first of each pair are in the lower half of the word.
//! Words lie as `[rows / 8, depth / (16 · tiles), 32, tiles / 2]`, where `tiles` of the depth are side by side.

use super::super::prelude::*;
use super::packed::{product_of_codes, sizes};

pub(super) const TABLE: &[Op] =
    &[op("aten._convert_weight_to_int4pack.default", pack), op("aten._weight_int4pack_mm.default", product)];

const PACK: &str = "aten._convert_weight_to_int4pack.default";
const MASK: i64 = 15;
const BITS: i64 = 4;
/// Codes of a word.
const CODES: i64 = 8;
/// Rows of a tile, and its codes of the depth.
const TILE: (i64, i64) = (8, 16);
/// Pairs of codes of a tile that the threads of a row have side by side.
const THREADS_OF_ROW: i64 = 4;

/// How many tiles there are: of rows, of the depth in steps of so many words, and those words.
struct Tiles {
    rows: i64,
    steps: i64,
    words: i64,
}

impl Tiles {
    /// The dimensions of the words: tile of rows, step, row, thread of the row, word.
    fn words(&self) -> [Size; 5] {
        sizes([self.rows, self.steps, TILE.0, THREADS_OF_ROW, self.words])
    }

    fn matrix(&self) -> [i64; 2] {
        [self.rows * TILE.0, self.steps * self.words * 2 * TILE.1]
    }
}

/// By how much each code of a word is shifted, for words of some dimensions.
fn shifts(cx: &mut Cx<'_>, words: &[Size]) -> Lowered<Tensor> {
    let amounts: Vec<Scalar> = (0..CODES).map(|at| Scalar::Int(i128::from(at * BITS))).collect();
    let amounts = cx.constant(ElementType::I32, &[CODES as usize], amounts)?;
    let dims: Vec<Size> = words.iter().cloned().chain([Size::Int(CODES)]).collect();
    cx.broadcast(&amounts, &dims, &[words.len()])
}

/// Bytes `[rows, depth / 2]` with the code of each pair's first place in their upper halves, as words.
fn pack(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (bytes, inner) = (args.tensor("self")?, args.int("innerKTiles")?);
    let &[rows, half] = cx.known(&bytes.dims)?.as_slice() else { return refuse("codes of no matrix") };
    let fits = [2, 4, 8].contains(&inner) && rows % TILE.0 == 0 && 2 * half % (inner * TILE.1) == 0;
    if !fits || bytes.dtype != ElementType::U8 {
        return refuse(format!("{rows} rows of {half} bytes in {inner} tiles, which PyTorch does not pack"));
    }
    let tiles = Tiles { rows: rows / TILE.0, steps: 2 * half / (inner * TILE.1), words: inner / 2 };
    let wide = cx.convert(&bytes, ElementType::I32)?;
    let first = cx.with_number(OpKind::ShiftRightLogical, &wide, BITS)?;
    let second = cx.with_number(OpKind::And, &wide, MASK)?;
    let mut halves = Vec::new();
    for codes in [first, second] {
        // Which of two tiles, and which of the two pairs in it.
        let split = sizes([1, tiles.rows, TILE.0, tiles.steps, tiles.words, 2, 2, THREADS_OF_ROW]);
        halves.push(cx.reshape(&codes, &split)?);
    }
    let both = cx.concatenate(&halves, 0)?;
    let ordered = cx.transpose(&both, &[1, 3, 2, 7, 4, 0, 5, 6])?;
    let words = tiles.words();
    let codes: Vec<Size> = words.iter().cloned().chain([Size::Int(CODES)]).collect();
    let codes = cx.reshape(&ordered, &codes)?;
    let amounts = shifts(cx, &words)?;
    let shifted = cx.binary(OpKind::ShiftLeft, &codes, &amounts)?;
    let words = cx.sum(&shifted, &[words.len()])?;
    let threads = TILE.0 * THREADS_OF_ROW;
    one(cx.reshape(&words, &sizes([tiles.rows, tiles.steps, threads, tiles.words]))?)
}

/// The codes `[rows, depth]` in words.
fn unpacked(cx: &mut Cx<'_>, words: &Tensor) -> Lowered<Tensor> {
    let &[rows, steps, threads, count] = cx.known(&words.dims)?.as_slice() else {
        return refuse("packed codes of no tiles");
    };
    if threads != TILE.0 * THREADS_OF_ROW || words.dtype != ElementType::I32 {
        return refuse("packed codes of no warps");
    }
    let tiles = Tiles { rows, steps, words: count };
    let dims = tiles.words();
    let split = cx.reshape(words, &dims)?;
    let amounts = shifts(cx, &dims)?;
    let map: Vec<usize> = (0..dims.len()).collect();
    let repeated = cx.broadcast(&split, &amounts.dims, &map)?;
    let shifted = cx.binary(OpKind::ShiftRightLogical, &repeated, &amounts)?;
    let codes = cx.with_number(OpKind::And, &shifted, MASK)?;
    // Which of a pair, which of two tiles, and which of the two pairs in it.
    let apart = sizes([rows, steps, TILE.0, THREADS_OF_ROW, count, 2, 2, 2]);
    let apart = cx.reshape(&codes, &apart)?;
    let ordered = cx.transpose(&apart, &[0, 2, 1, 4, 6, 7, 3, 5])?;
    cx.reshape(&ordered, &sizes(tiles.matrix()))
}

/// A product with `(code - 8) · scale + zero`, where groups of a row share a scale and a zero.
fn product(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, words, factors) = (args.tensor("self")?, args.tensor("mat2")?, args.tensor("qScaleAndZeros")?);
    if cx.packing.on_hip && !args.is_given_by("mat2", PACK) {
        return refuse("its weights are packed for an AMD GPU; trace the model where PyTorch is for CUDA");
    }
    let codes = unpacked(cx, &words)?;
    product_of_codes(cx, &x, &codes, args.int("qGroupSize")?, &factors)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    #[should_panic(expected = "packed codes of no warps")]
    fn words_of_another_shape_are_refused() {
        let arguments = vec![
            ("self", Floats(&[1, 32], vec![1.0; 32])),
            ("mat2", Ints(&[1, 1, 16, 2], vec![0; 32])),
            ("qGroupSize", Plain(json!({"as_int": 32}))),
            ("qScaleAndZeros", Floats(&[1, 8, 2], vec![1.0; 16])),
        ];
        evaluated("aten._weight_int4pack_mm.default", arguments, &[(F32, &[1, 8])]);
    }
}
