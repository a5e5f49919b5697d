//! AMX GEMMs: bf16 with f32 accumulation, and 8-bit integers with 32-bit accumulation.
//!
//! A tile is 16 rows of 64 bytes. The left-hand operand is read in place or packed into blocks of two tiles of rows; a
//! kernel computes two by two output tiles over the whole depth.

mod drive;
mod kernel;
mod lhs;
mod multiply;
mod pack_lhs;
mod strided_lhs;
mod stripes;
mod task;

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::marker::PhantomData;

pub(super) use drive::{block, drive};
pub(crate) use strided_lhs::StridedLhs;
pub(super) use strided_lhs::drive as drive_strided;

/// Bytes in a row of a tile.
const ROW_BYTES: usize = 64;
/// Rows of a tile, and columns of a tile of the result.
const ROWS: usize = 16;
/// Rows of a block of the left operand.
pub(super) const BLOCK_ROWS: usize = 2 * ROWS;

/// `arch_prctl` request for permission to use an extended CPU state, and the state of the tile data.
const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
const XFEATURE_XTILEDATA: libc::c_long = 18;

/// Bits of register EDX of CPUID leaf 7.
const BF16: u32 = 1 << 22;
const TILE: u32 = 1 << 24;
const INT8: u32 = 1 << 25;

/// The element type of tile operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TileElement {
    /// Pairs of bf16, accumulated in f32.
    Bf16,
    /// Groups of four i8, accumulated in i32.
    I8,
}

/// Proof that the CPU has AMX for an element type and that the kernel permits this process to use it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Amx {
    element: TileElement,
}

impl Amx {
    /// AMX for an element type, if available.
    pub(super) fn detect(element: TileElement) -> Option<Self> {
        let valid = match element {
            TileElement::Bf16 => TILE | BF16,
            TileElement::I8 => TILE | INT8,
        };
        let known = __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & valid == valid;
        let converts = is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512bw");
        (known && converts && permitted()).then_some(Self { element })
    }

    /// Elements of a tile's row.
    pub(super) fn depth(self) -> usize {
        match self.element {
            TileElement::Bf16 => ROW_BYTES / 2,
            TileElement::I8 => ROW_BYTES,
        }
    }

    /// Configures all eight tiles of the calling thread with their full size.
    fn configure(self) -> TileConfig {
        let mut config = TileConfigBytes { bytes: [0; 64] };
        config.bytes[0] = 1; // the palette: eight tiles of up to 1 KiB
        for tile in 0..8 {
            config.bytes[16 + 2 * tile] = ROW_BYTES as u8;
            config.bytes[48 + tile] = ROWS as u8;
        }
        // SAFETY: `self` proves that the CPU has AMX and that it is permitted; the 64 bytes are a valid configuration
        // of palette 1.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const config, options(nostack, preserves_flags, readonly));
        };
        TileConfig { element: self.element, not_send: PhantomData }
    }
}

#[repr(C, align(64))]
struct TileConfigBytes {
    bytes: [u8; 64],
}

/// Proof that the tiles of this thread are configured. Releases them when dropped.
#[derive(Debug)]
struct TileConfig {
    element: TileElement,
    not_send: PhantomData<*const ()>,
}

impl Drop for TileConfig {
    fn drop(&mut self) {
        // SAFETY: a value of this type exists only on a thread that has configured its tiles.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) };
    }
}

/// Requests permission to use AMX. Repeated requests are harmless.
fn permitted() -> bool {
    // SAFETY: the request takes integers only, and changes nothing but the permissions of the process.
    let outcome = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) };
    outcome == 0
}
