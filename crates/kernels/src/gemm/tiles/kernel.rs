//! The innermost loops: one or two tiles of rows times one or two tiles of columns.

use std::arch::asm;

use super::{Configured, Product, ROWS};

/// One call of a kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
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
    /// Steps: tiles along the depth of the product.
    pub(super) steps: usize,
    /// The result's first element.
    pub(super) out: *mut u8,
    /// The distance of the result's rows, in bytes.
    pub(super) out_stride: usize,
    /// What the sums begin with, laid out like the result; null where that is zero.
    pub(super) from: *const u8,
    /// The distance of its rows, in bytes.
    pub(super) from_stride: usize,
    /// What is multiplied next: [`AHEAD`] bytes from here on are fetched into the second-level cache in each step.
    pub(super) ahead: *const u8,
}

/// Bytes that a step fetches ahead.
pub(super) const AHEAD: usize = 256;

macro_rules! kernels {
    ($two_by_two:ident, $one_by_two:ident, $two_by_one:ident, $one_by_one:ident, $product:literal) => {
        // Rows of the left operand pass by the first-level cache, where the panel stays for the next rows.
        unsafe fn $two_by_two(call: &Call) {
            let lower_lhs = call.lhs.wrapping_add(ROWS * call.lhs_stride);
            // SAFETY: the tiles are configured, and the addresses are good for whole tiles.
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
                    "prefetcht1 [{ahead}]",
                    "prefetcht1 [{ahead} + 64]",
                    "prefetcht1 [{ahead} + 128]",
                    "prefetcht1 [{ahead} + 192]",
                    "tileloaddt1 tmm4, [{lhs} + {lhs_stride}]",
                    "tileloadd tmm6, [{rhs} + {rhs_stride}]",
                    concat!($product, " tmm0, tmm4, tmm6"),
                    "tileloadd tmm7, [{rhs} + {rhs_stride} + 64]",
                    concat!($product, " tmm1, tmm4, tmm7"),
                    "tileloaddt1 tmm5, [{lower_lhs} + {lhs_stride}]",
                    concat!($product, " tmm2, tmm5, tmm6"),
                    concat!($product, " tmm3, tmm5, tmm7"),
                    "add {lhs}, {lhs_step}",
                    "add {lower_lhs}, {lhs_step}",
                    "add {rhs}, 2048",
                    "add {ahead}, 256",
                    "dec {steps}",
                    "jnz 2b",
                    "5:",
                    "tilestored [{out} + {stride}], tmm0",
                    "tilestored [{out} + {stride} + 64], tmm1",
                    "lea {out}, [{out} + {stride} * 8]",
                    "lea {out}, [{out} + {stride} * 8]",
                    "tilestored [{out} + {stride}], tmm2",
                    "tilestored [{out} + {stride} + 64], tmm3",
                    from = inout(reg) call.from => _,
                    from_stride = in(reg) call.from_stride,
                    out = inout(reg) call.out => _,
                    stride = in(reg) call.out_stride,
                    lhs = inout(reg) call.lhs => _,
                    lower_lhs = inout(reg) lower_lhs => _,
                    lhs_stride = in(reg) call.lhs_stride,
                    lhs_step = in(reg) call.lhs_step,
                    rhs = inout(reg) call.rhs => _,
                    rhs_stride = in(reg) 128usize,
                    steps = inout(reg) call.steps => _,
                    ahead = inout(reg) call.ahead => _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }

        unsafe fn $one_by_two(call: &Call) {
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
                    concat!($product, " tmm0, tmm4, tmm6"),
                    concat!($product, " tmm1, tmm4, tmm7"),
                    "add {lhs}, {lhs_step}",
                    "add {rhs}, 2048",
                    "dec {steps}",
                    "jnz 2b",
                    "5:",
                    "tilestored [{out} + {stride}], tmm0",
                    "tilestored [{out} + {stride} + 64], tmm1",
                    from = in(reg) call.from,
                    from_stride = in(reg) call.from_stride,
                    out = in(reg) call.out,
                    stride = in(reg) call.out_stride,
                    lhs = inout(reg) call.lhs => _,
                    lhs_stride = in(reg) call.lhs_stride,
                    lhs_step = in(reg) call.lhs_step,
                    rhs = inout(reg) call.rhs => _,
                    rhs_stride = in(reg) 128usize,
                    steps = inout(reg) call.steps => _,
                    out("tmm0") _, out("tmm1") _, out("tmm4") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }

        unsafe fn $two_by_one(call: &Call) {
            let mut part = *call;
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

        unsafe fn $one_by_one(call: &Call) {
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
                    concat!($product, " tmm0, tmm4, tmm6"),
                    "add {lhs}, {lhs_step}",
                    "add {rhs}, 1024",
                    "dec {steps}",
                    "jnz 2b",
                    "5:",
                    "tilestored [{out} + {stride}], tmm0",
                    from = in(reg) call.from,
                    from_stride = in(reg) call.from_stride,
                    out = in(reg) call.out,
                    stride = in(reg) call.out_stride,
                    lhs = inout(reg) call.lhs => _,
                    lhs_stride = in(reg) call.lhs_stride,
                    lhs_step = in(reg) call.lhs_step,
                    rhs = inout(reg) call.rhs => _,
                    row = in(reg) 64usize,
                    steps = inout(reg) call.steps => _,
                    out("tmm0") _, out("tmm4") _, out("tmm6") _,
                    options(nostack),
                );
            }
        }
    };
}

kernels!(bf16_2x2, bf16_1x2, bf16_2x1, bf16_1x1, "tdpbf16ps");
kernels!(i8_2x2, i8_1x2, i8_2x1, i8_1x1, "tdpbssd");

/// Computes one or two (`wide`) tiles of rows times one or two tiles of columns, as the panel has them.
///
/// # Safety
///
/// The addresses are good for whole tiles.
pub(super) unsafe fn tile(configured: &Configured, call: &Call, two_rows: bool) {
    let two_columns = call.rhs_stride == 128;
    // SAFETY: the caller promises the addresses, `configured` the tiles.
    unsafe {
        match (configured.product, two_rows, two_columns) {
            (Product::Bf16, true, true) => bf16_2x2(call),
            (Product::Bf16, false, true) => bf16_1x2(call),
            (Product::Bf16, true, false) => bf16_2x1(call),
            (Product::Bf16, false, false) => bf16_1x1(call),
            (Product::I8, true, true) => i8_2x2(call),
            (Product::I8, false, true) => i8_1x2(call),
            (Product::I8, true, false) => i8_2x1(call),
            (Product::I8, false, false) => i8_1x1(call),
        }
    }
}
