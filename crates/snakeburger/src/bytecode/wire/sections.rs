//! Sections: parts of a file with a number and a length.

use std::ops::Range;

use super::Cursor;
use crate::bytecode::error::{Error, Read};

/// What a section holds; the values are those of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Section {
    /// The table of strings.
    Strings = 0,
    /// Dialects and the operations of each.
    Dialects = 1,
    /// The encodings of attributes and types.
    AttrTypes = 2,
    /// Where each of those starts.
    AttrTypeOffsets = 3,
    /// The operations.
    Ir = 4,
    /// Large data that attributes refer to.
    Resources = 5,
    /// Where each of those starts.
    ResourceOffsets = 6,
    /// The version of a dialect.
    DialectVersion = 7,
    /// The properties of operations.
    Properties = 8,
}

impl Section {
    const ALL: [Section; 9] = [
        Section::Strings,
        Section::Dialects,
        Section::AttrTypes,
        Section::AttrTypeOffsets,
        Section::Ir,
        Section::Resources,
        Section::ResourceOffsets,
        Section::DialectVersion,
        Section::Properties,
    ];

    /// What to call it in messages.
    fn name(self) -> &'static str {
        match self {
            Section::Strings => "strings",
            Section::Dialects => "dialects",
            Section::AttrTypes => "attributes and types",
            Section::AttrTypeOffsets => "attribute offsets",
            Section::Ir => "operations",
            Section::Resources => "resources",
            Section::ResourceOffsets => "resource offsets",
            Section::DialectVersion => "a dialect's version",
            Section::Properties => "properties",
        }
    }
}

/// The next section: what it is and where its data is.
pub(crate) fn section(cursor: &mut Cursor<'_>) -> Read<(Section, Range<usize>)> {
    let start = cursor.pos();
    let id = cursor.byte()?;
    let length = cursor.size()?;
    let found = Section::ALL.get(usize::from(id & 0x7F)).copied();
    let found = found.ok_or_else(|| Error::malformed(start, format!("unknown section {}", id & 0x7F)))?;
    if id & 0x80 != 0 {
        let alignment = cursor.varint()?;
        cursor.align(alignment)?;
    }
    Ok((found, cursor.take(length)?))
}

/// The sections of a file, each at most once.
pub(super) struct Sections {
    found: [Option<Range<usize>>; Section::ALL.len()],
    end: usize,
}

impl Sections {
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Read<Self> {
        let mut found: [Option<Range<usize>>; Section::ALL.len()] = Default::default();
        while !cursor.is_empty() {
            let start = cursor.pos();
            let (id, data) = section(cursor)?;
            if found[id as usize].replace(data).is_some() {
                return Err(Error::malformed(start, format!("the section of {} occurs twice", id.name())));
            }
        }
        Ok(Self { found, end: cursor.pos() })
    }

    /// Where a section's data is, if there is one.
    pub(super) fn get(&self, section: Section) -> Option<Range<usize>> {
        self.found[section as usize].clone()
    }

    /// Where a section's data is.
    pub(super) fn required(&self, section: Section) -> Read<Range<usize>> {
        let missing = || Error::malformed(self.end, format!("the section of {} is missing", section.name()));
        self.get(section).ok_or_else(missing)
    }
}
