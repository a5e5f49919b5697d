//! A file's tables: strings, dialects, operation names, attributes, types, properties and resources.

use std::borrow::Cow;
use std::ops::Range;

use super::sections::{Sections, section};
use super::{Cursor, LATEST_FORMAT, MAGIC, Section, since};
use crate::bytecode::error::{Error, ErrorKind, Read};

/// Where an attribute or a type is encoded.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its dialect, by position.
    pub(crate) dialect: usize,
    /// Whether the dialect has an encoding for it; it is text otherwise.
    pub(crate) encoded: bool,
    /// The bytes.
    pub(crate) range: Range<usize>,
}

/// The name of an operation.
#[derive(Clone, Debug)]
pub(crate) struct OpName<'a> {
    /// The dialect, by position.
    pub(crate) dialect: usize,
    /// The name within the dialect.
    pub(crate) name: Cow<'a, str>,
    /// Whether who wrote the file knew the operation: only then its properties are encoded one by one.
    pub(crate) registered: bool,
}

/// Data that attributes refer to.
#[derive(Clone, Debug)]
pub(crate) struct Resource<'a> {
    /// Its name.
    pub(crate) name: Cow<'a, str>,
    /// The bytes; `None` when they are no data but a string or a truth value.
    pub(crate) data: Option<Range<usize>>,
}

/// A file, its tables read.
pub(crate) struct File<'a> {
    /// The whole file.
    pub(crate) bytes: &'a [u8],
    /// The version of the container.
    pub(crate) format: u64,
    /// Who wrote it.
    pub(crate) producer: Cow<'a, str>,
    /// Where the producer is named.
    pub(crate) producer_at: usize,
    /// The names of the dialects.
    pub(crate) dialects: Vec<Cow<'a, str>>,
    /// The operations' names.
    pub(crate) ops: Vec<OpName<'a>>,
    /// The attributes.
    pub(crate) attrs: Vec<Entry>,
    /// The types.
    pub(crate) types: Vec<Entry>,
    /// The encodings of operations' properties.
    pub(crate) properties: Vec<Range<usize>>,
    /// Data of the builtin dialect, in the order that attributes refer to it.
    pub(crate) resources: Vec<Resource<'a>>,
    /// The operations.
    pub(crate) ir: Range<usize>,
    strings: Vec<Range<usize>>,
}

impl<'a> File<'a> {
    /// Reads the header and the tables. `accept` looks at who wrote the file before anything else is read.
    pub(crate) fn read(bytes: &'a [u8], accept: impl FnOnce(&str, usize) -> Read<()>) -> Read<Self> {
        let mut cursor = Cursor::new(bytes);
        if cursor.bytes(MAGIC.len()).ok() != Some(&MAGIC) {
            return Err(Error::new(0, ErrorKind::NotBytecode));
        }
        let format = cursor.varint()?;
        if format > LATEST_FORMAT {
            return Err(Error::new(MAGIC.len(), ErrorKind::FutureFormat(format)));
        }
        let producer_at = cursor.pos();
        let producer = text(cursor.until_zero()?);
        accept(&producer, producer_at)?;
        let sections = Sections::read(&mut cursor)?;
        let mut file = Self {
            bytes,
            format,
            producer,
            producer_at,
            dialects: Vec::new(),
            ops: Vec::new(),
            attrs: Vec::new(),
            types: Vec::new(),
            properties: Vec::new(),
            resources: Vec::new(),
            ir: sections.required(Section::Ir)?,
            strings: Vec::new(),
        };
        file.read_strings(sections.required(Section::Strings)?)?;
        file.read_dialects(sections.required(Section::Dialects)?)?;
        let encodings = sections.required(Section::AttrTypes)?;
        file.read_entries(sections.required(Section::AttrTypeOffsets)?, encodings)?;
        if let Some(range) = sections.get(Section::Properties) {
            file.read_properties(range)?;
        }
        if let (Some(offsets), Some(data)) =
            (sections.get(Section::ResourceOffsets), sections.get(Section::Resources))
        {
            file.read_resources(offsets, data)?;
        }
        Ok(file)
    }

