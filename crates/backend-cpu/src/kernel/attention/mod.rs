//! Two products with a loop over whole rows between them: the scores of a few rows at a time are all there is of them.

mod quotient;

use std::cell::RefCell;

use warpforge_fusion::NodeId;
use warpforge_fusion::cluster::{self, BodyOp};
use warpforge_kernels::block::Block;
use warpforge_kernels::gemm::{self, Gemm, Kind, Operand};
use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use super::dot::{Geometry, Shared, kind};
use super::epilogue::{Blocks, store};
use super::{Kernel, KernelError, Memory, Result, Setting};
pub(super) use quotient::Quotient;

/// Bytes of scores that one worker holds: most of a first-level cache.
const SCORE_BYTES: usize = 32 << 10;

/// Fewest and most rows that a worker computes at a time, unless there are fewer: so many that what is read of keys and
/// values is used often.
const ROWS: (usize, usize) = (16, 64);

/// What the number of rows is a multiple of: rows that one kernel multiplies.
const ROWS_TOGETHER: usize = 8;

/// Bytes of a line of cache.
const LINE: usize = 64;

/// Heads for each thread from which on threads that take one head after the other are busy to the end.
const MANY_HEADS: usize = 8;

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
        self.memory
            .as_ref()
            .map(gemm::Memory::as_ptr)
            .ok_or_else(|| KernelError::Unsupported("no room".to_owned()))
    }
}

/// Attention.
pub(super) struct Attention {
    gemm: Gemm,
    scores: Geometry,
    weights: Blocks,
    values: Geometry,
    epilogue: Blocks,
    output: NodeId,
    rows: usize,
    element: ElementType,
    /// Whether workers take whole heads. A head's results are the same either way.
    head_by_head: bool,
    /// For the packed right operands of all products: kept between runs.
    packed: std::sync::Mutex<Option<gemm::Memory>>,
}

impl Attention {
    pub(super) fn new(setting: &Setting<'_>, attention: &cluster::Attention, output: NodeId) -> Result<Self> {
        let graph = setting.graph;
        let scores = Geometry::new(graph, &attention.scores)?;
        let values = Geometry::new(graph, &attention.values)?;
        let gemm = Gemm::new(kind(scores.element)?);
        if kind(values.element)? != gemm.kind() {
            return Err(KernelError::Unsupported(
                "two products of attention are of different kinds".to_owned(),
            ));
        }
        let sum = gemm.kind().sum();
        let of_weights = attention.values.operands[0].value;
        // Quotients of integers are rounded before they are multiplied.
        let rows = unrounded(&attention.weights, values.element);
        let quotient = quotient::quotient(&rows)
            .filter(|quotient| quotient.element() == sum && matches!(sum, ElementType::Float(_)));
        let weights = match &quotient {
            Some(quotient) => Blocks::dividend(graph, &rows, quotient, sum, of_weights)?,
            None => Blocks::in_place(graph, &rows, sum, of_weights)?,
        };
        let stored = store(graph, attention.values.node, values.shape.n);
        let epilogue = attention.values.epilogue.as_ref().unwrap_or(&stored);
        let epilogue = match quotient {
            Some(_) => Blocks::divided(graph, epilogue, sum, output)?,
            None => Blocks::new(graph, epilogue, sum, output)?,
        };
        let row = (scores.shape.n.max(1) * sum.byte_width()).next_multiple_of(LINE);
        let rows = (SCORE_BYTES / row / ROWS_TOGETHER * ROWS_TOGETHER).clamp(ROWS.0, ROWS.1);
        let (heads, threads) = (scores.batch, setting.pool.threads());
        let head_by_head = heads.is_multiple_of(threads) || heads >= MANY_HEADS * threads;
        Ok(Self {
            gemm,
            scores,
            weights,
            values,
            epilogue,
            output,
            rows,
            element: sum,
            head_by_head,
            packed: std::sync::Mutex::default(),
        })
    }

