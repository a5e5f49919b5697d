//! The one matcher of rotary embedding, `x · c + (-x₂, x₁) · s`: as export writes it, with the rotated halves concatenated, and in
//! halves, as the rewrite leaves it.

use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar};

use crate::graph::{Graph, NodeId, Op};
use crate::view::{LayoutOp, View};

/// What the halves are multiplied by when they are in the other order.
pub(crate) const SIGNS: [f64; 2] = [-1.0, 1.0];

/// A node in the layout that some steps give it, converted to one type of floats after the other.
#[derive(Clone)]
pub(crate) struct Shown {
    pub(crate) id: NodeId,
    pub(crate) steps: Vec<LayoutOp>,
    pub(crate) converted: Vec<ElementType>,
}

/// A product below layouts and conversions.
struct Factors {
    operands: Vec<Shown>,
    /// What the product is converted to.
    converted: Vec<ElementType>,
}

/// `value · factor + rotate_half(value) · rotated_factor`, both products converted before they are added
pub(crate) struct Rotary {
    pub(crate) value: Shown,
    pub(crate) factor: Shown,
    /// What the plain product is converted to.
    pub(crate) plain: Vec<ElementType>,
    /// What the rotated value is converted to.
    pub(crate) rotated_half: Vec<ElementType>,
    pub(crate) rotated_factor: Shown,
    /// What the rotated product is converted to.
    pub(crate) other: Vec<ElementType>,
    /// Whether the rotated halves are concatenated.
    pub(crate) is_concatenated: bool,
}

/// A value with its halves in the other order, the second negated.
enum RotatedHalf {
    /// The halves, concatenated along the last dimension.
    Concatenated { first: Shown, second: Shown },
    /// A value backwards along a dimension of two, times the signs.
    Reversed { value: Shown, axis: usize },
}

impl Shown {
    fn of(id: NodeId) -> Self {
        Self { id, steps: Vec::new(), converted: Vec::new() }
    }

    /// The node below all layouts and conversions between floats, and all that is done from there on; `base` where it comes
    /// to that.
    fn below(&self, graph: &Graph, base: Option<NodeId>) -> Self {
        let (mut id, mut steps, mut converted) = (self.id, Vec::new(), Vec::new());
        loop {
            let node = graph.node(id);
            match &node.op {
                _ if Some(id) == base => break,
                Op::Layout(step) => steps.push(step.clone()),
                Op::Elementwise(Function::Convert)
                    if node.element.is_float() && graph.node(node.inputs[0]).element.is_float() =>
                {
                    converted.push(node.element);
                }
                _ => break,
            }
            id = node.inputs[0];
        }
        let all = |mut inner: Vec<_>, outer: &[LayoutOp]| {
            inner.reverse();
            inner.extend_from_slice(outer);
            inner
        };
        converted.reverse();
        converted.extend(&self.converted);
        Self { id, steps: all(steps, &self.steps), converted }
    }

    /// The nodes from the value down to the one below all layouts and conversions between floats.
    fn bases(&self, graph: &Graph) -> Vec<NodeId> {
        let last = self.below(graph, None).id;
        let below = |&id: &NodeId| (id != last).then(|| graph.node(id).inputs[0]);
        std::iter::successors(Some(self.id), below).collect()
    }

    /// The node below all layouts.
    fn base(&self, graph: &Graph) -> NodeId {
        let mut id = self.id;
        while let Op::Layout(_) = &graph.node(id).op {
            id = graph.node(id).inputs[0];
        }
        id
    }

    /// Where its elements lie in the node.
    fn view(&self, graph: &Graph) -> Option<View> {
        View::dense(&graph.node(self.id).dims).after_all(&self.steps)
    }

    /// The operands of an operation on elements: layouts of a result are those of what it is made from.
    fn factors(&self, graph: &Graph, kind: Function) -> Option<Factors> {
        let Self { id, steps, converted } = self.below(graph, None);
        let node = graph.node(id);
        let shown = |&id: &NodeId| Self { steps: steps.clone(), ..Self::of(id) };
        let operands = node.inputs.iter().map(shown).collect();
        matches!(node.op, Op::Elementwise(of) if of == kind).then_some(Factors { operands, converted })
    }
}

impl Factors {
    /// Both orders of two operands.
    fn both_orders(&self) -> Option<[[&Shown; 2]; 2]> {
        let [a, b] = self.operands.as_slice() else { return None };
        Some([[a, b], [b, a]])
    }
}

