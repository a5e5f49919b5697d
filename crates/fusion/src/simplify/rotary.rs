//! Rotary embedding in halves: `x · c + (-x₂, x₁) · s` without putting the rotated halves together in memory.
//!
//! With the last dimension cut in two, the rotated value is the value itself read in another order, times -1 and 1:
//! one loop over views of `x`.

use std::collections::HashMap;

use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use super::Rewrite;
use crate::graph::{Builder, Graph, NodeId, Op};
use crate::view::{LayoutOp, View};

/// What the halves are multiplied by when they are in the other order.
const SIGNS: [Scalar; 2] = [Scalar::Float(-1.0), Scalar::Float(1.0)];

/// A node in the layout that some steps give it, converted to one type of floats after the other.
#[derive(Clone)]
struct Shown {
    id: NodeId,
    steps: Vec<LayoutOp>,
    converted: Vec<ElementType>,
}

/// A product below layouts and conversions.
struct Factors {
    operands: Vec<Shown>,
    /// What the product is converted to.
    converted: Vec<ElementType>,
}

/// `value · factor + rotate_half(value) · rotated_factor`, both products converted before they are added
struct Rotated {
    value: Shown,
    factor: Shown,
    plain: Vec<ElementType>,
    /// What the rotated value is converted to.
    rotated_half: Vec<ElementType>,
    rotated_factor: Shown,
    other: Vec<ElementType>,
}

/// The graph with every rotary embedding as operations on halves.
pub(super) fn canonicalise(graph: &Graph) -> Graph {
    let mut rewrite = Rewrite::new(graph);
    let mut halved: HashMap<NodeId, NodeId> = HashMap::new();
    for id in graph.ids() {
        let rotation = rotated(graph, id).and_then(|rotated| in_halves(&mut rewrite, id, &rotated));
        match rotation.or_else(|| converted(&mut rewrite, id, &halved)) {
            Some(sum) => {
                let whole = rewrite.builder.reshape(sum, graph.node(id).dims.clone());
                rewrite.made.insert(id, whole);
                halved.insert(id, sum);
            }
            None => {
                rewrite.copy(id);
            }
        }
    }
    rewrite.finish()
}

/// What is in halves already converted to another type of floats, in halves as well.
fn converted(rewrite: &mut Rewrite<'_>, id: NodeId, halved: &HashMap<NodeId, NodeId>) -> Option<NodeId> {
    let node = rewrite.old.node(id);
    let sum = *halved.get(node.inputs.first()?)?;
    let is_conversion = matches!(node.op, Op::Elementwise(Function::Convert)) && node.element.is_float();
    rewrite.builder.origin = node.origin;
    is_conversion.then(|| convert(&mut rewrite.builder, sum, &[node.element]))
}

