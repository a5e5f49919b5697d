//! The instruction sets that kernels may use.

use std::fmt;
use std::sync::OnceLock;

/// A vector instruction set, in increasing order of capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// Plain Rust, vectorized by the compiler.
    Portable,
    /// AVX2 with fused multiply-add and conversions of f16.
    Avx2,
    /// AVX-512 with its instructions for bytes, words, doublewords and shorter vectors.
    Avx512,
}

impl Isa {
    /// The best instruction set of this CPU, or the lower one that `WARPFORGE_ISA` (`portable`, `avx2`, `avx512`)
    /// names.
    #[must_use]
    pub fn best() -> Self {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| {
            let wanted = match std::env::var("WARPFORGE_ISA").as_deref() {
                Ok("portable") => Isa::Portable,
                Ok("avx2") => Isa::Avx2,
                _ => Isa::Avx512,
            };
            wanted.min(Self::detected())
        })
    }

    /// All instruction sets of this CPU, in increasing order.
    pub fn available() -> impl Iterator<Item = Self> {
        [Isa::Portable, Isa::Avx2, Isa::Avx512].into_iter().filter(|isa| *isa <= Self::detected())
    }

    #[cfg(target_arch = "x86_64")]
    fn detected() -> Self {
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        match (avx2, avx512) {
            (true, true) => Isa::Avx512,
            (true, false) => Isa::Avx2,
            _ => Isa::Portable,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn detected() -> Self {
        Isa::Portable
    }
}

impl Isa {
    /// The name, as `WARPFORGE_ISA` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
