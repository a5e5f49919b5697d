//! Two products with a loop over whole rows between them: the scores of a few rows at a time are all there is of them.

use std::cell::RefCell;

use warpforge_fusion::Id;
use warpforge_fusion::cluster;
use warpforge_kernels::block::Block;
use warpforge_kernels::gemm::{self, Gemm, Kind, Operand};
use warpforge_tensor::ElementType;

use super::dot::{Geometry, Shared, kind};
use super::epilogue::{Blocks, store};
use super::{Kernel, KernelError, Memory, Result, Setting};

/// Bytes of scores that one worker holds: a part of a second-level cache.
const SCORE_BYTES: usize = 256 << 10;

/// Most rows that a worker computes at a time.
const MOST_ROWS: usize = 64;

thread_local! {
    static ROOM: RefCell<Room> = RefCell::new(Room::default());
}

/// What a worker needs while it computes a few rows.
#[derive(Default)]
struct Room {
    scratch: gemm::Scratch,
    memory: Option<gemm::Memory>,
}

impl Room {
    fn reserve(&mut self, bytes: usize) -> Result<*mut u8> {
        if self.memory.as_ref().is_none_or(|memory| memory.len() < bytes) {
            self.memory = Some(gemm::Memory::new(bytes)?);
        }
        self.memory.as_ref().map(gemm::Memory::as_ptr).ok_or_else(|| KernelError::Other("no room".to_owned()))
    }
}

/// Attention.
pub(super) struct Attention {
    gemm: Gemm,
    scores: Geometry,
    weights: Blocks,
    values: Geometry,
    epilogue: Blocks,
    output: Id,
    rows: usize,
    element: ElementType,
    /// For the packed right operands of all products: kept between runs.
    packed: std::sync::Mutex<Option<gemm::Memory>>,
}

impl Attention {
    pub(super) fn new(setting: &Setting<'_>, attention: &cluster::Attention, output: Id) -> Result<Self> {
        let graph = setting.graph;
        let scores = Geometry::new(graph, &attention.scores)?;
        let values = Geometry::new(graph, &attention.values)?;
        let gemm = Gemm::new(kind(scores.lhs.element, setting.products)?);
        if kind(values.rhs.element, setting.products)? != gemm.kind() {
            return Err(KernelError::Other("two products of attention are of different kinds".to_owned()));
        }
        let sum = gemm.kind().sum();
        let weights = Blocks::in_place(graph, &attention.weights, sum, attention.values.operands[0].value)?;
        let epilogue = match &attention.values.epilogue {
            Some(epilogue) => Blocks::new(graph, epilogue, sum, output)?,
            None => Blocks::new(graph, &store(graph, attention.values.node, values.shape.n), sum, output)?,
        };
        let row = scores.shape.n.max(1) * sum.byte_width();
        let rows = (SCORE_BYTES / row).clamp(4, MOST_ROWS);
        Ok(Self {
            gemm,
            scores,
            weights,
            values,
            epilogue,
            output,
            rows,
            element: sum,
            packed: std::sync::Mutex::default(),
        })
    }

    fn lengths(&self) -> Result<(usize, usize)> {
        let keys = self.gemm.packed_len(self.scores.shape.k, self.scores.shape.n)?.next_multiple_of(64);
        let values = self.gemm.packed_len(self.values.shape.k, self.values.shape.n)?.next_multiple_of(64);
        Ok((keys, values))
    }

