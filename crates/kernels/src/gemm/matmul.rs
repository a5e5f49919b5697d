//! The GEMM entry point.

use std::ops::Range;
use std::sync::Arc;

use warpforge_tensor::ElementType;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::amx;
use super::compute_type::{ComputeType, KernelSet, WeightType, select_kernels, weight_kernels};
use super::drive::{GemmTarget, WIDENED_ROWS, drive};
use super::microkernel::KernelFamily;
use super::operand::{GemmError, Operand, Rhs, Shape};
use super::packed::{PackedFormat, PackedLayout, PackedView};
use super::partition::{Partition, PartitionParams, TaskOrder, task_rows};
use super::rows::{LhsRows, MatrixRows};
use super::stripes::{self, Stripes};
use crate::buffer::BufferPool;
use crate::isa::Isa;
use crate::output_block::BlockSink;
use crate::pool::Pool;

/// Maximum bytes of operands that a call packs at a time.
pub(super) const MAX_PACKED_BYTES: usize = 32 << 20;

/// GEMMs of one compute type on the best instruction set of this CPU.
#[derive(Debug)]
pub struct Gemm {
    pub(super) compute_type: ComputeType,
    pub(super) isa: Isa,
    pub(super) kernels: KernelSet,
    pub(super) packed_layout: PackedLayout,
    /// The GEMM of many rows, where weights of few bits are widened for it.
    widened: Option<Box<Gemm>>,
    pub(super) buffers: Arc<BufferPool>,
}

impl Gemm {
    /// A GEMM on the best instruction set of this CPU.
    #[must_use]
    pub fn new(compute_type: ComputeType) -> Self {
        Self::with_isa(compute_type, Isa::best())
    }

    /// A GEMM on an instruction set, or on the best lower one that this CPU has.
    #[must_use]
    pub fn with_isa(compute_type: ComputeType, isa: Isa) -> Self {
        Self::of(compute_type, isa, usize::MAX)
    }

    /// A GEMM on the best instruction set of this CPU for left-hand operands of so many rows. Results do not depend on the number;
    /// operands packed for another number may be refused.
    #[must_use]
    pub fn for_rows(compute_type: ComputeType, rows: usize) -> Self {
        Self::of(compute_type, Isa::best(), rows)
    }

    /// A GEMM on the best instruction set of this CPU with weights in the type that they are stored in. The compute type is f32 or bf16. In
    /// bf16 many rows may be multiplied by tiles: the rows of the other operand are rounded for them.
    #[must_use]
    pub fn for_weights(weights: WeightType, compute_type: ComputeType) -> Self {
        Self::for_weights_with_isa(weights, compute_type, Isa::best())
    }

    /// The same on an instruction set, or on the best lower one that this CPU has.
    #[must_use]
    pub fn for_weights_with_isa(weights: WeightType, compute_type: ComputeType, isa: Isa) -> Self {
        let isa = Isa::available().filter(|have| *have <= isa).last().unwrap_or(Isa::Portable);
        let (kernels, packed_layout) = weight_kernels(weights, isa);
        let many_rows = Self::of(compute_type, isa, usize::MAX);
        let widened = many_rows.writes_bf16().then(|| Box::new(many_rows));
        Self { compute_type, isa, kernels, packed_layout, widened, buffers: BufferPool::shared() }
    }

    pub(super) fn of(compute_type: ComputeType, isa: Isa, rows: usize) -> Self {
        let isa = Isa::available().filter(|have| *have <= isa).last().unwrap_or(Isa::Portable);
        let (kernels, packed_layout) = select_kernels(compute_type, isa, rows);
        Self { compute_type, isa, kernels, packed_layout, widened: None, buffers: BufferPool::shared() }
    }

    /// The compute type.
    #[must_use]
    pub fn compute_type(&self) -> ComputeType {
        self.compute_type
    }