    fn lengths(&self) -> Result<(usize, usize)> {
        let keys = self.gemm.packed_len(self.scores.shape.k, self.scores.shape.n)?.next_multiple_of(64);
        let values = self.gemm.packed_len(self.values.shape.k, self.values.shape.n)?.next_multiple_of(64);
        Ok((keys, values))
    }

    /// Bytes of the tiles of scores and of results, and of a number for each row.
    fn tiles(&self) -> [usize; 3] {
        let column = self.rows * self.element.byte_width();
        let [scores, results] = self.strides();
        [scores, results, 1].map(|columns| (column * columns).next_multiple_of(LINE))
    }

    /// Elements from one row to the next in the tiles of scores and of results: rows begin with lines of cache.
    fn strides(&self) -> [usize; 2] {
        let line = LINE / self.element.byte_width();
        [self.scores.shape.n, self.values.shape.n].map(|columns| columns.next_multiple_of(line))
    }

    /// Packs the keys and values of one head.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::run`]; there is room for [`Attention::lengths`] at the address.
    unsafe fn pack<'a>(&self, memory: &Memory<'_>, head: usize, to: *mut u8) -> Result<Packed<'a>> {
        let (keys_bytes, _) = self.lengths()?;
        let (scores, values) = (&self.scores, &self.values);
        // SAFETY: as the caller promises.
        unsafe {
            let (k, n) = (scores.shape.k, scores.shape.n);
            let keys = self.gemm.pack_into(&scores.rhs.at(memory, head), k, n, to)?;
            let (k, n) = (values.shape.k, values.shape.n);
            let values = self.gemm.pack_into(&values.rhs.at(memory, head), k, n, to.add(keys_bytes))?;
            Ok(Packed { keys, values })
        }
    }

    /// The rows of one block, from the scores to the output.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::run`]; `packed` holds the packed operands of the head, and there is room for
    /// all of [`Attention::tiles`] at `tile`.
    #[allow(clippy::too_many_arguments)] // What a block is takes that many words.
    unsafe fn rows(
        &self,
        memory: &Memory<'_>,
        scratch: &mut gemm::Scratch,
        tile: *mut u8,
        head: usize,
        first: usize,
        worker: usize,
        packed: Packed<'_>,
    ) -> Result<()> {
        let (scores, values) = (&self.scores, &self.values);
        let count = self.rows.min(scores.shape.m - first);
        let (keys, width) = (scores.shape.n, values.shape.n);
        let [scores_stride, stride] = self.strides();
        let at = head * scores.shape.m + first;
        // SAFETY: there is room for both tiles; the rest is as the caller promises.
        unsafe {
            let [scores_bytes, result_bytes, _] = self.tiles();
            let result = tile.add(scores_bytes);
            // Programs count rows from the first of all.
            let divisors = Some(result.add(result_bytes).wrapping_sub(at * self.element.byte_width()));
            let mut lhs = scores.lhs.at(memory, head);
            lhs.data = lhs.data.add(first * lhs.row_stride * lhs.element.byte_width());
            self.gemm.block(scratch, count, scores.shape.k, &lhs, packed.keys, tile, scores_stride, false)?;
            let rows = at..at + count;
            let block =
                Block { rows: rows.clone(), columns: 0..keys, data: tile, stride: scores_stride, worker };
            self.weights.run_with(memory, &block, divisors);
            let lhs =
                Operand { data: tile, element: self.element, row_stride: scores_stride, column_stride: 1 };
            self.gemm.block(scratch, count, keys, &lhs, packed.values, result, stride, false)?;
            let block = Block { rows, columns: 0..width, data: result, stride, worker };
            self.epilogue.run_with(memory, &block, divisors);
        }
        Ok(())
    }

    /// Whole heads by one worker each: what it packs is still in its cache when it is used.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::run`].
    unsafe fn head_by_head(&self, memory: &Memory<'_>) -> Result<()> {
        let (keys_bytes, values_bytes) = self.lengths()?;
        let (packed_bytes, tiles) = (keys_bytes + values_bytes, self.tiles().iter().sum::<usize>());
        let failure = Failure::default();
        memory.pool.run(self.scores.batch, &|head, worker| {
            failure.note(ROOM.with_borrow_mut(|room| {
                let space = room.reserve(packed_bytes + tiles)?;
                // SAFETY: the room was made for the packed operands and both tiles; heads do not overlap.
                unsafe {
                    let packed = self.pack(memory, head, space)?;
                    let tile = space.add(packed_bytes);
                    for first in (0..self.scores.shape.m).step_by(self.rows) {
                        self.rows(memory, &mut room.scratch, tile, head, first, worker, packed)?;
                    }
                }
                Ok(())
            }));
        });
        failure.outcome()
    }

    /// All heads packed, then a few rows at a time by whichever worker comes first.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::run`].
    unsafe fn rows_of_all(&self, memory: &Memory<'_>) -> Result<()> {
        let (keys_bytes, values_bytes) = self.lengths()?;
        let each = keys_bytes + values_bytes;
        let heads = self.scores.batch;
        let kept = self.packed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let room = match kept {
            Some(room) => room,
            None => gemm::Memory::new(each * heads)?,
        };
        let start = Shared(room.as_ptr());
        let failure = Failure::default();
        let all: Vec<std::sync::OnceLock<Packed<'_>>> =
            (0..heads).map(|_| std::sync::OnceLock::new()).collect();
        memory.pool.run(heads, &|head, _| {
            // SAFETY: every head has its own part of the room; the rest is as the caller promises.
            failure.note(unsafe { self.pack(memory, head, start.get().add(head * each)) }.map(|packed| {
                let _ = all[head].set(packed);
            }));
        });
        let blocks = self.scores.shape.m.div_ceil(self.rows);
        let tiles = self.tiles().iter().sum();
        memory.pool.run(heads * blocks, &|piece, worker| {
            let (head, first) = (piece / blocks, piece % blocks * self.rows);
            let Some(&packed) = all[head].get() else { return };
            failure.note(ROOM.with_borrow_mut(|room| {
                let tile = room.reserve(tiles)?;
                // SAFETY: as the caller promises; rows do not overlap.
                unsafe { self.rows(memory, &mut room.scratch, tile, head, first, worker, packed) }
            }));
        });
        drop(all);
        *self.packed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(room);
        failure.outcome()
    }
}

