//! Operations, regions and blocks; the generic form.

use std::fmt::Write;

use super::custom;
use super::names::{Names, result_groups};
use super::pieces;
use super::printed::{Large, Printed};
use crate::attr::{Attribute, Dict, Entry};
use crate::module::{BlockId, Module, OpRef, RegionId, ValueId};
use crate::table::OpKind;
use crate::table::format::Syntax;
use crate::types::{FunctionType, Type};

/// How operations are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Each in the short form that it has.
    Pretty,
    /// All in the form `"name"(operands) <{…}> : type`.
    Generic,
}

/// A module as text, as StableHLO's own tools print it.
pub fn print(module: &Module) -> String {
    print_as(module, Form::Pretty)
}

/// A module as text.
pub fn print_as(module: &Module, form: Form) -> String {
    printed(module, form).into_text()
}

/// A module as text that can be written without holding the digits of its large constants.
pub fn printed(module: &Module, form: Form) -> Printed {
    let names = Names::new(module);
    let mut printer = Printer { out: String::new(), large: Vec::new(), names, module, form, indent: 0 };
    printer.op(module.root());
    printer.out.push('\n');
    for (name, text) in module.location_aliases() {
        let _ = writeln!(printer.out, "#{name} = {text}");
    }
    Printed { text: printer.out, large: printer.large }
}

pub(super) struct Printer<'m> {
    pub(super) out: String,
    pub(super) large: Large,
    names: Names,
    pub(super) module: &'m Module,
    form: Form,
    indent: usize,
}

impl<'m> Printer<'m> {
    pub(super) fn op(&mut self, op: OpRef<'m>) {
        self.result_names(op);
        let start = self.out.len();
        let short = self.assembly(op) || (self.form == Form::Pretty && self.short(op));
        if !short {
            self.out.truncate(start);
            self.large.retain(|(at, _)| *at <= start);
            self.out.push('"');
            let _ = super::write_escaped(&mut self.out, op.name());
            self.out.push('"');
            self.generic_rest(op);
        }
        if let Some(location) = self.module.location(op.id()) {
            let _ = write!(self.out, " {location}");
        }
    }

    /// The short form of an operation that is not known, as it was read, with its operands filled in.
    fn assembly(&mut self, op: OpRef<'m>) -> bool {
        let Some(text) = self.module.assembly(op.id()) else { return false };
        self.out.push_str(op.name());
        let mut operands = op.operands().iter();
        let (mut quoted, mut escaped) = (false, false);
        for character in text.chars() {
            match (character, operands.as_slice()) {
                ('%', [_, ..]) if !quoted => operands.next().into_iter().for_each(|&value| self.value(value)),
                _ => self.out.push(character),
            }
            quoted ^= character == '"' && !escaped;
            escaped = character == '\\' && !escaped;
        }
        true
    }

    fn short(&mut self, op: OpRef<'m>) -> bool {
        let Some(def) = op.def() else { return false };
        match def.syntax() {
            Ok(Syntax::Custom) => custom::print(self, op),
            Ok(Syntax::Pieces(list)) => {
                let _ = write!(self.out, "{}", op.name());
                if !def.format.starts_with(['(', '{']) {
                    self.out.push(' ');
                }
                pieces::print(self, op, def, list)
            }
            Ok(Syntax::Generic) | Err(_) => false,
        }
    }

