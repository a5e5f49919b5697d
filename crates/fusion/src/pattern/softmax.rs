//! The one matcher of softmax: of a graph for its names, of the loop of an attention cluster for its description.

use warpforge_tensor::elementwise::Function;

use crate::graph::ReduceKind;

/// Most values between the row maximum and what is subtracted.
const MOST_VALUES: usize = 32;

/// Values and what they are computed from.
pub(crate) trait Dataflow {
    /// Names a value.
    type Value: Copy + Eq;

    /// The value before what changes neither its meaning nor, but for rounding, its elements.
    fn through(&self, value: Self::Value) -> Self::Value;

    /// The operation on each element that gives a value.
    fn function(&self, value: Self::Value) -> Option<Function>;

    /// Whether a value is computed element by element, by a function or a comparison.
    fn is_elementwise(&self, value: Self::Value) -> bool;

    /// The reduction that gives a value.
    fn reduction(&self, value: Self::Value) -> Option<ReduceKind>;

    /// Whether a value is the same number everywhere.
    fn is_number(&self, value: Self::Value) -> bool;

    /// What a value is computed from.
    fn operands(&self, value: Self::Value) -> &[Self::Value];

    /// The operands of an operation of a kind.
    fn apart<const N: usize>(&self, value: Self::Value, function: Function) -> Option<[Self::Value; N]> {
        let value = self.through(value);
        let fits = self.function(value) == Some(function);
        fits.then(|| self.operands(value).try_into().ok()).flatten()
    }

    /// What a reduction of a kind reduces.
    fn reduced(&self, value: Self::Value, kind: ReduceKind) -> Option<Self::Value> {
        let value = self.through(value);
        let fits = self.reduction(value) == Some(kind);
        fits.then(|| self.operands(value).first().copied()).flatten()
    }
}

/// The values of a softmax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SoftmaxValues<V> {
    /// What its softmax is taken of.
    pub(crate) scores: V,
    /// The row maximum.
    pub(crate) max: V,
    /// The sum of a row's exponentials.
    pub(crate) sum: V,
}

/// exp(x - max x) / Σ exp(x - max x)
pub(crate) fn softmax<F: Dataflow>(flow: &F, quotient: F::Value) -> Option<SoftmaxValues<F::Value>> {
    let [exponential, sum] = flow.apart(quotient, Function::Divide)?;
    let [shifted] = flow.apart(exponential, Function::Exponential)?;
    let summed = flow.reduced(sum, ReduceKind::Add)?;
    let (scores, max) = less_maximum(flow, shifted)?;
    let same = flow.through(summed) == flow.through(exponential);
    same.then(|| SoftmaxValues { scores, max, sum: flow.through(sum) })
}

/// x - max x: what it is of, and the maximum. What is subtracted may be any function of the maximum, such as zero for rows
/// of nothing but -inf: a softmax does not depend on it.
pub(crate) fn less_maximum<F: Dataflow>(flow: &F, shifted: F::Value) -> Option<(F::Value, F::Value)> {
    let [scores, subtracted] = flow.apart(shifted, Function::Subtract)?;
    let mut max = None;
    let mut pending = vec![subtracted];
    let mut visited = 0;
    while let Some(value) = pending.pop() {
        visited += 1;
        let value = flow.through(value);
        let folded = flow.reduced(value, ReduceKind::Max).map(|folded| flow.through(folded));
        if folded == Some(flow.through(scores)) {
            max = Some(value);
        } else if flow.is_elementwise(value) && visited < MOST_VALUES {
            pending.extend(flow.operands(value));
        } else if !flow.is_number(value) {
            return None;
        }
    }
    max.map(|max| (scores, max))
}
