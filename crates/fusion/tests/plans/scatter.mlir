// The gradient of an embedding, and a scatter by a function of its own.
// plan:
// plan: without=scatter
func.func @main(%x: tensor<9x4xf32>, %i: tensor<6x1xi64>, %u: tensor<6x4xf32>) -> (tensor<9x4xf32>, tensor<9x4xf32>) {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<9x4xf32>, tensor<6x1xi64>, tensor<6x4xf32>) -> tensor<9x4xf32>
  %1 = stablehlo.tanh %0 : tensor<9x4xf32>
  %2 = "stablehlo.scatter"(%1, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %half = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %s = stablehlo.multiply %a, %half : tensor<f32>
    %t = stablehlo.subtract %b, %s : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) : (tensor<9x4xf32>, tensor<6x1xi64>, tensor<6x4xf32>) -> tensor<9x4xf32>
  return %1, %2 : tensor<9x4xf32>, tensor<9x4xf32>
}

// clusters of the model as it is
// #0 unfused -> tensor<9x4xf32>
//     scatter
//     24 FLOP, 432 bytes
// #1 loop -> tensor<9x4xf32> from #0
//     tanh
//     36 FLOP, 288 bytes
// #2 unfused -> tensor<9x4xf32> from #1
//     scatter
//     24 FLOP, 432 bytes
// before: 3 kernels, 84 FLOP, 1152 bytes moved
// after:  3 kernels, 84 FLOP, 1152 bytes moved

// clusters of without=scatter
// #0 fallback -> tensor<9x4xf32>
//     scatter
//     24 FLOP, 432 bytes
// #1 loop -> tensor<9x4xf32> from #0
//     tanh
//     36 FLOP, 288 bytes
// #2 fallback -> tensor<9x4xf32> from #1
//     scatter
//     24 FLOP, 432 bytes
// before: 3 kernels, 84 FLOP, 1152 bytes moved
// after:  3 kernels, 84 FLOP, 1152 bytes moved
// on the reference interpreter: scatter x2
