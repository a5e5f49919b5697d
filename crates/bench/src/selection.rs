//! What the user asked for, turned into a list of benchmarks.
