//! See `warpforge_fuzz::bytecode()`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpforge_fuzz::bytecode(data));
