//! See `warpforge_fuzz::text()`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpforge_fuzz::text(data));
