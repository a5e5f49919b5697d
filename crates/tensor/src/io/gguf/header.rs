//! The beginning of a file: counts, values by name, and where each tensor is.

use std::collections::BTreeMap;

use super::malformed;
use crate::Error;

/// A value that describes the model.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// An unsigned integer of any width.
    Unsigned(u64),
    /// A signed integer of any width.
    Signed(i64),
    /// A float of either width.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Text.
    Text(String),
    /// An array; [`super::Gguf::elements`] reads what it holds.
    Array(Array),
}

/// An array of values, left in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Array {
    /// How many elements it has.
    pub count: u64,
    kind: u32,
    start: usize,
}

impl Array {
    /// Its elements, from the file that it was found in.
    pub(super) fn elements(self, bytes: &[u8]) -> Result<Vec<Value>, Error> {
        let mut reader = Reader { bytes, at: self.start };
        (0..self.count).map(|_| reader.value(self.kind)).collect()
    }
}

impl Value {
    /// A whole number that is not negative.
    #[must_use]
    pub fn as_size(&self) -> Option<usize> {
        match *self {
            Self::Unsigned(value) => usize::try_from(value).ok(),
            Self::Signed(value) => usize::try_from(value).ok(),
            _ => None,
        }
    }

    /// A number.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::Float(value) => Some(value),
            Self::Unsigned(value) => Some(value as f64),
            Self::Signed(value) => Some(value as f64),
            _ => None,
        }
    }

    /// Text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Where a tensor is.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) dims: Vec<usize>,
    pub(super) kind: u32,
    pub(super) offset: u64,
}

/// What comes before the data.
pub(super) struct Header {
    pub(super) values: BTreeMap<String, Value>,
    pub(super) tensors: Vec<Entry>,
    /// Where the data begins.
    pub(super) data: usize,
}

/// Most dimensions of a tensor.
const MOST_DIMS: u32 = 8;
/// Where the data begins is a multiple of this, unless the file says another.
pub(super) const ALIGNMENT: usize = 32;
/// The type code of text, and of arrays.
pub(super) const TEXT: u32 = 8;
const ARRAY: u32 = 9;

/// Bytes on their way to becoming values.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8], Error> {
        let end = usize::try_from(count).ok().and_then(|count| self.at.checked_add(count));
        let part = end.and_then(|end| self.bytes.get(self.at..end));
        let part = part.ok_or_else(|| malformed(format!("the file ends at byte {}", self.bytes.len())))?;
        self.at += part.len();
        Ok(part)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N as u64)?);
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn text(&mut self) -> Result<String, Error> {
        let length = self.u64()?;
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    fn value(&mut self, kind: u32) -> Result<Value, Error> {
        Ok(match kind {
            0 => Value::Unsigned(u64::from(self.array::<1>()?[0])),
            1 => Value::Signed(i64::from(i8::from_le_bytes(self.array()?))),
            2 => Value::Unsigned(u64::from(u16::from_le_bytes(self.array()?))),
            3 => Value::Signed(i64::from(i16::from_le_bytes(self.array()?))),
            4 => Value::Unsigned(u64::from(self.u32()?)),
            5 => Value::Signed(i64::from(i32::from_le_bytes(self.array()?))),
            6 => Value::Float(f64::from(f32::from_le_bytes(self.array()?))),
            7 => Value::Bool(self.array::<1>()?[0] != 0),
            TEXT => Value::Text(self.text()?),
            ARRAY => self.skip_array()?,
            10 => Value::Unsigned(self.u64()?),
            11 => Value::Signed(i64::from_le_bytes(self.array()?)),
            12 => Value::Float(f64::from_le_bytes(self.array()?)),
            other => return Err(malformed(format!("a value is of type {other}, which is not known"))),
        })
    }

    fn skip_array(&mut self) -> Result<Value, Error> {
        let (kind, count) = (self.u32()?, self.u64()?);
        let start = self.at;
        match kind {
            ARRAY => return Err(malformed("an array of arrays")),
            // Every element takes at least a byte, so a count beyond the file ends here.
            _ => (0..count).try_for_each(|_| self.value(kind).map(drop))?,
        }
        Ok(Value::Array(Array { count, kind, start }))
    }
}

pub(super) fn parse(bytes: &[u8]) -> Result<Header, Error> {
    let mut reader = Reader { bytes, at: 0 };
    if reader.array::<4>()? != *super::MAGIC {
        return Err(malformed("the file does not begin with `GGUF`"));
    }
    let version = reader.u32()?;
    if !(2..=3).contains(&version) {
        return Err(malformed(format!("version {version}; 2 and 3 are known")));
    }
    let (tensors, values) = (reader.u64()?, reader.u64()?);
    let mut named = BTreeMap::new();
    for _ in 0..values {
        let name = reader.text()?;
        let kind = reader.u32()?;
        named.insert(name, reader.value(kind)?);
    }
    let mut entries = Vec::new();
    for _ in 0..tensors {
        let name = reader.text()?;
        let rank = reader.u32()?;
        if rank > MOST_DIMS {
            return Err(malformed(format!("tensor `{name}` has {rank} dimensions")));
        }
        let mut dims = (0..rank)
            .map(|_| {
                let dim = reader.u64()?;
                usize::try_from(dim).map_err(|_| malformed(format!("tensor `{name}` has a size of {dim}")))
            })
            .collect::<Result<Vec<usize>, Error>>()?;
        dims.reverse();
        entries.push(Entry { name, dims, kind: reader.u32()?, offset: reader.u64()? });
    }
    let alignment = named.get("general.alignment").and_then(Value::as_size).unwrap_or(ALIGNMENT);
    let data = reader.at.checked_next_multiple_of(alignment.max(1));
    let data = data.ok_or_else(|| malformed(format!("an alignment of {alignment}")))?;
    Ok(Header { values: named, tensors: entries, data })
}
