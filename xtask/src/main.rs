//! Set-up, tests and comparisons with other tools: `cargo xtask`.

#![forbid(unsafe_code)]

fn main() {}
