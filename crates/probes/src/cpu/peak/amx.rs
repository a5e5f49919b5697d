//! Kernels for the matrix tiles of x86-64.

// Tiles are used by inline assembly.
#![allow(unsafe_code)]

use std::arch::asm;

use warpforge_kernels::amx::{ROW_BYTES, ROWS, Tiles};

use super::chain::bf16;
use super::{KnownPeak, PeakKernel};
use crate::cpu::Dtype;
use crate::cpu::bf16::Bf16;

/// Products of two tiles in one iteration of a kernel.
const PRODUCTS: u64 = 8;
/// Sums that a tile of accumulators holds.
const SUMS: usize = ROWS * ROW_BYTES / 4;

/// What the eight tiles hold: four of accumulators, two left and two right operands of `N` elements each.
///
/// An iteration adds the product of each left operand with a right one to each accumulator: accumulators 0 and 2 get
/// `(left[0] + left[1]) * right[0]`, 1 and 3 get `(left[0] + left[1]) * right[1]`. Four sums are in flight, which
/// hides the 52 cycles that a product takes while one begins every 16.
#[derive(Debug, Clone)]
struct TileChains<E, A, const N: usize> {
    left: [[E; N]; 2],
    right: [[E; N]; 2],
    acc: [[A; SUMS]; 4],
}

type Bf16Tiles = TileChains<Bf16, f32, 512>;
type Int8Tiles = TileChains<i8, i32, 1024>;

impl<E: Copy + std::ops::Neg<Output = E>, A: Copy + Default + Into<f64>, const N: usize> TileChains<E, A, N> {
    /// Random operands. The second left operand is the negative of the first, so that the sums stay bounded.
    fn ordinary(mut element: impl FnMut() -> E) -> Self {
        let left = [(); N].map(|()| element());
        Self {
            left: [left, left.map(|value| -value)],
            right: [[(); N]; 2].map(|elements| elements.map(|()| element())),
            acc: [[A::default(); SUMS]; 4],
        }
    }

    fn checksum(&self) -> f64 {
        self.acc.as_flattened().iter().map(|&value| value.into()).sum()
    }
}

