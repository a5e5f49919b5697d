//! Operations, blocks and regions.

use warpforge_diag::Span;
use warpforge_ir::attr::Dict;
use warpforge_ir::table::normalise_all;
use warpforge_ir::{BlockId, Module, OpId, OpKind, RegionId, Type, ValueId};

use super::location::Locations;
use super::tables::Tables;
use super::{builtin, properties};
use crate::bytecode::error::{Error, Read};
use crate::bytecode::vhlo::forms::{self, Form};
use crate::bytecode::vhlo::upgrade;
use crate::bytecode::wire::{Cursor, Section, has, section, since};
use crate::returns;
use crate::text::MAX_DEPTH;

/// What a name of the file stands for.
#[derive(Clone)]
enum Meaning {
    /// An operation of the table.
    Known(OpKind),
    /// An operation of VHLO: its name without dialect and version, and its form where one is listed.
    Vhlo(String, Option<&'static Form>),
    /// An operation that the table does not know.
    Unknown(String),
}

/// What stands between VHLO and other dialects: a value under the name that the other dialect has for its type.
const CAST: &str = "builtin.unrealized_conversion_cast";

/// The values that operations can refer to, by number.
#[derive(Default)]
struct Scope {
    values: Vec<Option<ValueId>>,
    next: usize,
}

/// What surrounds an operation.
#[derive(Clone, Copy)]
struct Place {
    block: BlockId,
    in_function: bool,
    depth: usize,
}

/// Reads the operations of a file.
pub(super) struct Reader<'a> {
    tables: Tables<'a>,
    module: Module,
    meanings: Vec<Option<Meaning>>,
    locations: Option<Locations>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(tables: Tables<'a>, keep_locations: bool) -> Self {
        let meanings = vec![None; tables.file.ops.len()];
        let locations = keep_locations.then(Locations::default);
        Self { tables, module: Module::new(), meanings, locations }
    }

    /// The module of the file.
    pub(super) fn module(mut self) -> Read<Module> {
        let mut cursor = self.tables.file.cursor(self.tables.file.ir.clone());
        let body = self.module.body();
        let (ops, has_arguments) = cursor.flagged()?;
        if has_arguments {
            return Err(cursor.error("the top of a file cannot have arguments"));
        }
        let ops = cursor.checked_count(ops, cursor.pos())?;
        let place = Place { block: body, in_function: false, depth: 0 };
        for _ in 0..ops {
            self.op(&mut cursor, &mut Scope::default(), place)?;
        }
        if !cursor.is_empty() {
            return Err(cursor.error("expected the end of the operations"));
        }
        if let &[only] = self.module.block_ops(body)
            && self.module.op(only).is(OpKind::Module)
        {
            self.module.set_root(only);
        }
        Ok(self.module)
    }

    fn meaning(&mut self, cursor: &mut Cursor<'_>) -> Read<(usize, Meaning)> {
        let at = cursor.pos();
        let index = cursor.varint()?;
        let file = self.tables.file;
        let found = usize::try_from(index).ok().and_then(|index| Some((index, file.ops.get(index)?)));
        let (index, name) =
            found.ok_or_else(|| Error::malformed(at, format!("there is no operation {index}")))?;
        if let Some(Some(known)) = self.meanings.get(index) {
            return Ok((index, known.clone()));
        }
        let dialect = file.dialects.get(name.dialect).map_or("", AsRef::as_ref);
        let full = format!("{dialect}.{}", name.name);
        let meaning = if dialect == "vhlo" {
            let (name, form) = forms::of_file_name(&name.name)
                .ok_or_else(|| Error::malformed(at, format!("unknown operation `{full}`")))?;
            Meaning::Vhlo(name.to_owned(), form)
        } else {
            OpKind::from_name(&full).map_or(Meaning::Unknown(full), Meaning::Known)
        };
        self.meanings[index] = Some(meaning.clone());
        Ok((index, meaning))
    }

