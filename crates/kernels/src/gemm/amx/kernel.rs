//! AMX kernels: one or two tiles of rows times one or two tiles of columns.

use std::arch::asm;

use super::{ROWS, TileConfig, TileElement};

/// The arguments of a kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct TileKernelArgs {
    /// The first row of the left operand.
    pub(super) lhs: *const u8,
    /// From one row to the next, in bytes.
    pub(super) lhs_stride: usize,
    /// From one step to the next, in bytes.
    pub(super) lhs_step: usize,
    /// A panel of the right operand: 16 rows of `rhs_stride` bytes for each step.
    pub(super) rhs: *const u8,
    /// Bytes of a row of the panel: 64 for each tile of columns.
    pub(super) rhs_stride: usize,
    /// Steps: tiles along the depth.
    pub(super) steps: usize,
    /// The result's first element.
    pub(super) out: *mut u8,
    /// The row stride of the output, in bytes.
    pub(super) out_stride: usize,
    /// Initial sums, laid out like the output; null for zero.
    pub(super) from: *const u8,
    /// Its row stride, in bytes.
    pub(super) from_stride: usize,
    /// The operand of the next call: each step prefetches [`PREFETCH_BYTES`] of it into the L2 cache.
    pub(super) prefetch: *const u8,
}

/// Bytes that a step prefetches.
pub(super) const PREFETCH_BYTES: usize = 256;

