//! Attention: two GEMMs with a fused loop over whole rows between them. Only the scores of a few rows exist at a time.

use std::cell::RefCell;

use warpforge_fusion::NodeId;
use warpforge_fusion::cluster::{self, BodyOp};
use warpforge_kernels::buffer::AlignedBuffer;
use warpforge_kernels::gemm::{self, ComputeType, Gemm, InPlace, Operand, Shape};
use warpforge_kernels::output_block::OutputBlock;
use warpforge_kernels::shared_ptr::SharedPtr;
use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use super::deferred_division::DividendLoop;
use super::dot::{DotGeometry, compute_type};
use super::epilogue::{EpilogueLoop, store};
use super::interface::{CompileContext, Kernel, KernelError, Result, ValueBuffers};

/// Bytes of scores per worker: most of an L1 cache.
const SCORE_BYTES: usize = 32 << 10;

/// Minimum and maximum rows per block, so that packed keys and values are reused often.
const ROWS: (usize, usize) = (16, 64);

/// Rows of a block are a multiple of the rows of a micro-kernel.
const ROWS_TOGETHER: usize = 8;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Heads per thread from which on whole heads balance the threads well.
const MANY_HEADS: usize = 8;

thread_local! {
    static SCRATCH: RefCell<WorkerScratch> = RefCell::new(WorkerScratch::default());
}

/// Scratch memory of a worker.
#[derive(Default)]
struct WorkerScratch {
    scratch: gemm::Scratch,
    /// Rows of a left-hand operand, widened.
    widened: Vec<f32>,
    buffers: Option<AlignedBuffer>,
}

impl WorkerScratch {
    fn reserve(&mut self, bytes: usize) -> Result<*mut u8> {
        if self.buffers.as_ref().is_none_or(|buffers| buffers.len() < bytes) {
            self.buffers = Some(AlignedBuffer::new(bytes)?);
        }
        self.buffers
            .as_ref()
            .map(AlignedBuffer::as_ptr)
            .ok_or_else(|| KernelError::Unsupported("no scratch".to_owned()))
    }
}

/// Attention.
pub(super) struct AttentionKernel {
    gemm: Gemm,
    scores: DotGeometry,
    weights: EpilogueLoop,
    values: DotGeometry,
    epilogue: EpilogueLoop,
    output: NodeId,
    rows: usize,
    element: ElementType,
    /// Whether workers take whole heads. Results do not depend on it.
    head_by_head: bool,
    /// The products by keys and by values as they lie in memory, where queries are few.
    in_place: Option<[InPlace; 2]>,
    /// Packed right-hand operands of all GEMMs, kept between runs.
    packed: std::sync::Mutex<Option<AlignedBuffer>>,
}

