//! Reads the data as the configuration of a microbenchmark. It is an error with a line, or shapes that can be listed.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match warpforge_bench::microbench::config::read(text) {
        Ok(config) => assert!(config.models.iter().all(|model| model.shapes.iter().all(|shape| shape.k > 0))),
        Err(error) => assert!(!error.reason.is_empty()),
    }
});
