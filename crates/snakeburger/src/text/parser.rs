//! The parser's state: position, names in scope, aliases, and the module that is being built.

use std::collections::HashMap;

use warpforge_diag::{Diagnostic, Span};
use warpforge_ir::attr::Attribute;
use warpforge_ir::{BlockId, Module, OpKind, RegionId, Type, ValueId};

use super::Options;
use super::cursor::{Cursor, Parse, is_name_byte};
use super::dense::Resources;
use super::recover::Mistakes;
use super::slim::{Constant, Taken};

/// Values of one name: the first and how many.
#[derive(Clone, Copy)]
struct Named {
    first: ValueId,
    count: usize,
}

/// A use of a value: `%name` or `%name#1`.
#[derive(Clone, Copy)]
pub(super) struct Use<'a> {
    name: &'a str,
    index: usize,
    pub(super) pos: usize,
}

pub(super) struct Parser<'a> {
    pub(super) cur: Cursor<'a>,
    pub(super) module: Module,
    pub(super) aliases: HashMap<&'a str, Attribute>,
    pub(super) type_aliases: HashMap<&'a str, Type>,
    pub(super) resources: Resources,
    /// Constants that are not in the text.
    pub(super) taken: Taken,
    pub(super) mistakes: Mistakes<'a>,
    options: Options,
    values: HashMap<&'a str, Named>,
    /// What names meant before the regions around here changed that.
    shadowed: Vec<(&'a str, Option<Named>)>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, taken: Vec<Constant>, options: Options) -> Self {
        Self {
            cur: Cursor::new(text),
            module: Module::new(),
            aliases: HashMap::new(),
            type_aliases: HashMap::new(),
            resources: Resources::default(),
            taken: Taken::new(taken),
            mistakes: Mistakes::default(),
            options,
            values: HashMap::new(),
            shadowed: Vec::new(),
        }
    }

    /// A whole file, or all that is wrong with it.
    pub(super) fn file(mut self) -> Result<Module, Vec<Diagnostic>> {
        match self.file_body() {
            Ok(()) if self.mistakes.found.is_empty() => Ok(self.module),
            Ok(()) => Err(self.mistakes.found),
            Err(last) => Err(self.mistakes.found.into_iter().chain([*last]).collect()),
        }
    }

    fn file_body(&mut self) -> Parse<()> {
        if u32::try_from(self.cur.text().len()).is_err() {
            return Err(self.cur.error_at(0, "text of more than 4 GiB is not read"));
        }
        self.find_resources()?;
        let body = self.module.body();
        while !self.cur.at_end() {
            match self.cur.peek() {
                Some(b'#' | b'!') => self.alias_definition()?,
                Some(b'{') if self.cur.looking_at("{-#") => self.skip_resources()?,
                _ => self.operation_or_note(body)?,
            }
        }
        if !self.mistakes.found.is_empty() {
            return Ok(());
        }
        if let Some(offset) = self.taken.unused() {
            return Err(self
                .cur
                .error_at(offset, "a constant of this length is not read inside something unknown"));
        }
        // A file that is one module is that module; anything else is inside one that goes without saying.
        if let &[only] = self.module.block_ops(body)
            && self.module.op(only).is(OpKind::Module)
        {
            self.module.set_root(only);
        }
        Ok(())
    }

    /// Nothing but types, with commas between them.
    pub(super) fn only_types(mut self) -> Parse<Vec<Type>> {
        let mut types = Vec::new();
        while !self.cur.at_end() {
            if !types.is_empty() {
                self.cur.expect(",")?;
            }
            types.push(self.ty()?);
        }
        Ok(types)
    }

    /// Runs a step one level deeper, or refuses when that is too deep.
    pub(super) fn nested<T>(&mut self, step: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.cur.depth >= super::cursor::MAX_DEPTH {
            return Err(self.cur.error_here("nested too deeply"));
        }
        self.cur.depth += 1;
        let result = step(self);
        self.cur.depth -= 1;
        result
    }

    /// Items in brackets, separated by commas.
    pub(super) fn list_of<T>(
        &mut self,
        open: &str,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        self.cur.expect(open)?;
        let mut items = Vec::new();
        if self.cur.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.cur.eat(close) {
                return Ok(items);
            }
            self.cur.expect(",")?;
        }
    }

    /// `%name`, the name only.
    pub(super) fn value_name(&mut self) -> Parse<&'a str> {
        self.cur.skip();
        if self.cur.rest().first() != Some(&b'%') {
            return Err(self.cur.expected("a value"));
        }
        self.cur.set_pos(self.cur.pos() + 1);
        let name = self.cur.take_while(is_name_byte);
        if name.is_empty() { Err(self.cur.expected("the name of a value")) } else { Ok(name) }
    }

    /// A use of a value.
    pub(super) fn value_use(&mut self) -> Parse<Use<'a>> {
        self.cur.skip();
        let pos = self.cur.pos();
        let name = self.value_name()?;
        let index = if self.cur.rest().first() == Some(&b'#') {
            self.cur.set_pos(self.cur.pos() + 1);
            self.cur.digits()? as usize
        } else {
            0
        };
        Ok(Use { name, index, pos })
    }

    /// The value that is meant.
    pub(super) fn resolve(&self, used: Use<'a>) -> Parse<ValueId> {
        let Some(named) = self.values.get(used.name) else {
            return Err(self
                .cur
                .error_at(used.pos, format!("the value `%{}` is not defined here", used.name)));
        };
        if used.index >= named.count {
            let message = format!("`%{}` has {} values, not {}", used.name, named.count, used.index + 1);
            return Err(self.cur.error_at(used.pos, message));
        }
        Ok(self.module.nth_after(named.first, used.index))
    }

    /// The values that are meant, with the types they are said to have.
    pub(super) fn resolve_typed(&self, uses: &[Use<'a>], types: &[Type], pos: usize) -> Parse<Vec<ValueId>> {
        if uses.len() != types.len() {
            let message = format!("{} operands but {} types for them", uses.len(), types.len());
            return Err(self.cur.error_at(pos, message));
        }
        let mut values = Vec::with_capacity(uses.len());
        for (used, ty) in uses.iter().zip(types) {
            let value = self.resolve(*used)?;
            let actual = self.module.value_type(value);
            if actual != ty {
                let message = format!("`%{}` has the type {actual}, not {ty}", used.name);
                return Err(self.cur.error_at(used.pos, message));
            }
            values.push(value);
        }
        Ok(values)
    }

    /// Gives values a name.
    pub(super) fn define(&mut self, name: &'a str, pos: usize, first: ValueId, count: usize) -> Parse<()> {
        if self.values.contains_key(name) {
            return Err(self.cur.error_at(pos, format!("the value `%{name}` is defined twice")));
        }
        let before = self.values.insert(name, Named { first, count });
        self.shadowed.push((name, before));
        Ok(())
    }

    /// A region in braces whose first block has the arguments given, or those that the text gives.
    ///
    /// An isolated region does not see the values around it.
    pub(super) fn region(&mut self, arguments: &[Argument<'a>], isolated: bool) -> Parse<RegionId> {
        self.nested(|parser| {
            let region = parser.module.create_region();
            let outer = if isolated { std::mem::take(&mut parser.values) } else { HashMap::new() };
            let missing = if isolated { Some(std::mem::take(&mut parser.mistakes.missing)) } else { None };
            let mark = parser.shadowed.len();
            let result = parser.region_body(region, arguments);
            if isolated {
                parser.shadowed.truncate(mark);
                parser.values = outer;
            }
            if let Some(missing) = missing {
                parser.mistakes.missing = missing;
            }
            for (name, before) in parser.shadowed.drain(mark.min(parser.shadowed.len())..).rev() {
                match before {
                    Some(named) => parser.values.insert(name, named),
                    None => parser.values.remove(name),
                };
            }
            result.map(|()| region)
        })
    }

    fn region_body(&mut self, region: RegionId, arguments: &[Argument<'a>]) -> Parse<()> {
        self.cur.expect("{")?;
        let mut block = None;
        if !arguments.is_empty() || !(self.cur.looking_at("^") || self.cur.looking_at("}")) {
            let entry = self.module.add_block(region);
            for argument in arguments {
                self.block_argument(entry, argument)?;
            }
            block = Some(entry);
        }
        loop {
            if self.cur.eat("}") {
                // A region whose braces are empty has no block unless it was given arguments.
                return Ok(());
            }
            if self.cur.looking_at("^") {
                block = Some(self.block_label(region)?);
                continue;
            }
            match (self.cur.peek(), block) {
                (None, _) => return Err(self.cur.expected("`}`")),
                (_, Some(block)) => self.operation_or_note(block)?,
                (_, None) => return Err(self.cur.expected("a block")),
            }
        }
    }

    fn block_label(&mut self, region: RegionId) -> Parse<BlockId> {
        self.cur.expect("^")?;
        self.cur.take_while(is_name_byte);
        let block = self.module.add_block(region);
        if self.cur.looking_at("(") {
            let arguments = self.list_of("(", ")", Self::argument)?;
            for argument in &arguments {
                self.block_argument(block, argument)?;
            }
        }
        self.cur.expect(":")?;
        Ok(block)
    }

    fn block_argument(&mut self, block: BlockId, argument: &Argument<'a>) -> Parse<()> {
        let value = self.module.add_argument(block, argument.ty.clone());
        match argument.name {
            Some(name) => self.define(name, argument.pos, value, 1),
            None => Ok(()),
        }
    }

    /// `%name: type`, with a location or not.
    pub(super) fn argument(&mut self) -> Parse<Argument<'a>> {
        self.cur.skip();
        let pos = self.cur.pos();
        let name = self.value_name()?;
        self.cur.expect(":")?;
        let ty = self.ty()?;
        self.location()?;
        Ok(Argument { name: Some(name), ty, pos })
    }

    /// `loc(…)` if it is next, as text.
    pub(super) fn location(&mut self) -> Parse<Option<&'a str>> {
        if !self.cur.looking_at("loc") {
            return Ok(None);
        }
        let start = self.cur.pos();
        self.cur.expect("loc")?;
        self.cur.balanced(b'(', b')')?;
        Ok(self.cur.text().get(start..self.cur.pos()))
    }

    /// Notes the location of an operation when locations are kept.
    pub(super) fn op_location(&mut self, op: warpforge_ir::OpId) -> Parse<()> {
        let location = self.location()?;
        if let Some(text) = location.filter(|_| self.options.keep_locations) {
            self.module.set_location(op, text);
        }
        Ok(())
    }

    pub(super) fn note_location_alias(&mut self, name: &str, value: &Attribute) {
        if let Attribute::Opaque(text) = value
            && self.options.keep_locations
            && text.starts_with("loc(")
        {
            self.module.add_location_alias(name, text.as_ref());
        }
    }

    pub(super) fn span_from(&self, start: usize) -> Span {
        Span::new(start, self.cur.pos())
    }
}

/// An argument of a block.
pub(super) struct Argument<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) ty: Type,
    pub(super) pos: usize,
}
