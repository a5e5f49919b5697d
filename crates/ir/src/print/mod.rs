//! Modules as text that StableHLO's own tools read.

mod custom;
mod elements;
mod float;
mod names;
mod pieces;
mod printed;
mod printer;

use std::fmt::{self, Write};

pub(crate) use elements::write_elements;
pub use float::{float_code_text, float_text};
pub use printed::Printed;
pub use printer::{Form, print, print_as, printed};

/// Writes text with the escapes of MLIR's strings.
pub(crate) fn write_escaped(out: &mut impl Write, text: &str) -> fmt::Result {
    for byte in text.bytes() {
        match byte {
            b'\\' => out.write_str("\\\\")?,
            b'"' => out.write_str("\\22")?,
            0x20..=0x7E => out.write_char(byte as char)?,
            _ => write!(out, "\\{byte:02X}")?,
        }
    }
    Ok(())
}