    /// The name of the instructions that multiply elements of this type as they are: `amx`, `avx512_vnni`, `avx512`, `avx2` or
    /// `portable`. None where they are widened to a type that there are instructions for.
    #[must_use]
    pub fn instructions(&self) -> Option<&'static str> {
        match (self.kernels, self.compute_type) {
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            (KernelSet::Amx(_), _) => Some("amx"),
            (_, ComputeType::F32 | ComputeType::F64 | ComputeType::I32) => Some(self.isa.name()),
            (_, ComputeType::I64) => Some(Isa::Portable.name()),
            // Quads of bytes in vectors of AVX-512 are multiplied by VNNI.
            (KernelSet::Vector(family), ComputeType::I8)
                if self.packed_layout.format == PackedFormat::I8Quads =>
            {
                Some(if family.lanes == 16 { "avx512_vnni" } else { Isa::Avx2.name() })
            }
            (_, ComputeType::Bf16 | ComputeType::I8) => None,
        }
    }

    /// The instruction set.
    pub(crate) fn isa(&self) -> Isa {
        self.isa
    }

    /// The kernels on vectors that take one element of a row at a time, where the GEMM has them.
    pub(crate) fn vector_kernels(&self) -> Option<&'static KernelFamily> {
        match self.kernels {
            KernelSet::Vector(family) if self.packed_layout.format.unit() == 1 => Some(family),
            _ => None,
        }
    }

    /// Whether weights of few bits are widened for many rows.
    pub(super) fn widens(&self) -> bool {
        self.widened.is_some()
    }

    /// Whether AMX tiles are loaded directly from bf16 rows with a constant stride.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(crate) fn loads_strided_rows(&self) -> bool {
        matches!(self.kernels, KernelSet::Amx(_)) && self.compute_type == ComputeType::Bf16
    }

    /// Multiplies rows with a constant stride, which fill a tile, by a packed operand.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(crate) unsafe fn multiply_strided(
        &self,
        pool: &Pool,
        strided: &amx::StridedLhs<'_>,
        rhs: PackedView<'_>,
        target: GemmTarget<'_>,
    ) -> Result<(), GemmError> {
        let k = strided.taps.len() * strided.steps * self.packed_layout.row_multiple;
        let rows = self.packed_layout.rows(rhs.k);
        self.check(&rhs, if rows == k { rhs.k } else { k }, None)?;
        match self.kernels {
            // SAFETY: guaranteed by the caller.
            KernelSet::Amx(tiles) if rhs.n > 0 => unsafe {
                amx::drive_strided(pool, &self.buffers, tiles, strided, rhs, target)?;
            },
            _ => {}
        }
        Ok(())
    }

    /// Bytes of an output element.
    pub(super) fn result_bytes(&self, target: &GemmTarget<'_>) -> usize {
        if target.rounded {
            ElementType::BF16.byte_width()
        } else {
            self.compute_type.accumulator().byte_width()
        }
    }

    /// `C = A · B`. Every complete block is passed to `sink` by the worker that computed it. `out` is the row-major
    /// output of the accumulator type, with rows `stride` elements apart; without it, blocks exist only for the sink.
    ///
    /// # Errors
    ///
    /// When the packing buffer cannot be allocated, the compute type does not accept the element type, or the packed
    /// operand has another format or size.
    ///
    /// # Safety
    ///
    /// All pointers are valid for the given sizes. During the call nothing writes to the operands or uses the output,
    /// except the sink, which may overwrite its block.
    #[allow(clippy::too_many_arguments, reason = "the usual parameters of a GEMM")]
    pub unsafe fn multiply(
        &self,
        pool: &Pool,
        shape: Shape,
        lhs: &Operand,
        rhs: Rhs<'_>,
        out: Option<*mut u8>,
        stride: usize,
        sink: Option<&BlockSink<'_>>,
    ) -> Result<(), GemmError> {
        let target = GemmTarget { out, stride, rounded: false, accumulate: false, sink, origin: (0, 0) };
        // SAFETY: guaranteed by the caller.
        unsafe { self.multiply_into(pool, shape, lhs, rhs, target) }
    }

    /// Whether [`Gemm::multiply_to_bf16`] is supported.
    #[must_use]
    pub fn writes_bf16(&self) -> bool {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        return self.loads_strided_rows();
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        false
    }

    /// `C = A · B` with C stored as bf16. Does nothing unless [`Gemm::writes_bf16`].
    ///
    /// # Errors
    ///
    /// As for [`Gemm::multiply`].
    ///
    /// # Safety
    ///
    /// As for [`Gemm::multiply`], with a bf16 output.
    pub unsafe fn multiply_to_bf16(
        &self,
        pool: &Pool,
        shape: Shape,
        lhs: &Operand,
        rhs: Rhs<'_>,
        out: *mut u8,
        stride: usize,
    ) -> Result<(), GemmError> {
        let target = GemmTarget {
            out: Some(out),
            stride,
            rounded: true,
            accumulate: false,
            sink: None,
            origin: (0, 0),
        };
        match self.writes_bf16() {
            // SAFETY: guaranteed by the caller.
            true => unsafe { self.multiply_into(pool, shape, lhs, rhs, target) },
            false => Ok(()),
        }
    }

    unsafe fn multiply_into(
        &self,
        pool: &Pool,
        shape: Shape,
        lhs: &Operand,
        rhs: Rhs<'_>,
        target: GemmTarget<'_>,
    ) -> Result<(), GemmError> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match rhs {
                Rhs::Packed(packed) => self.multiply_packed_rhs(pool, shape, lhs, packed.view(), target),
                Rhs::View(view) => self.multiply_packed_rhs(pool, shape, lhs, view, target),
                Rhs::Strided(rhs) => self.multiply_strided_rhs(pool, shape, lhs, &rhs, target),
            }
        }
    }

    /// A GEMM whose right-hand operand is packed now, as many columns at a time as fit into the buffer.
    unsafe fn multiply_strided_rhs(
        &self,
        pool: &Pool,
        shape: Shape,
        lhs: &Operand,
        rhs: &Operand,
        target: GemmTarget<'_>,
    ) -> Result<(), GemmError> {
        let width = self.packed_layout.lanes * self.packed_layout.vectors;
        let panel = self.packed_len(shape.k, width)?.max(1);
        let at_once = (MAX_PACKED_BYTES / panel).max(1) * width;
        let memory = self.buffers.take(self.packed_len(shape.k, at_once.min(shape.n))?)?;
        for first in (0..shape.n).step_by(at_once) {
            let n = at_once.min(shape.n - first);
            // SAFETY: guaranteed by the caller; the memory has space for that many columns.
            unsafe {
                let part = Operand { data: rhs.at(0, first), ..*rhs };
                self.pack_panels(&part, shape.k, n, memory.as_ptr(), Some(pool))?;
                let view = PackedView::new(memory.as_ptr(), self.packed_layout, shape.k, n);
                let out = target.out.map(|out| out.add(first * self.result_bytes(&target)));
                let origin = (target.origin.0, target.origin.1 + first);
                self.multiply_packed_rhs(
                    pool,
                    Shape { n, ..shape },
                    lhs,
                    view,
                    GemmTarget { out, origin, ..target },
                )?;
            }
        }
        Ok(())
    }

    pub(super) unsafe fn multiply_packed_rhs(
        &self,
        pool: &Pool,
        shape: Shape,
        lhs: &Operand,
        rhs: PackedView<'_>,
        target: GemmTarget<'_>,
    ) -> Result<(), GemmError> {
        self.check(&rhs, shape.k, Some(shape.n))?;
        if shape.m == 0 || shape.n == 0 {
            return Ok(());
        }
        let widened = self.widened.as_deref().filter(|wide| wide.reads_lhs_in_place(lhs));
        if let Some(widened) = widened.filter(|_| shape.m > WIDENED_ROWS) {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.multiply_widened(widened, pool, shape, lhs, rhs, target) };
        }
        if self.reads_lhs_in_place(lhs) && !self.copy_pays_off(lhs, shape) {
            let rows = MatrixRows::of(lhs, shape.k);
            // SAFETY: guaranteed by the caller.
            return unsafe { self.multiply_rows(pool, shape, &rows, rhs, target) };
        }
        let copies = self.row_copier(lhs, shape.k)?;
        if let KernelSet::Vector(family) = self.kernels {
            let partition = self.partition(shape, family);
            if let Some(stripes) = Stripes::of(&partition, copies.stride, pool.threads()) {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    stripes::drive(pool, &self.buffers, family, &partition, stripes, &copies, rhs, target)?;
                };
                return Ok(());
            }
        }
        // Parts of equal size: a few rows that were left over might be multiplied by other kernels than the rest.
        let most = (MAX_PACKED_BYTES / copies.stride.max(1)).max(64);
        let at_once = shape.m.div_ceil(shape.m.div_ceil(most));
        let memory = self.buffers.take(at_once.saturating_mul(copies.stride))?;
        for first in (0..shape.m).step_by(at_once) {
            let m = at_once.min(shape.m - first);
            // SAFETY: guaranteed by the caller; the memory has space for that many rows.
            unsafe {
                copies.copy_parallel(pool, first..first + m, memory.as_ptr());
                let rows = copies.rows(memory.as_ptr());
                let out = target.out.map(|out| out.add(first * target.stride * self.result_bytes(&target)));
                let origin = (target.origin.0 + first, target.origin.1);
                self.multiply_rows(
                    pool,
                    Shape { m, ..shape },
                    &rows,
                    rhs,
                    GemmTarget { out, origin, ..target },
                )?;
            }
        }
        Ok(())
    }

    /// The partition of a vector GEMM.
    pub(super) fn partition(&self, shape: Shape, family: &KernelFamily) -> Partition {
        let many_rows = task_rows(shape, &self.packed_layout);
        let params = PartitionParams { tile_rows: family.rows, many_rows, order: TaskOrder::Panels };
        Partition::new(shape, &self.packed_layout, params)
    }

    /// The addresses that each of so many workers reads first when `m` rows are multiplied by a packed operand: for
    /// [`Pool::prefetch_while_waiting`]. None where workers share panels.
    #[must_use]
    pub fn first_reads(&self, m: usize, rhs: PackedView<'_>, workers: usize) -> Vec<Range<usize>> {
        if m == 0 || rhs.n == 0 {
            return Vec::new();
        }
        let shape = Shape { m, n: rhs.n, k: rhs.k };
        let partition = match self.kernels {
            KernelSet::Vector(family) => self.partition(shape, family),
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            KernelSet::Amx(_) => amx::partition(shape, &rhs),
        };
        let column_bytes = rhs.column_bytes();
        let addresses = |panels: Range<usize>| {
            let (last, data) = rhs.panel(panels.end - 1);
            rhs.panel(panels.start).1 as usize..data as usize + column_bytes * last.width
        };
        partition.first_panels(workers).map(addresses).collect()
    }

    /// Multiplies rows, given by pointers and of an element type that kernels read, by a packed operand.
    pub(crate) unsafe fn multiply_rows(
        &self,
        pool: &Pool,
        shape: Shape,
        rows: &dyn LhsRows,
        rhs: PackedView<'_>,
        target: GemmTarget<'_>,
    ) -> Result<(), GemmError> {
        self.check(&rhs, shape.k, Some(shape.n))?;
        if shape.m == 0 || shape.n == 0 {
            return Ok(());
        }
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.kernels {
                KernelSet::Vector(family) => {
                    let partition = self.partition(shape, family);
                    drive(pool, &self.buffers, family, &partition, rows, rhs, target)?;
                }
                #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
                KernelSet::Amx(tiles) => amx::drive(pool, &self.buffers, tiles, shape, rows, rhs, target)?,
            }
        }
        Ok(())
    }
}
