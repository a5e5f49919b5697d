// Key padding as numbers, in a narrower type than the scores; one query.
// plan:
func.func @main(%q: tensor<2x4x1x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>, %keys: tensor<2x8xi1>) -> tensor<2x4x1x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %least = stablehlo.constant dense<-3.38953139E+38> : tensor<2x8xbf16>
  %none = stablehlo.constant dense<0.0> : tensor<2x8xbf16>
  %mask = stablehlo.select %keys, %none, %least : tensor<2x8xi1>, tensor<2x8xbf16>
  %wide = stablehlo.convert %mask : (tensor<2x8xbf16>) -> tensor<2x8xf32>
  %masks = stablehlo.broadcast_in_dim %wide, dims = [0, 3] : (tensor<2x8xf32>) -> tensor<2x4x1x8xf32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x4x1x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x1x8xf32>
  %x = stablehlo.add %s, %masks : tensor<2x4x1x8xf32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x1x8xf32>, tensor<f32>) -> tensor<2x4x1xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2] : (tensor<2x4x1xf32>) -> tensor<2x4x1x8xf32>
  %d = stablehlo.subtract %x, %mb : tensor<2x4x1x8xf32>
  %e = stablehlo.exponential %d : tensor<2x4x1x8xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x4x1x8xf32>, tensor<f32>) -> tensor<2x4x1xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1, 2] : (tensor<2x4x1xf32>) -> tensor<2x4x1x8xf32>
  %w = stablehlo.divide %e, %tb : tensor<2x4x1x8xf32>
  %o = stablehlo.dot_general %w, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x4x1x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x1x16xf32>
  return %o : tensor<2x4x1x16xf32>
}

// clusters of the model as it is
// #0 attention -> tensor<2x4x1x16xf32>
//     key-masked softmax
//     dot x2, broadcast x5, select, convert, add, reduce maximum, subtract, exponential, reduce add, divide
//     4512 FLOP, 9232 bytes
// before: 15 kernels, 4512 FLOP, 14292 bytes moved
// after:  1 kernels, 4512 FLOP, 9232 bytes moved