    /// Reads a part of the file.
    pub(crate) fn cursor(&self, range: Range<usize>) -> Cursor<'a> {
        Cursor::of(self.bytes, range)
    }

    /// The bytes of a string of the table, which a number names.
    pub(crate) fn string_bytes(&self, cursor: &mut Cursor<'_>) -> Read<&'a [u8]> {
        let start = cursor.pos();
        let index = cursor.varint()?;
        self.string_at(index, start)
    }

    /// A string of the table, which a number names.
    pub(crate) fn string(&self, cursor: &mut Cursor<'_>) -> Read<Cow<'a, str>> {
        self.string_bytes(cursor).map(text)
    }

    fn string_at(&self, index: u64, start: usize) -> Read<&'a [u8]> {
        let range = usize::try_from(index).ok().and_then(|index| self.strings.get(index));
        let bytes = range.and_then(|range| self.bytes.get(range.clone()));
        bytes.ok_or_else(|| Error::malformed(start, format!("there is no string {index}")))
    }

    fn read_strings(&mut self, range: Range<usize>) -> Read<()> {
        let mut cursor = self.cursor(range.clone());
        let count = cursor.count()?;
        // The lengths stand in reverse order, and each counts the zero that ends its string.
        let mut end = range.end;
        let mut strings = Vec::with_capacity(count);
        for _ in 0..count {
            let at = cursor.pos();
            let length = cursor.size()?;
            let start = end.checked_sub(length).filter(|start| length > 0 && *start >= range.start);
            let start = start.ok_or_else(|| Error::malformed(at, "a string is longer than the section"))?;
            if self.bytes.get(end - 1) != Some(&0) {
                return Err(Error::malformed(end - 1, "a string does not end with a zero"));
            }
            strings.push(start..end - 1);
            end = start;
        }
        if end < cursor.pos() {
            return Err(cursor.error("the strings are longer than their section"));
        }
        strings.reverse();
        self.strings = strings;
        Ok(())
    }

    fn read_dialects(&mut self, range: Range<usize>) -> Read<()> {
        let mut cursor = self.cursor(range);
        let count = cursor.count()?;
        for _ in 0..count {
            let start = cursor.pos();
            if self.format < since::DIALECT_VERSIONS {
                let name = self.string(&mut cursor)?;
                self.dialects.push(name);
                continue;
            }
            let (index, versioned) = cursor.flagged()?;
            self.dialects.push(text(self.string_at(index, start)?));
            if versioned {
                // What the versions of dialects say is in the producer's name as well.
                section(&mut cursor)?;
            }
        }
        if self.format >= since::OPTIONAL_ARGUMENT_LOCATIONS {
            cursor.varint()?;
        }
        while !cursor.is_empty() {
            let dialect = self.dialect(&mut cursor)?;
            for _ in 0..cursor.count()? {
                let start = cursor.pos();
                let (index, registered) = if self.format < since::PROPERTIES {
                    (cursor.varint()?, true)
                } else {
                    cursor.flagged()?
                };
                let name = text(self.string_at(index, start)?);
                self.ops.push(OpName { dialect, name, registered });
            }
        }
        Ok(())
    }

    fn dialect(&self, cursor: &mut Cursor<'_>) -> Read<usize> {
        let start = cursor.pos();
        let index = usize::try_from(cursor.varint()?).ok().filter(|index| *index < self.dialects.len());
        index.ok_or_else(|| Error::malformed(start, "there is no such dialect"))
    }

    fn read_entries(&mut self, offsets: Range<usize>, encodings: Range<usize>) -> Read<()> {
        let mut cursor = self.cursor(offsets);
        let start = cursor.pos();
        let (attrs, types) = (cursor.varint()?, cursor.varint()?);
        let (attrs, types) = (cursor.checked_count(attrs, start)?, cursor.checked_count(types, start)?);
        let mut at = encodings.start;
        self.attrs = self.entries(&mut cursor, attrs, &mut at, encodings.end)?;
        self.types = self.entries(&mut cursor, types, &mut at, encodings.end)?;
        Ok(())
    }

    /// Entries grouped by dialect, each with its length.
    fn entries(&self, cursor: &mut Cursor<'_>, count: usize, at: &mut usize, end: usize) -> Read<Vec<Entry>> {
        let mut entries = Vec::with_capacity(count);
        while entries.len() < count {
            let dialect = self.dialect(cursor)?;
            let start = cursor.pos();
            let group = cursor.count()?;
            if group > count - entries.len() {
                return Err(Error::malformed(start, "a group has more attributes or types than there are"));
            }
            for _ in 0..group {
                let start = cursor.pos();
                let (length, encoded) = cursor.flagged()?;
                let next = usize::try_from(length).ok().and_then(|length| at.checked_add(length));
                let next = next.filter(|next| *next <= end);
                let next = next.ok_or_else(|| {
                    Error::malformed(start, "an attribute or type is longer than its section")
                })?;
                entries.push(Entry { dialect, encoded, range: *at..next });
                *at = next;
            }
        }
        Ok(entries)
    }

    fn read_properties(&mut self, range: Range<usize>) -> Read<()> {
        let mut cursor = self.cursor(range);
        for _ in 0..cursor.count()? {
            let length = cursor.size()?;
            self.properties.push(cursor.take(length)?);
        }
        Ok(())
    }

    fn read_resources(&mut self, offsets: Range<usize>, data: Range<usize>) -> Read<()> {
        let mut cursor = self.cursor(offsets);
        let external = cursor.varint()?;
        let mut data = self.cursor(data);
        let mut group = 0;
        while !cursor.is_empty() {
            if group < external {
                self.string_bytes(&mut cursor)?;
            } else {
                self.dialect(&mut cursor)?;
            }
            for _ in 0..cursor.count()? {
                let name = self.string(&mut cursor)?;
                let length = cursor.size()?;
                let kind = cursor.byte()?;
                let range = data.take(length)?;
                // What does not belong to a dialect is of no interest to attributes.
                if group >= external {
                    let data = if kind == BLOB { Some(self.blob(range)?) } else { None };
                    self.resources.push(Resource { name, data });
                }
            }
            group += 1;
        }
        Ok(())
    }

    fn blob(&self, range: Range<usize>) -> Read<Range<usize>> {
        let mut cursor = self.cursor(range);
        let alignment = cursor.varint()?;
        let length = cursor.size()?;
        cursor.align(alignment.max(1))?;
        cursor.take(length)
    }
}

/// The kind of a resource that is data.
const BLOB: u8 = 0;

/// Strings of MLIR are bytes; those that are no UTF-8 are read byte by byte, as in text files.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|b| char::from(*b)).collect()),
    }
}
