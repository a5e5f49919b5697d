//! How a product of few rows is divided, and what lies where in shared memory.

use warpforge_fusion::precision::quantize::WeightGroups;
use warpforge_tensor::{ElementType, FloatType};

use crate::kernel::Unsupported;
use crate::options::MULTIPROCESSORS;

/// Rows of a tile.
pub(super) const TILE: usize = 8;

/// Lanes that share a line of codes.
pub(super) const LANES: usize = 4;

/// Bytes that a lane copies at once, at most.
pub(super) const LANE_BYTES: usize = 16;

/// Steps whose codes are on their way or at hand: main memory answers late.
pub(super) const STAGES: usize = 4;

/// Warps that keep a multiprocessor busy.
const BUSY_WARPS: usize = 16;

/// Fewest and most warps of a block.
const LEAST_WARPS: usize = 4;
const MOST_WARPS: usize = 8;

/// Blocks that a device should have.
const BUSY_BLOCKS: usize = 256;

/// Bytes of shared memory that each block takes beside what it asks for.
const TAKEN_BY_BLOCK: usize = 1 << 10;

/// Bytes of activations that lie in shared memory, at most. From the first-level cache they would come behind the codes, which come from main
/// memory.
const SHARED_ROWS: usize = 64 << 10;

/// Elements between rows in shared memory, so that lanes read other banks.
const PADDING: usize = 8;

/// How weights are stored.
#[derive(Debug, Clone, Copy)]
pub(super) enum Codes {
    /// Words of eight codes of 4 bits, above zero by eight.
    Grouped(WeightGroups),
    I8,
    F8,
}

impl Codes {
    pub(super) fn of(element: ElementType, groups: Option<WeightGroups>) -> Result<Self, Unsupported> {
        match (element, groups) {
            (ElementType::U32, Some(groups)) => Ok(Self::Grouped(groups)),
            (ElementType::I8, None) => Ok(Self::I8),
            (ElementType::Float(FloatType::F8E4M3Fn), None) => Ok(Self::F8),
            _ => Err(Unsupported::new(format!("weights stored as {element}"))),
        }
    }

    /// Codes of a word of 32 bits.
    pub(super) fn per_word(self) -> usize {
        if matches!(self, Self::Grouped(_)) { 8 } else { 4 }
    }

    /// Words that a lane reads at once: as many as fit where a step of all lanes lies in one group.
    fn words(self, depth: usize) -> Option<usize> {
        let whole = match self {
            Self::Grouped(groups) => groups.size,
            _ => depth * LANES,
        };
        let most = LANE_BYTES / 4;
        let fits = |words: &usize| {
            let codes = words * self.per_word();
            whole.is_multiple_of(codes * LANES) && depth.is_multiple_of(codes)
        };
        [most, most / 2, most / 4].into_iter().find(|words| fits(words) && words * self.per_word() >= 8)
    }

    fn groups(self, depth: usize) -> usize {
        match self {
            Self::Grouped(groups) => depth / groups.size,
            _ => 0,
        }
    }
}

/// The sizes of the kernel.
pub(super) struct Plan {
    pub(super) codes: Codes,
    /// Words that a lane reads at once.
    pub(super) words: usize,
    /// Tiles of rows of activations.
    pub(super) row_tiles: usize,
    /// Halves of the 16 columns of a tile.
    pub(super) halves: usize,
    /// Tiles of columns.
    pub(super) tiles: usize,
    /// Blocks; the tiles of each are so many apart.
    pub(super) blocks: usize,
    pub(super) warps: usize,
    /// Steps of the depth.
    pub(super) steps: usize,
    /// Whether the activations lie in shared memory.
    pub(super) shares_rows: bool,
    /// Groups of a column.
    pub(super) groups: usize,
    /// Rows and depth.
    rows: usize,
    depth: usize,
}

impl Plan {
    /// A plan for a device whose blocks have so many bytes of shared memory at most.
    pub(super) fn new([m, n, k]: [usize; 3], codes: Codes, most_shared: usize) -> Result<Self, Unsupported> {
        let words = codes.words(k).ok_or_else(|| {
            Unsupported::new("groups that lanes do not share: the weights are widened first")
        })?;
        let steps = k.div_ceil(words * codes.per_word() * LANES);
        let halves = if n.div_ceil(2 * TILE) >= BUSY_BLOCKS { 2 } else { 1 };
        let (row_tiles, tiles) = (m.div_ceil(TILE), n.div_ceil(halves * TILE));
        // Two steps for each warp, so that one is copied while another is multiplied.
        let warps = (steps / 2).next_power_of_two().clamp(LEAST_WARPS, MOST_WARPS);
        let shares_rows = m * (k + PADDING) * 2 <= SHARED_ROWS;
        let (groups, rows, depth) = (codes.groups(k), m, k);
        let mut plan = Self {
            codes,
            words,
            row_tiles,
            halves,
            tiles,
            blocks: 1,
            warps,
            steps,
            shares_rows,
            groups,
            rows,
            depth,
        };
        plan.shares_rows &= plan.shared_bytes() <= most_shared;
        if plan.shared_bytes() > most_shared {
            return Err(Unsupported::new("quantized weights with so many groups: they are widened first"));
        }
        let resident = (most_shared / (plan.shared_bytes() + TAKEN_BY_BLOCK)).clamp(1, BUSY_WARPS / warps);
        plan.blocks = tiles.min(resident * MULTIPROCESSORS);
        Ok(plan)
    }

