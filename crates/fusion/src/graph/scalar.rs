//! Functions of scalars that operations apply to elements: how a reduction or a scatter combines two, when one comes before another in a sort.

use std::sync::Arc;

use warpforge_ir::attr::{ComparisonDirection, ComparisonType};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Tensor};

/// What a reduction combines elements with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceKind {
    /// Their sum.
    Add,
    /// Their product.
    Multiply,
    /// The largest; NaN if there is one.
    Max,
    /// The smallest; NaN if there is one.
    Min,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
}

impl ReduceKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [Self::Add, Self::Multiply, Self::Max, Self::Min, Self::And, Self::Or];

    /// The function of two elements.
    #[must_use]
    pub fn function(self) -> Function {
        match self {
            ReduceKind::Add => Function::Add,
            ReduceKind::Multiply => Function::Multiply,
            ReduceKind::Max => Function::Maximum,
            ReduceKind::Min => Function::Minimum,
            ReduceKind::And => Function::And,
            ReduceKind::Or => Function::Or,
        }
    }
}

/// A function of scalars: elementwise functions, comparisons and constants, in order. Values are numbered, the arguments first and then
/// the steps.
#[derive(Debug, Clone)]
pub struct ScalarFunction {
    /// The types of its arguments.
    pub arguments: Vec<ElementType>,
    /// What it computes.
    pub steps: Vec<ScalarStep>,
    /// The numbers of the values that it gives.
    pub results: Vec<usize>,
}

/// A step of a [`ScalarFunction`].
#[derive(Debug, Clone)]
pub struct ScalarStep {
    /// What it computes.
    pub op: ScalarOp,
    /// The numbers of the values that it takes.
    pub inputs: Vec<usize>,
    /// The type of its result.
    pub element: ElementType,
}

/// What a step of a [`ScalarFunction`] computes.
#[derive(Debug, Clone)]
pub enum ScalarOp {
    /// A scalar.
    Constant(Tensor),
    /// An elementwise function.
    Elementwise(Function),
    /// A comparison.
    Compare(ComparisonDirection, ComparisonType),
}

impl ScalarFunction {
    /// The type of a value.
    #[must_use]
    pub fn element(&self, value: usize) -> Option<ElementType> {
        let step = |at: usize| self.steps.get(at).map(|step| step.element);
        self.arguments.get(value).copied().or_else(|| step(value.checked_sub(self.arguments.len())?))
    }

    /// The step that gives a value; none for an argument.
    fn step(&self, value: usize) -> Option<&ScalarStep> {
        self.steps.get(value.checked_sub(self.arguments.len())?)
    }

    /// The reduction that it is, where it is one operation on its two arguments, all of one type.
    #[must_use]
    pub fn reduce_kind(&self) -> Option<ReduceKind> {
        let (&[first, second], [step], [2]) =
            (self.arguments.as_slice(), self.steps.as_slice(), self.results.as_slice())
        else {
            return None;
        };
        let ScalarOp::Elementwise(function) = step.op else { return None };
        let both = matches!(step.inputs.as_slice(), [0, 1] | [1, 0]);
        let same = first == second && step.element == first;
        ReduceKind::ALL.into_iter().find(|kind| both && same && kind.function() == function)
    }

