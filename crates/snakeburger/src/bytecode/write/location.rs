//! Locations: text in modules, attributes of the builtin dialect in files.

use std::collections::HashMap;

use warpforge_ir::{Module, OpId};

use super::pool::{AttrId, Piece, Pool};
use crate::text::Cursor;

/// How deep locations may nest.
const MAX_DEPTH: usize = 200;

/// The locations of a module, each encoded once.
pub(super) struct Locations<'m> {
    module: &'m Module,
    known: HashMap<&'m str, AttrId>,
    /// Aliases that have been read; one that is being read has no value yet.
    aliases: HashMap<&'m str, Option<AttrId>>,
}

impl<'m> Locations<'m> {
    pub(super) fn new(module: &'m Module) -> Self {
        Self { module, known: HashMap::new(), aliases: HashMap::new() }
    }

    /// The location of an operation; one that was not kept or cannot be read is unknown.
    pub(super) fn of(&mut self, op: OpId, pool: &mut Pool) -> AttrId {
        let Some(text) = self.module.location(op) else { return unknown(pool) };
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let mut cursor = Cursor::new(text);
        let mut reader = Reader { module: self.module, aliases: &mut self.aliases, pool };
        let location = reader.wrapped(&mut cursor, 0);
        let id = location.unwrap_or_else(|| unknown(pool));
        self.known.insert(text, id);
        id
    }
}

fn unknown(pool: &mut Pool) -> AttrId {
    pool.attr("builtin", vec![Piece::Number(15)])
}

struct Reader<'m, 'p> {
    module: &'m Module,
    aliases: &'p mut HashMap<&'m str, Option<AttrId>>,
    pool: &'p mut Pool,
}

impl Reader<'_, '_> {
    /// `loc(…)`.
    fn wrapped(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Option<AttrId> {
        cursor.expect("loc").ok()?;
        cursor.expect("(").ok()?;
        let location = self.location(cursor, depth)?;
        cursor.expect(")").ok()?;
        Some(location)
    }

    fn location(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Option<AttrId> {
        if depth > MAX_DEPTH {
            return None;
        }
        match cursor.peek()? {
            b'#' => self.alias(cursor, depth),
            b'"' => self.named(cursor, depth),
            _ if cursor.eat("unknown") => Some(unknown(self.pool)),
            _ if cursor.eat("callsite") => {
                cursor.expect("(").ok()?;
                let callee = self.location(cursor, depth + 1)?;
                cursor.expect("at").ok()?;
                let caller = self.location(cursor, depth + 1)?;
                cursor.expect(")").ok()?;
                Some(
                    self.pool
                        .attr("builtin", vec![Piece::Number(10), Piece::Attr(callee), Piece::Attr(caller)]),
                )
            }
            _ if cursor.eat("fused") => self.fused(cursor, depth),
            _ => None,
        }
    }

    /// `#loc3`, which the module defines.
    fn alias(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Option<AttrId> {
        cursor.expect("#").ok()?;
        let name = cursor.word()?;
        if let Some(known) = self.aliases.get(name) {
            return *known;
        }
        let (name, text) = self.module.location_aliases().iter().find(|(known, _)| known == name)?;
        self.aliases.insert(name, None);
        let location = self.wrapped(&mut Cursor::new(text), depth + 1);
        self.aliases.insert(name, location);
        location
    }

    /// `"file":1:2`, `"name"` or `"name"(…)`.
    fn named(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Option<AttrId> {
        let text = cursor.string().ok()?;
        let text = self.pool.text(&text);
        let text = self.pool.attr("builtin", vec![Piece::Number(2), text]);
        if cursor.eat(":") {
            let line = cursor.digits().ok()?;
            cursor.expect(":").ok()?;
            let column = cursor.digits().ok()?;
            if cursor.eat("to") {
                // Where it ends is left out: readers of older artifacts do not know it.
                if !cursor.looking_at(":") {
                    cursor.digits().ok()?;
                }
                cursor.expect(":").ok()?;
                cursor.digits().ok()?;
            }
            let pieces =
                vec![Piece::Number(11), Piece::Attr(text), Piece::Number(line), Piece::Number(column)];
            return Some(self.pool.attr("builtin", pieces));
        }
        let child = if cursor.eat("(") {
            let child = self.location(cursor, depth + 1)?;
            cursor.expect(")").ok()?;
            child
        } else {
            unknown(self.pool)
        };
        Some(self.pool.attr("builtin", vec![Piece::Number(14), Piece::Attr(text), Piece::Attr(child)]))
    }

    /// What follows `fused`: metadata between angle brackets or none, then locations in brackets.
    fn fused(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Option<AttrId> {
        let metadata = if cursor.looking_at("<") {
            let text = cursor.balanced(b'<', b'>').ok()?;
            let inner = text.strip_prefix('<')?.strip_suffix('>')?;
            Some(self.pool.attr_text("builtin", inner))
        } else {
            None
        };
        cursor.expect("[").ok()?;
        let mut parts = Vec::new();
        while !cursor.eat("]") {
            parts.push(Piece::Attr(self.location(cursor, depth + 1)?));
            if !cursor.eat(",") && !cursor.looking_at("]") {
                return None;
            }
        }
        let mut pieces = vec![Piece::Number(if metadata.is_some() { 13 } else { 12 })];
        pieces.push(Piece::Number(parts.len() as u64));
        pieces.extend(parts);
        pieces.extend(metadata.map(Piece::Attr));
        Some(self.pool.attr("builtin", pieces))
    }
}
