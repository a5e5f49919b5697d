// A causal mask that is a constant.
// plan:
func.func @main(%q: tensor<2x8x16xf32>, %k: tensor<2x8x16xf32>, %v: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x8xf32>
  %c = stablehlo.constant dense<0.25> : tensor<2x8x8xf32>
  %y = stablehlo.multiply %s, %c : tensor<2x8x8xf32>
  %none = stablehlo.constant dense<0xFF800000> : tensor<2x8x8xf32>
  %see = stablehlo.constant dense<[[true, false, false, false, false, false, false, false], [true, true, false, false, false, false, false, false], [true, true, true, false, false, false, false, false], [true, true, true, true, false, false, false, false], [true, true, true, true, true, false, false, false], [true, true, true, true, true, true, false, false], [true, true, true, true, true, true, true, false], [true, true, true, true, true, true, true, true]]> : tensor<8x8xi1>
  %seen = stablehlo.broadcast_in_dim %see, dims = [1, 2] : (tensor<8x8xi1>) -> tensor<2x8x8xi1>
  %x = stablehlo.select %seen, %y, %none : tensor<2x8x8xi1>, tensor<2x8x8xf32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x8xf32>
  %d = stablehlo.subtract %x, %mb : tensor<2x8x8xf32>
  %e = stablehlo.exponential %d : tensor<2x8x8xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x8xf32>
  %w = stablehlo.divide %e, %tb : tensor<2x8x8xf32>
  %o = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x8x8xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %o : tensor<2x8x16xf32>
}

// clusters of the model as it is
// #0 attention -> tensor<2x8x16xf32>
//     causal softmax, scores times 0.25
//     dot x2, broadcast x5, multiply, select, reduce maximum, subtract, exponential, reduce add, divide
//     9088 FLOP, 4160 bytes
// before: 14 kernels, 9088 FLOP, 15944 bytes moved
// after:  1 kernels, 9088 FLOP, 4160 bytes moved
