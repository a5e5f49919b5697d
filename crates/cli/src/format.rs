//! The forms in which results can be printed.

use clap::{Args, ValueEnum};

/// How to print a result.
#[derive(Debug, Args)]
pub(crate) struct FormatArgs {
    /// Print the result in this form
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Print JSON for programs: the same as `--format json`
    #[arg(long)]
    json: bool,
}

/// A form of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables for people
    Text,
    /// A page or a comment
    Markdown,
    /// A spreadsheet
    Csv,
    /// The whole record
    Json,
}

impl FormatArgs {
    /// The form that was asked for.
    pub(crate) fn form(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }

    /// Whether programs read it.
    pub(crate) fn is_json(&self) -> bool {
        self.form() == Format::Json
    }
}
