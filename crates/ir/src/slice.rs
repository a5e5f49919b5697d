//! A part of a function as a module of its own: what is needed to compute some of its values from others.

use std::collections::{BTreeSet, HashMap, HashSet};

use warpforge_diag::Span;

use crate::attr::{Attribute, Dict};
use crate::module::copy::{copy_op, symbols};
use crate::module::{BlockId, Func, Module, OpId, OpRef, ValueDef, ValueId};
use crate::table::OpKind;
use crate::types::{FunctionType, Type};

/// A function cut out of a larger one.
#[derive(Clone, Debug)]
pub struct Slice {
    /// A module whose function of the same name computes the values asked for.
    pub module: Module,
    /// The values of the original that the function takes, in the order of its arguments.
    pub inputs: Vec<ValueId>,
    /// The operations of the original that it has, in order.
    pub ops: Vec<OpId>,
}

/// Cuts out of `func` what computes `wanted` from the function's arguments and from what is `known`. A wanted value is
/// computed even where it is known.
///
/// `None` when a wanted value is no result of an operation in the body of the function.
#[must_use]
pub fn slice(func: Func<'_>, wanted: &[ValueId], known: &dyn Fn(ValueId) -> bool) -> Option<Slice> {
    let module = func.op().module();
    let body = func.body()?;
    let (mut inputs, mut needed) = (BTreeSet::new(), HashSet::new());
    let mut pending = Vec::new();
    for &value in wanted {
        let op = module.defining_op(value).filter(|op| op.parent_block() == Some(body))?;
        pending.push(op);
    }
    while let Some(op) = pending.pop() {
        if !needed.insert(op.id()) {
            continue;
        }
        for value in uses(op) {
            match module.value_def(value) {
                ValueDef::Result(op, _) if !known(value) => pending.push(module.op(op)),
                _ => {
                    inputs.insert(value);
                }
            }
        }
    }
    let inputs: Vec<ValueId> = inputs.into_iter().collect();
    let ops: Vec<OpId> = module.block_ops(body).iter().copied().filter(|op| needed.contains(op)).collect();
    let copied = Copier::new(module).function(func, &inputs, &ops, wanted)?;
    Some(Slice { module: copied, inputs, ops })
}

/// Cuts operations out of `func` that are run for what they do: the function takes what they use and gives nothing.
///
/// `None` when one of them is not in the body of the function.
#[must_use]
pub fn part(func: Func<'_>, ops: &[OpId]) -> Option<Slice> {
    let module = func.op().module();
    let body = func.body()?;
    if ops.iter().any(|&op| module.op(op).parent_block() != Some(body)) {
        return None;
    }
    let own: HashSet<ValueId> = ops.iter().flat_map(|&op| module.op(op).results()).collect();
    let used: BTreeSet<ValueId> = ops.iter().flat_map(|&op| uses(module.op(op))).collect();
    let inputs: Vec<ValueId> = used.into_iter().filter(|value| !own.contains(value)).collect();
    let copied = Copier::new(module).function(func, &inputs, ops, &[])?;
    Some(Slice { module: copied, inputs, ops: ops.to_vec() })
}

/// A region of an operation as the function: it takes the arguments of the region's block, then what the region captures, and gives what
/// the block ends with.
///
/// `None` when the region does not have one block that ends in a terminator.
#[must_use]
pub fn region(func: Func<'_>, op: OpRef<'_>, at: usize) -> Option<Slice> {
    let module = op.module();
    let &[block] = module.blocks(*op.regions().get(at)?) else { return None };
    let end = module.terminator(block)?;
    let ops: Vec<OpId> = module.block_ops(block).iter().copied().filter(|&op| op != end.id()).collect();
    let captured: BTreeSet<ValueId> = captures(module, vec![block], Vec::new()).into_iter().collect();
    let inputs: Vec<ValueId> = module.arguments(block).iter().copied().chain(captured).collect();
    let copied = Copier::new(module).function(func, &inputs, &ops, end.operands())?;
    Some(Slice { module: copied, inputs, ops })
}

