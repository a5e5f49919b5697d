//! Peak-throughput kernels compile for their devices.

use warpforge_codegen::{Dialect, Units, peak};

use crate::tool::{COMPILERS, tests};
use crate::{hip, nvrtc};

tests! {
    "peak";
    fma_chains_compile_and_count_operations: COMPILERS,
}

const ALL: [Units; 5] = [Units::F64, Units::F32, Units::F16, Units::Bf16, Units::I8];

fn fma_chains_compile_and_count_operations() {
    let kernels =
        |dialect| ALL.into_iter().filter_map(move |units| peak(dialect, units, 1024)).collect::<Vec<_>>();
    let (cuda, hip) = (kernels(Dialect::Cuda), kernels(Dialect::Hip));
    assert_eq!((cuda.len(), hip.len()), (5, 3));
    // Two operations a link, in 1024 threads of 8 chains of 65536 links.
    assert_eq!(cuda[1].flops, 2 * 1024 * 8 * 65536);
    nvrtc::compiles(&cuda);
    hip::compiles(&hip);
}
