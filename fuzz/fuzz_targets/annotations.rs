//! See `detection::annotations()` in `src/detection.rs`.
#![no_main]

#[path = "../src/detection.rs"]
#[allow(dead_code, unreachable_pub)]
mod detection;

libfuzzer_sys::fuzz_target!(|data: &[u8]| detection::annotations(data));
