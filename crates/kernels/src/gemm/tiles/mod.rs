//! Products by the matrix tiles of x86-64 (AMX): bf16 summed in f32, and 8-bit integers summed in 32 bits.
//!
//! A tile is 16 rows of 64 bytes. The left operand is read where it lies or packed into blocks of two tiles' rows; a
//! kernel computes two by two tiles of the result with the whole depth of the product.

mod drive;
mod even;
mod kernel;
mod left;
mod multiply;
mod rows;
mod stripes;

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::marker::PhantomData;

pub(super) use drive::{block, drive};
pub(crate) use even::Even;
pub(super) use even::drive as drive_even;

/// Bytes in a row of a tile.
const ROW_BYTES: usize = 64;
/// Rows of a tile, and columns of a tile of the result.
const ROWS: usize = 16;
/// Rows of a block of the left operand.
pub(super) const BLOCK_ROWS: usize = 2 * ROWS;

/// `arch_prctl`'s request for leave to use a part of the processor's state, and the part that is the tiles' data.
const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
const XFEATURE_XTILEDATA: libc::c_long = 18;

/// Bits of register EDX of CPUID leaf 7.
const BF16: u32 = 1 << 22;
const TILE: u32 = 1 << 24;
const INT8: u32 = 1 << 25;

/// What tiles multiply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Product {
    /// Pairs of bf16, summed in f32.
    Bf16,
    /// Fours of i8, summed in i32.
    I8,
}

/// Proof that the processor has tiles with the instructions for a product, and that the system lets this process use
/// them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tiles {
    product: Product,
}

impl Tiles {
    /// Tiles for these products, if there are any.
    pub(super) fn detect(product: Product) -> Option<Self> {
        let wanted = match product {
            Product::Bf16 => TILE | BF16,
            Product::I8 => TILE | INT8,
        };
        let known = __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & wanted == wanted;
        let converts = is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512bw");
        (known && converts && permitted()).then_some(Self { product })
    }

    /// Elements of a tile's row.
    pub(super) fn depth(self) -> usize {
        match self.product {
            Product::Bf16 => ROW_BYTES / 2,
            Product::I8 => ROW_BYTES,
        }
    }

    /// Gives all eight tiles of the calling thread their full size.
    fn configure(self) -> Configured {
        let mut config = Config { bytes: [0; 64] };
        config.bytes[0] = 1; // the palette: eight tiles of up to 1 KiB
        for tile in 0..8 {
            config.bytes[16 + 2 * tile] = ROW_BYTES as u8;
            config.bytes[48 + tile] = ROWS as u8;
        }
        // SAFETY: the processor has tiles and the system lets us use them, which `self` proves; the 64 bytes are a valid
        // configuration of palette 1.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const config, options(nostack, preserves_flags, readonly));
        };
        Configured { product: self.product, not_send: PhantomData }
    }
}

#[repr(C, align(64))]
struct Config {
    bytes: [u8; 64],
}

/// Proof that the tiles of this thread have their full size. It gives them back when dropped.
#[derive(Debug)]
struct Configured {
    product: Product,
    not_send: PhantomData<*const ()>,
}

impl Drop for Configured {
    fn drop(&mut self) {
        // SAFETY: a value of this type exists only on a thread that has configured its tiles.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) };
    }
}

/// Asks the system for leave to use the tiles. Asking again does no harm.
fn permitted() -> bool {
    // SAFETY: this request takes numbers only, and changes nothing but what the process may use.
    let outcome = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) };
    outcome == 0
}
