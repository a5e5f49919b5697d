//! MLIR's bytecode container: sections, tables of strings, dialects, operations, attributes and types.
//!
//! Nothing here knows what an attribute or an operation means; `read` and `write` do.

mod cursor;
mod file;
mod output;
mod sections;

pub(super) use cursor::Cursor;
pub(super) use file::{Entry, File};
pub(super) use output::Output;
pub(super) use sections::{Section, section};

/// The first bytes of a file.
pub(super) const MAGIC: [u8; 4] = *b"ML\xefR";

/// The newest version of the container that is read, and the one that is written.
pub(super) const LATEST_FORMAT: u64 = 6;

/// What fills the space before aligned data.
const ALIGNMENT_BYTE: u8 = 0xCB;

/// What each version of the container brought.
pub(super) mod since {
    /// Dialects say which version of them wrote the file.
    pub(in crate::bytecode) const DIALECT_VERSIONS: u64 = 1;
    /// Isolated regions stand in sections of their own.
    pub(in crate::bytecode) const ISOLATED_SECTIONS: u64 = 2;
    /// The order of the uses of values can be given.
    pub(in crate::bytecode) const USE_LIST_ORDERS: u64 = 3;
    /// Unknown locations of block arguments are left out, and the number of operations is given.
    pub(in crate::bytecode) const OPTIONAL_ARGUMENT_LOCATIONS: u64 = 4;
    /// Properties of operations stand apart from their other attributes.
    pub(in crate::bytecode) const PROPERTIES: u64 = 5;
    /// How many operands each group has is a property in a form of its own.
    pub(in crate::bytecode) const NATIVE_SEGMENT_SIZES: u64 = 6;
}

/// What an operation of the IR section has: bits of its mask.
pub(super) mod has {
    pub(in crate::bytecode) const ATTRS: u8 = 1;
    pub(in crate::bytecode) const RESULTS: u8 = 1 << 1;
    pub(in crate::bytecode) const OPERANDS: u8 = 1 << 2;
    pub(in crate::bytecode) const SUCCESSORS: u8 = 1 << 3;
    pub(in crate::bytecode) const REGIONS: u8 = 1 << 4;
    pub(in crate::bytecode) const USE_LIST_ORDERS: u8 = 1 << 5;
    pub(in crate::bytecode) const PROPERTIES: u8 = 1 << 6;
}