macro_rules! kernels {
    ($two_by_two:ident, $one_by_two:ident, $two_by_one:ident, $one_by_one:ident, $element:literal) => {
        // Rows of the left-hand operand bypass the L1 cache, where the panel stays for the next rows.
        unsafe fn $two_by_two(args: &TileKernelArgs) {
            let lower_lhs = args.lhs.wrapping_add(ROWS * args.lhs_stride);
            // SAFETY: the tiles are configured, and the pointers are valid for whole tiles.
            unsafe {
                asm!(
                    "test {from}, {from}",
                    "jnz 3f",
                    "tilezero tmm0",
                    "tilezero tmm1",
                    "tilezero tmm2",
                    "tilezero tmm3",
                    "jmp 4f",
                    "3:",
                    "tileloadd tmm0, [{from} + {from_stride}]",
                    "tileloadd tmm1, [{from} + {from_stride} + 64]",
                    "lea {from}, [{from} + {from_stride} * 8]",
                    "lea {from}, [{from} + {from_stride} * 8]",
                    "tileloadd tmm2, [{from} + {from_stride}]",
                    "tileloadd tmm3, [{from} + {from_stride} + 64]",
                    "4:",
                    "test {steps}, {steps}",
                    "jz 5f",
                    "2:",
                    "prefetcht1 [{prefetch}]",
                    "prefetcht1 [{prefetch} + 64]",
                    "prefetcht1 [{prefetch} + 128]",
                    "prefetcht1 [{prefetch} + 192]",
                    "tileloaddt1 tmm4, [{lhs} + {lhs_stride}]",
                    "tileloadd tmm6, [{rhs} + {rhs_stride}]",
                    concat!($element, " tmm0, tmm4, tmm6"),
                    "tileloadd tmm7, [{rhs} + {rhs_stride} + 64]",
                    concat!($element, " tmm1, tmm4, tmm7"),
                    "tileloaddt1 tmm5, [{lower_lhs} + {lhs_stride}]",
                    concat!($element, " tmm2, tmm5, tmm6"),
                    concat!($element, " tmm3, tmm5, tmm7"),
                    "add {lhs}, {lhs_step}",
                    "add {lower_lhs}, {lhs_step}",
                    "add {rhs}, 2048",
                    "add {prefetch}, 256",
                    "dec {steps}",
                    "jnz 2b",
                    "5:",
                    "tilestored [{out} + {stride}], tmm0",
                    "tilestored [{out} + {stride} + 64], tmm1",
                    "lea {out}, [{out} + {stride} * 8]",
                    "lea {out}, [{out} + {stride} * 8]",
                    "tilestored [{out} + {stride}], tmm2",
                    "tilestored [{out} + {stride} + 64], tmm3",
                    from = inout(reg) args.from => _,
                    from_stride = in(reg) args.from_stride,
                    out = inout(reg) args.out => _,
                    stride = in(reg) args.out_stride,
                    lhs = inout(reg) args.lhs => _,
                    lower_lhs = inout(reg) lower_lhs => _,
                    lhs_stride = in(reg) args.lhs_stride,
                    lhs_step = in(reg) args.lhs_step,
                    rhs = inout(reg) args.rhs => _,
                    rhs_stride = in(reg) 128usize,
                    steps = inout(reg) args.steps => _,
                    prefetch = inout(reg) args.prefetch => _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }

        unsafe fn $one_by_two(args: &TileKernelArgs) {
            // SAFETY: as above.
            unsafe {
                asm!(
                    "test {from}, {from}",
                    "jnz 3f",
                    "tilezero tmm0",
                    "tilezero tmm1",
                    "jmp 4f",
                    "3:",
                    "tileloadd tmm0, [{from} + {from_stride}]",
                    "tileloadd tmm1, [{from} + {from_stride} + 64]",
                    "4:",
                    "test {steps}, {steps}",
                    "jz 5f",
                    "2:",
                    "tileloadd tmm4, [{lhs} + {lhs_stride}]",
                    "tileloadd tmm6, [{rhs} + {rhs_stride}]",
                    "tileloadd tmm7, [{rhs} + {rhs_stride} + 64]",
                    concat!($element, " tmm0, tmm4, tmm6"),
                    concat!($element, " tmm1, tmm4, tmm7"),
                    "add {lhs}, {lhs_step}",
                    "add {rhs}, 2048",
                    "dec {steps}",
                    "jnz 2b",
                    "5:",
                    "tilestored [{out} + {stride}], tmm0",
                    "tilestored [{out} + {stride} + 64], tmm1",
                    from = in(reg) args.from,
                    from_stride = in(reg) args.from_stride,
                    out = in(reg) args.out,
                    stride = in(reg) args.out_stride,
                    lhs = inout(reg) args.lhs => _,
                    lhs_stride = in(reg) args.lhs_stride,
                    lhs_step = in(reg) args.lhs_step,
                    rhs = inout(reg) args.rhs => _,
                    rhs_stride = in(reg) 128usize,
                    steps = inout(reg) args.steps => _,
                    out("tmm0") _, out("tmm1") _, out("tmm4") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }

        unsafe fn $two_by_one(args: &TileKernelArgs) {
            let mut part = *args;
            // SAFETY: as above; the second tile of rows follows the first.
            unsafe {
                $one_by_one(&part);
                part.lhs = part.lhs.wrapping_add(ROWS * part.lhs_stride);
                part.out = part.out.wrapping_add(ROWS * part.out_stride);
                if !part.from.is_null() {
                    part.from = part.from.wrapping_add(ROWS * part.from_stride);
                }
                $one_by_one(&part);
            }
        }

        unsafe fn $one_by_one(args: &TileKernelArgs) {
            // SAFETY: as above.
            unsafe {
                asm!(
                    "test {from}, {from}",
                    "jnz 3f",
                    "tilezero tmm0",
                    "jmp 4f",
                    "3:",
                    "tileloadd tmm0, [{from} + {from_stride}]",
                    "4:",
                    "test {steps}, {steps}",
                    "jz 5f",
                    "2:",
                    "tileloadd tmm4, [{lhs} + {lhs_stride}]",
                    "tileloadd tmm6, [{rhs} + {row}]",
                    concat!($element, " tmm0, tmm4, tmm6"),
                    "add {lhs}, {lhs_step}",
                    "add {rhs}, 1024",
                    "dec {steps}",
                    "jnz 2b",
                    "5:",
                    "tilestored [{out} + {stride}], tmm0",
                    from = in(reg) args.from,
                    from_stride = in(reg) args.from_stride,
                    out = in(reg) args.out,
                    stride = in(reg) args.out_stride,
                    lhs = inout(reg) args.lhs => _,
                    lhs_stride = in(reg) args.lhs_stride,
                    lhs_step = in(reg) args.lhs_step,
                    rhs = inout(reg) args.rhs => _,
                    row = in(reg) 64usize,
                    steps = inout(reg) args.steps => _,
                    out("tmm0") _, out("tmm4") _, out("tmm6") _,
                    options(nostack),
                );
            }
        }
    };
}

kernels!(bf16_2x2, bf16_1x2, bf16_2x1, bf16_1x1, "tdpbf16ps");
kernels!(i8_2x2, i8_1x2, i8_2x1, i8_1x1, "tdpbssd");

/// Computes one or two tiles of rows times the one or two tiles of columns of the panel.
///
/// # Safety
///
/// The pointers are valid for whole tiles.
pub(super) unsafe fn tile(config: &TileConfig, args: &TileKernelArgs, two_rows: bool) {
    let two_columns = args.rhs_stride == 128;
    // SAFETY: the caller guarantees the pointers, `config` the tiles.
    unsafe {
        match (config.element, two_rows, two_columns) {
            (TileElement::Bf16, true, true) => bf16_2x2(args),
            (TileElement::Bf16, false, true) => bf16_1x2(args),
            (TileElement::Bf16, true, false) => bf16_2x1(args),
            (TileElement::Bf16, false, false) => bf16_1x1(args),
            (TileElement::I8, true, true) => i8_2x2(args),
            (TileElement::I8, false, true) => i8_1x2(args),
            (TileElement::I8, true, false) => i8_2x1(args),
            (TileElement::I8, false, false) => i8_1x1(args),
        }
    }
}
