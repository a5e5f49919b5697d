// Operands that export widened are read as they were; weights of attention are rounded with them.
// plan:
func.func @main(%qn: tensor<2x8x16xbf16>, %kn: tensor<2x8x16xbf16>, %vn: tensor<2x8x16xbf16>) -> tensor<2x8x16xf32> {
  %q = stablehlo.convert %qn : (tensor<2x8x16xbf16>) -> tensor<2x8x16xf32>
  %k = stablehlo.convert %kn : (tensor<2x8x16xbf16>) -> tensor<2x8x16xf32>
  %v = stablehlo.convert %vn : (tensor<2x8x16xbf16>) -> tensor<2x8x16xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x8xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x8xf32>
  %d = stablehlo.subtract %s, %mb : tensor<2x8x8xf32>
  %e = stablehlo.exponential %d : tensor<2x8x8xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x8xf32>
  %w = stablehlo.divide %e, %tb : tensor<2x8x8xf32>
  %o = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x8x8xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %o : tensor<2x8x16xf32>
}

// clusters of the model as it is
// #0 attention -> tensor<2x8x16xf32>
//     softmax
//     dot x2, reduce maximum, broadcast x2, subtract, exponential, reduce add, divide, convert
//     8960 FLOP, 2560 bytes
// before: 10 kernels, 8960 FLOP, 10496 bytes moved
// after:  1 kernels, 8960 FLOP, 2560 bytes moved
