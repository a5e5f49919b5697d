//! The `warpt` program: arguments in, rendering out.

#![forbid(unsafe_code)]

mod commands;
mod exit;
mod term;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = commands::Arguments::parse();
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    match arguments.run() {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("{failure}");
            failure.exit.into()
        }
    }
}
