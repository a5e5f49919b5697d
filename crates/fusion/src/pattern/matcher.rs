//! A graph seen through what does not matter to a pattern: layouts, and conversions between floats.

use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar};

use super::softmax::Dataflow;
use crate::graph::{Graph, NodeId, Op, ReduceKind};
use crate::view::LayoutOp;

/// Deepest nesting of multiplications that is looked through.
const DEEPEST: usize = 8;

/// Looks at nodes by what they compute.
#[derive(Clone, Copy)]
pub(crate) struct Matcher<'g> {
    pub(super) graph: &'g Graph,
    /// Whether only operations of f32 count, as they are.
    exact: bool,
}

impl Dataflow for Matcher<'_> {
    type Value = NodeId;

    fn through(&self, value: NodeId) -> NodeId {
        Matcher::through(*self, value)
    }

    fn function(&self, value: NodeId) -> Option<Function> {
        match self.graph.node(value).op {
            Op::Elementwise(function) => Some(function),
            _ => None,
        }
    }

    fn is_elementwise(&self, value: NodeId) -> bool {
        matches!(self.graph.node(value).op, Op::Elementwise(_) | Op::Compare(..))
    }

    fn reduction(&self, value: NodeId) -> Option<ReduceKind> {
        match self.graph.node(value).op {
            Op::Reduce(kind, _) => Some(kind),
            _ => None,
        }
    }

    fn is_number(&self, value: NodeId) -> bool {
        self.number(value).is_some()
    }

    fn operands(&self, value: NodeId) -> &[NodeId] {
        &self.graph.node(value).inputs
    }
}

impl<'g> Matcher<'g> {
    /// Sees values of any float type through layouts and conversions.
    pub(super) fn seeing_through(graph: &'g Graph) -> Self {
        Self { graph, exact: false }
    }

    /// Sees operations of f32 as they are: what is found may be computed in another way.
    pub(crate) fn exact(graph: &'g Graph) -> Self {
        Self { graph, exact: true }
    }

    /// What a value is before it was repeated, transposed or converted to another float; an exact matcher sees the value.
    pub(super) fn through(self, id: NodeId) -> NodeId {
        if self.exact { id } else { self.source(id) }
    }

    /// What a value is before it was repeated, transposed or converted to another float.
    fn source(self, mut id: NodeId) -> NodeId {
        loop {
            let node = self.graph.node(id);
            let passes = match &node.op {
                Op::Layout(LayoutOp::Transpose(_) | LayoutOp::Reshape(_) | LayoutOp::Broadcast { .. }) => {
                    true
                }
                Op::Elementwise(Function::Convert) => {
                    node.element.is_float() && self.graph.node(node.inputs[0]).element.is_float()
                }
                _ => false,
            };
            if !passes {
                return id;
            }
            id = node.inputs[0];
        }
    }

    /// Whether a node is a function.
    pub(super) fn is(self, id: NodeId, function: Function) -> bool {
        let node = self.graph.node(id);
        matches!(node.op, Op::Elementwise(of) if of == function)
            && (!self.exact || node.element == ElementType::F32)
    }

    /// The operands of an operation of a kind, seen through.
    pub(super) fn apart<const N: usize>(self, id: NodeId, kind: Function) -> Option<[NodeId; N]> {
        let id = self.through(id);
        let operands = self.graph.node(id).inputs.iter().map(|&input| self.through(input));
        operands.collect::<Vec<NodeId>>().try_into().ok().filter(|_| self.is(id, kind))
    }

    /// The two operands of an operation for which their order does not matter, in both orders.
    pub(super) fn both_orders(self, id: NodeId, kind: Function) -> Option<[[NodeId; 2]; 2]> {
        self.apart(id, kind).map(|[one, other]| [[one, other], [other, one]])
    }

    /// The operand of an operation whose other operand is the same number everywhere, and the number.
    pub(super) fn with_number(self, id: NodeId, kind: Function) -> Option<(NodeId, f64)> {
        let orders = self.both_orders(id, kind)?;
        orders.into_iter().find_map(|[value, number]| Some((value, self.number(number)?)))
    }

