//! The attributes and types of a file, decoded when they are asked for.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use warpforge_ir::attr::{AttrName, Attribute, Dict};
use warpforge_ir::types::{TensorType, Type};
use warpforge_ir::{Blob, DenseElements};

use super::{builtin, stablehlo, vhlo};
use crate::bytecode::error::{Error, Read};
use crate::bytecode::wire::{Cursor, Entry, File};
use crate::{elements, text};

/// One place of a table.
#[derive(Clone)]
enum Slot<T> {
    Empty,
    /// Being decoded: whoever asks for it now is part of it.
    Busy,
    /// The value, and how many attributes and types it is made of when written out.
    Done(T, u64),
}

/// The value of a slot with its weight; an empty slot is busy from now on.
fn taken<T: Clone>(slots: &mut [Slot<T>], index: u64, what: &str, at: usize) -> Read<Option<(T, u64)>> {
    match usize::try_from(index).ok().and_then(|index| slots.get_mut(index)) {
        None => Err(Error::malformed(at, format!("there is no {what} {index}"))),
        Some(Slot::Done(value, weight)) => Ok(Some((value.clone(), *weight))),
        Some(Slot::Busy) => Err(Error::malformed(at, format!("the {what} {index} contains itself"))),
        Some(slot) => {
            *slot = Slot::Busy;
            Ok(None)
        }
    }
}

/// Attributes and types by number.
pub(super) struct Tables<'a> {
    pub(super) file: &'a File<'a>,
    blob: &'a Blob,
    attrs: Vec<Slot<Attribute>>,
    types: Vec<Slot<Type>>,
    depth: usize,
    /// Attributes and types that the one being decoded is made of so far.
    weight: u64,
    heaviest: u64,
}

impl<'a> Tables<'a> {
    pub(super) fn new(file: &'a File<'a>, blob: &'a Blob) -> Self {
        // A few bytes can describe lists of lists that take all memory to print: what a module is made of is bounded by
        // the size of its file.
        let heaviest = 4096 + 16 * file.bytes.len() as u64;
        Self {
            file,
            blob,
            attrs: vec![Slot::Empty; file.attrs.len()],
            types: vec![Slot::Empty; file.types.len()],
            depth: 0,
            weight: 0,
            heaviest,
        }
    }

    /// The attribute that the next number names.
    pub(super) fn attr(&mut self, cursor: &mut Cursor<'_>) -> Read<Attribute> {
        let at = cursor.pos();
        let index = cursor.varint()?;
        self.attr_at(index, at)
    }

    /// The attribute that the next number names, or none.
    pub(super) fn optional_attr(&mut self, cursor: &mut Cursor<'_>) -> Read<Option<Attribute>> {
        let at = cursor.pos();
        let (index, present) = cursor.flagged()?;
        if present { self.attr_at(index, at).map(Some) } else { Ok(None) }
    }

    /// A list of attributes.
    pub(super) fn attrs(&mut self, cursor: &mut Cursor<'_>) -> Read<Vec<Attribute>> {
        let count = cursor.count()?;
        (0..count).map(|_| self.attr(cursor)).collect()
    }

    /// The type that the next number names.
    pub(super) fn ty(&mut self, cursor: &mut Cursor<'_>) -> Read<Type> {
        let at = cursor.pos();
        let index = cursor.varint()?;
        self.type_at(index, at)
    }

    /// A list of types.
    pub(super) fn types(&mut self, cursor: &mut Cursor<'_>) -> Read<Vec<Type>> {
        let count = cursor.count()?;
        (0..count).map(|_| self.ty(cursor)).collect()
    }

    /// The string attribute that the next number names.
    pub(super) fn string_attr(&mut self, cursor: &mut Cursor<'_>) -> Read<Arc<str>> {
        let at = cursor.pos();
        match self.attr(cursor)? {
            Attribute::Str(text) => Ok(text),
            _ => Err(Error::malformed(at, "expected a string here")),
        }
    }

    /// The ranked tensor type that the next number names.
    pub(super) fn tensor_type(&mut self, cursor: &mut Cursor<'_>) -> Read<TensorType> {
        let at = cursor.pos();
        match self.ty(cursor)? {
            Type::Tensor(tensor) => Ok(tensor),
            _ => Err(Error::malformed(at, "expected a ranked tensor type here")),
        }
    }

    /// An attribute by its number, which was read at `at`.
    pub(super) fn attr_at(&mut self, index: u64, at: usize) -> Read<Attribute> {
        if let Some((value, weight)) = taken(&mut self.attrs, index, "attribute", at)? {
            self.weigh(weight, at)?;
            return Ok(value);
        }
        let entry = &self.file.attrs[index as usize];
        let (value, weight) = self.fresh(at, |tables| tables.decode_attr(entry))?;
        self.attrs[index as usize] = Slot::Done(value.clone(), weight);
        Ok(value)
    }

    /// A type by its number, which was read at `at`.
    pub(super) fn type_at(&mut self, index: u64, at: usize) -> Read<Type> {
        if let Some((value, weight)) = taken(&mut self.types, index, "type", at)? {
            self.weigh(weight, at)?;
            return Ok(value);
        }
        let entry = &self.file.types[index as usize];
        let (value, weight) = self.fresh(at, |tables| tables.decode_type(entry))?;
        self.types[index as usize] = Slot::Done(value.clone(), weight);
        Ok(value)
    }

