//! What an evaluator sees of the operation it evaluates.

use warpforge_ir::{BlockId, Element, OpRef, TensorType};
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use crate::Value;
use crate::error::{ErrorKind, Result, invalid};
use crate::machine::{Body, Machine};

/// One operation with the values of its operands.
pub(crate) struct Cx<'a, 'm, 's> {
    pub(crate) machine: &'a mut Machine<'m, 's>,
    pub(crate) op: OpRef<'m>,
    pub(crate) operands: Vec<Value>,
}

impl<'m> Cx<'_, 'm, '_> {
    /// An operand that is a tensor.
    pub(crate) fn tensor(&self, index: usize) -> Result<&Tensor> {
        self.operands.get(index).ok_or_else(|| invalid(format!("operand {index} is missing")))?.as_tensor()
    }

    /// An operand that is a tensor, to be changed: it is not copied where nobody else has it.
    pub(crate) fn take_tensor(&mut self, index: usize) -> Result<Tensor> {
        let operand =
            self.operands.get_mut(index).ok_or_else(|| invalid(format!("operand {index} is missing")))?;
        match std::mem::replace(operand, Value::Token) {
            Value::Tensor(tensor) => Ok(tensor),
            other => other.as_tensor().cloned(),
        }
    }

    /// The operands of a range, all tensors.
    pub(crate) fn tensors(&self, range: std::ops::Range<usize>) -> Result<Vec<Tensor>> {
        range.map(|index| self.tensor(index).cloned()).collect()
    }

    /// The operands of a group of the table's entry.
    pub(crate) fn group(&self, name: &str) -> Result<Vec<Tensor>> {
        let missing = || invalid(format!("the operands do not fit the groups of `{name}`"));
        let def = self.op.def().ok_or_else(missing)?;
        let at = def.operands.iter().position(|spec| spec.name == name).ok_or_else(missing)?;
        let sizes = self.op.operand_group_sizes().ok_or_else(missing)?;
        let start: usize = sizes.iter().take(at).sum();
        self.tensors(start..start + sizes.get(at).copied().unwrap_or(0))
    }

    /// The elements of an integer operand, for shapes and indices.
    pub(crate) fn operand_i64s(&self, index: usize) -> Result<Vec<i64>> {
        self.tensor(index)?.iter().map(scalar_i64).collect()
    }

