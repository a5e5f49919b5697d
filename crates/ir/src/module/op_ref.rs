//! Reading one operation.

use warpforge_diag::Span;

use super::{BlockId, Func, Module, OpData, OpId, RegionId, ValueId};
use crate::attr::{
    Attribute, ConvDims, DenseElements, Dict, DotAlgorithm, DotDims, EnumValue, GatherDims, ScatterDims,
};
use crate::table::{OpDef, OpKind};
use crate::types::{TensorType, Type};

/// An operation of a module. Cheap to copy.
#[derive(Clone, Copy)]
pub struct OpRef<'m> {
    module: &'m Module,
    id: OpId,
}

impl<'m> OpRef<'m> {
    /// The functions that the operation calls: one for a call or a composite, all programs and feeds of a parallel run.
    pub fn callees(self) -> Vec<&'m str> {
        let symbols = |name: &str| self.attr(name).and_then(Attribute::as_array).unwrap_or_default();
        match self.kind() {
            Some(OpKind::Call) => self.attr_symbol("callee").into_iter().collect(),
            Some(OpKind::Composite) => self.attr_symbol("decomposition").into_iter().collect(),
            Some(OpKind::InterpreterRunParallel) => {
                let programs = symbols("programs").iter().filter_map(Attribute::as_array).flatten();
                programs.chain(symbols("infeed")).filter_map(Attribute::as_symbol).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The function whose body a call or a composite stands for.
    pub fn callee(self) -> Option<Func<'m>> {
        let name = match self.kind()? {
            OpKind::Call => self.attr_symbol("callee"),
            OpKind::Composite => self.attr_symbol("decomposition"),
            _ => None,
        };
        self.module.function(name?)
    }

    pub(super) fn new(module: &'m Module, id: OpId) -> Self {
        Self { module, id }
    }

    fn data(self) -> &'m OpData {
        self.module.op_data(self.id)
    }

    /// The key.
    pub fn id(self) -> OpId {
        self.id
    }