    /// Starts to count anew, for what is not part of an attribute or a type.
    pub(super) fn reset_weight(&mut self) {
        self.weight = 0;
    }

    fn weigh(&mut self, weight: u64, at: usize) -> Read<()> {
        self.weight = self.weight.saturating_add(weight);
        if self.weight > self.heaviest {
            return Err(Error::malformed(at, "this would be much larger than the file"));
        }
        Ok(())
    }

    /// Decodes something one level deeper and weighs it.
    fn fresh<T>(&mut self, at: usize, decode: impl FnOnce(&mut Self) -> Read<T>) -> Read<(T, u64)> {
        if self.depth >= text::MAX_DEPTH {
            return Err(Error::malformed(at, "attributes or types are nested too deeply"));
        }
        let outer = std::mem::replace(&mut self.weight, 1);
        self.depth += 1;
        let value = decode(self)?;
        self.depth -= 1;
        let weight = std::mem::replace(&mut self.weight, outer);
        self.weigh(weight, at)?;
        Ok((value, weight))
    }

    fn decode_attr(&mut self, entry: &Entry) -> Read<Attribute> {
        if !entry.encoded {
            let (text, at) = self.assembly(entry);
            return text::parse_attribute(&text).map_err(|why| Error::malformed(at, why));
        }
        let mut cursor = self.file.cursor(entry.range.clone());
        let code = cursor.varint()?;
        let value = match self.dialect(entry) {
            "builtin" => builtin::attr(self, code, &mut cursor)?,
            "vhlo" => vhlo::attr(self, code, &mut cursor)?,
            "stablehlo" => stablehlo::attr(self, code, &mut cursor)?,
            "chlo" => stablehlo::chlo_attr(code, &mut cursor)?,
            other => return Ok(self.undecoded(other, entry)),
        };
        ended(&cursor).map(|()| value)
    }

    fn decode_type(&mut self, entry: &Entry) -> Read<Type> {
        if !entry.encoded {
            let (text, at) = self.assembly(entry);
            return text::parse_type(&text).map_err(|why| Error::malformed(at, why));
        }
        let mut cursor = self.file.cursor(entry.range.clone());
        let code = cursor.varint()?;
        let value = match self.dialect(entry) {
            "builtin" => builtin::ty(self, code, &mut cursor)?,
            "vhlo" => vhlo::ty(self, code, &mut cursor)?,
            "stablehlo" => stablehlo::ty(self, code, &mut cursor)?,
            "quant" => stablehlo::quant_type(self, code, &mut cursor)?,
            other => return Err(unknown_type(other, &entry.range)),
        };
        ended(&cursor).map(|()| value)
    }

    /// An attribute of a dialect whose encoding is not known here, such as the shardings that JAX notes on its calls: kept
    /// as its bytes, so that it is seen to be there.
    fn undecoded(&self, dialect: &str, entry: &Entry) -> Attribute {
        let bytes = self.file.bytes.get(entry.range.clone()).unwrap_or_default();
        let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        Attribute::Opaque(format!("#{dialect}.encoded<\"0x{digits}\">").into())
    }

    fn dialect(&self, entry: &Entry) -> &'a str {
        self.file.dialects.get(entry.dialect).map_or("", AsRef::as_ref)
    }

    /// The text of what has no encoding of its own.
    fn assembly(&self, entry: &Entry) -> (Cow<'a, str>, usize) {
        let bytes = self.file.bytes.get(entry.range.clone()).unwrap_or_default();
        let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        (String::from_utf8_lossy(bytes), entry.range.start)
    }

    /// A dictionary whose names `name` reads.
    pub(super) fn dict(&mut self, cursor: &mut Cursor<'_>) -> Read<Dict> {
        let count = cursor.count()?;
        let mut dict = Dict::new();
        for _ in 0..count {
            let at = cursor.pos();
            let name = self.string_attr(cursor)?;
            let value = self.attr(cursor)?;
            if dict.set(AttrName::Owned(name.to_string()), value).is_some() {
                return Err(Error::malformed(at, format!("the attribute `{name}` is given twice")));
            }
        }
        Ok(dict)
    }

    /// A constant whose bytes follow, after their number. They are shared where they have the layout of constants.
    pub(super) fn constant(&mut self, ty: TensorType, cursor: &mut Cursor<'_>) -> Read<Attribute> {
        let at = cursor.pos();
        let length = cursor.size()?;
        let range = cursor.take(length)?;
        self.constant_from(ty, range, at)
    }

    /// A constant from a part of the file.
    pub(super) fn constant_from(&self, ty: TensorType, range: Range<usize>, at: usize) -> Read<Attribute> {
        let bytes =
            self.blob.slice(range).ok_or_else(|| Error::malformed(at, "the data is not in the file"))?;
        let built: Result<DenseElements, String> = elements::from_file(ty, bytes);
        built.map(Attribute::from).map_err(|why| Error::malformed(at, why))
    }
}

fn unknown_type(dialect: &str, range: &Range<usize>) -> Error {
    let why = format!("the dialect `{dialect}` has an encoding for this type that is not known here");
    Error::malformed(range.start, why)
}

fn ended(cursor: &Cursor<'_>) -> Read<()> {
    if cursor.is_empty() {
        Ok(())
    } else {
        Err(cursor.error("an attribute or type ends before its data does"))
    }
}
