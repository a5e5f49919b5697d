//! Operations, blocks and regions as VHLO encodes them.

use std::collections::BTreeSet;

use warpforge_ir::attr::{Attribute, Dict};
use warpforge_ir::{BlockId, Module, OpKind, OpRef, RegionId};

use super::WriteError;
use super::location::Locations;
use super::pool::{AttrId, Piece, Pool};
use crate::bytecode::version::Version;
use crate::bytecode::vhlo::codes::attr as number;
use crate::bytecode::vhlo::forms::{self, Form};
use crate::bytecode::vhlo::lower;
use crate::bytecode::wire::has;

/// What artifacts have no place for.
pub(super) struct Refused(pub(super) String);

/// Writes a module for a version.
pub(super) struct Writer<'m> {
    module: &'m Module,
    version: Version,
    pub(super) pool: Pool,
    locations: Locations<'m>,
    /// The number of each value among those that can be seen with it, by [`warpforge_ir::ValueId::index`].
    numbers: Vec<u64>,
    refused: BTreeSet<String>,
}

/// The name that VHLO has for an operation, without its version.
pub(super) fn vhlo_name(op: OpRef<'_>) -> Option<&'static str> {
    let kind = op.kind()?;
    match kind {
        OpKind::Func => Some("func"),
        OpKind::Call => Some("call"),
        OpKind::FuncReturn => Some("return"),
        // VHLO has one return, which ends a function as `func.return` does.
        OpKind::Return if op.parent_op().is_some_and(|parent| parent.is(OpKind::Func)) => None,
        _ => (kind.dialect() == "stablehlo").then(|| kind.mnemonic()),
    }
}

impl<'m> Writer<'m> {
    pub(super) fn new(module: &'m Module, version: Version) -> Self {
        Self {
            module,
            version,
            pool: Pool::new(),
            locations: Locations::new(module),
            numbers: vec![0; module.value_count()],
            refused: BTreeSet::new(),
        }
    }

    /// The file.
    pub(super) fn file(mut self) -> Result<Vec<u8>, WriteError> {
        // The top of a file is a block without arguments that has the module in it.
        let mut ir = vec![Piece::Number(1 << 1)];
        self.op(self.module.root(), 0, &mut ir);
        if !self.refused.is_empty() {
            return Err(WriteError::NotPortable(self.refused.into_iter().collect()));
        }
        Ok(self.pool.file(&self.version.producer(), &ir))
    }

    /// Writes an operation; `values` is how many values can be seen around it.
    fn op(&mut self, op: OpRef<'m>, values: u64, out: &mut Vec<Piece>) {
        if let Err(Refused(what)) = self.try_op(op, values, out) {
            self.refused.insert(what);
        }
    }

    fn try_op(&mut self, op: OpRef<'m>, values: u64, out: &mut Vec<Piece>) -> Result<(), Refused> {
        let (name, attrs, properties) = if op.is(OpKind::Module) {
            let (attrs, properties) = self.module_attrs(op);
            (self.pool.name("builtin", "module"), attrs, Some(properties))
        } else {
            let name = vhlo_name(op).ok_or_else(|| Refused(format!("the operation `{}`", op.name())))?;
            let form = self.form(name);
            let (attrs, properties) = self.attrs_of(op, name, form)?;
            let file_name = form.map_or_else(|| format!("{name}_v1"), Form::file_name);
            (self.pool.name("vhlo", &file_name), attrs, properties)
        };
        let location = self.locations.of(op.id(), &mut self.pool);
        let mut mask = 0;
        for (bit, there) in [
            (has::ATTRS, attrs.is_some()),
            (has::PROPERTIES, properties.is_some()),
            (has::RESULTS, op.result_count() > 0),
            (has::OPERANDS, !op.operands().is_empty()),
            (has::REGIONS, !op.regions().is_empty()),
        ] {
            mask |= if there { bit } else { 0 };
        }
        out.extend([Piece::Name(name), Piece::Byte(mask), Piece::Attr(location)]);
        out.extend(attrs.map(Piece::Attr));
        out.extend(properties.map(Piece::Number));
        if op.result_count() > 0 {
            out.push(Piece::Number(op.result_count() as u64));
            for ty in op.result_types() {
                out.push(Piece::Type(self.ty(ty)?));
            }
        }
        if !op.operands().is_empty() {
            out.push(Piece::Number(op.operands().len() as u64));
            out.extend(op.operands().iter().map(|value| Piece::Number(self.numbers[value.index()])));
        }
        if !op.regions().is_empty() {
            self.regions(op, values, out)?;
        }
        Ok(())
    }

    /// The newest form of an operation that the version has.
    fn form(&self, name: &str) -> Option<&'static Form> {
        forms::forms_of(name).filter(|form| !self.version.is_before(form.since)).last()
    }

    /// What the name of an operation says it has, and the attributes beyond that.
    fn attrs_of(
        &mut self,
        op: OpRef<'m>,
        name: &str,
        form: Option<&Form>,
    ) -> Result<(Option<AttrId>, Option<u64>), Refused> {
        let wrong = |why: String| Refused(format!("`{}`: {why}", op.name()));
        let mut lowered = lower::from_stablehlo(name, op.attrs()).map_err(wrong)?;
        let mut properties = Vec::new();
        for attr in form.into_iter().flat_map(Form::attrs) {
            let value =
                lowered.remove(attr).ok_or_else(|| wrong(format!("the attribute `{attr}` is missing")))?;
            let id = match (name, attr) {
                ("custom_call", "api_version") => self.api_version(&value)?,
                _ => self.attr(&value)?,
            };
            properties.push(Piece::Attr(id));
        }
        // What a newer form has and this one has not goes without saying, or the version would be newer.
        for newer in forms::forms_of(name).last().into_iter().flat_map(Form::attrs) {
            lowered.remove(newer);
        }
        let properties = if properties.is_empty() { None } else { Some(self.pool.properties(properties)) };
        let mut values = Vec::new();
        for (name, value) in lowered.entries() {
            values.push((name.as_ref(), self.attr(value)?));
        }
        Ok((self.dictionary(&values), properties))
    }

    /// The calling convention of a custom call, a number in StableHLO.
    fn api_version(&mut self, value: &Attribute) -> Result<AttrId, Refused> {
        let number = value.as_i64().and_then(|value| u64::try_from(value).ok());
        let number = number.ok_or_else(|| Refused(format!("the calling convention {value}")))?;
        Ok(self.pool.attr("vhlo", vec![Piece::Number(number::API_VERSION), Piece::Number(number)]))
    }

    /// The name and visibility of a module, and its other attributes, which stay those of other dialects.
    fn module_attrs(&mut self, op: OpRef<'m>) -> (Option<AttrId>, u64) {
        let mut others = Dict::clone(op.attrs());
        let mut properties = Vec::new();
        for name in ["sym_name", "sym_visibility"] {
            let value = others.remove(name).and_then(|value| value.as_str().map(str::to_owned));
            properties.push(Piece::Optional(value.map(|text| self.builtin_string(&text))));
        }
        let values: Vec<(&str, AttrId)> = others
            .entries()
            .iter()
            .map(|(name, value)| (name.as_ref(), self.pool.attr_text("builtin", &value.to_string())))
            .collect();
        (self.dictionary(&values), self.pool.properties(properties))
    }

    fn builtin_string(&mut self, text: &str) -> AttrId {
        let text = self.pool.text(text);
        self.pool.attr("builtin", vec![Piece::Number(2), text])
    }

    /// A dictionary of the builtin dialect, unless it is empty.
    fn dictionary(&mut self, values: &[(&str, AttrId)]) -> Option<AttrId> {
        if values.is_empty() {
            return None;
        }
        let mut pieces = vec![Piece::Number(1), Piece::Number(values.len() as u64)];
        for (name, value) in values {
            pieces.push(Piece::Attr(self.builtin_string(name)));
            pieces.push(Piece::Attr(*value));
        }
        Some(self.pool.attr("builtin", pieces))
    }

    fn regions(&mut self, op: OpRef<'m>, values: u64, out: &mut Vec<Piece>) -> Result<(), Refused> {
        // In VHLO only the module keeps its regions to itself: a function does not.
        let isolated = op.is(OpKind::Module);
        let values = if isolated { 0 } else { values };
        let count = op.regions().len() as u64;
        out.push(Piece::Number(count << 1 | u64::from(isolated)));
        let mut inner = Vec::new();
        for &region in op.regions() {
            self.region(region, values, &mut inner)?;
        }
        if isolated {
            out.push(Piece::Section(inner));
        } else {
            out.extend(inner);
        }
        Ok(())
    }

    fn region(&mut self, region: RegionId, start: u64, out: &mut Vec<Piece>) -> Result<(), Refused> {
        let blocks = self.module.blocks(region);
        out.push(Piece::Number(blocks.len() as u64));
        if blocks.is_empty() {
            return Ok(());
        }
        let mut next = start;
        for &block in blocks {
            let results = self.module.ops_in(block).flat_map(OpRef::results);
            for value in self.module.arguments(block).iter().copied().chain(results) {
                self.numbers[value.index()] = next;
                next += 1;
            }
        }
        out.push(Piece::Number(next - start));
        for &block in blocks {
            self.block(block, next, out)?;
        }
        Ok(())
    }

    fn block(&mut self, block: BlockId, values: u64, out: &mut Vec<Piece>) -> Result<(), Refused> {
        let arguments = self.module.arguments(block);
        let ops = self.module.block_ops(block).len() as u64;
        out.push(Piece::Number(ops << 1 | u64::from(!arguments.is_empty())));
        if !arguments.is_empty() {
            out.push(Piece::Number(arguments.len() as u64));
            for &argument in arguments {
                let ty = self.ty(self.module.value_type(argument))?;
                out.push(Piece::FlaggedType(ty, false));
            }
            // The order of the uses is not given.
            out.push(Piece::Byte(0));
        }
        for op in self.module.ops_in(block) {
            self.op(op, values, out);
        }
        Ok(())
    }
}
