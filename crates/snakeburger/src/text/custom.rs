//! Short forms that need code of their own.

use warpforge_diag::Span;
use warpforge_ir::attr::{Attribute, Dict};
use warpforge_ir::{FunctionType, OpKind, Type};

use super::cursor::Parse;
use super::ops::Parts;
use super::parser::{Argument, Parser, Use};

impl<'a> Parser<'a> {
    pub(super) fn custom(&mut self, kind: OpKind) -> Parse<Parts> {
        match kind {
            OpKind::Module => self.module_op(),
            OpKind::Func => self.func_op(),
            OpKind::FuncReturn | OpKind::Return => self.return_op(),
            OpKind::Call => self.call_op(),
            OpKind::Constant => self.constant_op(),
            OpKind::CustomCall => self.custom_call_op(),
            OpKind::OptimizationBarrier => self.barrier_op(),
            OpKind::While => self.while_op(),
            OpKind::Reduce => self.reduce_op(),
            OpKind::ChloScan => self.scan_op(),
            other => Err(self.cur.error_here(format!("`{}` has no short form", other.name()))),
        }
    }

    pub(super) fn optional_attrs(&mut self) -> Parse<Dict> {
        if self.cur.looking_at("{") { self.dictionary() } else { Ok(Dict::new()) }
    }

    /// `attributes {…}` if it is next.
    fn attributes_clause(&mut self) -> Parse<Dict> {
        if self.cur.eat("attributes") { self.dictionary() } else { Ok(Dict::new()) }
    }

    fn module_op(&mut self) -> Parse<Parts> {
        let name = if self.cur.looking_at("@") { Some(self.symbol_name()?) } else { None };
        let mut attrs = self.attributes_clause()?;
        if let Some(name) = name {
            attrs.set("sym_name", Attribute::string(name));
        }
        let region = self.region(&[], true)?;
        if self.module.blocks(region).is_empty() {
            self.module.add_block(region);
        }
        Ok(Parts { operands: vec![], results: vec![], attrs, regions: vec![region] })
    }

    fn func_op(&mut self) -> Parse<Parts> {
        let visibility = ["public", "private", "nested"].into_iter().find(|word| self.cur.eat(word));
        let name = self.symbol_name()?;
        let arguments = self.list_of("(", ")", Self::func_argument)?;
        let results = if !self.cur.eat("->") {
            Vec::new()
        } else if self.cur.looking_at("(") {
            self.list_of("(", ")", |parser| {
                let ty = parser.ty()?;
                let attrs = parser.optional_attrs()?;
                Ok((ty, attrs))
            })?
        } else {
            vec![(self.ty()?, Dict::new())]
        };
        let mut attrs = self.attributes_clause()?;
        attrs.set("sym_name", Attribute::string(name));
        if let Some(visibility) = visibility {
            attrs.set("sym_visibility", Attribute::string(visibility));
        }
        let (arguments, argument_attrs): (Vec<_>, Vec<_>) = arguments.into_iter().unzip();
        let (results, result_attrs): (Vec<_>, Vec<_>) = results.into_iter().unzip();
        set_attr_list(&mut attrs, "arg_attrs", argument_attrs);
        set_attr_list(&mut attrs, "res_attrs", result_attrs);
        let inputs = arguments.iter().map(|argument| argument.ty.clone()).collect();
        attrs.set("function_type", Attribute::Type(Type::function(inputs, results)));
        let region = if self.cur.looking_at("{") {
            if let Some(unnamed) = arguments.iter().find(|argument| argument.name.is_none()) {
                return Err(self
                    .cur
                    .error_at(unnamed.pos, "an argument of a function with a body needs a name"));
            }
            let region = self.region(&arguments, true)?;
            if self.module.blocks(region).is_empty() {
                self.module.add_block(region);
            }
            region
        } else {
            self.module.create_region()
        };
        Ok(Parts { operands: vec![], results: vec![], attrs, regions: vec![region] })
    }

    /// `%name: type {…}`, or the type alone in a declaration.
    fn func_argument(&mut self) -> Parse<(Argument<'a>, Dict)> {
        self.cur.skip();
        let pos = self.cur.pos();
        let name = if self.cur.looking_at("%") {
            let name = self.value_name()?;
            self.cur.expect(":")?;
            Some(name)
        } else {
            None
        };
        let ty = self.ty()?;
        let attrs = self.optional_attrs()?;
        self.location()?;
        Ok((Argument { name, ty, pos }, attrs))
    }