    /// The pair of arguments that it orders by, and how: one comparison, or one for which NaN is the largest of all.
    fn order(&self) -> Option<(usize, Order)> {
        let &[result] = self.results.as_slice() else { return None };
        let last = self.step(result)?;
        if self.steps.len() == 1 {
            let (key, descending, order) = self.strict(last)?;
            let total = order == ComparisonType::TotalOrder;
            return Some((key, Order { descending, total, nan_is_largest: false }));
        }
        // Before, or not a number where the other is one.
        let operands = |step: &ScalarStep, function: Function| match (&step.op, step.inputs.as_slice()) {
            (ScalarOp::Elementwise(found), &[a, b]) if *found == function => Some((a, b)),
            _ => None,
        };
        let (before, only) = operands(last, Function::Or)?;
        let (key, descending, _) = self.strict(self.step(before)?)?;
        let (unknown, known) = operands(self.step(only)?, Function::And)?;
        let itself = |value: usize, wanted: ComparisonDirection| {
            let (direction, _, a, b) = compared(self.step(value)?)?;
            (direction == wanted && a == b).then_some(a)
        };
        let large = itself(unknown, ComparisonDirection::Ne)?;
        let small = itself(known, ComparisonDirection::Eq)?;
        let (left, right) = (2 * key, 2 * key + 1);
        let expected = if descending { (left, right) } else { (right, left) };
        (self.steps.len() == 5 && (large, small) == expected)
            .then_some((key, Order { descending, total: false, nan_is_largest: true }))
    }

    /// Which pair of arguments a step compares, and whether it wants the larger first.
    fn strict(&self, step: &ScalarStep) -> Option<(usize, bool, ComparisonType)> {
        let (direction, order, a, b) = compared(step)?;
        let arguments = a.max(b) < self.arguments.len();
        let descending = match direction {
            ComparisonDirection::Lt => b < a,
            ComparisonDirection::Gt => a < b,
            _ => return None,
        };
        (arguments && a / 2 == b / 2 && a != b).then_some((a / 2, descending, order))
    }

    /// Adds a step; its number.
    fn push(&mut self, op: ScalarOp, inputs: Vec<usize>, element: ElementType) -> usize {
        self.steps.push(ScalarStep { op, inputs, element });
        self.arguments.len() + self.steps.len() - 1
    }
}

fn compared(step: &ScalarStep) -> Option<(ComparisonDirection, ComparisonType, usize, usize)> {
    match (&step.op, step.inputs.as_slice()) {
        (ScalarOp::Compare(direction, order), &[a, b]) => Some((*direction, *order, a, b)),
        _ => None,
    }
}

/// How values of a type are compared where nothing else is said.
#[must_use]
pub(super) fn comparison_type(element: ElementType) -> ComparisonType {
    match element {
        ElementType::Float(_) => ComparisonType::Float,
        ElementType::Int(int) if int.is_signed() => ComparisonType::Signed,
        _ => ComparisonType::Unsigned,
    }
}

/// What becomes of an element that is there and another.
#[derive(Debug, Clone)]
pub enum Combiner {
    /// The other takes its place.
    Replace,
    /// Both are reduced to one.
    Reduce(ReduceKind),
    /// Something else.
    Function(Arc<ScalarFunction>),
}

impl Combiner {
    /// The combiner of elements of a type that a function is.
    pub(super) fn new(function: ScalarFunction, element: ElementType) -> Option<Self> {
        let ([_, _], &[result]) = (function.arguments.as_slice(), function.results.as_slice()) else {
            return None;
        };
        let same = function.arguments.iter().all(|&argument| argument == element);
        Some(match function.reduce_kind() {
            Some(kind) if same => Combiner::Reduce(kind),
            _ if same && function.steps.is_empty() && result == 1 => Combiner::Replace,
            _ => Combiner::Function(function.into()),
        })
    }

    /// The reduction that it is.
    #[must_use]
    pub fn reduce_kind(&self) -> Option<ReduceKind> {
        match self {
            Combiner::Reduce(kind) => Some(*kind),
            Combiner::Replace | Combiner::Function(_) => None,
        }
    }

    /// The function of the element that is there and the other, both of a type.
    #[must_use]
    pub fn function(&self, element: ElementType) -> Arc<ScalarFunction> {
        let arguments = vec![element; 2];
        match self {
            Combiner::Function(function) => Arc::clone(function),
            Combiner::Replace => ScalarFunction { arguments, steps: Vec::new(), results: vec![1] }.into(),
            Combiner::Reduce(kind) => {
                let op = ScalarOp::Elementwise(kind.function());
                let steps = vec![ScalarStep { op, inputs: vec![0, 1], element }];
                ScalarFunction { arguments, steps, results: vec![2] }.into()
            }
        }
    }
}

