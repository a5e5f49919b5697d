//! The prelude of generated kernels: a common part and one per dialect.

use std::sync::OnceLock;

use crate::options::Dialect;

/// Dialect part: qualifiers, indices, barriers, shuffles, conversions, math functions.
const CUDA: &str = include_str!("cuda.h");
const HIP: &str = include_str!("hip.h");
/// Tensor cores and asynchronous copies, CUDA only.
const MMA: &str = concat!(include_str!("mma.h"), include_str!("hopper.h"));
/// Operands of tensor-core products, on top of the instructions.
const FRAGMENTS: &str = concat!(include_str!("fragments.h"), include_str!("codes.h"));
/// Math functions, arithmetic as StableHLO defines it, conversions, group reductions, instrumentation, merging,
/// regions of images.
const COMMON: &str = concat!(
    include_str!("math.h"),
    include_str!("common.h"),
    include_str!("groups.h"),
    include_str!("salt.h"),
    include_str!("atomic.h"),
    include_str!("merge.h"),
    include_str!("regions.h")
);

/// The prelude of a dialect.
#[must_use]
pub fn prelude(dialect: Dialect) -> &'static str {
    static TEXTS: OnceLock<[String; 2]> = OnceLock::new();
    let texts = TEXTS.get_or_init(|| [format!("{CUDA}{COMMON}{MMA}{FRAGMENTS}"), format!("{HIP}{COMMON}")]);
    match dialect {
        Dialect::Cuda => &texts[0],
        Dialect::Hip => &texts[1],
    }
}

/// Operands of tensor-core products. Tests combine them with a host part that has the instructions.
#[must_use]
pub fn fragments() -> &'static str {
    FRAGMENTS
}

/// The common part. Tests combine it with a host part to run kernels on the CPU.
#[must_use]
pub fn common() -> &'static str {
    COMMON
}
