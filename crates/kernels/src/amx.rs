//! AMX tiles: detection, permission and configuration.
//!
//! In inline assembly, since stable Rust has no functions for them. A tile is 16 rows of 64 bytes.

// Assembly, and a system call that the C library has no function for.
#![allow(unsafe_code)]

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::marker::PhantomData;

/// Bytes in a row of a tile, and the distance of rows in a tile that lies in memory without gaps.
pub const ROW_BYTES: usize = 64;
/// Rows of a tile, and columns of a tile of results.
pub const ROWS: usize = 16;

/// `arch_prctl`'s request for permission to use a state component, and the component of the tiles' data.
const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
const XFEATURE_XTILEDATA: libc::c_long = 18;

/// Bits of register EDX of CPUID leaf 7.
const BF16: u32 = 1 << 22;
const TILE: u32 = 1 << 24;
const INT8: u32 = 1 << 25;

/// Proof that the processor has tiles with an instruction, and that the kernel lets this process use them.
#[derive(Debug, Clone, Copy)]
pub struct Tiles(());

impl Tiles {
    /// Tiles that multiply bf16.
    #[must_use]
    pub fn with_bf16() -> Option<Self> {
        Self::with(BF16)
    }

    /// Tiles that multiply 8-bit integers.
    #[must_use]
    pub fn with_int8() -> Option<Self> {
        Self::with(INT8)
    }

    fn with(instruction: u32) -> Option<Self> {
        if __cpuid(0).eax < 7 {
            return None;
        }
        let wanted = TILE | instruction;
        let present = __cpuid_count(7, 0).edx & wanted == wanted;
        (present && permitted()).then_some(Self(()))
    }

    /// Gives all eight tiles of the calling thread their full size.
    #[must_use]
    pub fn configure(self) -> Configured {
        let mut config = Config { bytes: [0; 64] };
        config.bytes[0] = 1; // the palette: eight tiles of up to 1 KiB
        for tile in 0..8 {
            config.bytes[16 + 2 * tile] = ROW_BYTES as u8;
            config.bytes[48 + tile] = ROWS as u8;
        }
        // SAFETY: the processor has tiles and the kernel lets us use them, which `self` proves; the 64 bytes are a
        // valid configuration of palette 1.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const config, options(nostack, preserves_flags, readonly));
        };
        Configured { not_send: PhantomData }
    }
}

#[repr(C, align(64))]
struct Config {
    bytes: [u8; 64],
}

/// Proof that the tiles of this thread have their full size. Dropping it releases them.
#[derive(Debug)]
pub struct Configured {
    not_send: PhantomData<*const ()>,
}

impl Drop for Configured {
    fn drop(&mut self) {
        // SAFETY: a value of this type exists only on a thread that has configured its tiles.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) };
    }
}

/// Asks the kernel for permission to use the tiles. Asking again does no harm.
fn permitted() -> bool {
    // SAFETY: this request takes integers only, and changes nothing but what the process may use.
    let outcome = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) };
    outcome == 0
}