    fn return_op(&mut self) -> Parse<Parts> {
        let attrs = self.optional_attrs()?;
        let uses = self.uses()?;
        let mut operands = Vec::new();
        if !uses.is_empty() {
            self.cur.expect(":")?;
            let start = self.cur.pos();
            let types = self.type_list()?;
            operands = self.resolve_typed(&uses, &types, start)?;
        }
        Ok(Parts { operands, results: vec![], attrs, regions: vec![] })
    }

    /// `: (types) -> types` for operands that came before.
    fn typed_rest(&mut self, uses: &[Use<'a>], attrs: Dict) -> Parse<Parts> {
        self.cur.expect(":")?;
        self.cur.skip();
        let start = self.cur.pos();
        let FunctionType { inputs, results } = self.function_type()?;
        let operands = self.resolve_typed(uses, &inputs, start)?;
        Ok(Parts { operands, results, attrs, regions: vec![] })
    }

    fn call_op(&mut self) -> Parse<Parts> {
        let callee = self.symbol_name()?;
        let uses = self.list_of("(", ")", Self::value_use)?;
        let mut attrs = self.optional_attrs()?;
        attrs.set("callee", Attribute::symbol(callee));
        self.typed_rest(&uses, attrs)
    }

    fn constant_op(&mut self) -> Parse<Parts> {
        let mut attrs = self.optional_attrs()?;
        self.cur.skip();
        let start = self.cur.pos();
        let value = self.attribute()?;
        let Some(ty) = value.as_elements().map(|elements| Type::Tensor(elements.ty().clone())) else {
            return Err(self.cur.error_at(start, "expected `dense<…>` with a numeric type"));
        };
        attrs.set("value", value);
        Ok(Parts { operands: vec![], results: vec![ty], attrs, regions: vec![] })
    }

    fn custom_call_op(&mut self) -> Parse<Parts> {
        let target = self.symbol_name()?;
        let uses = self.list_of("(", ")", Self::value_use)?;
        let mut attrs = self.optional_attrs()?;
        attrs.set("call_target_name", Attribute::string(target));
        self.typed_rest(&uses, attrs)
    }

    fn barrier_op(&mut self) -> Parse<Parts> {
        let attrs = self.optional_attrs()?;
        let uses = self.uses()?;
        self.cur.expect(":")?;
        let start = self.cur.pos();
        let types = self.type_list()?;
        let operands = self.resolve_typed(&uses, &types, start)?;
        Ok(Parts { operands, results: types, attrs, regions: vec![] })
    }

    fn while_op(&mut self) -> Parse<Parts> {
        let bindings = self.list_of("(", ")", |parser| {
            parser.cur.skip();
            let pos = parser.cur.pos();
            let name = parser.value_name()?;
            parser.cur.expect("=")?;
            Ok((name, pos, parser.value_use()?))
        })?;
        let mut types = Vec::new();
        let start = self.cur.pos();
        if self.cur.eat(":") {
            types = self.type_list()?;
        }
        let uses: Vec<Use<'a>> = bindings.iter().map(|(_, _, used)| *used).collect();
        let operands = self.resolve_typed(&uses, &types, start)?;
        let attrs = self.attributes_clause()?;
        let arguments = || -> Vec<Argument<'a>> {
            let named = bindings.iter().zip(&types);
            named
                .map(|((name, pos, _), ty)| Argument { name: Some(*name), ty: ty.clone(), pos: *pos })
                .collect()
        };
        self.cur.expect("cond")?;
        let cond = self.region(&arguments(), false)?;
        self.cur.expect("do")?;
        let body = self.region(&arguments(), false)?;
        Ok(Parts { operands, results: types, attrs, regions: vec![cond, body] })
    }