/// The values from outside an operation that it uses: its operands, and what its regions capture; some more than once.
#[must_use]
pub fn uses(op: OpRef<'_>) -> Vec<ValueId> {
    let module = op.module();
    let blocks = op.regions().iter().flat_map(|&region| module.blocks(region)).copied().collect();
    captures(module, blocks, op.operands().to_vec())
}

/// What blocks use from outside of them, and what is used besides.
fn captures(module: &Module, mut pending: Vec<BlockId>, mut used: Vec<ValueId>) -> Vec<ValueId> {
    let mut own = HashSet::new();
    while let Some(block) = pending.pop() {
        own.extend(module.arguments(block));
        for inner in module.ops_in(block) {
            own.extend(inner.results());
            used.extend(inner.operands());
            pending.extend(inner.regions().iter().flat_map(|&region| module.blocks(region)));
        }
    }
    used.retain(|value| !own.contains(value));
    used
}

/// Copies operations into a new module.
struct Copier<'m> {
    from: &'m Module,
    to: Module,
    values: HashMap<ValueId, ValueId>,
}

impl<'m> Copier<'m> {
    fn new(from: &'m Module) -> Self {
        Self { from, to: Module::new(), values: HashMap::new() }
    }

    fn function(
        mut self,
        func: Func<'m>,
        inputs: &[ValueId],
        ops: &[OpId],
        results: &[ValueId],
    ) -> Option<Module> {
        for (name, text) in self.from.location_aliases() {
            self.to.add_location_alias(name, text);
        }
        let types = |values: &[ValueId]| -> Vec<Type> {
            values.iter().map(|&value| self.from.value_type(value).clone()).collect()
        };
        let signature = FunctionType { inputs: types(inputs), results: types(results) };
        let attrs: Dict = [
            ("sym_name", Attribute::Str(func.name().into())),
            ("function_type", Attribute::Type(Type::Function(signature.into()))),
        ]
        .into_iter()
        .collect();
        let op = self.to.create_op(OpKind::Func, vec![], vec![], attrs, func.op().span());
        self.to.append_op(self.to.body(), op);
        let region = self.to.add_region(op);
        let block = self.to.add_block(region);
        for &input in inputs {
            let argument = self.to.add_argument(block, self.from.value_type(input).clone());
            self.values.insert(input, argument);
        }
        for &op in ops {
            self.op(self.from.op(op), block);
        }
        let results: Option<Vec<ValueId>> =
            results.iter().map(|value| self.values.get(value).copied()).collect();
        let end = self.to.create_op(OpKind::FuncReturn, results?, vec![], Dict::new(), Span::NONE);
        self.to.append_op(block, end);
        self.called_functions(func.name());
        Some(self.to)
    }

    /// The functions that what was copied refers to, and those that they refer to.
    fn called_functions(&mut self, entry: &'m str) {
        let body = self.to.body();
        let mut copied = HashSet::from([entry]);
        let mut looked_at = 0;
        while looked_at < self.to.op_count() {
            let mut named = Vec::new();
            for (_, value) in self.to.op(OpId::new(looked_at)).attrs().entries() {
                symbols(value, &mut named);
            }
            looked_at += 1;
            for func in named.iter().filter_map(|name| self.from.function(name)) {
                if copied.insert(func.name()) {
                    self.op(func.op(), body);
                }
            }
        }
    }