    /// The module that it is in.
    pub fn module(self) -> &'m Module {
        self.module
    }

    /// What it is, when the table knows it.
    pub fn kind(self) -> Option<OpKind> {
        Some(self.data().kind).filter(|kind| *kind != OpKind::Unregistered)
    }

    /// Its entry in the table, when the table knows it.
    pub fn def(self) -> Option<&'static OpDef> {
        self.kind().map(OpKind::def)
    }

    /// Whether it is of this kind.
    pub fn is(self, kind: OpKind) -> bool {
        self.data().kind == kind
    }

    /// The full name: `stablehlo.add`.
    pub fn name(self) -> &'m str {
        match self.data().kind {
            OpKind::Unregistered => self.module.unregistered.get(&self.id).map_or("", AsRef::as_ref),
            kind => kind.name(),
        }
    }

    /// Where it is in its source.
    pub fn span(self) -> Span {
        self.data().span
    }

    /// The block that it is in.
    pub fn parent_block(self) -> Option<BlockId> {
        self.data().parent
    }

    /// The operation whose region it is in.
    pub fn parent_op(self) -> Option<OpRef<'m>> {
        let region = self.module.block_parent(self.parent_block()?);
        Some(self.module.op(self.module.region_parent(region)))
    }

    /// The operands.
    pub fn operands(self) -> &'m [ValueId] {
        &self.data().operands
    }

    /// One operand.
    pub fn operand(self, index: usize) -> Option<ValueId> {
        self.operands().get(index).copied()
    }

    /// The type of one operand.
    pub fn operand_type(self, index: usize) -> Option<&'m Type> {
        self.operand(index).map(|value| self.module.value_type(value))
    }

    /// The types of the operands.
    pub fn operand_types(self) -> impl ExactSizeIterator<Item = &'m Type> + Clone {
        self.operands().iter().map(move |&value| self.module.value_type(value))
    }

    /// The type of one operand when it is a ranked tensor.
    pub fn operand_tensor(self, index: usize) -> Option<&'m TensorType> {
        self.operand_type(index).and_then(Type::as_tensor)
    }

    /// How many operands each group of the table entry has; `None` when the operands do not fit the entry.
    pub fn operand_group_sizes(self) -> Option<Vec<usize>> {
        let sizes = self.attrs().segment_sizes("operandSegmentSizes");
        self.def()?.operand_groups(self.operands().len(), sizes.as_deref())
    }

    /// How many results each group of the table entry has; `None` when the results do not fit the entry.
    pub fn result_group_sizes(self) -> Option<Vec<usize>> {
        let sizes = self.attrs().segment_sizes("resultSegmentSizes");
        self.def()?.result_groups(self.result_count(), sizes.as_deref())
    }

    /// The operands of a group, by its name in the table entry.
    pub fn operand_group(self, name: &str) -> Option<&'m [ValueId]> {
        let at = self.def()?.operands.iter().position(|spec| spec.name == name)?;
        let sizes = self.operand_group_sizes()?;
        let start: usize = sizes.iter().take(at).sum();
        self.operands().get(start..start + sizes.get(at)?)
    }

    /// How many results there are.
    pub fn result_count(self) -> usize {
        self.data().result_count as usize
    }

    /// The results; their keys follow each other.
    pub fn results(self) -> impl ExactSizeIterator<Item = ValueId> + DoubleEndedIterator + Clone + use<> {
        let first = self.data().first_result.index();
        (first..first + self.result_count()).map(ValueId::new)
    }

    /// One result.
    pub fn result(self, index: usize) -> Option<ValueId> {
        self.results().nth(index)
    }

    /// The type of one result.
    pub fn result_type(self, index: usize) -> Option<&'m Type> {
        self.result(index).map(|value| self.module.value_type(value))
    }

    /// The types of the results.
    pub fn result_types(self) -> impl ExactSizeIterator<Item = &'m Type> + Clone {
        self.results().map(move |value| self.module.value_type(value))
    }

    /// The type of one result when it is a ranked tensor.
    pub fn result_tensor(self, index: usize) -> Option<&'m TensorType> {
        self.result_type(index).and_then(Type::as_tensor)
    }

    /// The regions.
    pub fn regions(self) -> &'m [RegionId] {
        &self.data().regions
    }

    /// The first block of a region: all that a region of StableHLO has.
    pub fn region_block(self, index: usize) -> Option<BlockId> {
        self.module.blocks(*self.regions().get(index)?).first().copied()
    }

    /// All attributes.
    pub fn attrs(self) -> &'m Dict {
        &self.data().attrs
    }

    /// An attribute, or its default from the table when the operation leaves it out.
    pub fn attr(self, name: &str) -> Option<&'m Attribute> {
        self.attrs().get(name).or_else(|| self.def()?.attr(name)?.default_value())
    }

    /// An attribute that is an integer.
    pub fn attr_i64(self, name: &str) -> Option<i64> {
        self.attr(name)?.as_i64()
    }

    /// An attribute that is a truth value; a unit counts as true.
    pub fn attr_bool(self, name: &str) -> Option<bool> {
        match self.attr(name)? {
            Attribute::Unit => Some(true),
            value => value.as_bool(),
        }
    }

    /// An attribute that is a string.
    pub fn attr_str(self, name: &str) -> Option<&'m str> {
        self.attr(name)?.as_str()
    }

    /// An attribute that refers to a symbol.
    pub fn attr_symbol(self, name: &str) -> Option<&'m str> {
        self.attr(name)?.as_symbol()
    }

    /// An attribute that is a list of integers.
    pub fn attr_i64s(self, name: &str) -> Option<&'m [i64]> {
        self.attr(name)?.as_i64s()
    }

    /// An attribute that is a list of truth values.
    pub fn attr_bools(self, name: &str) -> Option<&'m [bool]> {
        self.attr(name)?.as_bools()
    }

    /// An attribute that is a constant.
    pub fn attr_elements(self, name: &str) -> Option<&'m DenseElements> {
        self.attr(name)?.as_elements()
    }

    /// An attribute that is a matrix of integers, such as a padding: its rows, all of one length.
    pub fn attr_rows(self, name: &str) -> Option<Vec<Vec<i64>>> {
        let elements = self.attr_elements(name)?;
        let shape = elements.ty().shape_usize()?;
        let &[rows, columns] = shape.as_slice() else { return None };
        let flat = elements.to_i64s()?;
        if columns == 0 {
            return Some(vec![Vec::new(); rows.min(1 << 20)]);
        }
        Some(flat.chunks(columns).map(<[i64]>::to_vec).collect())
    }

    /// An attribute that is a value of an enumeration.
    pub fn attr_enum<E: TryFrom<EnumValue>>(self, name: &str) -> Option<E> {
        self.attr(name)?.as_enum()
    }

    /// The dimension numbers of a dot.
    pub fn dot_dims(self) -> Option<&'m DotDims> {
        match self.attr("dot_dimension_numbers")? {
            Attribute::Dot(dims) => Some(dims),
            _ => None,
        }
    }

    /// The algorithm that a `dot_general` asks for.
    pub fn dot_algorithm(self) -> Option<&'m DotAlgorithm> {
        match self.attr("algorithm")? {
            Attribute::DotAlgorithm(asked) => Some(asked),
            _ => None,
        }
    }

    /// The dimension numbers of a convolution.
    pub fn conv_dims(self) -> Option<&'m ConvDims> {
        match self.attr("dimension_numbers")? {
            Attribute::Conv(dims) => Some(dims),
            _ => None,
        }
    }

    /// The dimension numbers of a gather.
    pub fn gather_dims(self) -> Option<&'m GatherDims> {
        match self.attr("dimension_numbers")? {
            Attribute::Gather(dims) => Some(dims),
            _ => None,
        }
    }

    /// The dimension numbers of a scatter.
    pub fn scatter_dims(self) -> Option<&'m ScatterDims> {
        match self.attr("scatter_dimension_numbers")? {
            Attribute::Scatter(dims) => Some(dims),
            _ => None,
        }
    }
}

impl std::fmt::Debug for OpRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {}", self.id, self.name())
    }
}
