//! Results rendered for people and for other tools: Markdown, CSV, JUnit, terminal tables and plots.
//!
//! [`comparison`] renders how two benchmark runs compare, [`run`] the result of one of them, [`timeline`] what the
//! machine did meanwhile, and [`validation`] how a
//! model's results compare with golden ones. All are built from [`Table`] and [`number`], and fit the [`Screen`] that
//! they are for; [`Page`] puts them into an HTML page; [`plot()`] draws a trend, [`roofline()`] a roofline, [`chrome_trace()`] writes a profile as a timeline that browsers show.

#![forbid(unsafe_code)]

mod chrome_trace;
pub mod comparison;
pub mod fleet;
pub mod number;
mod page;
mod plot;
mod roofline;
pub mod run;
pub mod score;
mod screen;
mod table;
pub mod timeline;
pub mod validation;
mod wrap;

pub use chrome_trace::chrome_trace;
pub use page::Page;
pub use plot::plot;
pub use roofline::roofline;
pub use screen::Screen;
pub use table::{Align, Style, Table};

/// Why something could not be rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The JUnit report could not be made.
    #[error("cannot render as JUnit: {0}")]
    Junit(#[from] quick_junit::SerializeError),
    /// The CSV could not be made.
    #[error("cannot render as CSV: {0}")]
    Csv(String),
}
