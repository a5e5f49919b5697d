//! See `warpforge_fuzz::evaluator()`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpforge_fuzz::evaluator(data));
