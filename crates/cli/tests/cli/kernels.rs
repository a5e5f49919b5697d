//! `warpt opt --emit kernels`: the source of a model's kernels.

use crate::warpt::Warpt;

const CHAIN: &str = "func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %t = stablehlo.tanh %x : tensor<4x8xf32>
  %r = stablehlo.multiply %t, %x : tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
";

#[test]
fn kernels_are_shown_with_their_clusters() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("chain.mlir"), CHAIN).unwrap();
    let done = warpt.run(&["opt", "chain.mlir", "--emit", "kernels"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.starts_with("// CUDA C++"), "{}", done.stdout);
    for wanted in ["// #0 -> ", "elements of 2 over 4x8", "wf_tanh(s0)", "extern \"C\" WF_KERNEL(256, 0)"] {
        assert!(done.stdout.contains(wanted), "{wanted}: {}", done.stdout);
    }
    let hip = warpt.run(&["opt", "chain.mlir", "--emit", "kernels", "--device", "hip", "--salt", "trace"]);
    assert!(hip.stdout.starts_with("// HIP C++") && hip.stdout.contains("salt_seen.add"), "{}", hip.stdout);
}
