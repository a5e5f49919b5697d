//! The entry to matrix products.

use std::marker::PhantomData;

use warpforge_tensor::ElementType;

use super::drive::{Shared, Target, drive, multiply};
use super::kernel::Family;
use super::memory::{Lent, Memory, MemoryError, Store};
use super::operand::{GemmError, Operand, Rhs, Shape};
use super::pack::{Copy, Part, copier, reads_in_place};
use super::packed::{Arrangement, Format, PackedRhs, PackedView};
use super::plan::Cut;
use super::rows::{MatrixRows, Rows};
use crate::block::Sink;
use crate::isa::Isa;
use crate::pool::Pool;

/// What is multiplied and what is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Products and sums of f32. Operands may be f32, bf16 or f16 in memory.
    F32,
    /// Products and sums of f64.
    F64,
    /// Products of bf16, sums of f32. Operands may be f32, bf16 or f16 in memory; they are rounded to bf16.
    Bf16,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Bf16 => "bf16",
        }
    }

    /// The type of sums, and so of results.
    #[must_use]
    pub fn sum(self) -> ElementType {
        match self {
            Self::F32 | Self::Bf16 => ElementType::F32,
            Self::F64 => ElementType::F64,
        }
    }
}

/// Bytes of packed operands that a call makes at a time, where operands come unpacked.
const PACKED_AT_ONCE: usize = 32 << 20;

/// Products of one kind by the best instructions of this machine.
#[derive(Debug)]
pub struct Gemm {
    kind: Kind,
    pub(super) family: &'static Family,
    pub(super) arrangement: Arrangement,
    pub(super) store: Store,
}

/// Memory for one worker's calls of [`Gemm::block`], kept from call to call.
#[derive(Debug, Default)]
pub struct Scratch {
    rows: Vec<*const u8>,
    copy: Option<Memory>,
}

// SAFETY: the addresses are of no meaning between calls.
unsafe impl Send for Scratch {}

