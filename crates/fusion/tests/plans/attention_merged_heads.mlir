// Attention as `torch.bmm` has it: batch and heads are one dimension. Queries, keys and values are read where they are.
// plan:
func.func @main(%q: tensor<2x8x32xf32>, %k: tensor<2x8x32xf32>, %v: tensor<2x8x32xf32>) -> tensor<2x8x32xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %q4 = stablehlo.reshape %q : (tensor<2x8x32xf32>) -> tensor<2x8x2x16xf32>
  %k4 = stablehlo.reshape %k : (tensor<2x8x32xf32>) -> tensor<2x8x2x16xf32>
  %v4 = stablehlo.reshape %v : (tensor<2x8x32xf32>) -> tensor<2x8x2x16xf32>
  %qh = stablehlo.transpose %q4, dims = [0, 2, 1, 3] : (tensor<2x8x2x16xf32>) -> tensor<2x2x8x16xf32>
  %kh = stablehlo.transpose %k4, dims = [0, 2, 3, 1] : (tensor<2x8x2x16xf32>) -> tensor<2x2x16x8xf32>
  %vh = stablehlo.transpose %v4, dims = [0, 2, 1, 3] : (tensor<2x8x2x16xf32>) -> tensor<2x2x8x16xf32>
  %qm = stablehlo.reshape %qh : (tensor<2x2x8x16xf32>) -> tensor<4x8x16xf32>
  %km = stablehlo.reshape %kh : (tensor<2x2x16x8xf32>) -> tensor<4x16x8xf32>
  %vm = stablehlo.reshape %vh : (tensor<2x2x8x16xf32>) -> tensor<4x8x16xf32>
  %sm = stablehlo.dot_general %qm, %km, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x8x16xf32>, tensor<4x16x8xf32>) -> tensor<4x8x8xf32>
  %s = stablehlo.reshape %sm : (tensor<4x8x8xf32>) -> tensor<2x2x8x8xf32>
  %c = stablehlo.constant dense<0.25> : tensor<2x2x8x8xf32>
  %y = stablehlo.multiply %s, %c : tensor<2x2x8x8xf32>
  %m = stablehlo.reduce(%y init: %low) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x8x8xf32>, tensor<f32>) -> tensor<2x2x8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2] : (tensor<2x2x8xf32>) -> tensor<2x2x8x8xf32>
  %d = stablehlo.subtract %y, %mb : tensor<2x2x8x8xf32>
  %e = stablehlo.exponential %d : tensor<2x2x8x8xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x2x8x8xf32>, tensor<f32>) -> tensor<2x2x8xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1, 2] : (tensor<2x2x8xf32>) -> tensor<2x2x8x8xf32>
  %w = stablehlo.divide %e, %tb : tensor<2x2x8x8xf32>
  %wm = stablehlo.reshape %w : (tensor<2x2x8x8xf32>) -> tensor<4x8x8xf32>
  %om = stablehlo.dot_general %wm, %vm, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x8x8xf32>, tensor<4x8x16xf32>) -> tensor<4x8x16xf32>
  %o4 = stablehlo.reshape %om : (tensor<4x8x16xf32>) -> tensor<2x2x8x16xf32>
  %ot = stablehlo.transpose %o4, dims = [0, 2, 1, 3] : (tensor<2x2x8x16xf32>) -> tensor<2x8x2x16xf32>
  %o = stablehlo.reshape %ot : (tensor<2x8x2x16xf32>) -> tensor<2x8x32xf32>
  return %o : tensor<2x8x32xf32>
}

// clusters of the model as it is
// #0 attention -> tensor<2x8x2x16xf32>
//     softmax, scores times 0.25
//     dot x2, broadcast x3, multiply, reduce maximum, subtract, exponential, reduce add, divide, transpose
//     17920 FLOP, 8192 bytes
// before: 19 kernels, 17920 FLOP, 59908 bytes moved
// after:  1 kernels, 17920 FLOP, 8192 bytes moved