    fn result_names(&mut self, op: OpRef<'m>) {
        let groups = result_groups(op);
        if groups.is_empty() {
            return;
        }
        let mut results = op.results();
        for (index, (_, size)) in groups.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            let Some(first) = results.next() else { continue };
            let name = self.names.get(first);
            let base = name.strip_suffix("#0").unwrap_or(name).to_owned();
            self.out.push_str(&base);
            if *size > 1 {
                let _ = write!(self.out, ":{size}");
            }
            for _ in 1..*size {
                results.next();
            }
        }
        self.out.push_str(" = ");
    }

    /// What follows the name in the generic form.
    pub(super) fn generic_rest(&mut self, op: OpRef<'m>) {
        self.out.push('(');
        self.values(op.operands());
        self.out.push(')');
        let (mut inherent, mut other) = (Vec::new(), Vec::new());
        for (name, value) in op.attrs().entries() {
            let declared = op.def().is_some_and(|def| def.attr(name).is_some());
            if declared { &mut inherent } else { &mut other }.push((name.as_ref(), value));
        }
        if !inherent.is_empty() {
            self.out.push_str(" <");
            self.braced(&inherent);
            self.out.push('>');
        }
        self.regions(op);
        if !other.is_empty() {
            self.out.push(' ');
            self.braced(&other);
        }
        self.out.push_str(" : ");
        self.function_type(op);
    }

    /// The regions of an operation in parentheses, when there are any.
    pub(super) fn regions(&mut self, op: OpRef<'m>) {
        if op.regions().is_empty() {
            return;
        }
        self.out.push_str(" (");
        for (index, &region) in op.regions().iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.region(region, true);
        }
        self.out.push(')');
    }

    /// A region in braces; `header` says whether the arguments of its first block are shown.
    pub(super) fn region(&mut self, region: RegionId, header: bool) {
        self.out.push('{');
        self.indent += 1;
        let blocks = self.module.blocks(region);
        for (index, &block) in blocks.iter().enumerate() {
            let shown = header && !self.module.arguments(block).is_empty();
            if index > 0 || shown {
                self.block_header(block, index);
            }
            self.block_body(block);
        }
        self.indent -= 1;
        self.newline();
        self.out.push('}');
    }

    fn block_header(&mut self, block: BlockId, index: usize) {
        self.indent -= 1;
        self.newline();
        self.indent += 1;
        let _ = write!(self.out, "^bb{index}");
        let arguments = self.module.arguments(block);
        if !arguments.is_empty() {
            self.out.push('(');
            self.typed_values(arguments);
            self.out.push(')');
        }
        self.out.push(':');
    }

    fn block_body(&mut self, block: BlockId) {
        for op in self.module.ops_in(block) {
            self.newline();
            self.op(op);
        }
    }

    pub(super) fn newline(&mut self) {
        self.out.push('\n');
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
    }

    pub(super) fn value(&mut self, value: ValueId) {
        self.out.push_str(self.names.get(value));
    }

    /// Values separated by commas.
    pub(super) fn values(&mut self, values: &[ValueId]) {
        for (index, &value) in values.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.out.push_str(self.names.get(value));
        }
    }

    /// `%a: type, %b: type`.
    pub(super) fn typed_values(&mut self, values: &[ValueId]) {
        for (index, &value) in values.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            let _ = write!(self.out, "{}: {}", self.names.get(value), self.module.value_type(value));
        }
    }

    /// Types separated by commas.
    pub(super) fn types<'t>(&mut self, types: impl Iterator<Item = &'t Type>) {
        for (index, ty) in types.enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            let _ = write!(self.out, "{ty}");
        }
    }

    /// `(operands) -> results`.
    pub(super) fn function_type(&mut self, op: OpRef<'m>) {
        self.out.push('(');
        self.types(op.operand_types());
        self.out.push_str(") -> ");
        self.arrow_types(op);
    }

    /// The types of the results, in parentheses unless there is one.
    pub(super) fn arrow_types(&mut self, op: OpRef<'m>) {
        let single = op.result_count() == 1 && !matches!(op.result_type(0), Some(Type::Function(_)));
        if !single {
            self.out.push('(');
        }
        self.types(op.result_types());
        if !single {
            self.out.push(')');
        }
    }

    /// ` {…}` with all attributes but some; nothing when none is left.
    pub(super) fn attrs_except(&mut self, op: OpRef<'m>, keyword: &str, skip: impl Fn(&str) -> bool) {
        let kept = self.kept_attrs(op, skip);
        if !kept.is_empty() {
            self.out.push(' ');
            self.out.push_str(keyword);
            self.braced(&kept);
        }
    }

    fn kept_attrs(&self, op: OpRef<'m>, skip: impl Fn(&str) -> bool) -> Vec<(&'m str, &'m Attribute)> {
        let is_default = |name: &str, value: &Attribute| {
            op.def().and_then(|def| def.attr(name)).and_then(|attr| attr.default_value()) == Some(value)
        };
        let entries = op.attrs().entries().iter().map(|(name, value)| (name.as_ref(), value));
        entries.filter(|(name, value)| !skip(name) && !is_default(name, value)).collect()
    }

    pub(super) fn braced(&mut self, entries: &[(&str, &Attribute)]) {
        self.out.push('{');
        for (index, (name, value)) in entries.iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            let _ = write!(self.out, "{separator}{}", Entry(name, value));
        }
        self.out.push('}');
    }

    pub(super) fn dict(&mut self, dict: &Dict) {
        let _ = write!(self.out, "{dict}");
    }

    /// The name of an operation, without its dialect where the operation around it implies that.
    pub(super) fn op_name(&mut self, op: OpRef<'m>) {
        let inside_function = op.parent_op().is_some_and(|parent| parent.is(OpKind::Func));
        let name = op.name();
        let short = name.strip_prefix("func.").filter(|_| inside_function);
        self.out.push_str(short.unwrap_or(name));
    }
}

/// Whether a function type and the operands and results of an operation are all of one type.
pub(super) fn same_type(operands: &[&Type], result: Option<&Type>) -> bool {
    operands.iter().all(|ty| Some(*ty) == result)
}

/// Results of a signature as they follow the arrow, with their attributes.
pub(super) fn needs_parentheses(signature: &FunctionType, has_attrs: bool) -> bool {
    match signature.results.as_slice() {
        [single] => has_attrs || matches!(single, Type::Function(_)),
        _ => true,
    }
}
