//! What every kernel's text stands on: one common part and a small one for each dialect.

use std::sync::OnceLock;

use crate::options::Dialect;

/// What the common part needs from a dialect: qualifiers, indices, barriers, shuffles, conversions, functions.
const CUDA: &str = include_str!("cuda.h");
const HIP: &str = include_str!("hip.h");
/// Tensor cores and copies that do not wait: CUDA alone has them.
const MMA: &str = concat!(include_str!("mma.h"), include_str!("hopper.h"));
/// Functions, arithmetic as StableHLO defines it, conversions, reduces of groups of threads, instrumentation, merging.
const COMMON: &str = concat!(
    include_str!("math.h"),
    include_str!("common.h"),
    include_str!("groups.h"),
    include_str!("salt.h"),
    include_str!("atomic.h"),
    include_str!("order.h")
);

/// The text before the kernels of a dialect.
#[must_use]
pub fn prelude(dialect: Dialect) -> &'static str {
    static TEXTS: OnceLock<[String; 2]> = OnceLock::new();
    let texts = TEXTS.get_or_init(|| [format!("{CUDA}{COMMON}{MMA}"), format!("{HIP}{COMMON}")]);
    match dialect {
        Dialect::Cuda => &texts[0],
        Dialect::Hip => &texts[1],
    }
}

/// The common part alone; with a part of their own, tests run kernels on the host.
#[must_use]
pub fn common() -> &'static str {
    COMMON
}
