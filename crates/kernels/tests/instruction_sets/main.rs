//! Tests that need an instruction set: on CPUs without it they are ignored, with the reason on standard error.

// Kernels take pointers.
#![allow(unsafe_code)]

mod bf16_output;
mod jit;

use libtest_mimic::{Arguments, Trial};
use warpforge_kernels::gemm::{ComputeType, Gemm};
use warpforge_kernels::isa::Isa;

/// A name and its test, which panics on failure.
type Test = (&'static str, fn());

const COMPILED_LOOPS: [Test; 4] = [
    ("jit/random_loops_match_the_interpreter", jit::random_loops_match_the_interpreter),
    ("jit/masked_softmax_in_a_tile", jit::masked_softmax_in_a_tile),
    ("jit/rounding_to_bf16", jit::rounding_to_bf16),
    ("jit/narrow_blocks_use_pairs_of_rows", jit::narrow_blocks_use_pairs_of_rows),
];

const BF16_OUTPUTS: [Test; 2] = [
    ("bf16_output/outputs_are_correctly_rounded", bf16_output::outputs_are_correctly_rounded),
    ("bf16_output/special_values_are_rounded", bf16_output::special_values_are_rounded),
];

fn main() {
    let arguments = Arguments::from_args();
    let has_avx512 = Isa::best() == Isa::Avx512;
    let has_amx = Gemm::new(ComputeType::Bf16).writes_bf16();
    let mut trials = trials(&COMPILED_LOOPS, has_avx512, "compiled loops need AVX-512");
    trials.extend(self::trials(&BF16_OUTPUTS, has_amx, "bf16 outputs need AMX"));
    libtest_mimic::run(&arguments, trials).exit();
}

/// The trials of some tests, ignored for a reason where their instruction set is missing.
fn trials(tests: &[Test], has_isa: bool, reason: &str) -> Vec<Trial> {
    if !has_isa {
        eprintln!("ignored, {} tests: {reason}; the best instruction set is {}", tests.len(), Isa::best());
    }
    let trial = |&(name, test): &Test| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    tests.iter().map(|test| trial(test).with_ignored_flag(!has_isa)).collect()
}
