//! Functions: the entry, and those it calls, each refined once for each set of types and known arguments.

use std::collections::{HashMap, HashSet};

use super::RefineError;
use super::known::Known;
use crate::attr::{Attribute, Dict};
use crate::module::copy::{copy_op, symbols};
use crate::module::{BlockId, Func, Module, OpId, OpRef, ValueId};
use crate::table::{OpDef, OpKind};
use crate::types::Type;
use crate::verify::compatible;

/// How deep calls may nest: far beyond real programs, and well within the stack.
const MOST_CALLS: usize = 128;

/// A value of the original module in the refined one.
#[derive(Clone, Debug, Default)]
pub(super) struct Value {
    /// Its key there; `None` for a constant that nothing has used yet.
    pub(super) id: Option<ValueId>,
    /// What it is, when that is known.
    pub(super) known: Option<Known>,
    /// The operation that computes it in the original.
    pub(super) from: Option<OpId>,
}

/// A function that has been refined.
#[derive(Clone, Debug)]
pub(super) struct Refined {
    /// Its name in the refined module.
    pub(super) name: String,
    /// The types of its results.
    pub(super) results: Vec<Type>,
    /// Which of its results are known.
    pub(super) known: Vec<Option<Known>>,
}

/// What a function is refined for.
type Key = (String, String, Vec<Option<Known>>);

/// Builds the refined module.
pub(super) struct Refiner<'m> {
    pub(super) from: &'m Module,
    pub(super) to: Module,
    /// Values that are in scope, by nesting regions: the innermost last.
    pub(super) scopes: Vec<HashMap<ValueId, Value>>,
    /// `None` while a function is being refined.
    done: HashMap<Key, Option<Refined>>,
    /// Names that are taken.
    names: HashSet<String>,
    depth: usize,
}

impl<'m> Refiner<'m> {
    pub(super) fn new(from: &'m Module) -> Self {
        Self {
            from,
            to: Module::new(),
            scopes: Vec::new(),
            done: HashMap::new(),
            names: HashSet::new(),
            depth: 0,
        }
    }

    /// The whole module, from its entry.
    pub(super) fn entry(mut self, func: Func<'m>, inputs: &[Type]) -> Result<Module, RefineError> {
        for (name, text) in self.from.location_aliases() {
            self.to.add_location_alias(name, text);
        }
        let root = self.to.root().id();
        self.to.set_attrs(root, self.from.root().attrs().clone());
        self.names.insert(func.name().to_owned());
        let verbatim = self.verbatim_functions(func.name());
        // Whatever else is in the module, such as the meshes of devices, stays.
        let others = self.from.ops_in(self.from.body()).filter(|op| !op.is(OpKind::Func));
        let body = self.to.body();
        for op in others {
            copy_op(op, &mut self.to, body, &mut HashMap::new());
        }
        let known = vec![None; inputs.len()];
        let name = func.name().to_owned();
        self.function(func, name, inputs, &known)?;
        for func in verbatim {
            copy_op(func.op(), &mut self.to, body, &mut HashMap::new());
        }
        Ok(self.to)
    }

