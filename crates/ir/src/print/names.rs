//! Names of values: numbers and the short names that MLIR gives some of them.

use std::collections::HashSet;

use crate::module::{BlockId, Module, OpRef, RegionId, ValueId};
use crate::table::OpKind;
use crate::types::{Element, ElementType};

/// Names for every value that can be reached, by [`ValueId::index`].
pub(super) struct Names {
    names: Vec<Option<Box<str>>>,
}

/// Counters that a region starts with: those of the region around it, when all of that is named.
#[derive(Clone, Copy, Default)]
struct Counters {
    value: u32,
    argument: u32,
    conflict: u32,
}

impl Names {
    /// Names the values of a module: those of a region before those of the regions inside it.
    pub(super) fn new(module: &Module) -> Self {
        let mut names = Names { names: vec![None; module.value_count()] };
        let mut used = HashSet::new();
        for &region in module.root().regions() {
            names.region(module, region, Counters::default(), &mut used);
        }
        names
    }

    /// The name of a value, with its `%`.
    pub(super) fn get(&self, value: ValueId) -> &str {
        self.names.get(value.index()).and_then(Option::as_deref).unwrap_or("%<<unknown>>")
    }

    fn region(
        &mut self,
        module: &Module,
        region: RegionId,
        mut counters: Counters,
        used: &mut HashSet<Box<str>>,
    ) {
        let mut added = Vec::new();
        for &block in module.blocks(region) {
            self.arguments(module, region, block, &mut counters, used, &mut added);
            for op in module.ops_in(block) {
                self.results(op, &mut counters, used, &mut added);
            }
        }
        for &block in module.blocks(region) {
            for op in module.ops_in(block) {
                for &inner in op.regions() {
                    self.region(module, inner, counters, used);
                }
            }
        }
        // What is named in a region can be named so again beside it.
        for name in added {
            used.remove(&name);
        }
    }

    fn arguments(
        &mut self,
        module: &Module,
        region: RegionId,
        block: BlockId,
        counters: &mut Counters,
        used: &mut HashSet<Box<str>>,
        added: &mut Vec<Box<str>>,
    ) {
        let owner = module.op(module.region_parent(region));
        let count = module.arguments(block).len();
        let inputs = count - scan_carries(owner).unwrap_or(0).min(count);
        for (index, &argument) in module.arguments(block).iter().enumerate() {
            let wanted = match owner.kind() {
                Some(OpKind::While) => "iterArg",
                Some(OpKind::ChloScan) if index < inputs => "input",
                Some(OpKind::ChloScan) => "carry",
                _ => "",
            };
            let name = if wanted.is_empty() {
                let number = counters.argument;
                counters.argument += 1;
                unique(&format!("arg{number}"), counters, used, added)
            } else {
                unique(wanted, counters, used, added)
            };
            self.set(argument, &name);
        }
    }

    fn results(
        &mut self,
        op: OpRef<'_>,
        counters: &mut Counters,
        used: &mut HashSet<Box<str>>,
        added: &mut Vec<Box<str>>,
    ) {
        let mut results = op.results();
        for (wanted, size) in result_groups(op) {
            let Some(first) = results.next() else { continue };
            let name = if wanted.is_empty() {
                let number = counters.value;
                counters.value += 1;
                number.to_string().into_boxed_str()
            } else {
                unique(wanted, counters, used, added)
            };
            self.set(first, &name);
            for (index, value) in (1..size).zip(results.by_ref()) {
                self.set(value, &format!("{name}#{index}"));
            }
            if size > 1 {
                self.set(first, &format!("{name}#0"));
            }
        }
    }

    fn set(&mut self, value: ValueId, name: &str) {
        if let Some(slot) = self.names.get_mut(value.index()) {
            *slot = Some(format!("%{name}").into_boxed_str());
        }
    }
}

/// Results that share a name: what each group is called (nothing for a number) and how many it has.
pub(super) fn result_groups(op: OpRef<'_>) -> Vec<(&'static str, usize)> {
    let count = op.result_count();
    let Some(def) = op.def().filter(|_| count > 0) else {
        return if count == 0 { vec![] } else { vec![("", count)] };
    };
    if op.is(OpKind::Constant) {
        return vec![(constant_name(op), 1)];
    }
    // Results with names of their own have them only when every group is a single value.
    let named = def.results.len() > 1 && def.results.len() == count && !op.is(OpKind::ChloScan);
    if named { def.results.iter().map(|result| (result.name, 1)).collect() } else { vec![("", count)] }
}

fn constant_name(op: OpRef<'_>) -> &'static str {
    let element = op.attr_elements("value").map(|value| value.ty().element());
    match element {
        Some(Element::Plain(ElementType::Bool | ElementType::Int(_))) => "c",
        _ => "cst",
    }
}

fn scan_carries(op: OpRef<'_>) -> Option<usize> {
    op.is(OpKind::ChloScan)
        .then(|| op.operand_group_sizes().and_then(|sizes| sizes.get(1).copied()).unwrap_or(0))
}

fn unique(
    wanted: &str,
    counters: &mut Counters,
    used: &mut HashSet<Box<str>>,
    added: &mut Vec<Box<str>>,
) -> Box<str> {
    let mut name: Box<str> = wanted.into();
    while !used.insert(name.clone()) {
        name = format!("{wanted}_{}", counters.conflict).into_boxed_str();
        counters.conflict += 1;
    }
    added.push(name.clone());
    name
}