    fn op(&mut self, cursor: &mut Cursor<'_>, scope: &mut Scope, place: Place) -> Read<()> {
        let start = cursor.pos();
        self.tables.reset_weight();
        let (name, meaning) = self.meaning(cursor)?;
        let mask = cursor.byte()?;
        let location = match &mut self.locations {
            Some(locations) => locations.next(&mut self.tables, cursor)?,
            None => {
                cursor.varint()?;
                None
            }
        };
        let mut attrs = Dict::new();
        if mask & has::ATTRS != 0 {
            attrs = builtin::attr_dict(&mut self.tables, cursor)?;
        }
        if mask & has::PROPERTIES != 0 {
            let more = self.properties(name, &meaning, cursor)?;
            properties::merge(&mut attrs, more, start)?;
        }
        let mut results = Vec::new();
        if mask & has::RESULTS != 0 {
            results = self.tables.types(cursor)?;
        }
        let mut operands = Vec::new();
        if mask & has::OPERANDS != 0 {
            for _ in 0..cursor.count()? {
                operands.push(scope.get(cursor)?);
            }
        }
        if mask & has::SUCCESSORS != 0 {
            return Err(cursor.error("operations that jump to other blocks are not supported"));
        }
        if mask & has::USE_LIST_ORDERS != 0 {
            skip_use_orders(cursor, results.len())?;
        }
        let span = Span::new(start, cursor.pos());
        if matches!(&meaning, Meaning::Unknown(name) if name == CAST) {
            // Types of all dialects are the same here, so that the values are.
            let types = operands.iter().map(|value| self.module.value_type(*value));
            return if types.eq(&results) && mask & has::REGIONS == 0 {
                scope.define(operands, start)
            } else {
                Err(Error::malformed(start, "a value is taken for one of another type"))
            };
        }
        let op = self.create(&meaning, place, operands, results, attrs, span)?;
        if let Some(location) = location {
            self.module.set_location(op, location);
        }
        self.module.append_op(place.block, op);
        let defined: Vec<ValueId> = self.module.op(op).results().collect();
        // The results are numbered before what is inside, and are not there yet for it.
        let first = scope.reserve(defined.len(), start)?;
        if mask & has::REGIONS != 0 {
            self.regions(op, cursor, scope, place.depth)?;
            returns::settle(&mut self.module, op);
        }
        scope.fill(first, defined);
        Ok(())
    }

    fn properties(&mut self, name: usize, meaning: &Meaning, cursor: &mut Cursor<'_>) -> Read<Dict> {
        let at = cursor.pos();
        let file = self.tables.file;
        if !file.ops.get(name).is_some_and(|name| name.registered) {
            let attrs = self.tables.attr(cursor)?;
            return attrs.as_dict().cloned().ok_or_else(|| Error::malformed(at, "expected a dictionary"));
        }
        let index = cursor.varint()?;
        let range = usize::try_from(index).ok().and_then(|index| file.properties.get(index));
        let range = range.ok_or_else(|| Error::malformed(at, format!("there are no properties {index}")))?;
        let mut cursor = file.cursor(range.clone());
        match meaning {
            Meaning::Vhlo(_, Some(form)) => properties::of_form(&mut self.tables, form, &mut cursor),
            Meaning::Known(kind) => properties::of_table(&mut self.tables, kind.def(), &mut cursor),
            Meaning::Vhlo(_, None) if cursor.is_empty() => Ok(Dict::new()),
            Meaning::Vhlo(name, None) => Err(cursor.error(format!("`vhlo.{name}` has no properties"))),
            Meaning::Unknown(name) => {
                Err(cursor.error(format!("how the properties of `{name}` are encoded is not known here")))
            }
        }
    }

    fn create(
        &mut self,
        meaning: &Meaning,
        place: Place,
        operands: Vec<ValueId>,
        results: Vec<Type>,
        mut attrs: Dict,
        span: Span,
    ) -> Read<OpId> {
        let kind = match meaning {
            Meaning::Known(kind) => *kind,
            Meaning::Unknown(name) => {
                return Ok(self.module.create_unregistered(name.as_str(), operands, results, attrs, span));
            }
            Meaning::Vhlo(name, form) => {
                let version = form.map_or(1, |form| form.version);
                attrs = upgrade::to_stablehlo(name, version, attrs).map_err(|why| {
                    Error::malformed(span.start as usize, format!("`vhlo.{name}_v{version}`: {why}"))
                })?;
                match vhlo_kind(name, place) {
                    Some(kind) => kind,
                    None => {
                        let message = format!("unknown operation `vhlo.{name}_v{version}`");
                        return Err(Error::malformed(span.start as usize, message));
                    }
                }
            }
        };
        normalise_all(kind.def(), &mut attrs);
        Ok(self.module.create_op(kind, operands, results, attrs, span))
    }

    fn regions(&mut self, op: OpId, cursor: &mut Cursor<'_>, scope: &mut Scope, depth: usize) -> Read<()> {
        if depth >= MAX_DEPTH {
            return Err(cursor.error("regions are nested too deeply"));
        }
        let at = cursor.pos();
        let (count, isolated) = cursor.flagged()?;
        let count = cursor.checked_count(count, at)?;
        let regions: Vec<RegionId> = (0..count).map(|_| self.module.add_region(op)).collect();
        if isolated && self.tables.file.format >= since::ISOLATED_SECTIONS {
            let (id, range) = section(cursor)?;
            if id != Section::Ir {
                return Err(Error::malformed(at, "expected the section of a region"));
            }
            let mut inner = self.tables.file.cursor(range);
            self.region_bodies(op, &regions, &mut inner, &mut Scope::default(), depth)?;
            return if inner.is_empty() { Ok(()) } else { Err(inner.error("expected the end of a region")) };
        }
        let mut own = Scope::default();
        let scope = if isolated { &mut own } else { scope };
        self.region_bodies(op, &regions, cursor, scope, depth)
    }

