//! `cargo xtask test`: everything the tests need, then all the tests.

use clap::Args;

use crate::command::{cargo, run};

/// Arguments of `cargo xtask test`.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Passed on to `cargo test`, such as the name of a test
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs all tests. The workspace's tests make their own data and need nothing installed.
pub(crate) fn run_tests(args: &TestArgs) -> anyhow::Result<()> {
    run(cargo().args(["test", "--workspace", "--no-fail-fast"]).args(&args.arguments))
}