    /// Codes of a line in a step.
    pub(super) fn step(&self) -> usize {
        self.lane_codes() * LANES
    }

    pub(super) fn lane_codes(&self) -> usize {
        self.words * self.codes.per_word()
    }

    /// Columns of a tile.
    pub(super) fn columns(&self) -> usize {
        self.halves * TILE
    }

    pub(super) fn threads(&self) -> usize {
        self.warps * 32
    }

    /// Steps that a warp has of a tile, at most.
    pub(super) fn turns(&self) -> usize {
        self.steps.div_ceil(self.warps)
    }

    /// Whether all warps have the same number of steps.
    pub(super) fn is_even(&self) -> bool {
        self.turns() * self.warps == self.steps
    }

    /// Whether the last step has fewer codes.
    pub(super) fn is_cut_off(&self) -> bool {
        self.steps * self.step() != self.depth
    }

    /// Whether blocks have more than one tile.
    pub(super) fn is_persistent(&self) -> bool {
        self.blocks < self.tiles
    }

    /// Whether the sums of the activations of each step are found before they are multiplied.
    pub(super) fn knows_totals(&self) -> bool {
        self.shares_rows && self.groups > 0
    }

    /// Elements from one row of activations to the next in shared memory.
    pub(super) fn row_stride(&self) -> usize {
        self.depth + PADDING
    }

    /// From the sums of the activations of one row to the next: lanes read other banks.
    pub(super) fn total_stride(&self) -> usize {
        self.steps | 1
    }

    /// Elements from the scales of one column to the next. Vectors of them lie in one column, or follow each other without a gap.
    pub(super) fn factor_stride(&self) -> usize {
        if self.groups.is_multiple_of(PADDING) { self.groups + PADDING } else { self.groups }
    }

    /// Elements of the scales of a tile.
    pub(super) fn factors(&self) -> usize {
        self.columns() * self.factor_stride()
    }

    /// Sums that the warps of a block put together for a tile.
    pub(super) fn parts(&self) -> usize {
        self.warps * self.columns() * self.row_tiles * TILE
    }

    /// Words of codes of a step of all warps.
    pub(super) fn stage(&self) -> usize {
        self.halves * self.threads() * self.words
    }

    /// Bytes of each part of shared memory, one behind the other. What belongs to a tile is there twice: for this tile and for the next.
    fn room(&self) -> [usize; 6] {
        let rows = if self.shares_rows { self.rows * self.row_stride() * 2 } else { 0 };
        let totals = if self.knows_totals() { self.row_tiles * TILE * self.total_stride() * 4 } else { 0 };
        let factors = 2 * self.factors() * 2;
        [rows, totals, factors, factors, STAGES * self.stage() * 4, 2 * self.parts() * 4]
    }

    /// Where activations, their sums, scales, offsets, codes and sums of warps begin.
    pub(super) fn places(&self) -> [usize; 6] {
        let room = self.room();
        std::array::from_fn(|at| room[..at].iter().map(|bytes| bytes.next_multiple_of(LANE_BYTES)).sum())
    }

    pub(super) fn shared_bytes(&self) -> usize {
        self.room().iter().map(|bytes| bytes.next_multiple_of(LANE_BYTES)).sum()
    }
}

#[cfg(test)]
mod tests {
    use warpforge_fusion::NodeId;

    use super::*;
    use crate::options::{Dialect, Options};

    const ARCHITECTURES: [&str; 7] = ["sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_120"];

    fn grouped(size: usize) -> Codes {
        Codes::Grouped(WeightGroups { size, scales: NodeId(0), offsets: NodeId(1) })
    }

    #[test]
    fn shared_memory_is_what_devices_have() {
        let shapes = [(1, 1280), (1, 128_256), (3, 8192), (4, 28_672), (17, 5001), (32, 7168)];
        for architecture in ARCHITECTURES {
            let most = Options::new(Dialect::Cuda, architecture).shared_of_block();
            for codes in [grouped(128), grouped(64), Codes::I8, Codes::F8] {
                for ((rows, columns), depth) in
                    shapes.iter().flat_map(|&shape| [1024, 4096, 8192].map(|k| (shape, k)))
                {
                    let plan = Plan::new([rows, columns, depth], codes, most).unwrap();
                    let what = format!("{architecture} {codes:?} {rows}x{columns}x{depth}");
                    assert!(plan.shared_bytes() <= most, "{what}");
                    assert!(
                        plan.blocks * plan.columns() <= columns.next_multiple_of(plan.columns()),
                        "{what}"
                    );
                }
            }
        }
    }

    #[test]
    fn scales_that_do_not_fit_are_refused() {
        let shape = [1, 8192, 57_344];
        assert!(Plan::new(shape, grouped(64), 227 << 10).is_ok());
        assert!(Plan::new(shape, grouped(64), 99 << 10).is_err());
    }
}