    fn region_bodies(
        &mut self,
        op: OpId,
        regions: &[RegionId],
        cursor: &mut Cursor<'_>,
        scope: &mut Scope,
        depth: usize,
    ) -> Read<()> {
        let in_function = self.module.op(op).is(OpKind::Func);
        for region in regions {
            let blocks = cursor.count()?;
            if blocks == 0 {
                continue;
            }
            // Each value takes a byte for its type.
            let values = cursor.count()?;
            let outer = scope.enter(values);
            for _ in 0..blocks {
                let block = self.module.add_block(*region);
                self.block(cursor, scope, Place { block, in_function, depth: depth + 1 })?;
            }
            scope.leave(outer, values);
        }
        Ok(())
    }

    fn block(&mut self, cursor: &mut Cursor<'_>, scope: &mut Scope, place: Place) -> Read<()> {
        let at = cursor.pos();
        let (ops, has_arguments) = cursor.flagged()?;
        let ops = cursor.checked_count(ops, at)?;
        if has_arguments {
            self.arguments(cursor, scope, place.block)?;
        }
        for _ in 0..ops {
            self.op(cursor, scope, place)?;
        }
        Ok(())
    }

    fn arguments(&mut self, cursor: &mut Cursor<'_>, scope: &mut Scope, block: BlockId) -> Read<()> {
        let start = cursor.pos();
        let count = cursor.count()?;
        let mut arguments = Vec::with_capacity(count);
        for _ in 0..count {
            self.tables.reset_weight();
            let at = cursor.pos();
            let (ty, located) = if self.tables.file.format >= since::OPTIONAL_ARGUMENT_LOCATIONS {
                cursor.flagged()?
            } else {
                (cursor.varint()?, true)
            };
            let ty = self.tables.type_at(ty, at)?;
            if located {
                cursor.varint()?;
            }
            arguments.push(self.module.add_argument(block, ty));
        }
        if self.tables.file.format >= since::USE_LIST_ORDERS && cursor.byte()? != 0 {
            skip_use_orders(cursor, count)?;
        }
        scope.define(arguments, start)
    }
}

/// The operation of the table that an operation of VHLO is.
fn vhlo_kind(name: &str, place: Place) -> Option<OpKind> {
    match name {
        "func" => Some(OpKind::Func),
        "call" => Some(OpKind::Call),
        "return" if place.in_function => Some(OpKind::FuncReturn),
        other => OpKind::from_name(&format!("stablehlo.{other}")),
    }
}

impl Scope {
    /// The value that the next number names.
    fn get(&self, cursor: &mut Cursor<'_>) -> Read<ValueId> {
        let at = cursor.pos();
        let index = cursor.varint()?;
        let value = usize::try_from(index).ok().and_then(|index| self.values.get(index));
        match value {
            Some(Some(value)) => Ok(*value),
            Some(None) => {
                Err(Error::malformed(at, format!("the value {index} is used before it is defined")))
            }
            None => Err(Error::malformed(at, format!("there is no value {index} here"))),
        }
    }

    fn define(&mut self, values: Vec<ValueId>, at: usize) -> Read<()> {
        let first = self.reserve(values.len(), at)?;
        self.fill(first, values);
        Ok(())
    }

    /// Numbers for so many values that are not there yet; the first of them.
    fn reserve(&mut self, count: usize, at: usize) -> Read<usize> {
        let first = self.next;
        let end = first.checked_add(count).filter(|&end| end <= self.values.len());
        self.next = end.ok_or_else(|| Error::malformed(at, "a region defines more values than it says"))?;
        Ok(first)
    }

    fn fill(&mut self, first: usize, values: Vec<ValueId>) {
        for (slot, value) in self.values[first..].iter_mut().zip(values) {
            *slot = Some(value);
        }
    }

    /// Makes room for the values of a region, and returns where those around it go on.
    fn enter(&mut self, values: usize) -> usize {
        let outer = std::mem::replace(&mut self.next, self.values.len());
        self.values.resize(self.values.len() + values, None);
        outer
    }

    fn leave(&mut self, outer: usize, values: usize) {
        self.values.truncate(self.values.len() - values);
        self.next = outer;
    }
}

/// Steps over the order of the uses of values, which nothing here depends on.
fn skip_use_orders(cursor: &mut Cursor<'_>, values: usize) -> Read<()> {
    let lists = if values > 1 { cursor.count()? } else { 1 };
    for _ in 0..lists {
        if values > 1 {
            cursor.varint()?;
        }
        let at = cursor.pos();
        let (count, _) = cursor.flagged()?;
        for _ in 0..cursor.checked_count(count, at)? {
            cursor.varint()?;
        }
    }
    Ok(())
}
