//! Running the selected benchmarks, each round in a fresh process.
