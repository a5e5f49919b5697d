//! Kernels that do nothing but keep the ordinary arithmetic units busy: chains of multiply-adds in registers, for measuring.

use crate::kernel::Kernel;
use crate::options::Dialect;

/// Threads of a block.
const THREADS: u32 = 256;
/// Chains of a thread, so that one need not wait for itself.
const CHAINS: u32 = 8;
/// Links of a chain.
const TURNS: u32 = 1 << 16;

/// What the units compute with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Units {
    /// 64-bit floats.
    F64,
    /// 32-bit floats.
    F32,
    /// Pairs of 16-bit floats.
    F16,
    /// Pairs of the upper halves of 32-bit floats.
    Bf16,
    /// Fours of 8-bit integers, summed in 32 bits.
    I8,
}

impl Units {
    /// The type of a link, what makes the next one of it, and how many operations that is.
    fn link(self, dialect: Dialect) -> Option<(&'static str, &'static str, u32)> {
        Some(match (self, dialect) {
            (Self::F64, Dialect::Cuda) => ("double", "x[i] = fma(x[i], a, b);", 2),
            (Self::F64, Dialect::Hip) => ("double", "x[i] = __builtin_fma(x[i], a, b);", 2),
            (Self::F32, Dialect::Cuda) => ("float", "x[i] = fmaf(x[i], a, b);", 2),
            (Self::F32, Dialect::Hip) => ("float", "x[i] = __builtin_fmaf(x[i], a, b);", 2),
            (Self::F16, Dialect::Cuda) => {
                ("int", "asm(\"fma.rn.f16x2 %0, %0, %1, %2;\" : \"+r\"(x[i]) : \"r\"(a), \"r\"(b));", 4)
            }
            (Self::F16, Dialect::Hip) => ("wf_half_pair", "x[i] = __builtin_elementwise_fma(x[i], a, b);", 4),
            (Self::Bf16, Dialect::Cuda) => {
                ("int", "asm(\"fma.rn.bf16x2 %0, %0, %1, %2;\" : \"+r\"(x[i]) : \"r\"(a), \"r\"(b));", 4)
            }
            (Self::I8, Dialect::Cuda) => {
                ("int", "asm(\"dp4a.s32.s32 %0, %1, %2, %0;\" : \"+r\"(x[i]) : \"r\"(a), \"r\"(b));", 8)
            }
            // Not all of the vendor's devices have instructions for these.
            (Self::Bf16 | Self::I8, Dialect::Hip) => return None,
        })
    }
}

/// A kernel for so many threads, or a few more; none where a dialect has no instructions for the numbers. It takes the address of a number
/// below one, of up to 8 bytes, for each thread.
#[must_use]
pub fn peak(dialect: Dialect, units: Units, threads: u32) -> Option<Kernel> {
    let blocks = threads.div_ceil(THREADS);
    let (element, link, operations) = units.link(dialect)?;
    let name = format!("wf_peak_{}", format!("{units:?}").to_lowercase());
    let declared = match element {
        "wf_half_pair" => "typedef _Float16 wf_half_pair __attribute__((ext_vector_type(2)));\n",
        _ => "",
    };
    let source = format!(
        "{declared}extern \"C\" WF_KERNEL({THREADS}, 0) void {name}({element}* out)
{{
  const int thread = WF_BLOCK * {THREADS} + WF_THREAD;
  const {element} a = out[thread], b = out[thread];
  {element} x[{CHAINS}];
#pragma unroll
  for (int i = 0; i < {CHAINS}; ++i) x[i] = a + ({element})i;
#pragma unroll 8
  for (int turn = 0; turn < {TURNS}; ++turn) {{
#pragma unroll
    for (int i = 0; i < {CHAINS}; ++i) {{
      {link}
    }}
  }}
#pragma unroll
  for (int i = 1; i < {CHAINS}; ++i) x[0] += x[i];
  out[thread] = x[0];
}}
"
    );
    let links = u64::from(blocks * THREADS) * u64::from(CHAINS) * u64::from(TURNS);
    Some(Kernel {
        name,
        source,
        grid: [blocks, 1, 1],
        block: [THREADS, 1, 1],
        shared_bytes: 0,
        arguments: Vec::new(),
        flops: links * u64::from(operations),
        bytes: 0,
        salt_bytes: 0,
        title: format!("multiply-adds of {units:?} in registers"),
    })
}
