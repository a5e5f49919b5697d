//! Nodes evaluated while compiling, by the reference.

use warpforge_interp::{Interpreter, Options, Value};
use warpforge_tensor::{ElementType, Shape, Tensor};

use super::op::Op;
use super::reference::{FUNCTION, TensorOf, module};
use crate::view::View;

/// What an operation of one result gives for these operands; nothing where the reference has no such operation or fails.
pub(crate) fn evaluate(op: &Op, inputs: &[Tensor], element: ElementType, dims: &[usize]) -> Option<Tensor> {
    if let Op::Layout(step) = op {
        let [input] = inputs else { return None };
        let shape = Shape::new(dims).ok()?;
        let view = View::dense(input.dims()).after(step)?;
        if view.is_dense() && view.len() == input.len() {
            return input.reshaped(shape).ok();
        }
        return input.strided(shape, usize::try_from(view.offset).ok()?, &view.strides).ok();
    }
    let types: Vec<TensorOf> =
        inputs.iter().map(|input| (input.element_type(), input.dims().to_vec())).collect();
    let (_, module) = module(op, &types, &[(element, dims.to_vec())])?;
    let values = inputs.iter().cloned().map(Value::Tensor).collect();
    let given = Interpreter::new(&module, Options::default()).run(FUNCTION, values).ok()?;
    given.first()?.as_tensor().ok().cloned()
}

#[cfg(test)]
mod tests {
    use crate::testing::graph;

    /// What export makes of positions and of a mask of packed sequences: a running sum by pads and sums, rows picked.
    #[test]
    fn what_depends_on_no_input_is_known_when_compiling() {
        let module = "func.func @main() -> tensor<2xi64> {
            %0 = stablehlo.iota dim = 0 : tensor<4xi64>
            %1 = stablehlo.slice %0 [0:3] : (tensor<4xi64>) -> tensor<3xi64>
            %zero = stablehlo.constant dense<0> : tensor<i64>
            %2 = stablehlo.pad %1, %zero, low = [1], high = [0], interior = [0] : (tensor<3xi64>, tensor<i64>) -> tensor<4xi64>
            %3 = stablehlo.add %0, %2 : tensor<4xi64>
            %rows = stablehlo.constant dense<[[3], [1]]> : tensor<2x1xi64>
            %4 = \"stablehlo.gather\"(%3, %rows) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
                start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}>
                : (tensor<4xi64>, tensor<2x1xi64>) -> tensor<2xi64>
            return %4 : tensor<2xi64>
        }";
        let graph = graph(module);
        let known = graph.constant(graph.outputs[0]).unwrap();
        assert_eq!(known.as_slice::<i64>().unwrap(), [5, 1]);
    }
}