    /// The functions that are referred to other than by calls, and those that they refer to: they stay as they are.
    fn verbatim_functions(&mut self, entry: &str) -> Vec<Func<'m>> {
        let mut found = Vec::new();
        let mut pending: Vec<OpRef<'m>> = self.from.functions().map(Func::op).collect();
        let mut inside = HashSet::new();
        while let Some(op) = pending.pop() {
            let mut named = Vec::new();
            let called = |name: &str| match op.kind() {
                Some(OpKind::Call) => name == "callee",
                Some(OpKind::Composite) => name == "decomposition",
                _ => false,
            };
            for (name, value) in op.attrs().entries() {
                if inside.contains(&op.id()) || !called(name) {
                    symbols(value, &mut named);
                }
            }
            for func in named.iter().filter_map(|name| self.from.function(name)) {
                if func.name() != entry && self.names.insert(func.name().to_owned()) {
                    found.push(func);
                    mark(func.op(), &mut inside);
                    pending.push(func.op());
                }
            }
            let blocks = op.regions().iter().flat_map(|&region| self.from.blocks(region));
            pending.extend(blocks.flat_map(|&block| self.from.ops_in(block)));
        }
        found
    }

    /// A function that is called with operands of these types, some of which are known.
    pub(super) fn called(
        &mut self,
        name: &str,
        inputs: &[Type],
        known: &[Option<Known>],
    ) -> Result<Refined, RefineError> {
        let types: Vec<String> = inputs.iter().map(ToString::to_string).collect();
        let key: Key = (name.to_owned(), types.join(" "), known.to_vec());
        match self.done.get(&key) {
            Some(Some(refined)) => return Ok(refined.clone()),
            Some(None) => return Err(RefineError::Recursion(name.to_owned())),
            None => {}
        }
        let func = self.from.function(name).filter(|func| func.body().is_some());
        let func = func.ok_or_else(|| RefineError::NoFunction(name.to_owned()))?;
        if self.depth >= MOST_CALLS {
            return Err(RefineError::TooDeep(MOST_CALLS));
        }
        self.done.insert(key.clone(), None);
        self.depth += 1;
        // A function does not see the values of whoever calls it.
        let outer = std::mem::take(&mut self.scopes);
        let fresh = self.fresh_name(name);
        let refined = self.function(func, fresh, inputs, known);
        self.scopes = outer;
        self.depth -= 1;
        let refined = refined?;
        self.done.insert(key, Some(refined.clone()));
        Ok(refined)
    }

    fn fresh_name(&mut self, name: &str) -> String {
        let numbered = (0..).map(|number| format!("{name}_{number}"));
        let candidates = std::iter::once(name.to_owned()).chain(numbered);
        let original = |candidate: &str| candidate != name && self.from.function(candidate).is_some();
        let free =
            candidates.into_iter().find(|candidate| !self.names.contains(candidate) && !original(candidate));
        let fresh = free.unwrap_or_else(|| name.to_owned());
        self.names.insert(fresh.clone());
        fresh
    }

    fn function(
        &mut self,
        func: Func<'m>,
        name: String,
        inputs: &[Type],
        known: &[Option<Known>],
    ) -> Result<Refined, RefineError> {
        let Some(body) = func.body() else { return Err(RefineError::NoFunction(func.name().to_owned())) };
        let arguments = self.from.arguments(body);
        if arguments.len() != inputs.len() {
            return Err(RefineError::InputCount {
                function: func.name().to_owned(),
                expected: arguments.len(),
                given: inputs.len(),
            });
        }
        let mut attrs = func.op().attrs().clone();
        attrs.set("sym_name", Attribute::string(name.as_str()));
        let op = self.to.create_op(OpKind::Func, vec![], vec![], attrs, func.op().span());
        self.to.append_op(self.to.body(), op);
        let region = self.to.add_region(op);
        let block = self.to.add_block(region);
        let mut scope = HashMap::new();
        let mut types = Vec::new();
        for (index, (&argument, given)) in arguments.iter().zip(inputs).enumerate() {
            let declared = self.from.value_type(argument);
            if !compatible::types(declared, given) {
                return Err(RefineError::Input {
                    index,
                    declared: declared.to_string(),
                    given: given.to_string(),
                });
            }
            let ty = compatible::most_specific(declared, given);
            let id = Some(self.to.add_argument(block, ty.clone()));
            let known = known.get(index).cloned().flatten();
            scope.insert(argument, Value { id, known, from: None });
            types.push(ty);
        }
        self.scopes.push(scope);
        let returned = self.block(body, block);
        self.scopes.pop();
        let (results, known) = returned?;
        let ty = Type::function(types, results.clone());
        self.to.set_attr(op, "function_type", Attribute::Type(ty));
        Ok(Refined { name, results, known })
    }

    /// The operations of a block; the types that it returns, and what is known of them.
    pub(super) fn block(
        &mut self,
        from: BlockId,
        to: BlockId,
    ) -> Result<(Vec<Type>, Vec<Option<Known>>), RefineError> {
        let mut returned = (Vec::new(), Vec::new());
        for op in self.from.ops_in(from) {
            if op.def().is_some_and(OpDef::is_terminator) {
                let known = op.operands().iter().map(|value| self.known(*value).cloned()).collect();
                let operands = self.operands(op, to);
                let types = operands.iter().map(|&value| self.to.value_type(value).clone()).collect();
                self.append(op, to, operands, Vec::new(), op.attrs().clone());
                returned = (types, known);
            } else {
                self.op(op, to)?;
            }
        }
        Ok(returned)
    }

    fn value(&self, value: ValueId) -> Option<&Value> {
        self.scopes.iter().rev().find_map(|scope| scope.get(&value))
    }

    /// What is known of a value of the original module.
    pub(super) fn known(&self, value: ValueId) -> Option<&Known> {
        self.value(value)?.known.as_ref()
    }

    /// Enters a value of the original module into the innermost scope.
    pub(super) fn define(&mut self, value: ValueId, entry: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(value, entry);
        }
    }

    /// A value of the original module as an operand in a block: a constant is made there when it is first used.
    pub(super) fn operand(&mut self, value: ValueId, block: BlockId) -> ValueId {
        let Some(found) = self.value(value).cloned() else { return value };
        if let Some(id) = found.id {
            return id;
        }
        let made = found.known.as_ref().and_then(|known| self.constant(known, found.from, block));
        // Every value is computed or known, so there is always something to refer to.
        let Some(id) = made else { return value };
        self.define(value, Value { id: Some(id), ..found });
        id
    }

    pub(super) fn operands(&mut self, op: OpRef<'m>, block: BlockId) -> Vec<ValueId> {
        op.operands().iter().map(|&value| self.operand(value, block)).collect()
    }

    fn constant(&mut self, known: &Known, from: Option<OpId>, block: BlockId) -> Option<ValueId> {
        let attrs: Dict = [("value", known.constant()?)].into_iter().collect();
        let span = from.map_or(warpforge_diag::Span::NONE, |op| self.from.op(op).span());
        let op = self.to.create_op(OpKind::Constant, vec![], vec![Type::Tensor(known.ty())], attrs, span);
        self.to.append_op(block, op);
        if let Some(location) = from.and_then(|op| self.from.location(op)) {
            self.to.set_location(op, location);
        }
        self.to.op(op).result(0)
    }
}

/// An operation and everything in its regions.
fn mark(op: OpRef<'_>, inside: &mut HashSet<OpId>) {
    let mut pending = vec![op];
    while let Some(op) = pending.pop() {
        inside.insert(op.id());
        let blocks = op.regions().iter().flat_map(|&region| op.module().blocks(region));
        pending.extend(blocks.flat_map(|&block| op.module().ops_in(block)));
    }
}