impl Gemm {
    /// Products by the best instructions of this machine.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self::with_isa(kind, Isa::best())
    }

    /// Products by these instructions, or the next less able ones that there are kernels for.
    #[must_use]
    pub fn with_isa(kind: Kind, isa: Isa) -> Self {
        let isa = Isa::available().filter(|have| *have <= isa).last().unwrap_or(Isa::Portable);
        let (family, format) = match kind {
            Kind::F32 => (Family::f32(isa), Format::F32),
            Kind::F64 => (Family::f64(isa), Format::F64),
            Kind::Bf16 => (Family::f32(isa), Format::Rounded),
        };
        let (lanes, vectors) = (family.lanes, family.vectors);
        let arrangement = Arrangement { format, lanes, vectors, group: 1, row_multiple: 1 };
        Self { kind, family, arrangement, store: Store::default() }
    }

    /// The kind of these products.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Packs a right operand of `k` rows and `n` columns once for many products.
    ///
    /// # Errors
    ///
    /// When there is no memory, or products of this kind take no such elements.
    ///
    /// # Safety
    ///
    /// The operand's address is good for its sizes.
    pub unsafe fn pack_rhs(
        &self,
        rhs: &Operand,
        k: usize,
        n: usize,
        pool: Option<&Pool>,
    ) -> Result<PackedRhs, GemmError> {
        let bytes = self.packed_len(k, n)?;
        let memory = Memory::new(bytes)?;
        // SAFETY: as the caller promises; the memory has just been made for the copy.
        unsafe { self.pack_panels(rhs, k, n, memory.as_ptr(), pool)? };
        Ok(PackedRhs { memory, arrangement: self.arrangement, k, n })
    }

    /// Bytes that a packed operand of `k` rows and `n` columns takes.
    ///
    /// # Errors
    ///
    /// When the number is too large.
    pub fn packed_len(&self, k: usize, n: usize) -> Result<usize, MemoryError> {
        self.arrangement.bytes(k, n).ok_or(MemoryError { bytes: usize::MAX })
    }

    /// Packs a right operand into memory that the caller reuses, on the calling thread.
    ///
    /// # Errors
    ///
    /// When products of this kind take no such elements.
    ///
    /// # Safety
    ///
    /// The operand's address is good for its sizes; `to` is good for [`Gemm::packed_len`] bytes, begins at a multiple of
    /// 64, and nobody else writes there while the view lives.
    pub unsafe fn pack_into<'a>(
        &self,
        rhs: &Operand,
        k: usize,
        n: usize,
        to: *mut u8,
    ) -> Result<PackedView<'a>, GemmError> {
        // SAFETY: as the caller promises.
        unsafe { self.pack_panels(rhs, k, n, to, None)? };
        Ok(PackedView { data: to, arrangement: self.arrangement, k, n, memory: PhantomData })
    }

    unsafe fn pack_panels(
        &self,
        rhs: &Operand,
        k: usize,
        n: usize,
        to: *mut u8,
        pool: Option<&Pool>,
    ) -> Result<(), GemmError> {
        // SAFETY: as the caller promises.
        unsafe { self.pack_taps(std::slice::from_ref(rhs), k, n, to, pool) }
    }

    /// Packs an operand whose rows come from several matrices of `run` rows each, one for each tap of a window.
    pub(crate) unsafe fn pack_rhs_of(
        &self,
        taps: &[Operand],
        run: usize,
        n: usize,
        pool: Option<&Pool>,
    ) -> Result<PackedRhs, GemmError> {
        let k = taps.len().saturating_mul(run);
        let memory = Memory::new(self.packed_len(k, n)?)?;
        // SAFETY: as the caller promises; the memory has just been made for the copy.
        unsafe { self.pack_taps(taps, run, n, memory.as_ptr(), pool)? };
        Ok(PackedRhs { memory, arrangement: self.arrangement, k, n })
    }

    unsafe fn pack_taps(
        &self,
        taps: &[Operand],
        run: usize,
        n: usize,
        to: *mut u8,
        pool: Option<&Pool>,
    ) -> Result<(), GemmError> {
        let Some(first) = taps.first() else { return Ok(()) };
        let copy = copier(self.arrangement.format, first.element).ok_or_else(|| self.refuse(first))?;
        let (arrangement, to, k) = (self.arrangement, Shared(to), taps.len() * run);
        let pack = |at: usize| {
            let panel = arrangement.panel(n, at);
            for (tap, rhs) in taps.iter().enumerate() {
                let padding = if tap + 1 == taps.len() { arrangement.rows(k) - k } else { 0 };
                // SAFETY: panels do not overlap; the rest is as the caller promises.
                unsafe {
                    copy(&Part {
                        source: rhs.at(0, panel.first),
                        row_stride: rhs.row_stride,
                        column_stride: rhs.column_stride,
                        rows: run,
                        columns: panel.columns,
                        rows_written: run + padding,
                        columns_written: panel.width,
                        first_row: tap * run,
                        group: arrangement.group,
                        target: to.get().add(arrangement.offset(k, &panel)),
                        target_stride: panel.width * arrangement.group,
                    });
                }
            }
        };
        match pool {
            Some(pool) => pool.run(arrangement.panels(n), &|at, _| pack(at)),
            None => (0..arrangement.panels(n)).for_each(pack),
        }
        Ok(())
    }

    /// Whether kernels read rows of such elements where they lie.
    pub(crate) fn reads_rows_of(&self, element: ElementType) -> bool {
        reads_in_place(self.arrangement.format, element)
    }

    /// The type that kernels read rows of, and the function that makes its elements of others.
    pub(crate) fn row_copy(&self, element: ElementType) -> Result<(ElementType, Copy), GemmError> {
        let format = self.arrangement.format;
        let copy = copier(format, element).ok_or(GemmError::Element { kind: self.kind.name(), element })?;
        Ok((format.element(), copy))
    }

    /// Memory of at least so many bytes until the end of a call.
    pub(crate) fn lend(&self, bytes: usize) -> Result<Lent<'_>, MemoryError> {
        self.store.take(bytes)
    }

    pub(super) fn refuse(&self, operand: &Operand) -> GemmError {
        GemmError::Element { kind: self.kind.name(), element: operand.element }
    }

    /// Whether a packed operand is what kernels of this kind read, of these sizes.
    pub(super) fn check(&self, view: &PackedView<'_>, k: usize, n: Option<usize>) -> Result<(), GemmError> {
        if view.arrangement == self.arrangement && view.k == k && n.is_none_or(|n| n == view.n) {
            return Ok(());
        }
        let text = |arrangement: &Arrangement, k, n| format!("{k}x{n} {arrangement:?}");
        Err(GemmError::Packed {
            found: text(&view.arrangement, view.k, view.n),
            wanted: text(&self.arrangement, k, n.unwrap_or(view.n)),
        })
    }

    /// `C = A · B`. Every block, as soon as it is whole, is handed to `sink` by the worker that computed it. `out` is the
    /// result, row-major, of the type of sums, with rows `stride` elements apart; where there is none, blocks exist only
    /// for the sink.
    ///
    /// # Errors
    ///
    /// When there is no memory to pack into, products of this kind take no such elements, or the packed operand is not of
    /// this kind and size.
    ///
    /// # Safety
    ///
    /// All addresses are good for the sizes given. Nobody writes to the operands or uses the result during the call,
    /// except for the sink, which may do as it likes with its block.
    #[allow(clippy::too_many_arguments, reason = "those of a product, as everybody knows them")]
    pub unsafe fn product(
        &self,
        pool: &Pool,
        shape: Shape,
        lhs: &Operand,
        rhs: Rhs<'_>,
        out: Option<*mut u8>,
        stride: usize,
        sink: Option<&Sink<'_>>,
    ) -> Result<(), GemmError> {
        let target = Target { out, stride, sink, origin: (0, 0) };
        // SAFETY: as the caller promises.
        unsafe {
            match rhs {
                Rhs::Packed(packed) => self.with_packed(pool, shape, lhs, packed.view(), target),
                Rhs::View(view) => self.with_packed(pool, shape, lhs, view, target),
                Rhs::Strided(rhs) => self.with_strided(pool, shape, lhs, &rhs, target),
            }
        }
    }

    /// A product whose right operand is packed now, as many columns at a time as memory is set aside for.
    unsafe fn with_strided(
        &self,
        pool: &Pool,
        shape: Shape,
        lhs: &Operand,
        rhs: &Operand,
        target: Target<'_>,
    ) -> Result<(), GemmError> {
        let width = self.arrangement.lanes * self.arrangement.vectors;
        let panel = self.packed_len(shape.k, width)?.max(1);
        let at_once = (PACKED_AT_ONCE / panel).max(1) * width;
        let memory = self.store.take(self.packed_len(shape.k, at_once.min(shape.n))?)?;
        for first in (0..shape.n).step_by(at_once) {
            let n = at_once.min(shape.n - first);
            // SAFETY: as the caller promises; the memory has room for so many columns.
            unsafe {
                let part = Operand { data: rhs.at(0, first), ..*rhs };
                self.pack_panels(&part, shape.k, n, memory.as_ptr(), Some(pool))?;
                let view = PackedView {
                    data: memory.as_ptr(),
                    arrangement: self.arrangement,
                    k: shape.k,
                    n,
                    memory: PhantomData,
                };
                let out = target.out.map(|out| out.add(first * self.family.bytes));
                let origin = (target.origin.0, target.origin.1 + first);
                self.with_packed(pool, Shape { n, ..shape }, lhs, view, Target { out, origin, ..target })?;
            }
        }
        Ok(())
    }

    unsafe fn with_packed(
        &self,
        pool: &Pool,
        shape: Shape,
        lhs: &Operand,
        rhs: PackedView<'_>,
        target: Target<'_>,
    ) -> Result<(), GemmError> {
        self.check(&rhs, shape.k, Some(shape.n))?;
        if shape.m == 0 || shape.n == 0 {
            return Ok(());
        }
        let bytes = self.arrangement.format.bytes();
        if self.reads_rows_of(lhs.element) && lhs.column_stride == 1 {
            let rows = MatrixRows { data: lhs.data, stride: lhs.row_stride * bytes, k: shape.k };
            // SAFETY: as the caller promises.
            return unsafe { self.with_rows(pool, shape, &rows, rhs, target) };
        }
        let stride = self.row_stride(shape.k);
        let at_once = (PACKED_AT_ONCE / (stride * bytes).max(1)).max(64).min(shape.m);
        let memory = self.store.take(at_once.saturating_mul(stride * bytes))?;
        for first in (0..shape.m).step_by(at_once) {
            let m = at_once.min(shape.m - first);
            // SAFETY: as the caller promises; the memory has room for so many rows.
            unsafe {
                let part = Operand { data: lhs.at(first, 0), ..*lhs };
                self.copy_rows(&part, m, shape.k, memory.as_ptr(), stride, Some(pool))?;
                let rows = MatrixRows { data: memory.as_ptr(), stride: stride * bytes, k: shape.k };
                let out = target.out.map(|out| out.add(first * target.stride * self.family.bytes));
                let origin = (target.origin.0 + first, target.origin.1);
                self.with_rows(pool, Shape { m, ..shape }, &rows, rhs, Target { out, origin, ..target })?;
            }
        }
        Ok(())
    }

    unsafe fn with_rows(
        &self,
        pool: &Pool,
        shape: Shape,
        rows: &MatrixRows,
        rhs: PackedView<'_>,
        target: Target<'_>,
    ) -> Result<(), GemmError> {
        // SAFETY: as the caller promises.
        unsafe { self.rows_product(pool, shape, rows, rhs, target) }
    }

    /// The product of rows, which are given by their addresses and of a type that kernels read, and a packed operand.
    pub(crate) unsafe fn rows_product(
        &self,
        pool: &Pool,
        shape: Shape,
        rows: &dyn Rows,
        rhs: PackedView<'_>,
        target: Target<'_>,
    ) -> Result<(), GemmError> {
        self.check(&rhs, shape.k, Some(shape.n))?;
        if shape.m == 0 || shape.n == 0 {
            return Ok(());
        }
        let cut = Cut::new(shape, rows.run(), &self.arrangement, self.family.rows);
        // SAFETY: as the caller promises.
        unsafe { drive(pool, &self.store, self.family, &cut, rows, rhs, target)? };
        Ok(())
    }

    /// The distance of copied rows, in elements: not a multiple of a page, so that rows do not share the same few places
    /// of a cache.
    fn row_stride(&self, k: usize) -> usize {
        let line = 64 / self.arrangement.format.bytes();
        let lines = self.arrangement.rows(k).div_ceil(line);
        (lines + usize::from(lines.is_multiple_of(8))) * line
    }

    /// Copies rows of a left operand so that their elements lie side by side.
    unsafe fn copy_rows(
        &self,
        lhs: &Operand,
        m: usize,
        k: usize,
        to: *mut u8,
        stride: usize,
        pool: Option<&Pool>,
    ) -> Result<(), GemmError> {
        /// Rows that are copied as one piece.
        const TOGETHER: usize = 16;
        let copy = copier(self.arrangement.format, lhs.element).ok_or_else(|| self.refuse(lhs))?;
        let to = Shared(to);
        let bytes = self.arrangement.format.bytes();
        let piece = |at: usize| {
            let first = at * TOGETHER;
            let rows = TOGETHER.min(m - first);
            // SAFETY: pieces do not overlap; the rest is as the caller promises.
            unsafe {
                copy(&Part {
                    source: lhs.at(first, 0),
                    row_stride: lhs.row_stride,
                    column_stride: lhs.column_stride,
                    rows,
                    columns: k,
                    rows_written: rows,
                    columns_written: self.arrangement.rows(k),
                    first_row: 0,
                    group: 1,
                    target: to.get().add(first * stride * bytes),
                    target_stride: stride,
                });
            }
        };
        let pieces = m.div_ceil(TOGETHER);
        match pool {
            Some(pool) => pool.run(pieces, &|at, _| piece(at)),
            None => (0..pieces).for_each(piece),
        }
        Ok(())
    }

    /// One product by the calling thread alone: `m` rows of a left operand times a packed operand, all its columns, into
    /// a row-major tile of the type of sums, added to what it holds if `accumulate`.
    ///
    /// # Errors
    ///
    /// As for [`Gemm::product`].
    ///
    /// # Safety
    ///
    /// As for [`Gemm::product`].
    #[allow(clippy::too_many_arguments, reason = "those of a product, as everybody knows them")]
    pub unsafe fn block(
        &self,
        scratch: &mut Scratch,
        m: usize,
        k: usize,
        lhs: &Operand,
        rhs: PackedView<'_>,
        out: *mut u8,
        stride: usize,
        accumulate: bool,
    ) -> Result<(), GemmError> {
        self.check(&rhs, k, None)?;
        if m == 0 || rhs.n == 0 {
            return Ok(());
        }
        let bytes = self.arrangement.format.bytes();
        let rows = if self.reads_rows_of(lhs.element) && lhs.column_stride == 1 {
            MatrixRows { data: lhs.data, stride: lhs.row_stride * bytes, k }
        } else {
            let stride = self.row_stride(k);
            let to = scratch.copy_of(m.saturating_mul(stride * bytes))?;
            // SAFETY: as the caller promises; the copy has room for the rows.
            unsafe { self.copy_rows(lhs, m, k, to, stride, None)? };
            MatrixRows { data: to, stride: stride * bytes, k }
        };
        scratch.rows.resize(m, std::ptr::null());
        rows.addresses(0, m, &mut scratch.rows);
        let panels = 0..rhs.panels();
        // SAFETY: as the caller promises.
        unsafe { multiply(self.family, &rows, rhs, &scratch.rows, m, panels, out, stride, accumulate) };
        Ok(())
    }
}

impl Scratch {
    fn copy_of(&mut self, bytes: usize) -> Result<*mut u8, MemoryError> {
        match &self.copy {
            Some(copy) if copy.len() >= bytes => Ok(copy.as_ptr()),
            _ => {
                self.copy = None;
                Ok(self.copy.insert(Memory::new(bytes)?).as_ptr())
            }
        }
    }
}
