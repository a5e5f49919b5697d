//! Rotary embedding in halves: `x · c + (-x₂, x₁) · s` without putting the turned halves together in memory.
//!
//! With the last dimension cut in two, the turned value is the value itself read in another order, times -1 and 1:
//! one loop over views of `x`.

use warpforge_ir::OpKind;
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use super::Rewrite;
use crate::graph::{Graph, Id, Op};
use crate::view::{Step, View};

/// A node in the layout that some steps give it.
#[derive(Clone)]
struct Shown {
    id: Id,
    steps: Vec<Step>,
}

/// `value · factor + turned(value) · turned_factor`
struct Rotated {
    value: Shown,
    factor: Shown,
    turned_factor: Shown,
}

/// The graph with every rotary embedding as operations on halves.
pub(super) fn rotations(graph: &Graph) -> Graph {
    let mut rewrite = Rewrite::new(graph);
    for id in graph.ids() {
        match rotated(graph, id).and_then(|rotated| in_halves(&mut rewrite, id, &rotated)) {
            Some(new) => {
                rewrite.made.insert(id, new);
            }
            None => {
                rewrite.copy(id);
            }
        }
    }
    rewrite.finish()
}

impl Shown {
    fn of(id: Id) -> Self {
        Self { id, steps: Vec::new() }
    }

    /// The node below all layouts, and all steps from there on.
    fn below(&self, graph: &Graph) -> Self {
        let (mut id, mut steps) = (self.id, Vec::new());
        while let Op::Layout(step) = &graph.node(id).op {
            steps.push(step.clone());
            id = graph.node(id).inputs[0];
        }
        steps.reverse();
        steps.extend(self.steps.iter().cloned());
        Self { id, steps }
    }

    /// Where its elements lie in the node.
    fn view(&self, graph: &Graph) -> Option<View> {
        View::dense(&graph.node(self.id).dims).after_all(&self.steps)
    }

    /// The operands of an operation on elements below all layouts: layouts of a result are those of what it is made from.
    fn operands(&self, graph: &Graph, kind: OpKind) -> Option<Vec<Self>> {
        let below = self.below(graph);
        let node = graph.node(below.id);
        let shown = |&id: &Id| Self { id, steps: below.steps.clone() };
        matches!(node.op, Op::Elementwise(of) if of == kind).then(|| node.inputs.iter().map(shown).collect())
    }

    /// Both orders of the operands of an operation of two.
    fn both_orders(&self, graph: &Graph, kind: OpKind) -> Option<[[Self; 2]; 2]> {
        let [a, b] = self.operands(graph, kind)?.try_into().ok()?;
        Some([[a.clone(), b.clone()], [b, a]])
    }
}

fn rotated(graph: &Graph, id: Id) -> Option<Rotated> {
    let node = graph.node(id);
    let is_sum =
        matches!(node.op, Op::Elementwise(OpKind::Add)) && matches!(node.element, ElementType::Float(_));
    if !is_sum {
        return None;
    }
    Shown::of(id).both_orders(graph, OpKind::Add)?.into_iter().find_map(|[plain, other]| {
        other.both_orders(graph, OpKind::Multiply)?.into_iter().find_map(|[turned, turned_factor]| {
            let [second, first] = halves_turned(graph, &turned)?;
            let mut factors = plain.both_orders(graph, OpKind::Multiply)?.into_iter();
            let fits = |value: &Shown| are_halves(graph, value, &first, &second) == Some(true);
            let [value, factor] = factors.find(|[value, _]| fits(value))?;
            Some(Rotated { value, factor, turned_factor })
        })
    })
}

/// The values whose negation and which itself are put one after the other along the last dimension.
fn halves_turned(graph: &Graph, shown: &Shown) -> Option<[Shown; 2]> {
    let below = shown.below(graph);
    let node = graph.node(below.id);
    let &[negated, first] = node.inputs.as_slice() else { return None };
    let last = node.dims.len().checked_sub(1)?;
    let as_it_is = below.view(graph)? == View::dense(&node.dims);
    if !as_it_is || !matches!(node.op, Op::Concat(axis) if axis == last) {
        return None;
    }
    let [second] = Shown::of(negated).operands(graph, OpKind::Negate)?.try_into().ok()?;
    Some([second, Shown::of(first)])
}