impl AttentionKernel {
    pub(super) fn new(
        context: &CompileContext<'_>,
        attention: &cluster::Attention,
        output: NodeId,
    ) -> Result<Self> {
        let graph = context.graph;
        let mut scores = DotGeometry::new(graph, &attention.scores)?;
        let mut values = DotGeometry::new(graph, &attention.values)?;
        join_heads(&mut scores, &mut values);
        let gemm = Gemm::new(compute_type(scores.element)?);
        if compute_type(values.element)? != gemm.compute_type() {
            return Err(KernelError::Unsupported(
                "the two GEMMs of attention have different compute types".to_owned(),
            ));
        }
        let sum = gemm.compute_type().accumulator();
        let of_weights = attention.values.operands[0].value;
        let division = attention.division.filter(|division| {
            // Quotients of integers are rounded before they are multiplied, so their division is not deferred.
            let in_sums = attention.weights.body.steps[division.dividend].element == sum && sum.is_float();
            in_sums && division.rounded.is_none_or(|to| to == values.element && sum == ElementType::F32)
        });
        let division = division.and_then(|division| DividendLoop::new(&attention.weights, &division));
        let weights = match &division {
            Some(division) => EpilogueLoop::dividend(graph, &attention.weights, division, sum, of_weights)?,
            None => {
                let rows = unrounded(&attention.weights, values.element);
                EpilogueLoop::in_place(graph, &rows, sum, of_weights)?
            }
        };
        let stored = store(graph, attention.values.node, values.shape.n);
        let epilogue = attention.values.epilogue.as_ref().unwrap_or(&stored);
        let epilogue = match division {
            Some(_) => EpilogueLoop::divided(graph, epilogue, sum, output)?,
            None => EpilogueLoop::new(graph, epilogue, sum, output)?,
        };
        let row = (scores.shape.n.max(1) * sum.byte_width()).next_multiple_of(LINE);
        let rows = (SCORE_BYTES / row / ROWS_TOGETHER * ROWS_TOGETHER).clamp(ROWS.0, ROWS.1);
        let few = |product: &DotGeometry| gemm.in_place(product.shape.m, &product.rhs.layout());
        let in_place = few(&scores).zip(few(&values)).map(|(scores, values)| [scores, values]);
        let (heads, threads) = (scores.batch, context.pool.threads());
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
            in_place,
            packed: std::sync::Mutex::default(),
        })
    }

    fn lengths(&self) -> Result<(usize, usize)> {
        let keys = self.gemm.packed_len(self.scores.shape.k, self.scores.shape.n)?.next_multiple_of(64);
        let values = self.gemm.packed_len(self.values.shape.k, self.values.shape.n)?.next_multiple_of(64);
        Ok((keys, values))
    }

    /// Bytes of the tiles of scores and results, and of one scalar per row.
    fn tiles(&self) -> [usize; 3] {
        let column = self.rows * self.element.byte_width();
        let [scores, results] = self.strides();
        [scores, results, 1].map(|columns| (column * columns).next_multiple_of(LINE))
    }

    /// Row strides of the tiles of scores and results, in elements: rows start at cache lines.
    fn strides(&self) -> [usize; 2] {
        let line = LINE / self.element.byte_width();
        [self.scores.shape.n, self.values.shape.n].map(|columns| columns.next_multiple_of(line))
    }

    /// Packs the keys or the values of one head.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::run`]; `to` has space for them: see [`AttentionKernel::lengths`].
    unsafe fn pack<'a>(
        &self,
        product: &DotGeometry,
        buffers: &ValueBuffers<'_>,
        head: usize,
        to: *mut u8,
    ) -> Result<gemm::PackedView<'a>> {
        // SAFETY: guaranteed by the caller.
        Ok(unsafe {
            self.gemm.pack_into(&product.rhs.at(buffers, head), product.shape.k, product.shape.n, to)?
        })
    }

    /// Computes one block of rows, from the scores to the output.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::run`]; `rhs` are those of the head, and `tile` has space for all of [`AttentionKernel::tiles`].
    #[allow(clippy::too_many_arguments)] // What a block is takes that many words.
    unsafe fn rows(
        &self,
        buffers: &ValueBuffers<'_>,
        scratch: &mut WorkerScratch,
        tile: *mut u8,
        head: usize,
        first: usize,
        worker: usize,
        rhs: [Rhs<'_>; 2],
    ) -> Result<()> {
        let (scores, values) = (&self.scores, &self.values);
        let count = self.rows.min(scores.shape.m - first);
        let (keys, width) = (scores.shape.n, values.shape.n);
        let [scores_stride, stride] = self.strides();
        let at = head * scores.shape.m + first;
        // SAFETY: there is space for both tiles; the rest is guaranteed by the caller.
        unsafe {
            let [scores_bytes, result_bytes, _] = self.tiles();
            let result = tile.add(scores_bytes);
            // Fused loops count rows from the first row of all heads.
            let divisors = Some(result.add(result_bytes).wrapping_sub(at * self.element.byte_width()));
            let mut lhs = scores.lhs.at(buffers, head);
            lhs.data = lhs.data.add(first * lhs.row_stride * lhs.element.byte_width());
            let shape = Shape { m: count, ..scores.shape };
            self.multiply(scratch, shape, &lhs, rhs[0], tile, scores_stride)?;
            let rows = at..at + count;
            let block = OutputBlock {
                rows: rows.clone(),
                columns: 0..keys,
                data: tile,
                stride: scores_stride,
                worker,
            };
            self.weights.run_with(buffers, &block, divisors);
            let lhs =
                Operand { data: tile, element: self.element, row_stride: scores_stride, column_stride: 1 };
            let shape = Shape { m: count, ..values.shape };
            self.multiply(scratch, shape, &lhs, rhs[1], result, stride)?;
            let block = OutputBlock { rows, columns: 0..width, data: result, stride, worker };
            self.epilogue.run_with(buffers, &block, divisors);
        }
        Ok(())
    }

    /// One of the two products of a block.
    ///
    /// # Safety
    ///
    /// As for [`AttentionKernel::rows`]; `out` has space for the result.
    unsafe fn multiply(
        &self,
        scratch: &mut WorkerScratch,
        shape: Shape,
        lhs: &Operand,
        rhs: Rhs<'_>,
        out: *mut u8,
        stride: usize,
    ) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match rhs {
                Rhs::InPlace(product, rhs) => {
                    product.multiply(&mut scratch.widened, shape, lhs, &rhs, out.cast(), stride);
                }
                Rhs::Packed(rhs) => {
                    let (scratch, Shape { m, k, .. }) = (&mut scratch.scratch, shape);
                    self.gemm.multiply_single_threaded(scratch, m, k, lhs, rhs, out, stride, false)?;
                }
            }
        }
        Ok(())
    }

    /// Few queries of each head, on keys and values as they lie in memory.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::run`].
    unsafe fn few_rows(&self, buffers: &ValueBuffers<'_>, [scores, values]: [InPlace; 2]) -> Result<()> {
        let tiles = self.tiles().iter().sum();
        let failure = Failure::default();
        buffers.pool.run(self.scores.batch, &|head, worker| {
            failure.note(SCRATCH.with_borrow_mut(|scratch| {
                let tile = scratch.reserve(tiles)?;
                // SAFETY: guaranteed by the caller; heads do not overlap.
                unsafe {
                    let keys = Rhs::InPlace(scores, self.scores.rhs.at(buffers, head));
                    let values = Rhs::InPlace(values, self.values.rhs.at(buffers, head));
                    self.rows(buffers, scratch, tile, head, 0, worker, [keys, values])
                }
            }));
        });
        failure.outcome()
    }

    /// One worker per head: packed operands are still in its cache when they are read.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::run`].
    unsafe fn head_by_head(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let (keys_bytes, values_bytes) = self.lengths()?;
        let (packed_bytes, tiles) = (keys_bytes + values_bytes, self.tiles().iter().sum::<usize>());
        let failure = Failure::default();
        buffers.pool.run(self.scores.batch, &|head, worker| {
            failure.note(SCRATCH.with_borrow_mut(|scratch| {
                let space = scratch.reserve(packed_bytes + tiles)?;
                // SAFETY: the scratch memory was reserved for the packed operands and both tiles; heads do not overlap.
                unsafe {
                    let packed = [
                        self.pack(&self.scores, buffers, head, space)?,
                        self.pack(&self.values, buffers, head, space.add(keys_bytes))?,
                    ];
                    let tile = space.add(packed_bytes);
                    for first in (0..self.scores.shape.m).step_by(self.rows) {
                        self.rows(buffers, scratch, tile, head, first, worker, packed.map(Rhs::Packed))?;
                    }
                }
                Ok(())
            }));
        });
        failure.outcome()
    }

    /// Packs all heads, then schedules blocks of rows dynamically.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::run`].
    unsafe fn rows_of_all(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let (keys_bytes, values_bytes) = self.lengths()?;
        let each = keys_bytes + values_bytes;
        let heads = self.scores.batch;
        let kept = self.packed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let scratch = match kept {
            Some(scratch) => scratch,
            None => AlignedBuffer::new(each * heads)?,
        };
        let start = SharedPtr::new(scratch.as_ptr());
        let failure = Failure::default();
        let all: Vec<[std::sync::OnceLock<gemm::PackedView<'_>>; 2]> =
            (0..heads).map(|_| Default::default()).collect();
        buffers.pool.run(2 * heads, &|task, _| {
            let (head, operand) = (task / 2, task % 2);
            let product = [&self.scores, &self.values][operand];
            // SAFETY: keys and values of every head have their own part of the buffer; the rest is guaranteed by the caller.
            let packed = unsafe {
                let to = start.get().add(head * each + operand * keys_bytes);
                self.pack(product, buffers, head, to)
            };
            failure.note(packed.map(|packed| {
                let _ = all[head][operand].set(packed);
            }));
        });
        let blocks = self.scores.shape.m.div_ceil(self.rows);
        let tiles = self.tiles().iter().sum();
        buffers.pool.run(heads * blocks, &|task, worker| {
            let (head, first) = (task / blocks, task % blocks * self.rows);
            let [Some(&keys), Some(&values)] = all[head].each_ref().map(std::sync::OnceLock::get) else {
                return;
            };
            let packed = [keys, values].map(Rhs::Packed);
            failure.note(SCRATCH.with_borrow_mut(|scratch| {
                let tile = scratch.reserve(tiles)?;
                // SAFETY: guaranteed by the caller; rows do not overlap.
                unsafe { self.rows(buffers, scratch, tile, head, first, worker, packed) }
            }));
        });
        drop(all);
        *self.packed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(scratch);
        failure.outcome()
    }
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

/// The keys or the values of a head.
#[derive(Clone, Copy)]
enum Rhs<'a> {
    Packed(gemm::PackedView<'a>),
    InPlace(InPlace, Operand),
}

/// Makes heads that share keys and values (grouped queries) rows of one head, where their queries are one after the other: a token at a
/// time they are. Loops over rows count from the first row of all heads, so they do not notice.
fn join_heads(scores: &mut DotGeometry, values: &mut DotGeometry) {
    let shared = |count: usize| {
        let joins =
            scores.batch.is_multiple_of(count) && scores.shares_rhs(count) && values.shares_rhs(count);
        joins.then(|| Some((count, scores.row_stride_across(count)?))).flatten()
    };
    let Some((count, stride)) = (2..=scores.batch).rev().find_map(shared) else { return };
    scores.join_rows(count, stride);
    values.join_rows(count, stride);
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

impl Kernel for AttentionKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match (self.in_place, self.head_by_head) {
                (Some(products), _) => self.few_rows(buffers, products),
                (None, true) => self.head_by_head(buffers),
                (None, false) => self.rows_of_all(buffers),
            }
        }
    }

    fn bytes(&self) -> usize {
        if self.head_by_head || self.in_place.is_some() {
            return 0;
        }
        self.lengths().map_or(0, |(keys, values)| (keys + values) * self.scores.batch)
    }

    fn name(&self) -> String {
        let (scores, values) = (&self.scores, &self.values);
        let kind = if self.gemm.compute_type() == ComputeType::Bf16 { " bf16" } else { "" };
        let (batch, m, n, k, width) =
            (scores.batch, scores.shape.m, scores.shape.n, scores.shape.k, values.shape.n);
        format!("attention{kind} {batch}x{m}x{n}, {k} to {width} -> {}", self.output.0)
    }
}
