//! Peak-throughput kernels: chains of multiply-adds in registers.

use crate::kernel::Kernel;
use crate::options::Dialect;

/// Threads per block.
const THREADS: u32 = 256;
/// Independent chains per thread, to hide latency.
const CHAINS: u32 = 8;
/// Multiply-adds per chain.
const ITERATIONS: u32 = 1 << 16;

/// The arithmetic units that are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Units {
    /// 64-bit floats.
    F64,
    /// 32-bit floats.
    F32,
    /// Pairs of 16-bit floats.
    F16,
    /// Pairs of bf16.
    Bf16,
    /// Four-element dot products of 8-bit integers, accumulated in 32 bits.
    I8,
}

impl Units {
    /// The register type, the multiply-add statement, and its operations.
    fn link(self, dialect: Dialect) -> Option<(&'static str, &'static str, u32)> {
        Some(match (self, dialect) {
            (Self::F64, Dialect::Cuda) => ("double", "x[i] = fma(x[i], a, b);", 2),
            (Self::F64, Dialect::Hip) => ("double", "x[i] = __builtin_fma(x[i], a, b);", 2),
            (Self::F32, Dialect::Cuda) => ("float", "x[i] = fmaf(x[i], a, b);", 2),
            (Self::F32, Dialect::Hip) => ("float", "x[i] = __builtin_fmaf(x[i], a, b);", 2),
            (Self::F16, Dialect::Cuda) => {
                ("int", "asm(\"fma.rn.f16x2 %0, %0, %1, %2;\" : \"+r\"(x[i]) : \"r\"(a), \"r\"(b));", 4)
            }
            // Compilers of ROCm 5 have no builtin for a pair; they contract this to one instruction.
            (Self::F16, Dialect::Hip) => {
                ("wf_half_pair", "_Pragma(\"clang fp contract(fast)\") x[i] = x[i] * a + b;", 4)
            }
            (Self::Bf16, Dialect::Cuda) => {
                ("int", "asm(\"fma.rn.bf16x2 %0, %0, %1, %2;\" : \"+r\"(x[i]) : \"r\"(a), \"r\"(b));", 4)
            }
            (Self::I8, Dialect::Cuda) => {
                ("int", "asm(\"dp4a.s32.s32 %0, %1, %2, %0;\" : \"+r\"(x[i]) : \"r\"(a), \"r\"(b));", 8)
            }
            // Not all AMD devices have instructions for these.
            (Self::Bf16 | Self::I8, Dialect::Hip) => return None,
        })
    }
}

/// A kernel for at least this number of threads; none where the dialect lacks the instruction. Its argument is an
/// array of values below one, 8 bytes per thread.
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
  for (int turn = 0; turn < {ITERATIONS}; ++turn) {{
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
    let links = u64::from(blocks * THREADS) * u64::from(CHAINS) * u64::from(ITERATIONS);
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
