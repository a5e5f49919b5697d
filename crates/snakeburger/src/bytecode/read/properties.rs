//! Properties: the attributes that belong to an operation, encoded one after the other.

use std::borrow::Cow;

use warpforge_ir::attr::{AttrName, Attribute, Dict};
use warpforge_ir::table::{OpDef, Presence};
use warpforge_ir::types::ElementType;

use super::tables::Tables;
use crate::bytecode::error::{Error, Read};
use crate::bytecode::vhlo::forms::Form;
use crate::bytecode::wire::{Cursor, since};

/// Attributes that later versions of the dialects have added to operations: files written before leave them out.
const ADDED: &[&str] =
    &["has_dynamic_root", "largest", "result_tilings", "source_target_pairs", "result_accuracy"];

/// The properties of a VHLO operation: all attributes of its form, in order.
pub(super) fn of_form(tables: &mut Tables<'_>, form: &Form, cursor: &mut Cursor<'_>) -> Read<Dict> {
    let mut dict = Dict::new();
    for name in form.attrs() {
        let value = tables.attr(cursor)?;
        dict.set(name, value);
    }
    ended(cursor).map(|()| dict)
}

/// The properties of an operation of the table: its attributes in the order of the alphabet, then how many operands and
/// results each group has.
pub(super) fn of_table(tables: &mut Tables<'_>, def: &OpDef, cursor: &mut Cursor<'_>) -> Read<Dict> {
    let (sizes, mut attrs): (Vec<_>, Vec<_>) =
        def.attrs.iter().partition(|attr| attr.name.ends_with("SegmentSizes"));
    attrs.sort_by_key(|attr| attr.name);
    let there = entries(cursor.clone());
    if there < attrs.len() {
        attrs.retain(|attr| !ADDED.contains(&attr.name));
    }
    let mut dict = Dict::new();
    for attr in attrs {
        let value = match attr.presence {
            Presence::Required => Some(tables.attr(cursor)?),
            Presence::Optional | Presence::Default(_) => tables.optional_attr(cursor)?,
        };
        if let Some(value) = value {
            dict.set(attr.name, value);
        }
    }
    for size in sizes {
        let value = if tables.file.format >= since::NATIVE_SEGMENT_SIZES {
            segment_sizes(cursor)?
        } else {
            tables.attr(cursor)?
        };
        dict.set(size.name, value);
    }
    ended(cursor).map(|()| dict)
}

/// How many numbers there are.
fn entries(mut cursor: Cursor<'_>) -> usize {
    let mut count = 0;
    while !cursor.is_empty() && cursor.varint().is_ok() {
        count += 1;
    }
    count
}

/// How many values each group has: all numbers, or those that are not zero with their positions in the low bits.
fn segment_sizes(cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let at = cursor.pos();
    let (count, sparse) = cursor.flagged()?;
    let count = cursor.checked_count(count, at)?;
    let mut sizes: Vec<u64> = Vec::new();
    if !sparse {
        sizes = (0..count).map(|_| cursor.varint()).collect::<Read<_>>()?;
    } else if count > 0 {
        let bits = cursor.varint()?;
        let bits = u32::try_from(bits).ok().filter(|bits| *bits <= 8);
        let bits =
            bits.ok_or_else(|| Error::malformed(at, "an operation has too many groups of operands"))?;
        for _ in 0..count {
            let both = cursor.varint()?;
            let position = (both & ((1 << bits) - 1)) as usize;
            sizes.resize(sizes.len().max(position + 1), 0);
            sizes[position] = both >> bits;
        }
    }
    let sizes: Option<Vec<Attribute>> =
        sizes.into_iter().map(|size| i32::try_from(size).ok().map(Attribute::i32)).collect();
    let sizes = sizes.ok_or_else(|| Error::malformed(at, "a group of operands is too large"))?;
    Ok(Attribute::DenseArray(ElementType::I32, sizes.into()))
}

/// Adds attributes to a dictionary; none may be there already.
pub(super) fn merge(into: &mut Dict, from: Dict, at: usize) -> Read<()> {
    if into.is_empty() {
        *into = from;
        return Ok(());
    }
    for (name, value) in from.entries() {
        let name: AttrName = Cow::clone(name);
        if into.set(name, value.clone()).is_some() {
            return Err(Error::malformed(at, "an attribute is given twice"));
        }
    }
    Ok(())
}

fn ended(cursor: &Cursor<'_>) -> Read<()> {
    if cursor.is_empty() {
        Ok(())
    } else {
        Err(cursor.error("an operation has more properties than its name allows"))
    }
}