    /// The operand beside a number; a number that is divided is none.
    pub(super) fn beside(self, id: NodeId, kind: Function, number: f64) -> Option<NodeId> {
        let [left, right] = self.apart(id, kind)?;
        let is = |id: NodeId| self.number(id).is_some_and(|known| self.near(known, number));
        match (is(left), is(right)) {
            (_, true) => Some(left),
            (true, _) if kind != Function::Divide => Some(right),
            _ => None,
        }
    }

    /// Whether two numbers are the same but for rounding: of f32, or of a narrow type.
    pub(super) fn near(self, one: f64, other: f64) -> bool {
        let relative = if self.exact { 1e-6 } else { 4e-3 };
        (one - other).abs() <= relative * other.abs()
    }

    /// Whether a node is a number times these, in any order; `whole` is not taken apart.
    pub(super) fn is_product(self, id: NodeId, whole: NodeId, number: f64, of: &[NodeId]) -> bool {
        let Some((factor, mut factors)) = self.factors(id, Some(whole)) else { return false };
        let mut of = of.to_vec();
        factors.sort_unstable();
        of.sort_unstable();
        self.near(factor, number) && factors == of
    }

    /// The factors of a product, and the number that those that are constants give; `whole` is not taken apart.
    pub(super) fn factors(self, id: NodeId, whole: Option<NodeId>) -> Option<(f64, Vec<NodeId>)> {
        let operands = |id: NodeId| self.apart::<2>(id, Function::Multiply);
        operands(id).filter(|_| Some(id) != whole)?;
        let mut number = 1.0;
        let mut factors = Vec::new();
        let mut pending = vec![(id, 0)];
        while let Some((at, depth)) = pending.pop() {
            match (self.number(at), operands(at)) {
                (Some(constant), _) => number *= constant,
                (None, Some(operands)) if Some(at) != whole && depth <= DEEPEST => {
                    pending.extend(operands.map(|operand| (operand, depth + 1)));
                }
                _ => match self.power(at).filter(|_| depth <= DEEPEST) {
                    Some((base, times)) => pending.extend(std::iter::repeat_n((base, depth + 1), times)),
                    None => factors.push(at),
                },
            }
        }
        Some((number, factors))
    }

    /// The number that a constant is everywhere.
    pub(super) fn number(self, id: NodeId) -> Option<f64> {
        let constant = self.graph.constant(self.source(id))?;
        let mut values = constant.iter();
        let Some(Scalar::Float(first)) = values.next() else { return None };
        values.all(|value| value == Scalar::Float(first)).then_some(first)
    }

    /// What a reduction reduces, and whether over the last dimension among others.
    pub(super) fn reduction_of(self, id: NodeId, reduction: ReduceKind) -> Option<(NodeId, bool)> {
        let node = self.graph.node(self.through(id));
        let Op::Reduce(of, dims) = &node.op else { return None };
        let input = node.inputs[0];
        let last = self.graph.node(input).dims.len().checked_sub(1)?;
        (*of == reduction).then(|| (self.through(input), dims.contains(&last)))
    }

    /// What a sum sums.
    pub(super) fn sum_of(self, id: NodeId) -> Option<NodeId> {
        self.reduction_of(id, ReduceKind::Add).map(|(summed, _)| summed)
    }

    /// What a mean is of, and whether over the last dimension among others.
    pub(super) fn mean_of(self, id: NodeId) -> Option<(NodeId, bool)> {
        let divided = self.apart(id, Function::Divide).filter(|&[_, count]| self.number(count).is_some());
        let sum = match divided {
            Some([sum, _]) => sum,
            None => self.with_number(id, Function::Multiply)?.0,
        };
        self.reduction_of(sum, ReduceKind::Add)
    }

    /// What a square is of.
    pub(super) fn square_of(self, id: NodeId) -> Option<NodeId> {
        if let Some([one, other]) = self.apart(id, Function::Multiply) {
            return (one == other).then_some(one);
        }
        self.power(id).filter(|&(_, times)| times == 2).map(|(base, _)| base)
    }

    /// What a square or a cube by the power function is of, and how often it is a factor.
    fn power(self, id: NodeId) -> Option<(NodeId, usize)> {
        let [base, exponent] = self.apart(id, Function::Power)?;
        let exponent = self.number(exponent)?;
        [2, 3].into_iter().find(|&times| exponent == times as f64).map(|times| (base, times))
    }
}
