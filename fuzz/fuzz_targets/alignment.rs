//! See `sequences::alignment()` in `src/sequences.rs`.
#![no_main]

#[path = "../src/sequences.rs"]
#[allow(dead_code, unreachable_pub)]
mod sequences;

libfuzzer_sys::fuzz_target!(|data: &[u8]| sequences::alignment(data));
