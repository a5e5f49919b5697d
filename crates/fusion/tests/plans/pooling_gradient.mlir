// The gradient of max-pooling.
// plan:
// plan: without=select_and_scatter
func.func @main(%x: tensor<2x9x8x3xf32>, %s: tensor<2x5x4x3xf32>) -> tensor<2x9x8x3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %s, %zero) <{window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>, padding = dense<[[0, 0], [1, 1], [1, 0], [0, 0]]> : tensor<4x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %t = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) : (tensor<2x9x8x3xf32>, tensor<2x5x4x3xf32>, tensor<f32>) -> tensor<2x9x8x3xf32>
  return %0 : tensor<2x9x8x3xf32>
}

// clusters of the model as it is
// #0 unfused -> tensor<2x9x8x3xf32>
//     select_and_scatter
//     1080 FLOP, 3940 bytes
// before: 1 kernels, 1080 FLOP, 3940 bytes moved
// after:  1 kernels, 1080 FLOP, 3940 bytes moved

// clusters of without=select_and_scatter
// #0 fallback -> tensor<2x9x8x3xf32>
//     select_and_scatter
//     1080 FLOP, 3940 bytes
// before: 1 kernels, 1080 FLOP, 3940 bytes moved
// after:  1 kernels, 1080 FLOP, 3940 bytes moved
// on the reference interpreter: select_and_scatter
