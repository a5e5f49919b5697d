//! The forms in which a run can be printed.

use clap::{Args, ValueEnum};
use warpforge_bench::record::BenchmarkSuiteRun;
use warpforge_report::run;

use crate::exit::Failure;
use crate::term;

/// How to print a run.
#[derive(Debug, Args)]
pub(super) struct FormatArgs {
    /// Print the result in this form
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Print JSON for programs: the same as `--format json`
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables for people
    Text,
    /// A page or a comment
    Markdown,
    /// A spreadsheet, a row a metric
    Csv,
    /// The whole record
    Json,
}

impl FormatArgs {
    /// Whether programs read it.
    pub(super) fn is_json(&self) -> bool {
        self.json || self.format == Format::Json
    }

    /// Prints a run; to standard error where standard output is taken by a file.
    pub(super) fn print(&self, result: &BenchmarkSuiteRun, taken: bool) -> Result<(), Failure> {
        let print = |text: &str| term::print_beside(taken, text);
        match self.format {
            _ if self.is_json() => term::print_json(result),
            Format::Markdown => print(&run::markdown(result)),
            Format::Csv => print(&run::csv(result).map_err(Failure::not_possible)?),
            Format::Text | Format::Json => print(&run::text(result, term::colour() && !taken)),
        }
    }
}
