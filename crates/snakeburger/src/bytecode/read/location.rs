//! Locations, as MLIR writes them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use warpforge_ir::Attribute;

use super::tables::Tables;
use crate::bytecode::error::{Error, Read};
use crate::bytecode::wire::Cursor;

/// How deep locations may nest: a call site in a call site, for each function on the stack of who traced the program.
const MAX_DEPTH: usize = 200;

/// How long one may be when written out; they share parts, so a short file can have very long ones.
const MAX_LENGTH: usize = 1 << 16;

/// Locations that have been read, by number.
#[derive(Default)]
pub(super) struct Locations {
    read: HashMap<u64, Option<Arc<str>>>,
}

impl Locations {
    /// The location that the next number names, as `loc(…)`; `None` when it is unknown.
    pub(super) fn next(
        &mut self,
        tables: &mut Tables<'_>,
        cursor: &mut Cursor<'_>,
    ) -> Read<Option<Arc<str>>> {
        let at = cursor.pos();
        let index = cursor.varint()?;
        if let Some(known) = self.read.get(&index) {
            return Ok(known.clone());
        }
        let mut text = String::from("loc(");
        write(tables, index, at, 0, &mut text)?;
        text.push(')');
        let location = Some(text).filter(|text| text != "loc(unknown)").map(Arc::from);
        self.read.insert(index, location.clone());
        Ok(location)
    }
}

fn next(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>, depth: usize, out: &mut String) -> Read<()> {
    let at = cursor.pos();
    let index = cursor.varint()?;
    write(tables, index, at, depth + 1, out)
}

fn write(tables: &mut Tables<'_>, index: u64, at: usize, depth: usize, out: &mut String) -> Read<()> {
    let entry = usize::try_from(index).ok().and_then(|index| tables.file.attrs.get(index));
    let entry = entry.ok_or_else(|| Error::malformed(at, format!("there is no attribute {index}")))?.clone();
    if depth > MAX_DEPTH || out.len() > MAX_LENGTH {
        return Err(Error::malformed(at, "a location is nested too deeply or too long"));
    }
    let mut cursor = tables.file.cursor(entry.range);
    let builtin = tables.file.dialects.get(entry.dialect).is_some_and(|dialect| dialect == "builtin");
    if !builtin || !entry.encoded {
        // A location of another dialect: nothing here could follow it.
        out.push_str("unknown");
        return Ok(());
    }
    match cursor.varint()? {
        10 => {
            out.push_str("callsite(");
            next(tables, &mut cursor, depth, out)?;
            out.push_str(" at ");
            next(tables, &mut cursor, depth, out)?;
            out.push(')');
        }
        11 => {
            let file = Attribute::Str(tables.string_attr(&mut cursor)?);
            let _ = write!(out, "{file}:{}:{}", cursor.varint()?, cursor.varint()?);
        }
        code @ (12 | 13) => {
            let mut parts = String::new();
            for position in 0..cursor.count()? {
                parts.push_str(if position == 0 { "[" } else { ", " });
                next(tables, &mut cursor, depth, &mut parts)?;
                if parts.len() > MAX_LENGTH {
                    return Err(Error::malformed(at, "a location is too long"));
                }
            }
            let metadata = if code == 13 { Some(tables.attr(&mut cursor)?) } else { None };
            out.push_str("fused");
            if let Some(metadata) = metadata {
                let _ = write!(out, "<{metadata}>");
            }
            out.push_str(if parts.is_empty() { "[" } else { &parts });
            out.push(']');
        }
        14 => {
            let name = Attribute::Str(tables.string_attr(&mut cursor)?);
            let _ = write!(out, "{name}");
            let mut child = String::new();
            next(tables, &mut cursor, depth, &mut child)?;
            if child != "unknown" {
                let _ = write!(out, "({child})");
            }
        }
        15 => out.push_str("unknown"),
        22 => range(tables, &mut cursor, out)?,
        other => return Err(cursor.error(format!("{other} is no location"))),
    }
    Ok(())
}

/// A place in a file from where to where, or only where it starts.
fn range(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>, out: &mut String) -> Read<()> {
    let file = Attribute::Str(tables.string_attr(cursor)?);
    let count = cursor.count()?;
    let numbers: Vec<u64> = (0..count).map(|_| cursor.varint()).collect::<Read<_>>()?;
    let _ = match numbers.as_slice() {
        [line, column, last, end] if line == last => write!(out, "{file}:{line}:{column} to :{end}"),
        [line, column, last, end] => write!(out, "{file}:{line}:{column} to {last}:{end}"),
        [line, column, ..] => write!(out, "{file}:{line}:{column}"),
        [line] => write!(out, "{file}:{line}:0"),
        [] => write!(out, "{file}:0:0"),
    };
    Ok(())
}