    fn reduce_op(&mut self) -> Parse<Parts> {
        let (mut inputs, mut inits) = (Vec::new(), Vec::new());
        loop {
            self.cur.expect("(")?;
            inputs.push(self.value_use()?);
            self.cur.expect("init")?;
            self.cur.expect(":")?;
            inits.push(self.value_use()?);
            self.cur.expect(")")?;
            if !self.cur.eat(",") {
                break;
            }
        }
        let count = inputs.len();
        let applied_at = self.cur.pos();
        let applied = if self.cur.eat("applies") { Some(self.applied_kind()?) } else { None };
        self.cur.expect("across")?;
        self.cur.expect("dimensions")?;
        self.cur.expect("=")?;
        let dimensions = self.cur.i64_list()?;
        let mut attrs = self.optional_attrs()?;
        attrs.set("dimensions", Attribute::i64s(dimensions));
        inputs.extend(inits);
        let mut parts = self.typed_rest(&inputs, attrs)?;
        let region = match applied {
            Some(kind) => self.applied_body(kind, &parts, applied_at)?,
            None => {
                self.cur.expect("reducer")?;
                let arguments = self.reducer_arguments(count)?;
                self.region(&arguments, false)?
            }
        };
        parts.regions.push(region);
        Ok(parts)
    }

    fn applied_kind(&mut self) -> Parse<OpKind> {
        self.cur.skip();
        let start = self.cur.pos();
        let name = self.cur.word().ok_or_else(|| self.cur.expected("the name of an operation"))?;
        let kind = OpKind::from_name(name).filter(|kind| {
            let def = kind.def();
            def.operands.len() == 2
                && def.results.len() == 1
                && def.attrs.is_empty()
                && def.regions.is_empty()
        });
        kind.ok_or_else(|| self.cur.error_at(start, format!("`{name}` cannot be applied to two values")))
    }

    /// The body that `applies` stands for: the operation on one element of each side.
    fn applied_body(&mut self, kind: OpKind, parts: &Parts, at: usize) -> Parse<warpforge_ir::RegionId> {
        let input = parts.operands.first().map(|&value| self.module.value_type(value).clone());
        let (Some(Type::Tensor(input)), 2) = (input, parts.operands.len()) else {
            return Err(self.cur.error_at(at, "`applies` needs one tensor to reduce"));
        };
        let element = Type::Tensor(input.with_dims([]));
        let region = self.module.create_region();
        let block = self.module.add_block(region);
        let left = self.module.add_argument(block, element.clone());
        let right = self.module.add_argument(block, element.clone());
        let span = Span::at(at);
        let op = self.module.create_op(kind, vec![left, right], vec![element], Dict::new(), span);
        self.module.append_op(block, op);
        let result = self.module.op(op).results().collect();
        let end = self.module.create_op(OpKind::Return, result, vec![], Dict::new(), span);
        self.module.append_op(block, end);
        Ok(region)
    }

    /// `(%left: type, %right: type) …`, one pair for each input; all left ones come first in the block.
    fn reducer_arguments(&mut self, count: usize) -> Parse<Vec<Argument<'a>>> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for _ in 0..count {
            self.cur.expect("(")?;
            left.push(self.argument()?);
            self.cur.expect(",")?;
            right.push(self.argument()?);
            self.cur.expect(")")?;
        }
        left.extend(right);
        Ok(left)
    }

    fn scan_op(&mut self) -> Parse<Parts> {
        let mut uses = self.list_of("(", ")", Self::value_use)?;
        let input_count = uses.len();
        self.cur.expect("inits")?;
        uses.extend(self.list_of("(", ")", Self::value_use)?);
        let init_count = uses.len() - input_count;
        self.cur.expect("dimension")?;
        self.cur.expect("=")?;
        let dimension = self.cur.i64()?;
        let mut attrs = self.attributes_clause()?;
        let region = self.region(&[], false)?;
        attrs.set("dimension", Attribute::i64(dimension));
        let mut parts = self.typed_rest(&uses, attrs)?;
        let Some(output_count) = parts.results.len().checked_sub(init_count) else {
            return Err(self.cur.error_here("a scan has at least as many results as initial values"));
        };
        let sizes = |a: usize, b: usize| Attribute::i64s([a as i64, b as i64]);
        parts.attrs.set("operandSegmentSizes", sizes(input_count, init_count));
        parts.attrs.set("resultSegmentSizes", sizes(output_count, init_count));
        parts.regions.push(region);
        Ok(parts)
    }
}

fn set_attr_list(attrs: &mut Dict, name: &'static str, items: Vec<Dict>) {
    if items.iter().any(|item| !item.is_empty()) {
        let items: Vec<Attribute> = items.into_iter().map(Attribute::Dict).collect();
        attrs.set(name, Attribute::Array(items.into()));
    }
}
