//! Modules: operations, blocks, regions and values in arenas.

mod calls;
pub(crate) mod copy;
mod edit;
mod func;
mod ids;
mod op_ref;

use std::collections::HashMap;
use std::sync::Arc;

pub use func::Func;
pub use ids::{BlockId, OpId, RegionId, ValueId};
pub use op_ref::OpRef;
use warpforge_diag::Span;

use crate::attr::{Attribute, Dict};
use crate::table::{OpKind, Trait};
use crate::types::Type;

/// A module: everything is an operation, the module itself included; see [`Module::root`].
#[derive(Clone, Debug)]
pub struct Module {
    ops: Vec<OpData>,
    values: Vec<ValueData>,
    blocks: Vec<BlockData>,
    regions: Vec<RegionData>,
    /// Names of the operations that the table does not know.
    unregistered: HashMap<OpId, Arc<str>>,
    /// The short forms of some of them, each operand replaced by its `%`.
    assemblies: HashMap<OpId, Arc<str>>,
    /// Locations as they were written, where the reader was asked to keep them.
    locations: HashMap<OpId, Arc<str>>,
    /// Aliases that those locations refer to, in order.
    location_aliases: Vec<(String, String)>,
    root: OpId,
}

#[derive(Clone, Debug)]
struct OpData {
    kind: OpKind,
    span: Span,
    parent: Option<BlockId>,
    operands: Vec<ValueId>,
    first_result: ValueId,
    result_count: u32,
    attrs: Dict,
    regions: Vec<RegionId>,
}

#[derive(Clone, Debug)]
struct ValueData {
    ty: Type,
    def: ValueDef,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueDef {
    /// The result of an operation, by position.
    Result(OpId, u32),
    /// The argument of a block, by position.
    Argument(BlockId, u32),
}

#[derive(Clone, Debug)]
struct BlockData {
    arguments: Vec<ValueId>,
    ops: Vec<OpId>,
    parent: RegionId,
}

#[derive(Clone, Debug)]
struct RegionData {
    blocks: Vec<BlockId>,
    parent: OpId,
}

impl Default for Module {
    fn default() -> Self {
        Self::new()
    }
}

impl Module {
    /// An empty module: a `builtin.module` with one empty block.
    pub fn new() -> Self {
        let mut module = Self {
            ops: Vec::new(),
            values: Vec::new(),
            blocks: Vec::new(),
            regions: Vec::new(),
            unregistered: HashMap::new(),
            assemblies: HashMap::new(),
            locations: HashMap::new(),
            location_aliases: Vec::new(),
            root: OpId::new(0),
        };
        module.root = module.create_op(OpKind::Module, vec![], vec![], Dict::new(), Span::NONE);
        let region = module.add_region(module.root);
        module.add_block(region);
        module
    }

    /// The `builtin.module` operation that holds all others.
    pub fn root(&self) -> OpRef<'_> {
        self.op(self.root)
    }

    /// The block of the module's body.
    pub fn body(&self) -> BlockId {
        self.op(self.root)
            .regions()
            .first()
            .and_then(|&r| self.blocks(r).first().copied())
            .unwrap_or(BlockId::new(0))
    }

    /// The module's name.
    pub fn name(&self) -> Option<&str> {
        self.op(self.root).attr_str("sym_name")
    }

    /// An operation.
    pub fn op(&self, id: OpId) -> OpRef<'_> {
        OpRef::new(self, id)
    }

    /// How many operations were ever created: one more than the largest [`OpId::index`].
    pub fn op_count(&self) -> usize {
        self.ops.len()
    }

    /// How many values were ever created: one more than the largest [`ValueId::index`].
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// The type of a value.
    pub fn value_type(&self, value: ValueId) -> &Type {
        &self.values[value.index()].ty
    }

    /// The value `count` after another: the results of an operation follow each other.
    pub fn nth_after(&self, first: ValueId, count: usize) -> ValueId {
        ValueId::new((first.index() + count).min(self.values.len().saturating_sub(1)))
    }

    /// Where a value comes from.
    pub fn value_def(&self, value: ValueId) -> ValueDef {
        self.values[value.index()].def
    }

    /// The operation that a value is a result of.
    pub fn defining_op(&self, value: ValueId) -> Option<OpRef<'_>> {
        match self.value_def(value) {
            ValueDef::Result(op, _) => Some(self.op(op)),
            ValueDef::Argument(..) => None,
        }
    }

    /// The blocks of a region.
    pub fn blocks(&self, region: RegionId) -> &[BlockId] {
        &self.regions[region.index()].blocks
    }

    /// The operation that a region belongs to.
    pub fn region_parent(&self, region: RegionId) -> OpId {
        self.regions[region.index()].parent
    }

    /// The arguments of a block.
    pub fn arguments(&self, block: BlockId) -> &[ValueId] {
        &self.blocks[block.index()].arguments
    }

    /// The operations of a block, in order.
    pub fn block_ops(&self, block: BlockId) -> &[OpId] {
        &self.blocks[block.index()].ops
    }

    /// The operations of a block, in order.
    pub fn ops_in(&self, block: BlockId) -> impl DoubleEndedIterator<Item = OpRef<'_>> + ExactSizeIterator {
        self.block_ops(block).iter().map(|&id| self.op(id))
    }

    /// The last operation of a block, when it ends the block: a `return`.
    pub fn terminator(&self, block: BlockId) -> Option<OpRef<'_>> {
        self.ops_in(block).next_back().filter(|op| op.kind().is_some_and(|kind| kind.def().is_terminator()))
    }

    /// The region that a block belongs to.
    pub fn block_parent(&self, block: BlockId) -> RegionId {
        self.blocks[block.index()].parent
    }

    /// The functions of the module, in order.
    pub fn functions(&self) -> impl Iterator<Item = Func<'_>> {
        self.ops_in(self.body()).filter_map(Func::new)
    }

    /// The function of a name.
    pub fn function(&self, name: &str) -> Option<Func<'_>> {
        self.functions().find(|func| func.name() == name)
    }

    /// The short form of an operation that the table does not know, its operands replaced by `%`, where it was kept.
    pub fn assembly(&self, op: OpId) -> Option<&str> {
        self.assemblies.get(&op).map(AsRef::as_ref)
    }

    /// The location of an operation as it was written, where it was kept.
    pub fn location(&self, op: OpId) -> Option<&str> {
        self.locations.get(&op).map(AsRef::as_ref)
    }

    /// The aliases that kept locations refer to: names and texts, in order.
    pub fn location_aliases(&self) -> &[(String, String)] {
        &self.location_aliases
    }

    /// Whether an operation anywhere in the module has a property.
    pub fn has(&self, property: Trait) -> bool {
        let mut pending = vec![self.body()];
        while let Some(block) = pending.pop() {
            for op in self.ops_in(block) {
                if op.def().is_some_and(|def| def.is(property)) {
                    return true;
                }
                pending.extend(op.regions().iter().flat_map(|&region| self.blocks(region)));
            }
        }
        false
    }

    /// The attributes of the module itself, its name left out.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &Attribute)> {
        let entries = self.op(self.root).attrs().entries();
        entries.iter().map(|(name, value)| (name.as_ref(), value)).filter(|(name, _)| *name != "sym_name")
    }
}
