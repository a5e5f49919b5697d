//! See `warpforge_fuzz::archive()`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpforge_fuzz::archive(data));