/// Whether two nodes are the halves of a value along its last dimension.
fn are_halves(graph: &Graph, value: &Shown, first: &Shown, second: &Shown) -> Option<bool> {
    let [value, first, second] = [value, first, second].map(|shown| shown.below(graph));
    let whole = value.view(graph)?;
    let (size, stride) = (*whole.dims.last()?, *whole.strides.last()?);
    let mut expected = whole;
    *expected.dims.last_mut()? = size / 2;
    let mut beyond = expected.clone();
    beyond.offset += (size / 2) as isize * stride;
    let of_value = value.id == first.id && value.id == second.id;
    Some(of_value && size % 2 == 0 && first.view(graph)? == expected && second.view(graph)? == beyond)
}

fn in_halves(rewrite: &mut Rewrite<'_>, id: Id, rotated: &Rotated) -> Option<Id> {
    let node = rewrite.old.node(id);
    let (element, dims) = (node.element, node.dims.clone());
    let axis = dims.len().checked_sub(1)?;
    let mut split = dims[..axis].to_vec();
    split.extend([2, dims[axis] / 2]);
    let signs = [-1.0, 1.0].map(Scalar::Float);
    let signs = Tensor::from_scalars(element, Shape::new([2]).ok()?, signs).ok()?;
    let b = &mut rewrite.builder;
    b.origin = node.origin;
    let [value, factor, turned_factor] =
        [&rotated.value, &rotated.factor, &rotated.turned_factor].map(|shown| {
            let made = rewrite.made[&shown.id];
            let shown = shown.steps.iter().fold(made, |id, step| b.layout(step.clone(), id));
            b.reshape(shown, split.clone())
        });
    let signs = b.constant(signs);
    let signs = b.broadcast(signs, split, &[axis]);
    let turned = b.layout(Step::Reverse(vec![axis]), value);
    let turned = b.map(OpKind::Multiply, vec![turned, signs]);
    let plain = b.map(OpKind::Multiply, vec![value, factor]);
    let turned = b.map(OpKind::Multiply, vec![turned, turned_factor]);
    let sum = b.map(OpKind::Add, vec![plain, turned]);
    Some(b.reshape(sum, dims))
}

#[cfg(test)]
mod tests {
    use warpforge_diag::Source;
    use warpforge_snakeburger::text;

    use crate::cluster::clusters;
    use crate::graph::import;
    use crate::report::Report;
    use crate::simplify::simplify;

    /// The kernels of a rotation of heads, whose second half begins where it is told to.
    fn kernels(second: &str) -> usize {
        let module = format!(
            "func.func @main(%rows: tensor<5x16xf32>, %c: tensor<5x8xf32>, %s: tensor<5x8xf32>) -> tensor<2x5x8xf32> {{
            %0 = stablehlo.reshape %rows : (tensor<5x16xf32>) -> tensor<5x2x8xf32>
            %x = stablehlo.transpose %0, dims = [1, 0, 2] : (tensor<5x2x8xf32>) -> tensor<2x5x8xf32>
            %cos = stablehlo.broadcast_in_dim %c, dims = [1, 2] : (tensor<5x8xf32>) -> tensor<2x5x8xf32>
            %sin = stablehlo.broadcast_in_dim %s, dims = [1, 2] : (tensor<5x8xf32>) -> tensor<2x5x8xf32>
            %first = stablehlo.slice %x [0:2, 0:5, 0:4] : (tensor<2x5x8xf32>) -> tensor<2x5x4xf32>
            %second = stablehlo.slice %x [0:2, 0:5, {second}] : (tensor<2x5x8xf32>) -> tensor<2x5x4xf32>
            %less = stablehlo.negate %second : tensor<2x5x4xf32>
            %turned = stablehlo.concatenate %less, %first, dim = 2 : (tensor<2x5x4xf32>, tensor<2x5x4xf32>) -> tensor<2x5x8xf32>
            %a = stablehlo.multiply %x, %cos : tensor<2x5x8xf32>
            %b = stablehlo.multiply %turned, %sin : tensor<2x5x8xf32>
            %out = stablehlo.add %a, %b : tensor<2x5x8xf32>
            return %out : tensor<2x5x8xf32>
        }}"
        );
        let module = text::parse(&Source::new("m.mlir", module.as_str()), &text::Options::default()).unwrap();
        let graph = simplify(&import(module.function("main").unwrap(), &|_| None).unwrap());
        let report = Report::new(&graph, &clusters(&graph));
        assert!(report.on_reference.is_empty());
        report.after.kernels
    }

    #[test]
    fn a_rotation_is_one_kernel() {
        assert_eq!(kernels("4:8"), 1);
        // Not the second half: put together in memory.
        assert_eq!(kernels("3:7"), 3);
    }
}