/// When an element comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// The larger comes first.
    pub descending: bool,
    /// Floats are in the order of IEEE 754's totalOrder.
    pub total: bool,
    /// Every NaN is larger than all numbers, and they are equal.
    pub nan_is_largest: bool,
}

/// Which of two places comes first in a sort.
#[derive(Debug, Clone)]
pub enum Comparator {
    /// The one whose element of an operand comes first.
    Key {
        /// The operand.
        key: usize,
        /// When its elements come first.
        order: Order,
    },
    /// Whatever a function of both elements of each operand says.
    Function(Arc<ScalarFunction>),
}

impl Comparator {
    /// The comparator that a function is: it takes two elements of each operand.
    pub(super) fn new(function: ScalarFunction) -> Option<Self> {
        let &[result] = function.results.as_slice() else { return None };
        if function.element(result) != Some(ElementType::Bool) {
            return None;
        }
        Some(match function.order() {
            Some((key, order)) => Comparator::Key { key, order },
            None => Comparator::Function(function.into()),
        })
    }

    /// The function of both elements of each operand; the operands have these types.
    #[must_use]
    pub fn function(&self, operands: &[ElementType]) -> Arc<ScalarFunction> {
        let (key, order) = match self {
            Comparator::Key { key, order } => (*key, *order),
            Comparator::Function(function) => return Arc::clone(function),
        };
        let arguments = operands.iter().flat_map(|&element| [element; 2]).collect();
        let mut function = ScalarFunction { arguments, steps: Vec::new(), results: Vec::new() };
        let (left, right) = (2 * key, 2 * key + 1);
        let plain = operands.get(key).map_or(ComparisonType::Float, |&element| comparison_type(element));
        let compare = |direction: ComparisonDirection, ty: ComparisonType| ScalarOp::Compare(direction, ty);
        let direction = if order.descending { ComparisonDirection::Gt } else { ComparisonDirection::Lt };
        let ty = if order.total { ComparisonType::TotalOrder } else { plain };
        let mut result = function.push(compare(direction, ty), vec![left, right], ElementType::Bool);
        if order.nan_is_largest {
            let (large, small) = if order.descending { (left, right) } else { (right, left) };
            let bool = ElementType::Bool;
            let unknown = function.push(compare(ComparisonDirection::Ne, plain), vec![large; 2], bool);
            let known = function.push(compare(ComparisonDirection::Eq, plain), vec![small; 2], bool);
            let only = function.push(ScalarOp::Elementwise(Function::And), vec![unknown, known], bool);
            result = function.push(ScalarOp::Elementwise(Function::Or), vec![result, only], bool);
        }
        function.results = vec![result];
        function.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_recognised_in_the_function_that_it_gives() {
        for at in 0..8 {
            let [descending, total, nan_is_largest] = [1, 2, 4].map(|bit| at & bit != 0);
            if total && nan_is_largest {
                continue;
            }
            let order = Order { descending, total, nan_is_largest };
            let given = Comparator::Key { key: 1, order }.function(&[ElementType::I32, ElementType::F32]);
            let Some(Comparator::Key { key, order: found }) = Comparator::new((*given).clone()) else {
                panic!("{given:?} is an order");
            };
            assert_eq!((key, found), (1, order));
        }
    }

    #[test]
    fn a_reduction_in_a_wider_type_is_no_plain_reduction() {
        let wide = Combiner::Reduce(ReduceKind::Add).function(ElementType::F32);
        let of = |element| Combiner::new((*wide).clone(), element).and_then(|found| found.reduce_kind());
        assert_eq!(of(ElementType::F32), Some(ReduceKind::Add));
        assert_eq!(of(ElementType::BF16), None);
    }
}
