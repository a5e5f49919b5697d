//! Building and changing modules.

use std::collections::BTreeMap;
use std::sync::Arc;

use warpforge_diag::Span;

use super::{BlockData, BlockId, Module, OpData, OpId, RegionData, RegionId, ValueData, ValueDef, ValueId};
use crate::attr::{AttrName, Attribute, Dict};
use crate::table::OpKind;
use crate::types::Type;

impl Module {
    /// Creates an operation that is in no block yet.
    pub fn create_op(
        &mut self,
        kind: OpKind,
        operands: Vec<ValueId>,
        result_types: Vec<Type>,
        attrs: Dict,
        span: Span,
    ) -> OpId {
        let id = OpId::new(self.ops.len());
        let first_result = ValueId::new(self.values.len());
        let result_count = result_types.len() as u32;
        for (index, ty) in result_types.into_iter().enumerate() {
            self.values.push(ValueData { ty, def: ValueDef::Result(id, index as u32) });
        }
        let regions = Vec::new();
        self.ops.push(OpData {
            kind,
            span,
            parent: None,
            operands,
            first_result,
            result_count,
            attrs,
            regions,
        });
        id
    }

    /// Creates an operation that the table does not know.
    pub fn create_unregistered(
        &mut self,
        name: impl Into<Arc<str>>,
        operands: Vec<ValueId>,
        result_types: Vec<Type>,
        attrs: Dict,
        span: Span,
    ) -> OpId {
        let id = self.create_op(OpKind::Unregistered, operands, result_types, attrs, span);
        self.unregistered.insert(id, name.into());
        id
    }

    /// Makes a `builtin.module` operation the root, in place of the one around it.
    pub fn set_root(&mut self, op: OpId) {
        self.ops[op.index()].parent = None;
        self.root = op;
    }

    /// Appends an operation to a block.
    pub fn append_op(&mut self, block: BlockId, op: OpId) {
        self.ops[op.index()].parent = Some(block);
        self.blocks[block.index()].ops.push(op);
    }

    /// Inserts an operation into a block before the operation at a position; a position beyond the end appends.
    pub fn insert_op(&mut self, block: BlockId, position: usize, op: OpId) {
        self.ops[op.index()].parent = Some(block);
        let ops = &mut self.blocks[block.index()].ops;
        ops.insert(position.min(ops.len()), op);
    }

    /// Takes operations out of a block. They stay in the arena, unreachable.
    pub fn retain_ops(&mut self, block: BlockId, keep: impl FnMut(&OpId) -> bool) {
        self.blocks[block.index()].ops.retain(keep);
    }

    /// Adds an empty region to an operation.
    pub fn add_region(&mut self, op: OpId) -> RegionId {
        let id = RegionId::new(self.regions.len());
        self.regions.push(RegionData { blocks: Vec::new(), parent: op });
        self.ops[op.index()].regions.push(id);
        id
    }

    /// Creates a region that belongs to no operation yet: [`Module::set_regions`] gives it to one.
    pub fn create_region(&mut self) -> RegionId {
        let id = RegionId::new(self.regions.len());
        self.regions.push(RegionData { blocks: Vec::new(), parent: self.root });
        id
    }

    /// Moves regions to another operation, in order, replacing those it has.
    pub fn set_regions(&mut self, op: OpId, regions: Vec<RegionId>) {
        for region in &regions {
            self.regions[region.index()].parent = op;
        }
        self.ops[op.index()].regions = regions;
    }

    /// Adds an empty block to a region.
    pub fn add_block(&mut self, region: RegionId) -> BlockId {
        let id = BlockId::new(self.blocks.len());
        self.blocks.push(BlockData { arguments: Vec::new(), ops: Vec::new(), parent: region });
        self.regions[region.index()].blocks.push(id);
        id
    }

    /// Adds an argument to a block.
    pub fn add_argument(&mut self, block: BlockId, ty: Type) -> ValueId {
        let id = ValueId::new(self.values.len());
        let index = self.blocks[block.index()].arguments.len() as u32;
        self.values.push(ValueData { ty, def: ValueDef::Argument(block, index) });
        self.blocks[block.index()].arguments.push(id);
        id
    }

