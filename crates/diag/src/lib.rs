//! Source spans and diagnostics: every message points at file:line:column, shows the line and a caret.
//!
//! A reader keeps one [`Source`] per file and notes a [`Span`] (byte offsets) for whatever it may have to complain
//! about. Complaints are collected in [`Diagnostics`], so that one run reports everything it found, and are rendered
//! only when someone looks at them.
#![forbid(unsafe_code)]

mod bytes;
mod diagnostic;
mod printable;
mod source;

pub use bytes::bytes;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use printable::printable;
pub use source::{Cut, Position, Source, Span};
