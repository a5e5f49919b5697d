//! Operations: results, the generic form, and the way to the short ones.

use warpforge_ir::attr::Dict;
use warpforge_ir::table::format::Syntax;
use warpforge_ir::table::normalise_all;
use warpforge_ir::{BlockId, FunctionType, OpId, OpKind, RegionId, Type, ValueId};

use super::cursor::Parse;
use super::parser::{Parser, Use};
use crate::returns;

/// Everything that makes an operation but its results' names.
pub(super) struct Parts {
    pub(super) operands: Vec<ValueId>,
    pub(super) results: Vec<Type>,
    pub(super) attrs: Dict,
    pub(super) regions: Vec<RegionId>,
}

impl<'a> Parser<'a> {
    /// An operation, appended to a block.
    pub(super) fn operation(&mut self, block: BlockId) -> Parse<()> {
        self.cur.skip();
        let names = if self.cur.looking_at("%") { self.result_names()? } else { Vec::new() };
        self.cur.skip();
        let start = self.cur.pos();
        let given = names.iter().fold(0usize, |sum, (_, count, _)| sum.saturating_add(*count));
        let op = if self.cur.peek() == Some(b'"') {
            self.generic_op(start)?
        } else {
            self.short_op(start, given)?
        };
        self.op_location(op)?;
        self.module.append_op(block, op);
        let results: Vec<ValueId> = self.module.op(op).results().collect();
        if !names.is_empty() && given != results.len() {
            let message = format!("the operation has {} results, not {given}", results.len());
            return Err(self.cur.error_at(start, message));
        }
        let mut at = 0;
        for (name, count, pos) in names {
            if let Some(&first) = results.get(at) {
                self.define(name, pos, first, count)?;
            }
            at += count;
        }
        Ok(())
    }

    fn result_names(&mut self) -> Parse<Vec<(&'a str, usize, usize)>> {
        let mut names = Vec::new();
        loop {
            self.cur.skip();
            let pos = self.cur.pos();
            let name = self.value_name()?;
            let count = if self.cur.eat(":") { self.cur.digits()? } else { 1 };
            // More results than the text has bytes cannot be meant.
            let count = usize::try_from(count).ok().filter(|c| (1..=self.cur.text().len()).contains(c));
            let count = count.ok_or_else(|| self.cur.error_at(pos, "expected a number of results"))?;
            names.push((name, count, pos));
            if !self.cur.eat(",") {
                break;
            }
        }
        self.cur.expect("=")?;
        Ok(names)
    }

    fn generic_op(&mut self, start: usize) -> Parse<OpId> {
        let name = self.cur.string()?;
        let kind = OpKind::from_name(&name);
        if kind.is_none() && !name.contains('.') {
            return Err(self.cur.error_at(start, format!("unknown operation `{name}`")));
        }
        let parts = self.generic_rest(kind.is_some_and(isolated))?;
        Ok(match kind {
            Some(kind) => self.build(kind, parts, start),
            None => {
                let span = self.span_from(start);
                let op =
                    self.module.create_unregistered(name, parts.operands, parts.results, parts.attrs, span);
                self.module.set_regions(op, parts.regions);
                op
            }
        })
    }

    /// What follows the name in the generic form.
    pub(super) fn generic_rest(&mut self, isolated: bool) -> Parse<Parts> {
        let uses = self.list_of("(", ")", Self::value_use)?;
        if self.cur.looking_at("[") {
            return Err(self.cur.error_here("operations that jump to other blocks are not supported"));
        }
        let mut attrs = Dict::new();
        if self.cur.eat("<") {
            attrs = self.dictionary()?;
            self.cur.expect(">")?;
        }
        let regions = if self.cur.looking_at("(") {
            self.list_of("(", ")", |parser| parser.region(&[], isolated))?
        } else {
            Vec::new()
        };
        if self.cur.looking_at("{") {
            let start = self.cur.pos();
            for (name, value) in self.dictionary()?.entries() {
                if attrs.set(name.clone(), value.clone()).is_some() {
                    return Err(self.cur.error_at(start, format!("the attribute `{name}` is given twice")));
                }
            }
        }
        self.cur.expect(":")?;
        self.cur.skip();
        let type_at = self.cur.pos();
        let FunctionType { inputs, results } = self.function_type()?;
        let operands = self.resolve_typed(&uses, &inputs, type_at)?;
        Ok(Parts { operands, results, attrs, regions })
    }

    fn short_op(&mut self, start: usize, results: usize) -> Parse<OpId> {
        let Some(word) = self.cur.word() else { return Err(self.cur.expected("an operation")) };
        let name = match word {
            "module" => "builtin.module",
            "func" => "func.func",
            "return" => "func.return",
            "call" => "func.call",
            other => other,
        };
        let Some(kind) = OpKind::from_name(name) else { return self.unknown_op(name, start, results) };
        let def = kind.def();
        let parenthesis = self.cur.looking_at("(");
        let syntax = def.syntax().map_err(|why| self.cur.error_at(start, why))?;
        let parts = match syntax {
            // Where no short form starts with a parenthesis, the rest of the generic one does.
            Syntax::Generic | Syntax::Pieces(_) if parenthesis && !def.format.starts_with('(') => {
                self.generic_rest(isolated(kind))?
            }
            Syntax::Custom
                if parenthesis && matches!(kind, OpKind::Constant | OpKind::OptimizationBarrier) =>
            {
                let before = self.cur.pos();
                // A barrier of nothing has no types.
                let empty = self.cur.eat("(") && self.cur.eat(")") && !self.cur.looking_at(":");
                if empty && kind == OpKind::OptimizationBarrier {
                    let attrs = self.optional_attrs()?;
                    Parts { operands: vec![], results: vec![], attrs, regions: vec![] }
                } else {
                    self.cur.set_pos(before);
                    self.generic_rest(false)?
                }
            }
            Syntax::Generic => {
                let message = format!("`{name}` has no short form; write \"{name}\"(…)");
                return Err(self.cur.error_at(start, message));
            }
            Syntax::Custom => self.custom(kind)?,
            Syntax::Pieces(pieces) => self.pieces(def, pieces)?,
        };
        Ok(self.build(kind, parts, start))
    }

    fn build(&mut self, kind: OpKind, parts: Parts, start: usize) -> OpId {
        let mut attrs = parts.attrs;
        normalise_all(kind.def(), &mut attrs);
        let span = self.span_from(start);
        let op = self.module.create_op(kind, parts.operands, parts.results, attrs, span);
        self.module.set_regions(op, parts.regions);
        returns::settle(&mut self.module, op);
        op
    }

    /// Uses of values separated by commas; none when there is none. A comma that no value follows is left.
    pub(super) fn uses(&mut self) -> Parse<Vec<Use<'a>>> {
        let mut uses = Vec::new();
        if !self.cur.looking_at("%") {
            return Ok(uses);
        }
        loop {
            uses.push(self.value_use()?);
            let before = self.cur.pos();
            if !self.cur.eat(",") || !self.cur.looking_at("%") {
                self.cur.set_pos(before);
                return Ok(uses);
            }
        }
    }
}

fn isolated(kind: OpKind) -> bool {
    kind.def().is(warpforge_ir::table::Trait::Isolated)
}
