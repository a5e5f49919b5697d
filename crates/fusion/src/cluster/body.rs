//! The loop of a cluster: what is computed at every index of a domain.

use warpforge_ir::attr::{ComparisonDirection, ComparisonType};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatType, Tensor};

use super::Operand;
use crate::graph::{Graph, NodeId, ReduceKind};
use crate::view::View;

/// A value in memory that a loop reads; the view is over the loop's domain.
pub type Load = Operand;

/// What is computed at every index of a domain.
#[derive(Debug, Clone)]
pub struct Body {
    /// The sizes of the domain.
    pub dims: Vec<usize>,
    /// Which dimensions are reduced; without reductions none.
    pub reduced: Vec<bool>,
    /// What it reads.
    pub loads: Vec<Load>,
    /// The computation, each step from earlier ones.
    pub steps: Vec<BodyStep>,
    /// Where the value of the last step goes in the output; it does not depend on reduced dimensions with stride 0.
    pub output: View,
    /// Other steps whose values go to the same places of outputs of their own; only devices that join loops have them.
    pub also: Vec<Stored>,
}

/// A step of a loop whose value is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// The value that it becomes.
    pub value: NodeId,
    /// The step.
    pub step: usize,
}

/// A step of a loop.
#[derive(Debug, Clone)]
pub struct BodyStep {
    /// What it does.
    pub op: BodyOp,
    /// The steps that it takes.
    pub inputs: Vec<usize>,
    /// The type of what it gives.
    pub element: ElementType,
}

/// What a step does.
#[derive(Debug, Clone)]
pub enum BodyOp {
    /// Reads a load.
    Load(usize),
    /// A number.
    Constant(Tensor),
    /// offset + Σ index · stride.
    Iota(View),
    /// An operation.
    Elementwise(Function),
    /// A comparison.
    Compare(ComparisonDirection, ComparisonType),
    /// Reduces all reduced dimensions.
    Reduce(ReduceKind),
}

impl Body {
    /// Whether there are reductions.
    #[must_use]
    pub fn has_reductions(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.op, BodyOp::Reduce(_)))
    }

    /// Whether the whole output is written in order.
    #[must_use]
    pub fn is_whole(&self, graph: &Graph, output: NodeId) -> bool {
        self.output.is_dense() && self.output.len() == graph.node(output).len()
    }

    /// The step before conversions between f32, f16 and bf16; none where there is another conversion.
    #[must_use]
    pub fn before_conversions(&self, mut at: usize) -> Option<usize> {
        let float = |element: ElementType| {
            matches!(element, ElementType::Float(FloatType::F32 | FloatType::Bf16 | FloatType::F16))
        };
        while let BodyOp::Elementwise(Function::Convert) = self.steps[at].op {
            let &input = self.steps[at].inputs.first()?;
            if !float(self.steps[at].element) || !float(self.steps[input].element) {
                return None;
            }
            at = input;
        }
        Some(at)
    }

    /// The number that a step is.
    #[must_use]
    pub fn number(&self, step: usize) -> Option<f64> {
        match &self.steps[step].op {
            BodyOp::Constant(tensor) if !tensor.is_empty() => {
                matches!(tensor.element_type(), ElementType::Float(_)).then(|| tensor.get(0).to_f64())
            }
            _ => None,
        }
    }

    /// Whether a step is the number zero.
    #[must_use]
    pub fn is_zero(&self, step: usize) -> bool {
        self.before_conversions(step).and_then(|step| self.number(step)) == Some(0.0)
    }

    /// The steps that a step depends on, itself included, in order.
    #[must_use]
    pub fn needed(&self, step: usize) -> Vec<usize> {
        self.needed_above(step, None)
    }

    /// The same without what only `stop` depends on.
    #[must_use]
    pub(super) fn needed_above(&self, step: usize, stop: Option<usize>) -> Vec<usize> {
        let mut needed = vec![false; step + 1];
        needed[step] = true;
        for at in (0..=step).rev().filter(|&at| Some(at) != stop) {
            if needed[at] {
                self.steps[at].inputs.iter().for_each(|&input| needed[input] = true);
            }
        }
        (0..=step).filter(|&at| needed[at]).collect()
    }

    /// The same loop with the dimensions of its domain in another order.
    #[must_use]
    pub fn permuted(&self, order: &[usize]) -> Self {
        let view = |view: &View| View {
            offset: view.offset,
            dims: order.iter().map(|&at| view.dims[at]).collect(),
            strides: order.iter().map(|&at| view.strides[at]).collect(),
        };
        self.with(
            order.iter().map(|&at| self.dims[at]).collect(),
            order.iter().map(|&at| self.reduced[at]).collect(),
            |old| Some(view(old)),
        )
        .unwrap_or_else(|| self.clone())
    }

    /// The same loop over a domain of other dimensions with as many elements, where all strides can be kept. Only for
    /// loops without reductions.
    #[must_use]
    pub fn reshaped(&self, dims: &[usize]) -> Option<Self> {
        let step = crate::view::LayoutOp::Reshape(dims.to_vec());
        self.with(dims.to_vec(), vec![false; dims.len()], |view| view.after(&step))
    }

    fn with(
        &self,
        dims: Vec<usize>,
        reduced: Vec<bool>,
        change: impl Fn(&View) -> Option<View>,
    ) -> Option<Self> {
        let loads = self.loads.iter();
        let loads = loads
            .map(|load| Some(Load { value: load.value, view: change(&load.view)? }))
            .collect::<Option<Vec<_>>>()?;
        let mut steps = self.steps.clone();
        for step in &mut steps {
            if let BodyOp::Iota(view) = &mut step.op {
                *view = change(view)?;
            }
        }
        Some(Self { dims, reduced, loads, steps, output: change(&self.output)?, also: self.also.clone() })
    }
}
