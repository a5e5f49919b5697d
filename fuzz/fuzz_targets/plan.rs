//! See `plan::plan()` in `src/plan.rs`.
#![no_main]

#[path = "../src/plan.rs"]
#[allow(unreachable_pub)]
mod plan;

libfuzzer_sys::fuzz_target!(|data: &[u8]| plan::plan(data));
