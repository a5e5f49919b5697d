// A causal mask that is written out for each batch, and added in a narrower type than the scores.
// plan:
func.func @main(%q: tensor<2x4x16xf32>, %k: tensor<2x4x16xf32>, %v: tensor<2x4x16xf32>) -> tensor<2x4x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %see = stablehlo.constant dense<[[[true, false, false, false], [true, true, false, false], [true, true, true, false], [true, true, true, true]], [[true, false, false, false], [true, true, false, false], [true, true, true, false], [true, true, true, true]]]> : tensor<2x4x4xi1>
  %least = stablehlo.constant dense<-3.38953139E+38> : tensor<2x4x4xbf16>
  %none = stablehlo.constant dense<0.0> : tensor<2x4x4xbf16>
  %mask = stablehlo.select %see, %none, %least : tensor<2x4x4xi1>, tensor<2x4x4xbf16>
  %wide = stablehlo.convert %mask : (tensor<2x4x4xbf16>) -> tensor<2x4x4xf32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x4x4xf32>
  %x = stablehlo.add %s, %wide : tensor<2x4x4xf32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x4xf32>) -> tensor<2x4x4xf32>
  %d = stablehlo.subtract %x, %mb : tensor<2x4x4xf32>
  %e = stablehlo.exponential %d : tensor<2x4x4xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x4xf32>) -> tensor<2x4x4xf32>
  %w = stablehlo.divide %e, %tb : tensor<2x4x4xf32>
  %o = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x4x4xf32>, tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
  return %o : tensor<2x4x16xf32>
}

// clusters of the model as it is
// #0 attention -> tensor<2x4x16xf32>
//     causal softmax
//     dot x2, add, reduce maximum, broadcast x2, subtract, exponential, reduce add, divide
//     2240 FLOP, 2176 bytes
// before: 10 kernels, 2240 FLOP, 4352 bytes moved
// after:  1 kernels, 2240 FLOP, 2176 bytes moved