fn convert(b: &mut Builder, id: NodeId, types: &[ElementType]) -> NodeId {
    types.iter().fold(id, |id, &element| {
        let dims = b.node(id).dims.clone();
        b.add(Op::Elementwise(Function::Convert), vec![id], element, dims)
    })
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

fn rotated(graph: &Graph, id: NodeId) -> Option<Rotated> {
    let node = graph.node(id);
    if !matches!(node.op, Op::Elementwise(Function::Add)) || !node.element.is_float() {
        return None;
    }
    let [a, b] = node.inputs[..] else { return None };
    [[a, b], [b, a]].into_iter().find_map(|[plain, other]| {
        let other = Shown::of(other).factors(graph, Function::Multiply)?;
        let plain = Shown::of(plain).factors(graph, Function::Multiply)?;
        other.both_orders()?.into_iter().find_map(|[rotated_half, rotated_factor]| {
            let rotated_half = rotated_half.below(graph, None);
            let [second, first] = rotated_halves(graph, &rotated_half)?;
            let fits = |value: &Shown| are_halves(graph, value, &first, &second) == Some(true);
            let [value, factor] = plain.both_orders()?.into_iter().find(|[value, _]| fits(value))?;
            Some(Rotated {
                value: value.below(graph, Some(first.base(graph))),
                factor: factor.clone(),
                plain: plain.converted.clone(),
                rotated_half: rotated_half.converted,
                rotated_factor: rotated_factor.clone(),
                other: other.converted.clone(),
            })
        })
    })
}

/// The values whose negation and which itself are put one after the other along the last dimension.
fn rotated_halves(graph: &Graph, rotated_half: &Shown) -> Option<[Shown; 2]> {
    let node = graph.node(rotated_half.id);
    let &[negated, first] = node.inputs.as_slice() else { return None };
    let last = node.dims.len().checked_sub(1)?;
    let as_it_is = rotated_half.view(graph)? == View::dense(&node.dims);
    if !as_it_is || !matches!(node.op, Op::Concat(axis) if axis == last) {
        return None;
    }
    let negation = Shown::of(negated).factors(graph, Function::Negate)?;
    let [second] = <[Shown; 1]>::try_from(negation.operands).ok()?;
    negation.converted.is_empty().then(|| [second, Shown::of(first)])
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

/// The sum with its last dimension cut in two.
fn in_halves(rewrite: &mut Rewrite<'_>, id: NodeId, rotated: &Rotated) -> Option<NodeId> {
    let node = rewrite.old.node(id);
    let dims = &node.dims;
    let axis = dims.len().checked_sub(1)?;
    let mut split = dims[..axis].to_vec();
    split.extend([2, dims[axis] / 2]);
    let b = &mut rewrite.builder;
    b.origin = node.origin;
    let [value, factor, rotated_factor] =
        [&rotated.value, &rotated.factor, &rotated.rotated_factor].map(|shown| {
            let made = rewrite.made[&shown.id];
            let shown = shown.steps.iter().fold(made, |id, step| b.layout(step.clone(), id));
            b.reshape(shown, split.clone())
        });
    let rotated_half = b.layout(LayoutOp::Reverse(vec![axis]), value);
    let rotated_half = convert(b, rotated_half, &rotated.rotated_half);
    let signs = Tensor::from_scalars(b.node(rotated_half).element, Shape::new([2]).ok()?, SIGNS).ok()?;
    let signs = b.constant(signs);
    let signs = b.broadcast(signs, split, &[axis]);
    let rotated_half = b.map(Function::Multiply, vec![rotated_half, signs]);
    let rotated_half = b.map(Function::Multiply, vec![rotated_half, rotated_factor]);
    let rotated_half = convert(b, rotated_half, &rotated.other);
    let value = convert(b, value, &rotated.value.converted);
    let plain = b.map(Function::Multiply, vec![value, factor]);
    let plain = convert(b, plain, &rotated.plain);
    Some(b.map(Function::Add, vec![plain, rotated_half]))
}

#[cfg(test)]
mod tests {
    use crate::graph::Op;
    use crate::simplify::simplify;
    use crate::testing::{graph, grouped};

    /// The kernels of a module.
    fn kernels(module: &str) -> usize {
        let graph = simplify(&graph(module));
        assert!(!graph.nodes.iter().any(|node| matches!(node.op, Op::Opaque(_))));
        grouped(&graph).clusters.len()
    }

    /// A rotation of heads whose second half begins where it is told to.
    fn rotation(second: &str) -> String {
        format!(
            "func.func @main(%rows: tensor<5x16xf32>, %c: tensor<5x8xf32>, %s: tensor<5x8xf32>) -> tensor<2x5x8xf32> {{
            %0 = stablehlo.reshape %rows : (tensor<5x16xf32>) -> tensor<5x2x8xf32>
            %x = stablehlo.transpose %0, dims = [1, 0, 2] : (tensor<5x2x8xf32>) -> tensor<2x5x8xf32>
            %cos = stablehlo.broadcast_in_dim %c, dims = [1, 2] : (tensor<5x8xf32>) -> tensor<2x5x8xf32>
            %sin = stablehlo.broadcast_in_dim %s, dims = [1, 2] : (tensor<5x8xf32>) -> tensor<2x5x8xf32>
            %first = stablehlo.slice %x [0:2, 0:5, 0:4] : (tensor<2x5x8xf32>) -> tensor<2x5x4xf32>
            %second = stablehlo.slice %x [0:2, 0:5, {second}] : (tensor<2x5x8xf32>) -> tensor<2x5x4xf32>
            %less = stablehlo.negate %second : tensor<2x5x4xf32>
            %rotated_half = stablehlo.concatenate %less, %first, dim = 2 : (tensor<2x5x4xf32>, tensor<2x5x4xf32>) -> tensor<2x5x8xf32>
            %a = stablehlo.multiply %x, %cos : tensor<2x5x8xf32>
            %b = stablehlo.multiply %rotated_half, %sin : tensor<2x5x8xf32>
            %out = stablehlo.add %a, %b : tensor<2x5x8xf32>
            return %out : tensor<2x5x8xf32>
        }}"
        )
    }

    /// The same in bf16, as export writes it: products in f32, each rounded.
    fn rounded() -> String {
        let wide = |name: &str, of: &str| {
            format!("%{name} = stablehlo.convert {of} : (tensor<2x5x8xbf16>) -> tensor<2x5x8xf32>\n")
        };
        let narrow = |name: &str, of: &str| {
            format!("%{name} = stablehlo.convert {of} : (tensor<2x5x8xf32>) -> tensor<2x5x8xbf16>\n")
        };
        let text = rotation("4:8")
            .replace("f32", "bf16")
            .replace("%rows: tensor<5x16xbf16>", "%wide: tensor<5x16xf32>");
        let rows = "{\n%rows = stablehlo.convert %wide : (tensor<5x16xf32>) -> tensor<5x16xbf16>\n";
        let text = text.replacen("{\n", rows, 1);
        let (before, after) = text.split_once("%a = ").unwrap();
        let (_, end) = after.split_once("return").unwrap();
        let times = |name: &str, x: &str, y: &str| {
            let wide = wide(&format!("{name}0"), x) + &wide(&format!("{name}1"), y);
            let product = format!("%{name}2 = stablehlo.multiply %{name}0, %{name}1 : tensor<2x5x8xf32>\n");
            wide + &product + &narrow(name, &format!("%{name}2"))
        };
        let sum =
            wide("a3", "%a") + &wide("b3", "%b") + "%sum = stablehlo.add %a3, %b3 : tensor<2x5x8xf32>\n";
        let products = times("a", "%x", "%cos") + &times("b", "%rotated_half", "%sin");
        format!("{before}{products}{sum}{}return{end}", narrow("out", "%sum"))
    }

    #[test]
    fn a_rotation_is_one_kernel() {
        assert_eq!(kernels(&rotation("4:8")), 1);
        // Rounding what is rotated is another's, as a product before it would be.
        assert_eq!(kernels(&rounded()), 2);
        // Not the second half: put together in memory.
        assert_eq!(kernels(&rotation("3:7")), 3);
    }
}