/// The rotary embedding that a node is.
pub(crate) fn rotary(graph: &Graph, id: NodeId) -> Option<Rotary> {
    let node = graph.node(id);
    if !matches!(node.op, Op::Elementwise(Function::Add)) || !node.element.is_float() {
        return None;
    }
    let [a, b] = node.inputs[..] else { return None };
    [[a, b], [b, a]].into_iter().find_map(|[plain, other]| {
        let other = Shown::of(other).factors(graph, Function::Multiply)?;
        let plain = Shown::of(plain).factors(graph, Function::Multiply)?;
        other.both_orders()?.into_iter().find_map(|[rotated_half, rotated_factor]| {
            let half = concatenated(graph, rotated_half).or_else(|| reversed(graph, rotated_half))?;
            let mut orders = plain.both_orders()?.into_iter();
            let (value, factor) =
                orders.find_map(|[value, factor]| Some((half.of(graph, value)?, factor)))?;
            Some(Rotary {
                value,
                factor: factor.clone(),
                plain: plain.converted.clone(),
                rotated_half: rotated_half.below(graph, None).converted,
                rotated_factor: rotated_factor.clone(),
                other: other.converted.clone(),
                is_concatenated: matches!(half, RotatedHalf::Concatenated { .. }),
            })
        })
    })
}

impl RotatedHalf {
    /// A value, where these are its halves.
    fn of(&self, graph: &Graph, value: &Shown) -> Option<Shown> {
        match self {
            Self::Concatenated { first, second } => {
                let fits = are_halves(graph, value, first, second)?;
                fits.then(|| value.below(graph, Some(first.base(graph))))
            }
            Self::Reversed { value: reversed, axis } => reversed.bases(graph).into_iter().find_map(|base| {
                let [value, reversed] = [value, reversed].map(|shown| shown.below(graph, Some(base)));
                let backwards = value.view(graph)?.after(&LayoutOp::Reverse(vec![*axis]))?;
                let fits = value.id == base && is_same(&backwards, &reversed.view(graph)?);
                fits.then_some(value)
            }),
        }
    }
}

/// Halves whose second is negated, one after the other along the last dimension.
fn concatenated(graph: &Graph, rotated_half: &Shown) -> Option<RotatedHalf> {
    let rotated_half = rotated_half.below(graph, None);
    let node = graph.node(rotated_half.id);
    let &[negated, first] = node.inputs.as_slice() else { return None };
    let last = node.dims.len().checked_sub(1)?;
    let as_it_is = rotated_half.view(graph)? == View::dense(&node.dims);
    if !as_it_is || !matches!(node.op, Op::Concat(axis) if axis == last) {
        return None;
    }
    let negation = Shown::of(negated).factors(graph, Function::Negate)?;
    let [second] = <[Shown; 1]>::try_from(negation.operands).ok()?;
    negation.converted.is_empty().then(|| RotatedHalf::Concatenated { first: Shown::of(first), second })
}

/// A value times the signs, which repeat but for one dimension.
fn reversed(graph: &Graph, rotated_half: &Shown) -> Option<RotatedHalf> {
    let product = rotated_half.factors(graph, Function::Multiply)?;
    product.both_orders()?.into_iter().find_map(|[value, signs]| {
        let signs = signs.below(graph, None);
        let numbers = graph.constant(signs.id).filter(|constant| constant.len() == SIGNS.len())?;
        let view = signs.view(graph)?;
        let axis = view.strides.iter().position(|&stride| stride != 0)?;
        let along_one = view.dims[axis] == 2
            && view.strides.iter().enumerate().all(|(at, &stride)| stride == isize::from(at == axis));
        (along_one && numbers.iter().map(Scalar::to_f64).eq(SIGNS))
            .then(|| RotatedHalf::Reversed { value: value.clone(), axis })
    })
}

/// Whether two views show the same elements in the same order.
fn is_same(one: &View, other: &View) -> bool {
    let mut strides = one.dims.iter().zip(one.strides.iter().zip(&other.strides));
    one.offset == other.offset
        && one.dims == other.dims
        && strides.all(|(&dim, (stride, also))| dim == 1 || stride == also)
}

/// Whether two nodes are the halves of a value along its last dimension, before it is converted.
fn are_halves(graph: &Graph, value: &Shown, first: &Shown, second: &Shown) -> Option<bool> {
    let base = Some(first.base(graph));
    let [value, first, second] = [value, first, second].map(|shown| shown.below(graph, base));
    let whole = value.view(graph)?;
    let (size, stride) = (*whole.dims.last()?, *whole.strides.last()?);
    let mut expected = whole;
    *expected.dims.last_mut()? = size / 2;
    let mut beyond = expected.clone();
    beyond.offset += (size / 2) as isize * stride;
    let of_value = value.id == first.id && value.id == second.id;
    let as_they_are = first.converted.is_empty() && second.converted.is_empty();
    Some(
        of_value
            && as_they_are
            && size % 2 == 0
            && first.view(graph)? == expected
            && second.view(graph)? == beyond,
    )
}
