//! What the weights of products are called, for messages.

use std::collections::HashMap;

use warpforge_ir::signature::Signature;
use warpforge_ir::{Func, OpId, OpKind, ValueId};

/// The names of the arguments that are the right operands of products, behind layouts and conversions, by the product.
#[derive(Debug, Clone, Default)]
pub(crate) struct WeightNames(HashMap<OpId, String>);

impl WeightNames {
    /// Those of a function's own products.
    pub(crate) fn of(func: Func<'_>) -> Self {
        let signature = Signature::of(func);
        let names = func.arguments().iter().zip(signature.arguments).map(|(&value, own)| (value, own.name));
        let mut names: HashMap<ValueId, String> = names.collect();
        let mut found = HashMap::new();
        let Some(body) = func.body() else { return Self(found) };
        for op in func.op().module().ops_in(body) {
            let operand = |at: usize| op.operand(at).and_then(|value| names.get(&value)).cloned();
            match op.kind() {
                Some(OpKind::DotGeneral) => {
                    found.extend(operand(1).map(|name| (op.id(), name)));
                }
                Some(OpKind::Transpose | OpKind::Convert | OpKind::Reshape) => {
                    if let (Some(name), Some(result)) = (operand(0), op.result(0)) {
                        names.insert(result, name);
                    }
                }
                _ => {}
            }
        }
        Self(found)
    }

    /// What a product is called: its weight, as far as it has a name, and its sizes.
    pub(crate) fn product(&self, origin: Option<OpId>, k: usize, n: usize) -> String {
        match origin.and_then(|op| self.0.get(&op)) {
            Some(name) => format!("{name} ({k}x{n})"),
            None => format!("the matrix product {k}x{n}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use warpforge_tensor::Tensor;

    use super::super::rewrite::quantize;
    use super::*;
    use crate::graph::import;
    use crate::testing::module;

    #[test]
    fn errors_name_the_weights_of_products() {
        let text = "func.func @main(
            %x: tensor<4x32xf32> {warpforge.name = \"x\"},
            %w: tensor<8x32xf32> {warpforge.name = \"up\", warpforge.role = \"parameter\"},
            %v: tensor<8x8xf32> {warpforge.name = \"down\", warpforge.role = \"parameter\"}) -> tensor<4x8xf32> {
            %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<8x32xf32>) -> tensor<32x8xf32>
            %d = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x8xf32>) -> tensor<4x8xf32>
            %e = stablehlo.dot_general %d, %v, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
            func.return %e : tensor<4x8xf32>
        }";
        let module = module(text);
        let func = module.function("main").unwrap();
        let refused = |down: f32, recipe: &str| {
            let weights = |at: usize| match at {
                1 => Tensor::from_slice(&[8, 32], &[1.0f32; 256]).ok(),
                2 => Tensor::from_slice(&[8, 8], &[down; 64]).ok(),
                _ => None,
            };
            let graph = import(func, &weights).unwrap();
            let recipe = recipe.parse().unwrap();
            quantize(&graph, recipe, &|_, _| false, &WeightNames::of(func), None).unwrap_err().to_string()
        };
        assert_eq!(
            refused(1.0, "int4wo-24"),
            "the group size 24 does not divide the depth of up (32x8), down (8x8)"
        );
        assert_eq!(refused(1.0, "int4wo-16"), "the group size 16 does not divide the depth of down (8x8)");
        let error = refused(f32::INFINITY, "int8dq");
        assert_eq!(error, "a weight of down (8x8) is NaN or infinite: it has no scale");
        assert_eq!(WeightNames::default().product(None, 3, 2), "the matrix product 3x2");
    }
}
