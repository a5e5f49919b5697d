//! See `warpforge_fuzz::graph()`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpforge_fuzz::graph(data));