    /// The rows of one block, from the scores to the output.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::run`]; `packed` holds the packed operands of the block's product.
    unsafe fn rows(
        &self,
        memory: &Memory<'_>,
        batch: usize,
        first: usize,
        worker: usize,
        packed: Packed<'_>,
    ) -> Result<()> {
        let (scores, values) = (&self.scores, &self.values);
        let count = self.rows.min(scores.shape.m - first);
        let (keys, width) = (scores.shape.n, values.shape.n);
        let bytes = self.element.byte_width();
        let tile_bytes = (self.rows * keys * bytes).next_multiple_of(64);
        let at = batch * scores.shape.m + first;
        ROOM.with_borrow_mut(|room| {
            let tile = room.reserve(tile_bytes + self.rows * width * bytes)?;
            // SAFETY: the room was made for both tiles; the rest is as the caller promises.
            unsafe {
                let result = tile.add(tile_bytes);
                let mut lhs = scores.lhs.at(memory, batch);
                lhs.data = lhs.data.add(first * lhs.row_stride * lhs.element.byte_width());
                self.gemm.block(
                    &mut room.scratch,
                    count,
                    scores.shape.k,
                    &lhs,
                    packed.keys,
                    tile,
                    keys,
                    false,
                )?;
                let block =
                    Block { rows: at..at + count, columns: 0..keys, data: tile, stride: keys, worker };
                self.weights.run(memory, &block);
                let lhs = Operand { data: tile, element: self.element, row_stride: keys, column_stride: 1 };
                self.gemm.block(&mut room.scratch, count, keys, &lhs, packed.values, result, width, false)?;
                let block =
                    Block { rows: at..at + count, columns: 0..width, data: result, stride: width, worker };
                self.epilogue.run(memory, &block);
            }
            Ok(())
        })
    }
}

#[derive(Clone, Copy)]
struct Packed<'a> {
    keys: gemm::PackedView<'a>,
    values: gemm::PackedView<'a>,
}

impl Kernel for Attention {
    unsafe fn run(&self, memory: &Memory<'_>) -> Result<()> {
        let (scores, values) = (&self.scores, &self.values);
        let (keys_bytes, values_bytes) = self.lengths()?;
        let each = keys_bytes + values_bytes;
        let kept = self.packed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let room = match kept {
            Some(room) => room,
            None => gemm::Memory::new(each * scores.batch)?,
        };
        let start = Shared(room.as_ptr());
        let failure = std::sync::Mutex::new(None);
        let note = |outcome: Result<()>| {
            if let Err(error) = outcome {
                failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
            }
        };
        // SAFETY: every product has its own part of the room; the rest is as the caller promises.
        let pack = |batch: usize| unsafe {
            let to = start.get().add(batch * each);
            let (k, n) = (scores.shape.k, scores.shape.n);
            let keys = self.gemm.pack_into(&scores.rhs.at(memory, batch), k, n, to)?;
            let (k, n) = (values.shape.k, values.shape.n);
            let values = self.gemm.pack_into(&values.rhs.at(memory, batch), k, n, to.add(keys_bytes))?;
            Ok::<Packed<'_>, KernelError>(Packed { keys, values })
        };
        let blocks = scores.shape.m.div_ceil(self.rows);
        let all: Vec<std::sync::OnceLock<Packed<'_>>> =
            (0..scores.batch).map(|_| std::sync::OnceLock::new()).collect();
        memory.pool.run(scores.batch, &|batch, _| {
            note(pack(batch).map(|packed| {
                let _ = all[batch].set(packed);
            }));
        });
        memory.pool.run(scores.batch * blocks, &|piece, worker| {
            let (batch, block) = (piece / blocks, piece % blocks);
            if let Some(&packed) = all[batch].get() {
                // SAFETY: as the caller promises; rows do not overlap.
                note(unsafe { self.rows(memory, batch, block * self.rows, worker, packed) });
            }
        });
        drop(all);
        *self.packed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(room);
        match failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn bytes(&self) -> usize {
        self.lengths().map_or(0, |(keys, values)| (keys + values) * self.scores.batch)
    }

    fn name(&self) -> String {
        let (scores, values) = (&self.scores, &self.values);
        let kind = if self.gemm.kind() == Kind::Bf16 { " bf16" } else { "" };
        let (batch, m, n, k, width) =
            (scores.batch, scores.shape.m, scores.shape.n, scores.shape.k, values.shape.n);
        format!("attention{kind} {batch}x{m}x{n}, {k} to {width} -> {}", self.output.0)
    }
}
