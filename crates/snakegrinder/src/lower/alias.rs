//! Tensors that share memory, and writing to them.
//!
//! PyTorch's exported graphs write in place (`add_`, `copy_`, `x[:, 0] = 1`), through views too. StableHLO has values
//! only. So each tensor of the graph is a variable; a view remembers what it is a view of. A write computes the new value
//! of the written variable and puts it back into what it is a view of, up to the one that owns the memory; every other
//! view of that memory is computed anew when it is next read.

use super::cx::Cx;
use super::refusal::{Lowered, refuse};
use super::value::Tensor;
use crate::graph::size::Size;

/// A tensor variable of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Var(usize);

/// How a view selects elements of its base.
#[derive(Clone, Debug)]
pub(crate) enum View {
    /// The same elements in the same order in another shape.
    Reshape(Vec<Size>),
    /// The dimensions in another order.
    Permute(Vec<usize>),
    /// A range of one dimension.
    Slice {
        /// The dimension.
        axis: usize,
        /// The first index.
        start: Size,
        /// One beyond the last index.
        limit: Size,
        /// The distance of indices.
        step: i64,
    },
    /// One index of a dimension, which is left out.
    Select {
        /// The dimension.
        axis: usize,
        /// The index, not negative.
        index: Size,
    },
    /// Repeated elements; cannot be written to.
    Expand(Vec<Size>),
    /// A view that is read as the value it had when it was made, and refused once its base has been written to.
    Frozen,
}

#[derive(Debug)]
struct Variable {
    /// The value as of `version`.
    tensor: Tensor,
    version: u32,
    memory: usize,
    base: Option<(Var, View)>,
}

/// The variables of a graph and the memories they are in.
#[derive(Debug, Default)]
pub(super) struct Variables {
    variables: Vec<Variable>,
    /// How often each memory has been written to.
    versions: Vec<u32>,
}

impl Variables {
    /// A variable with memory of its own.
    pub(super) fn own(&mut self, tensor: &Tensor) -> Tensor {
        let memory = self.versions.len();
        self.versions.push(0);
        self.add(tensor, memory, None)
    }

    fn add(&mut self, tensor: &Tensor, memory: usize, base: Option<(Var, View)>) -> Tensor {
        let var = Var(self.variables.len());
        let tensor = Tensor { var: Some(var), ..tensor.clone() };
        let version = self.versions[memory];
        self.variables.push(Variable { tensor: tensor.clone(), version, memory, base });
        tensor
    }

    /// Whether the memory of a variable has been written to.
    pub(super) fn is_written(&self, var: Var) -> bool {
        self.versions[self.variables[var.0].memory] > 0
    }
}

impl Cx<'_> {
    /// The value of a variable now.
    pub(crate) fn read(&mut self, var: Var) -> Lowered<Tensor> {
        // From the variable to the first base whose value is current, and back with each view computed anew.
        let mut stale = Vec::new();
        let mut at = var;
        loop {
            let variable = &self.variables.variables[at.0];
            if variable.version == self.variables.versions[variable.memory] {
                break;
            }
            match &variable.base {
                Some((base, view)) => {
                    stale.push((at, view.clone()));
                    at = *base;
                }
                // The owner of a memory is written with it.
                None => break,
            }
        }
        for (view_var, view) in stale.into_iter().rev() {
            let base = self.variables.variables[at.0].tensor.clone();
            let value = self.apply_view(&base, &view)?;
            self.store(view_var, &value);
            at = view_var;
        }
        Ok(self.variables.variables[var.0].tensor.clone())
    }

    /// A view of a tensor.
    pub(crate) fn view(&mut self, tensor: &Tensor, view: View) -> Lowered<Tensor> {
        let value = self.apply_view(tensor, &view)?;
        Ok(self.view_with(tensor, value, view))
    }

    /// A view whose value is computed already. It can be read; once the memory has been written to it is refused.
    pub(crate) fn frozen_view(&mut self, tensor: &Tensor, value: &Tensor) -> Tensor {
        self.view_with(tensor, value.clone(), View::Frozen)
    }

    fn view_with(&mut self, tensor: &Tensor, value: Tensor, view: View) -> Tensor {
        let Some(base) = tensor.var else { return value };
        let memory = self.variables.variables[base.0].memory;
        self.variables.add(&value.fresh(), memory, Some((base, view)))
    }

    /// Writes to a variable: converts to its element type, repeats to its shape, and changes what shares its memory.
    pub(crate) fn write(&mut self, var: Var, value: &Tensor) -> Lowered<()> {
        let target = self.read(var)?;
        let value = self.convert(value, target.dtype)?;
        let mut value = self.expand_to(&value, &target.dims)?;
        // All bases must be current before the version changes.
        let mut chain = Vec::new();
        let mut at = var;
        while let Some((base, view)) = self.variables.variables[at.0].base.clone() {
            chain.push((at, view, self.read(base)?));
            at = base;
        }
        let memory = self.variables.variables[at.0].memory;
        self.variables.versions[memory] += 1;
        self.store(var, &value);
        for (_, view, base) in chain {
            value = self.put_back(&base, &value, &view)?;
            if let Some(base) = base.var {
                self.store(base, &value);
            }
        }
        Ok(())
    }

    fn store(&mut self, var: Var, value: &Tensor) {
        let variable = &mut self.variables.variables[var.0];
        variable.version = self.variables.versions[variable.memory];
        variable.tensor = Tensor { var: Some(var), ..value.clone() };
    }

    fn apply_view(&mut self, base: &Tensor, view: &View) -> Lowered<Tensor> {
        match view {
            View::Reshape(dims) => self.reshape(base, dims),
            View::Permute(order) => self.transpose(base, order),
            View::Slice { axis, start, limit, step } => self.slice(base, *axis, start, limit, *step),
            View::Select { axis, index } => {
                self.require_axis(base, *axis)?;
                let one = self.slice(base, *axis, index, &index.add(&Size::Int(1)), 1)?;
                let mut dims = base.dims.to_vec();
                dims.remove(*axis);
                self.reshape(&one, &dims)
            }
            View::Expand(dims) => self.expand_to(base, dims),
            View::Frozen => refuse("it reads a view of memory that was written to in the meantime"),
        }
    }

    /// The base with the elements that a view selects replaced.
    fn put_back(&mut self, base: &Tensor, value: &Tensor, view: &View) -> Lowered<Tensor> {
        match view {
            View::Reshape(_) => self.reshape(value, &base.dims),
            View::Permute(order) => {
                let mut inverse = vec![0; order.len()];
                for (to, &from) in order.iter().enumerate() {
                    inverse[from] = to;
                }
                self.transpose(value, &inverse)
            }
            View::Slice { axis, start, limit, step } => {
                self.slice_scatter(base, value, *axis, start, limit, *step)
            }
            View::Select { axis, index } => {
                let mut dims = base.dims.to_vec();
                dims[*axis] = Size::Int(1);
                let row = self.reshape(value, &dims)?;
                self.slice_scatter(base, &row, *axis, index, &index.add(&Size::Int(1)), 1)
            }
            View::Expand(_) => refuse("it writes to memory that several elements share"),
            View::Frozen => refuse("it writes through a view that cannot be put back"),
        }
    }
}