    /// Sets an attribute of an operation.
    pub fn set_attr(&mut self, op: OpId, name: impl Into<AttrName>, value: Attribute) {
        self.ops[op.index()].attrs.set(name, value);
    }

    /// Removes an attribute of an operation and returns it.
    pub fn remove_attr(&mut self, op: OpId, name: &str) -> Option<Attribute> {
        self.ops[op.index()].attrs.remove(name)
    }

    /// Replaces all attributes of an operation.
    pub fn set_attrs(&mut self, op: OpId, attrs: Dict) {
        self.ops[op.index()].attrs = attrs;
    }

    /// Makes an operation another one with the same parts.
    pub fn set_kind(&mut self, op: OpId, kind: OpKind) {
        self.ops[op.index()].kind = kind;
    }

    /// Sets where an operation is in its source.
    pub fn set_span(&mut self, op: OpId, span: Span) {
        self.ops[op.index()].span = span;
    }

    /// Keeps an alias that locations refer to.
    pub fn add_location_alias(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.location_aliases.push((name.into(), text.into()));
    }

    /// Keeps the short form of an operation that the table does not know: the text after its name, in which each `%`
    /// outside quotes stands for the next operand.
    pub fn set_assembly(&mut self, op: OpId, text: impl Into<Arc<str>>) {
        self.assemblies.insert(op, text.into());
    }

    /// Keeps the location of an operation as it was written.
    pub fn set_location(&mut self, op: OpId, text: impl Into<Arc<str>>) {
        self.locations.insert(op, text.into());
    }

    /// Replaces the operands of an operation.
    pub fn set_operands(&mut self, op: OpId, operands: Vec<ValueId>) {
        self.ops[op.index()].operands = operands;
    }

    /// Replaces one operand of an operation.
    pub fn set_operand(&mut self, op: OpId, index: usize, value: ValueId) {
        if let Some(slot) = self.ops[op.index()].operands.get_mut(index) {
            *slot = value;
        }
    }

    /// Replaces every use of `from` by `to`, in the whole module.
    pub fn replace_uses(&mut self, from: ValueId, to: ValueId) {
        for op in &mut self.ops {
            for operand in &mut op.operands {
                if *operand == from {
                    *operand = to;
                }
            }
        }
    }

    /// Replaces every use of the values that are keys, in the whole module.
    pub fn replace_all_uses(&mut self, replacements: &BTreeMap<ValueId, ValueId>) {
        for operand in self.ops.iter_mut().flat_map(|op| &mut op.operands) {
            if let Some(replacement) = replacements.get(operand) {
                *operand = *replacement;
            }
        }
    }

    /// Keeps the arguments of a block at these positions, in this order, and drops the others, which nothing may use.
    pub fn keep_arguments(&mut self, block: BlockId, positions: &[usize]) {
        let old = &self.blocks[block.index()].arguments;
        let kept: Vec<ValueId> =
            positions.iter().filter_map(|&position| old.get(position).copied()).collect();
        for (index, argument) in kept.iter().enumerate() {
            self.values[argument.index()].def = ValueDef::Argument(block, index as u32);
        }
        self.blocks[block.index()].arguments = kept;
    }

    /// Changes the type of a value.
    pub fn set_value_type(&mut self, value: ValueId, ty: Type) {
        self.values[value.index()].ty = ty;
    }

    /// How often each value is used, by [`ValueId::index`].
    pub fn use_counts(&self) -> Vec<u32> {
        let mut counts = vec![0u32; self.values.len()];
        let mut pending = vec![self.root];
        while let Some(id) = pending.pop() {
            let op = self.op(id);
            for operand in op.operands() {
                counts[operand.index()] += 1;
            }
            for region in op.regions() {
                pending.extend(self.blocks(*region).iter().flat_map(|&block| self.block_ops(block)));
            }
        }
        counts
    }

    /// The operation behind an id, to be changed.
    pub(super) fn op_data(&self, id: OpId) -> &OpData {
        &self.ops[id.index()]
    }
}
