//! Rotary embedding in halves: `x · c + (-x₂, x₁) · s` without putting the rotated halves together in memory.
//!
//! With the last dimension cut in two, the rotated value is the value itself read in another order, times -1 and 1:
//! one loop over views of `x`.

use std::collections::HashMap;

use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use super::rewrite::Rewrite;
use crate::graph::{Builder, Graph, NodeId, Op};
use crate::pattern::rotary::{Rotary, SIGNS, rotary};
use crate::view::LayoutOp;

/// The graph with every rotary embedding as operations on halves.
pub(super) fn canonicalise(graph: &Graph) -> Graph {
    let mut rewrite = Rewrite::new(graph);
    let mut halved: HashMap<NodeId, NodeId> = HashMap::new();
    for id in graph.ids() {
        let rotation = rotary(graph, id)
            .filter(|rotary| rotary.is_concatenated)
            .and_then(|rotary| in_halves(&mut rewrite, id, &rotary));
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

/// The sum with its last dimension cut in two.
fn in_halves(rewrite: &mut Rewrite<'_>, id: NodeId, rotary: &Rotary) -> Option<NodeId> {
    let node = rewrite.old.node(id);
    let dims = &node.dims;
    let axis = dims.len().checked_sub(1)?;
    let mut split = dims[..axis].to_vec();
    split.extend([2, dims[axis] / 2]);
    let b = &mut rewrite.builder;
    b.origin = node.origin;
    let [value, factor, rotated_factor] =
        [&rotary.value, &rotary.factor, &rotary.rotated_factor].map(|shown| {
            let made = rewrite.made[&shown.id];
            let shown = shown.steps.iter().fold(made, |id, step| b.layout(step.clone(), id));
            b.reshape(shown, split.clone())
        });
    let rotated_half = b.layout(LayoutOp::Reverse(vec![axis]), value);
    let rotated_half = convert(b, rotated_half, &rotary.rotated_half);
    let signs =
        Tensor::from_scalars(b.node(rotated_half).element, Shape::new([2]).ok()?, SIGNS.map(Scalar::Float))
            .ok()?;
    let signs = b.constant(signs);
    let signs = b.broadcast(signs, split, &[axis]);
    let rotated_half = b.map(Function::Multiply, vec![rotated_half, signs]);
    let rotated_half = b.map(Function::Multiply, vec![rotated_half, rotated_factor]);
    let rotated_half = convert(b, rotated_half, &rotary.other);
    let value = convert(b, value, &rotary.value.converted);
    let plain = b.map(Function::Multiply, vec![value, factor]);
    let plain = convert(b, plain, &rotary.plain);
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
