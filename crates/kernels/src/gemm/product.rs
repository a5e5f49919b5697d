//! The entry to matrix products.

use std::marker::PhantomData;

use warpforge_tensor::ElementType;

use super::drive::{Target, drive};
use super::kernel::Family;
use super::kind::{Engine, Kind, choose};
use super::memory::Store;
use super::operand::{GemmError, Operand, Rhs, Shape};
use super::packed::{Arrangement, PackedView};
use super::plan::{Cut, Order, Wishes, piece_rows};
use super::rows::{MatrixRows, Rows};
use super::stripes::{self, Stripes};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::tiles;
use crate::block::Sink;
use crate::isa::Isa;
use crate::pool::Pool;

/// Bytes of packed operands that a call makes at a time, where operands come unpacked.
const PACKED_AT_ONCE: usize = 32 << 20;

/// Products of one kind by the best instructions of this machine.
#[derive(Debug)]
pub struct Gemm {
    pub(super) kind: Kind,
    pub(super) isa: Isa,
    pub(super) engine: Engine,
    pub(super) arrangement: Arrangement,
    pub(super) store: Store,
}

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
        let (engine, arrangement) = choose(kind, isa);
        Self { kind, isa, engine, arrangement, store: Store::default() }
    }

    /// The kind of these products.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The name of the instructions that multiply elements of this kind as they are: `amx`, `avx512`, `avx2` or
    /// `portable`. None where they are widened to a type that there are instructions for.
    #[must_use]
    pub fn instructions(&self) -> Option<&'static str> {
        match (self.engine, self.kind) {
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            (Engine::Tiles(_), _) => Some("amx"),
            (Engine::Vectors(_), Kind::F32 | Kind::F64) => Some(self.isa.name()),
            (Engine::Vectors(_), Kind::Bf16 | Kind::I8) => None,
        }
    }

    /// The instructions that they use.
    pub(crate) fn isa(&self) -> Isa {
        self.isa
    }

    /// Whether tiles are loaded from rows of bf16 that lie evenly apart.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(crate) fn takes_even_rows(&self) -> bool {
        matches!(self.engine, Engine::Tiles(_)) && self.kind == Kind::Bf16
    }

    /// The product of rows that lie evenly apart and fill a tile, and a packed operand.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(crate) unsafe fn even_product(
        &self,
        pool: &Pool,
        even: &tiles::Even<'_>,
        rhs: PackedView<'_>,
        target: Target<'_>,
    ) -> Result<(), GemmError> {
        let k = even.taps.len() * even.steps * self.arrangement.row_multiple;
        let rows = self.arrangement.rows(rhs.k);
        self.check(&rhs, if rows == k { rhs.k } else { k }, None)?;
        match self.engine {
            // SAFETY: as the caller promises.
            Engine::Tiles(tiles) if rhs.n > 0 => unsafe {
                tiles::drive_even(pool, &self.store, tiles, even, rhs, target)?;
            },
            _ => {}
        }
        Ok(())
    }

    /// Bytes of an element of a result.
    fn result_bytes(&self, target: &Target<'_>) -> usize {
        if target.rounded { ElementType::BF16.byte_width() } else { self.kind.sum().byte_width() }
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
        let target = Target { out, stride, rounded: false, sink, origin: (0, 0) };
        // SAFETY: as the caller promises.
        unsafe { self.to_target(pool, shape, lhs, rhs, target) }
    }

    /// Whether there is [`Gemm::rounded_product`].
    #[must_use]
    pub fn rounds(&self) -> bool {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        return self.takes_even_rows();
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        false
    }

    /// `C = A · B` where C has the sums rounded to bf16. Nothing is computed unless [`Gemm::rounds`].
    ///
    /// # Errors
    ///
    /// As for [`Gemm::product`].
    ///
    /// # Safety
    ///
    /// As for [`Gemm::product`], with a result of bf16.
    pub unsafe fn rounded_product(
        &self,
        pool: &Pool,
        shape: Shape,
        lhs: &Operand,
        rhs: Rhs<'_>,
        out: *mut u8,
        stride: usize,
    ) -> Result<(), GemmError> {
        let target = Target { out: Some(out), stride, rounded: true, sink: None, origin: (0, 0) };
        match self.rounds() {
            // SAFETY: as the caller promises.
            true => unsafe { self.to_target(pool, shape, lhs, rhs, target) },
            false => Ok(()),
        }
    }

    unsafe fn to_target(
        &self,
        pool: &Pool,
        shape: Shape,
        lhs: &Operand,
        rhs: Rhs<'_>,
        target: Target<'_>,
    ) -> Result<(), GemmError> {
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
                let out = target.out.map(|out| out.add(first * self.result_bytes(&target)));
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
        if self.reads_in_place(lhs) && !self.worth_copying(lhs, shape) {
            let rows = MatrixRows::of(lhs, shape.k);
            // SAFETY: as the caller promises.
            return unsafe { self.rows_product(pool, shape, &rows, rhs, target) };
        }
        let copies = self.row_copies(lhs, shape.k)?;
        if let Engine::Vectors(family) = self.engine {
            let cut = self.cut(shape, family);
            if let Some(stripes) = Stripes::of(&cut, copies.stride, pool.threads()) {
                // SAFETY: as the caller promises.
                unsafe { stripes::drive(pool, &self.store, family, &cut, stripes, &copies, rhs, target)? };
                return Ok(());
            }
        }
        let at_once = (PACKED_AT_ONCE / copies.stride.max(1)).max(64).min(shape.m);
        let memory = self.store.take(at_once.saturating_mul(copies.stride))?;
        for first in (0..shape.m).step_by(at_once) {
            let m = at_once.min(shape.m - first);
            // SAFETY: as the caller promises; the memory has room for so many rows.
            unsafe {
                copies.copy_by(pool, first..first + m, memory.as_ptr());
                let rows = copies.rows(memory.as_ptr());
                let out = target.out.map(|out| out.add(first * target.stride * self.result_bytes(&target)));
                let origin = (target.origin.0 + first, target.origin.1);
                self.rows_product(pool, Shape { m, ..shape }, &rows, rhs, Target { out, origin, ..target })?;
            }
        }
        Ok(())
    }

    /// How a product by vectors is cut into pieces.
    fn cut(&self, shape: Shape, family: &Family) -> Cut {
        let many_rows = piece_rows(shape, &self.arrangement);
        let wishes = Wishes { tile_rows: family.rows, many_rows, order: Order::Panels };
        Cut::new(shape, &self.arrangement, wishes)
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
        // SAFETY: as the caller promises.
        unsafe {
            match self.engine {
                Engine::Vectors(family) => {
                    let cut = self.cut(shape, family);
                    drive(pool, &self.store, family, &cut, rows, rhs, target)?;
                }
                #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
                Engine::Tiles(tiles) => tiles::drive(pool, &self.store, tiles, shape, rows, rhs, target)?,
            }
        }
        Ok(())
    }
}
