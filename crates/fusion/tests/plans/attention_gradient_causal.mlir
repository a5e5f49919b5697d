// Attention and its gradients; the mask is causal.
// plan: fuses_gradients
func.func @main(%q: tensor<2x8x16xf32>, %k: tensor<2x8x16xf32>, %v: tensor<2x8x16xf32>, %g: tensor<2x8x16xf32>) -> (tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x8xf32>
  %c = stablehlo.constant dense<0.25> : tensor<2x8x8xf32>
  %y = stablehlo.multiply %s, %c : tensor<2x8x8xf32>
  %none = stablehlo.constant dense<0xFF800000> : tensor<2x8x8xf32>
  %i = stablehlo.iota dim = 0 : tensor<8x8xi32>
  %j = stablehlo.iota dim = 1 : tensor<8x8xi32>
  %see = stablehlo.compare LE, %j, %i : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
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
  %dv = stablehlo.dot_general %w, %g, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x8x8xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %dw = stablehlo.dot_general %g, %v, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x8xf32>
  %wg = stablehlo.multiply %dw, %w : tensor<2x8x8xf32>
  %tw = stablehlo.reduce(%wg init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %tt = stablehlo.broadcast_in_dim %tw, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x8xf32>
  %back = stablehlo.multiply %w, %tt : tensor<2x8x8xf32>
  %ds = stablehlo.subtract %wg, %back : tensor<2x8x8xf32>
  %dx = stablehlo.multiply %ds, %c : tensor<2x8x8xf32>
  %dq = stablehlo.dot_general %dx, %k, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x8x8xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %dk = stablehlo.dot_general %dx, %q, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x8x8xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %o, %dq, %dk, %dv : tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>
}

// clusters of fuses_gradients
// #0 attention -> tensor<2x8x16xf32>
//     causal softmax, scores times 0.25
//     dot x2, broadcast x5, multiply, select, reduce maximum, subtract, exponential, reduce add, divide
//     9088 FLOP, 4160 bytes
// #1 attention gradient -> tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>
//     causal softmax, scores times 0.25
//     dot x5, broadcast x7, multiply x4, select, reduce maximum, subtract x2, exponential, reduce add x2, divide
//     22016 FLOP, 7232 bytes
// before: 24 kernels, 26112 FLOP, 33480 bytes moved
// after:  2 kernels, 31104 FLOP, 11392 bytes moved