macro_rules! tile_kernel {
    ($name:ident, $chains:ty, $product:literal) => {
        /// Runs the loop. `tiles` must be a proof for the instruction used.
        fn $name(tiles: Tiles, chains: &mut $chains, iterations: u64) {
            let _configured = tiles.configure();
            // SAFETY: the tiles are configured to 16 rows of 64 bytes, so that each load and store touches the
            // 1,024 bytes of one array of `chains`, and nothing else is changed.
            unsafe {
                asm!(
                    "tileloadd tmm0, [{acc} + {stride}]",
                    "tileloadd tmm1, [{acc} + {stride} + 1024]",
                    "tileloadd tmm2, [{acc} + {stride} + 2048]",
                    "tileloadd tmm3, [{acc} + {stride} + 3072]",
                    "tileloadd tmm4, [{left} + {stride}]",
                    "tileloadd tmm5, [{left} + {stride} + 1024]",
                    "tileloadd tmm6, [{right} + {stride}]",
                    "tileloadd tmm7, [{right} + {stride} + 1024]",
                    "test {n}, {n}",
                    "jz 3f",
                    "2:",
                    concat!($product, " tmm0, tmm4, tmm6"),
                    concat!($product, " tmm1, tmm4, tmm7"),
                    concat!($product, " tmm2, tmm5, tmm6"),
                    concat!($product, " tmm3, tmm5, tmm7"),
                    concat!($product, " tmm0, tmm5, tmm6"),
                    concat!($product, " tmm1, tmm5, tmm7"),
                    concat!($product, " tmm2, tmm4, tmm6"),
                    concat!($product, " tmm3, tmm4, tmm7"),
                    "dec {n}",
                    "jnz 2b",
                    "3:",
                    "tilestored [{acc} + {stride}], tmm0",
                    "tilestored [{acc} + {stride} + 1024], tmm1",
                    "tilestored [{acc} + {stride} + 2048], tmm2",
                    "tilestored [{acc} + {stride} + 3072], tmm3",
                    acc = in(reg) chains.acc.as_mut_ptr(),
                    left = in(reg) chains.left.as_ptr(),
                    right = in(reg) chains.right.as_ptr(),
                    stride = in(reg) ROW_BYTES,
                    n = inout(reg) iterations => _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }
    };
}

tile_kernel!(tiles_bf16, Bf16Tiles, "tdpbf16ps");
tile_kernel!(tiles_int8, Int8Tiles, "tdpbssd");

fn run_bf16(iterations: u64) -> f64 {
    let mut random = fastrand::Rng::with_seed(0x5eed);
    let mut chains = Bf16Tiles::ordinary(|| bf16(&mut random));
    if let Some(tiles) = Tiles::with_bf16() {
        tiles_bf16(tiles, &mut chains, iterations);
    }
    chains.checksum()
}

fn run_int8(iterations: u64) -> f64 {
    let mut random = fastrand::Rng::with_seed(0x5eed);
    let mut chains = Int8Tiles::ordinary(|| random.i8(-127..=127));
    if let Some(tiles) = Tiles::with_int8() {
        tiles_int8(tiles, &mut chains, iterations);
    }
    chains.checksum()
}

/// Whether the accumulators are the sums of products made one element at a time. `GROUP` consecutive rows of the right
/// operand lie interleaved, as the instructions want them.
fn agrees<E: Copy, A: Copy + Into<f64>, const N: usize, const GROUP: usize>(
    before: &TileChains<E, A, N>,
    after: &TileChains<E, A, N>,
    iterations: u64,
    value: impl Fn(E) -> f64,
) -> bool {
    let depth = N / ROWS;
    (0..4 * SUMS).all(|at| {
        let (tile, row, column) = (at / SUMS, at % SUMS / 16, at % 16);
        let mut sum = 0.0;
        for k in 0..depth {
            let left = value(before.left[0][row * depth + k]) + value(before.left[1][row * depth + k]);
            sum += left * value(before.right[tile % 2][k / GROUP * depth + column * GROUP + k % GROUP]);
        }
        let expected = before.acc[tile][row * 16 + column].into() + iterations as f64 * sum;
        after.acc[tile][row * 16 + column].into() == expected
    })
}

fn verify_bf16() -> bool {
    let Some(tiles) = Tiles::with_bf16() else { return false };
    [0, 1, 3].into_iter().all(|iterations| {
        let mut random = fastrand::Rng::with_seed(3);
        let mut chains = Bf16Tiles::ordinary(|| bf16(&mut random));
        chains.left[1] = [(); 512].map(|()| bf16(&mut random));
        chains.acc = [[(); SUMS]; 4].map(|sums| sums.map(|()| bf16(&mut random).to_f32()));
        let before = chains.clone();
        tiles_bf16(tiles, &mut chains, iterations);
        agrees::<_, _, 512, 2>(&before, &chains, iterations, |element| element.to_f32().into())
    })
}

fn verify_int8() -> bool {
    let Some(tiles) = Tiles::with_int8() else { return false };
    [0, 1, 3].into_iter().all(|iterations| {
        let mut random = fastrand::Rng::with_seed(3);
        let mut chains = Int8Tiles::ordinary(|| random.i8(-127..=127));
        chains.left[1] = [(); 1024].map(|()| random.i8(..));
        chains.acc = [[(); SUMS]; 4].map(|sums| sums.map(|()| random.i32(-1000..1000)));
        let before = chains.clone();
        tiles_int8(tiles, &mut chains, iterations);
        agrees::<_, _, 1024, 4>(&before, &chains, iterations, f64::from)
    })
}

/// The kernels, present where the processor and the operating system allow them.
pub(super) fn kernels() -> [KnownPeak; 2] {
    let known = |tiles: Option<Tiles>, dtype, elements_per_row: usize, run, verify| KnownPeak {
        dtype,
        isa: "amx",
        kernel: tiles.map(|_| PeakKernel {
            dtype,
            isa: "amx",
            ops_per_iteration: PRODUCTS * 2 * (SUMS * elements_per_row) as u64,
            run,
            verify,
        }),
    };
    [
        known(Tiles::with_bf16(), Dtype::Bf16, 32, run_bf16 as fn(u64) -> f64, verify_bf16 as fn() -> bool),
        known(Tiles::with_int8(), Dtype::Int8, 64, run_int8, verify_int8),
    ]
}