    fn op(&mut self, op: OpRef<'m>, block: BlockId) {
        copy_op(op, &mut self.to, block, &mut self.values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::print;
    use crate::{ElementType, TensorType};

    fn ty() -> Type {
        TensorType::fixed(&[2], ElementType::F32).into()
    }

    fn add(
        module: &mut Module,
        block: BlockId,
        kind: OpKind,
        operands: Vec<ValueId>,
        attrs: Dict,
    ) -> ValueId {
        let op = module.create_op(kind, operands, vec![ty()], attrs, Span::NONE);
        module.append_op(block, op);
        module.op(op).result(0).unwrap()
    }

    /// A function of one argument, and the block of its body.
    fn function(module: &mut Module, name: &str) -> (BlockId, ValueId) {
        let types = FunctionType { inputs: vec![ty()], results: vec![ty()] };
        let attrs = [
            ("sym_name", Attribute::string(name)),
            ("function_type", Attribute::Type(Type::Function(types.into()))),
        ];
        let func = module.create_op(OpKind::Func, vec![], vec![], attrs.into_iter().collect(), Span::NONE);
        module.append_op(module.body(), func);
        let region = module.add_region(func);
        let block = module.add_block(region);
        let argument = module.add_argument(block, ty());
        (block, argument)
    }

    /// `main` takes `a` and computes `abs`, `negate`, a call of `helper`, and `add` of the last two.
    fn program() -> (Module, [ValueId; 5]) {
        let mut module = Module::new();
        for name in ["helper", "other"] {
            let (block, argument) = function(&mut module, name);
            let value = add(&mut module, block, OpKind::Sqrt, vec![argument], Dict::new());
            let end = module.create_op(OpKind::FuncReturn, vec![value], vec![], Dict::new(), Span::NONE);
            module.append_op(block, end);
        }
        let (block, a) = function(&mut module, "main");
        let abs = add(&mut module, block, OpKind::Abs, vec![a], Dict::new());
        let negate = add(&mut module, block, OpKind::Negate, vec![abs], Dict::new());
        let callee = [("callee", Attribute::symbol("helper"))].into_iter().collect();
        let call = add(&mut module, block, OpKind::Call, vec![abs], callee);
        let sum = add(&mut module, block, OpKind::Add, vec![negate, call], Dict::new());
        (module, [a, abs, negate, call, sum])
    }

    #[test]
    fn what_is_known_becomes_an_argument_and_the_rest_is_copied() {
        let (module, [_, abs, negate, _, sum]) = program();
        let main = module.function("main").unwrap();
        let cut = slice(main, &[sum], &|value| value == negate || value == abs).unwrap();
        assert_eq!(cut.inputs, [abs, negate]);
        assert_eq!(cut.ops.len(), 2);
        let text = print(&cut.module);
        assert!(text.contains("@main(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>)"), "{text}");
        assert!(text.contains("@helper") && !text.contains("@other"), "{text}");
        assert!(text.contains("stablehlo.add %arg1, %0") && !text.contains("abs"), "{text}");
    }

    #[test]
    fn a_region_takes_its_arguments_and_what_it_captures() {
        let (mut module, [a, abs, ..]) = program();
        let body = module.function("main").unwrap().body().unwrap();
        let op = module.create_op(OpKind::While, vec![a], vec![ty()], Dict::new(), Span::NONE);
        module.append_op(body, op);
        let block = {
            let region = module.add_region(op);
            module.add_block(region)
        };
        let carried = module.add_argument(block, ty());
        let sum = add(&mut module, block, OpKind::Add, vec![carried, abs], Dict::new());
        let end = module.create_op(OpKind::Return, vec![sum, abs], vec![], Dict::new(), Span::NONE);
        module.append_op(block, end);
        let main = module.function("main").unwrap();
        let cut = region(main, module.op(op), 0).unwrap();
        assert_eq!((cut.inputs.as_slice(), cut.ops.len()), ([carried, abs].as_slice(), 1));
        let text = print(&cut.module);
        assert!(text.contains("stablehlo.add %arg0, %arg1") && text.contains("return %0, %arg1"), "{text}");
        assert!(region(main, module.op(op), 1).is_none());
    }

    #[test]
    fn what_nobody_knows_is_computed_from_the_arguments() {
        let (module, [a, _, negate, ..]) = program();
        let main = module.function("main").unwrap();
        let cut = slice(main, &[negate], &|value| value == negate).unwrap();
        assert_eq!((cut.inputs.as_slice(), cut.ops.len()), ([a].as_slice(), 2));
        assert!(!print(&cut.module).contains("@helper"));
        assert!(slice(main, &[a], &|_| false).is_none(), "an argument is not computed");
    }
}
