//! Floats rounded to f8E4M3FN and widened again, for devices without elements of that type.
//!
//! The class: a conversion of f32 to f8E4M3FN that is converted back, as in models whose activations are quantized while running. There
//! it becomes arithmetic of f32 with the same values; elsewhere both conversions stay.

use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatType};

use super::recipe::Recipe;
use super::rewrite::Pass;
use crate::graph::{Graph, NodeId, Op};

/// The largest magnitude that is rounded to a number: half way to the next one that f8E4M3FN would have.
const MOST_ROUNDED: f32 = 464.0;

/// The graph that rounds in f32.
pub(crate) fn round_in_f32(graph: &Graph) -> Graph {
    let found: Vec<Option<NodeId>> = graph.ids().map(|id| rounded(graph, id)).collect();
    if found.iter().all(Option::is_none) {
        return graph.clone();
    }
    // No recipe is applied.
    let mut pass = Pass::new(graph, Recipe::Float8DynamicRow);
    for (id, found) in graph.ids().zip(found) {
        let node = pass.rewrite.next(id);
        let new = match found {
            Some(value) => {
                let value = pass.rewrite.moved(value);
                pass.widened_f8(value)
            }
            None => pass.rewrite.push(node),
        };
        pass.rewrite.end(new);
    }
    pass.rewrite.finish(None).pruned()
}

/// What is rounded to f8E4M3FN and widened to f32.
fn rounded(graph: &Graph, id: NodeId) -> Option<NodeId> {
    let codes = converted(graph, id, ElementType::F32)?;
    let value = converted(graph, codes, ElementType::Float(FloatType::F8E4M3Fn))?;
    (graph.node(value).element == ElementType::F32 && !graph.is_known(value)).then_some(value)
}

/// What a value of some type is a conversion of, where no engine has the operation.
fn converted(graph: &Graph, id: NodeId, element: ElementType) -> Option<NodeId> {
    let node = graph.node(id);
    let (Op::Result(0), &[part]) = (&node.op, node.inputs.as_slice()) else { return None };
    let part = graph.node(part);
    let converts = matches!(part.op, Op::Opaque(_)) && part.op.name() == "convert" && part.inputs.len() == 1;
    (converts && node.element == element).then(|| part.inputs[0])
}

impl Pass<'_> {
    /// f32 after a conversion to f8E4M3FN: NaN where that has no number.
    fn widened_f8(&mut self, value: NodeId) -> NodeId {
        let rounded = self.rounded_to_f8(value);
        let dims = self.rewrite.dims(value).to_vec();
        let size = self.map(Function::Abs, &[value]);
        let most = self.splat(MOST_ROUNDED, &dims);
        let is_beyond = self.less(most, size);
        let none = self.splat(f32::NAN, &dims);
        self.map(Function::Select, &[is_beyond, none, rounded])
    }
}

#[cfg(test)]
mod tests {
    use warpforge_tensor::Tensor;

    use super::*;
    use crate::graph::import;
    use crate::testing::{evaluated, module};

    #[test]
    fn rounding_in_f32_gives_the_values_of_the_type() {
        let text = "func.func @main(%x: tensor<4096xf32>) -> tensor<4096xf32> {
            %c = stablehlo.convert %x : (tensor<4096xf32>) -> tensor<4096xf8E4M3FN>
            %w = stablehlo.convert %c : (tensor<4096xf8E4M3FN>) -> tensor<4096xf32>
            return %w : tensor<4096xf32>
        }";
        let module = module(text);
        let graph = import(module.function("main").unwrap(), &|_| None).unwrap();
        let rewritten = round_in_f32(&graph);
        assert!(!rewritten.ids().any(|id| matches!(rewritten.node(id).op, Op::Opaque(_))));
        let special =
            [0.0, -0.0, 448.0, 464.0, -464.0, 464.01, 1e9, f32::INFINITY, f32::NAN, 1e-3, -1e-4, 9.0e-4];
        let spread = (0..4096 - special.len()).map(|at| (at as f32 - 2000.0) * 0.237_1);
        let values: Vec<f32> = special.into_iter().chain(spread).collect();
        let found = evaluated(&rewritten, &[Tensor::from_slice(&[4096], &values).unwrap()]);
        let format = FloatType::F8E4M3Fn.format();
        for (value, found) in values.iter().zip(found[0].as_slice::<f32>().unwrap()) {
            let expected = format.decode(format.encode(f64::from(*value))) as f32;
            assert!(
                *found == expected || found.is_nan() && expected.is_nan(),
                "{value}: {found}, not {expected}"
            );
        }
    }
}