/// The loop over rows of scores without a last rounding to the type that the second GEMM packs its operand in.
fn unrounded(weights: &cluster::Epilogue, packed: ElementType) -> cluster::Epilogue {
    let mut unrounded = weights.clone();
    let steps = &mut unrounded.body.steps;
    if let Some(last) = steps.last()
        && matches!(last.op, BodyOp::Elementwise(Function::Convert))
        && last.element == packed
        && last.inputs == [steps.len().wrapping_sub(2)]
        && steps[steps.len() - 2].element == ElementType::F32
    {
        steps.pop();
    }
    unrounded
}

/// The first error of many workers.
#[derive(Default)]
struct Failure(std::sync::Mutex<Option<KernelError>>);

impl Failure {
    fn note(&self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
        }
    }

    fn outcome(self) -> Result<()> {
        self.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

#[derive(Clone, Copy)]
struct Packed<'a> {
    keys: gemm::PackedView<'a>,
    values: gemm::PackedView<'a>,
}

impl Kernel for Attention {
    unsafe fn run(&self, memory: &Memory<'_>) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe {
            match self.head_by_head {
                true => self.head_by_head(memory),
                false => self.rows_of_all(memory),
            }
        }
    }

    fn bytes(&self) -> usize {
        if self.head_by_head {
            return 0;
        }
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