    /// The type of an operand.
    pub(crate) fn operand_type(&self, index: usize) -> Result<&'m TensorType> {
        self.op
            .operand_tensor(index)
            .ok_or_else(|| invalid(format!("operand {index} is not a ranked tensor")))
    }

    /// The type of a result.
    pub(crate) fn result_type(&self, index: usize) -> Result<&'m TensorType> {
        self.op.result_tensor(index).ok_or_else(|| invalid(format!("result {index} is not a ranked tensor")))
    }

    /// The element type of a result as it is stored.
    pub(crate) fn result_element(&self, index: usize) -> Result<ElementType> {
        storage(self.result_type(index)?.element())
    }

    /// The shape of a result whose type has no unknown dimension, within the limits.
    pub(crate) fn result_shape(&self, index: usize) -> Result<Shape> {
        let ty = self.result_type(index)?;
        let dims = ty.shape_usize().ok_or_else(|| invalid("the shape of the result is not known"))?;
        self.shape(dims)
    }

    /// A shape within the limits.
    pub(crate) fn shape(&self, dims: Vec<usize>) -> Result<Shape> {
        let shape = Shape::new(dims)?;
        if shape.num_elements() > self.machine.options.limits.tensor_elements {
            return Err(ErrorKind::Limit(format!("a tensor of shape {shape}")).into());
        }
        // Elements take at least a byte.
        self.machine.reserve(shape.num_elements())?;
        Ok(shape)
    }

    /// A shape from sizes that an operand gives.
    pub(crate) fn shape_from(&self, dims: &[i64]) -> Result<Shape> {
        self.shape(to_usizes(dims)?)
    }

    /// An attribute that is an integer.
    pub(crate) fn i64(&self, name: &str) -> Result<i64> {
        self.op.attr_i64(name).ok_or_else(|| missing(name))
    }

    /// An attribute that is a dimension of a tensor of this rank.
    pub(crate) fn axis(&self, name: &str, rank: usize) -> Result<usize> {
        let axis = self.i64(name)?;
        let found = usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).ok();
        found
            .filter(|&axis| axis < rank)
            .ok_or_else(|| invalid(format!("{name} = {axis} is no dimension of rank {rank}")))
    }

    /// An attribute that is a truth value.
    pub(crate) fn bool(&self, name: &str) -> Result<bool> {
        self.op.attr_bool(name).ok_or_else(|| missing(name))
    }

    /// An attribute that is a string.
    pub(crate) fn str(&self, name: &str) -> Result<&'m str> {
        self.op.attr_str(name).ok_or_else(|| missing(name))
    }

    /// An attribute that is a list of integers.
    pub(crate) fn i64s(&self, name: &str) -> Result<&'m [i64]> {
        self.op.attr_i64s(name).ok_or_else(|| missing(name))
    }

    /// An attribute that is a list of sizes or dimensions.
    pub(crate) fn usizes(&self, name: &str) -> Result<Vec<usize>> {
        to_usizes(self.i64s(name)?)
    }

    /// An attribute that is a list of `count` integers, all `default` when it is left out.
    pub(crate) fn i64s_or(&self, name: &str, count: usize, default: i64) -> Result<Vec<i64>> {
        let values = self.op.attr_i64s(name).map_or_else(|| vec![default; count], <[i64]>::to_vec);
        if values.len() == count {
            return Ok(values);
        }
        Err(invalid(format!("{name} has {} entries, not {count}", values.len())))
    }

    /// An attribute that is a list of `count` pairs, all zero when it is left out.
    pub(crate) fn pairs_or_zero(&self, name: &str, count: usize) -> Result<Vec<(i64, i64)>> {
        if self.op.attr(name).is_none() {
            return Ok(vec![(0, 0); count]);
        }
        let rows = self.op.attr_rows(name).ok_or_else(|| missing(name))?;
        let pairs: Option<Vec<(i64, i64)>> = rows
            .iter()
            .map(|row| if let &[low, high] = row.as_slice() { Some((low, high)) } else { None })
            .collect();
        pairs
            .filter(|pairs| pairs.len() == count)
            .ok_or_else(|| invalid(format!("{name} is not a list of {count} pairs")))
    }

    /// The computation of a region.
    pub(crate) fn body(&self, index: usize) -> Result<Body> {
        Body::new(self.machine, self.op, index)
    }

    /// The block of region `index` for the fast loops, unless only the general path is wanted.
    pub(crate) fn native_region(&self, index: usize) -> Option<BlockId> {
        self.op.region_block(index).filter(|_| !self.machine.options.general_only)
    }

    /// The element types of the values that region `index` returns.
    pub(crate) fn body_elements(&self, index: usize) -> Result<Vec<ElementType>> {
        let module = self.machine.module;
        let block = self.op.region_block(index).ok_or_else(|| invalid("a region is empty"))?;
        let terminator = module.terminator(block).ok_or_else(|| invalid("a region has no return"))?;
        terminator
            .operand_types()
            .map(|ty| {
                storage(ty.element().ok_or_else(|| invalid("a region returns something else than tensors"))?)
            })
            .collect()
    }
}

/// The type that elements are stored as.
pub(crate) fn storage(element: &Element) -> Result<ElementType> {
    element.storage().ok_or_else(|| invalid("the element type is not known"))
}

pub(crate) fn missing(name: &str) -> crate::Error {
    invalid(format!("attribute `{name}` is missing or malformed"))
}

pub(crate) fn to_usizes(values: &[i64]) -> Result<Vec<usize>> {
    let convert = |&value: &i64| usize::try_from(value).map_err(|_| invalid(format!("{value} is negative")));
    values.iter().map(convert).collect()
}

pub(crate) fn scalar_i64(scalar: Scalar) -> Result<i64> {
    let value = scalar.to_i128();
    // Indices from the upper half of unsigned 64-bit numbers are out of every bound either way.
    Ok(i64::try_from(value).unwrap_or(if value > 0 { i64::MAX } else { i64::MIN }))
}

/// The one result of an operation.
pub(crate) fn one(tensor: Tensor) -> Result<Vec<Value>> {
    Ok(vec![Value::Tensor(tensor)])
}
