//! Sizes as values of the module.

use std::collections::HashMap;

use warpforge_ir::attr::ComparisonDirection;
use warpforge_ir::{Attribute, ElementType, OpKind, ValueId};

use super::Cx;
use crate::graph::schema::SymInt;
use crate::graph::size::{Atom, Function, Size};
use crate::lower::refusal::{Lowered, Refusal, refuse};
use crate::lower::value::Tensor;

/// What is known about the symbols of a graph.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// Values of symbols that the import was given.
    pub(crate) values: HashMap<String, i64>,
    /// The smallest and largest values.
    pub(crate) ranges: HashMap<String, (i64, i64)>,
    /// An argument and the dimension of it that is the symbol.
    pub(crate) homes: HashMap<String, (ValueId, usize)>,
}

impl Symbols {
    /// A size of the archive, with the values that are known in place of the symbols.
    pub(crate) fn size(&self, size: &SymInt) -> Result<Size, String> {
        match size {
            SymInt::Int(value) => Ok(Size::Int(*value)),
            SymInt::Expr(expr) => Ok(self.substitute(&Size::parse(&expr.expr_str)?)),
        }
    }

    fn substitute(&self, size: &Size) -> Size {
        size.substitute(&|name| self.values.get(name).copied())
    }

    /// The smallest and largest value that a size can have.
    pub(crate) fn bounds(&self, size: &Size) -> (i64, i64) {
        size.bounds(&|name| self.ranges.get(name).copied().unwrap_or((0, i64::MAX)))
    }
}

impl Cx<'_> {
    /// A size as a tensor of no dimensions, of 64-bit integers.
    pub(crate) fn size_value(&mut self, size: &Size) -> Lowered<Tensor> {
        let key = (self.b.block(), size.clone());
        if let Some(&id) = self.computed_sizes.get(&key) {
            return Ok(self.tensor(id, ElementType::I64, []));
        }
        let mut terms = Vec::new();
        size.for_each_term(|coefficient, atoms| terms.push((coefficient, atoms.to_vec())));
        let mut total: Option<Tensor> = None;
        for (coefficient, atoms) in terms {
            let mut term: Option<Tensor> = None;
            if coefficient != 1 || atoms.is_empty() {
                term = Some(self.splat(ElementType::I64, &[], coefficient)?);
            }
            for atom in &atoms {
                let factor = self.atom_value(atom)?;
                term = Some(match term {
                    Some(term) => self.mul(&term, &factor)?,
                    None => factor,
                });
            }
            total = match (total, term) {
                (Some(total), Some(term)) => Some(self.add(&total, &term)?),
                (total, term) => total.or(term),
            };
        }
        let value = total.ok_or_else(|| Refusal("an empty size".to_owned()))?;
        self.computed_sizes.insert(key, value.id);
        Ok(value)
    }

    fn atom_value(&mut self, atom: &Atom) -> Lowered<Tensor> {
        match atom {
            Atom::Symbol(name) => {
                let Some(&(argument, axis)) = self.symbols.homes.get(&**name) else {
                    return refuse(format!(
                        "the size {name} depends on the data, so it is not known before the run"
                    ));
                };
                let attrs = [("dimension", Attribute::i64(axis as i64))];
                let id = self.b.op(OpKind::GetDimensionSize, &[argument], attrs)?;
                let size = self.tensor(id, ElementType::I32, []);
                self.convert(&size, ElementType::I64)
            }
            Atom::Call(function, a, b) => {
                let (a, b) = (self.size_value(a)?, self.size_value(b)?);
                match function {
                    Function::Max => self.max(&a, &b),
                    Function::Min => self.min(&a, &b),
                    Function::FloorDiv => self.floor_divide(&a, &b),
                    Function::Mod => self.floor_remainder(&a, &b),
                }
            }
        }
    }

    /// Several sizes as a tensor of one dimension.
    pub(crate) fn shape_value(&mut self, dims: &[Size]) -> Lowered<Tensor> {
        let known: Option<Vec<i64>> = dims.iter().map(Size::as_int).collect();
        if let Some(known) = known {
            return self.i64s(&known);
        }
        let parts: Vec<Tensor> = dims
            .iter()
            .map(|size| {
                let value = self.size_value(size)?;
                self.reshape(&value, &[Size::Int(1)])
            })
            .collect::<Lowered<_>>()?;
        self.concatenate(&parts, 0)
    }

    /// The quotient of integers rounded down; StableHLO rounds towards zero.
    pub(crate) fn floor_divide(&mut self, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
        let quotient = self.div(a, b)?;
        if !is_signed(a.dtype) {
            return Ok(quotient);
        }
        let adjust = self.rounds_up(a, b)?;
        let lower = self.with_number(OpKind::Subtract, &quotient, 1)?;
        self.select(&adjust, &lower, &quotient)
    }

    /// The remainder of [`Cx::floor_divide`]: of the divisor's sign.
    pub(crate) fn floor_remainder(&mut self, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
        let remainder = self.binary(OpKind::Remainder, a, b)?;
        if matches!(a.dtype, ElementType::Int(int) if !int.is_signed()) {
            return Ok(remainder);
        }
        let adjust = self.rounds_up(a, b)?;
        let shifted = self.add(&remainder, b)?;
        self.select(&adjust, &shifted, &remainder)
    }

    /// Where the quotient is not even and negative, so that rounding towards zero rounds it up.
    fn rounds_up(&mut self, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
        let remainder = self.binary(OpKind::Remainder, a, b)?;
        let uneven = self.compare_number(
            ComparisonDirection::Ne,
            &remainder,
            warpforge_tensor::Scalar::zero(a.dtype),
        )?;
        let zero = warpforge_tensor::Scalar::zero(a.dtype);
        let negative = self.compare_number(ComparisonDirection::Lt, &remainder, zero)?;
        let below = self.compare_number(ComparisonDirection::Lt, b, zero)?;
        let differ = self.compare(ComparisonDirection::Ne, &negative, &below)?;
        self.and(&uneven, &differ)
    }
}

fn is_signed(dtype: ElementType) -> bool {
    matches!(dtype, ElementType::Int(int) if int.is_signed())
}
