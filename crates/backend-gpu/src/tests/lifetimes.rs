//! What a run holds on its device.

use warpforge_runtime::{Executable, Lifetime};

use super::compiled;
use crate::vendor::Vendor;

fn lifetimes(text: &str) -> Vec<Lifetime> {
    compiled(text, Vendor::Cuda).lifetimes()
}

fn of_kind<'l>(held: &'l [Lifetime], kind: &str) -> Vec<&'l Lifetime> {
    held.iter().filter(|lifetime| lifetime.kind == kind).collect()
}

#[test]
fn values_live_from_the_step_that_writes_them_to_the_last_that_reads_them() {
    let held = lifetimes(
        "func.func @main(%a: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
        %list = stablehlo.iota dim = 0 : tensor<64xf32>
        %c = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
        %p = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<2xf32>) -> tensor<32x2xf32>
        %q = stablehlo.reshape %p : (tensor<32x2xf32>) -> tensor<64xf32>
        %r = stablehlo.reverse %a, dims = [0] : tensor<64xf32>
        %0 = stablehlo.tanh %r : tensor<64xf32>
        %s, %n = \"stablehlo.sort\"(%0, %list) <{dimension = 0 : i64}> ({
          ^bb0(%x: tensor<f32>, %y: tensor<f32>, %i: tensor<f32>, %j: tensor<f32>):
            %less = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %less : tensor<i1>
        }) : (tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>)
        %1 = stablehlo.add %s, %q : tensor<64xf32>
        func.return %1, %n : tensor<64xf32>, tensor<64xf32>\n}",
    );
    let outputs = of_kind(&held, "output");
    assert_eq!(outputs.len(), 2, "{held:?}");
    assert!(outputs.iter().all(|output| output.bytes == 256 && output.last.is_none()), "{held:?}");
    let sorted = of_kind(&held, "value");
    let operand = sorted.iter().find(|value| value.first == Some(0) && value.name != "workspace").unwrap();
    assert_eq!((operand.bytes, operand.last), (256, Some(1)), "{held:?}");
    // Values that live together do not share memory.
    for (at, one) in sorted.iter().enumerate() {
        for other in &sorted[at + 1..] {
            let apart = one.offset.unwrap() + one.bytes <= other.offset.unwrap()
                || other.offset.unwrap() + other.bytes <= one.offset.unwrap();
            let never_together = one.last.is_some_and(|last| last < other.first.unwrap());
            assert!(apart || never_together, "{one:?} {other:?}");
        }
    }
    let constants: u64 =
        of_kind(&held, "constant").iter().chain(&of_kind(&held, "weights")).map(|one| one.bytes).sum();
    assert!(constants > 0, "{held:?}");
}
