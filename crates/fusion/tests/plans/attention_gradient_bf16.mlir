// Attention and its gradients as PyTorch exports them: operands are transposed, not contracted along other dimensions. Each is rounded once,
// below its layouts, so that both passes read the same value.
// plan: precision=bf16 converts_operands fuses_gradients
func.func @main(%q: tensor<2x8x16xf32>, %k: tensor<2x8x16xf32>, %v: tensor<2x8x16xf32>, %g: tensor<2x8x16xf32>) -> (tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %kt = stablehlo.transpose %k, dims = [0, 2, 1] : (tensor<2x8x16xf32>) -> tensor<2x16x8xf32>
  %s = stablehlo.dot_general %q, %kt, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x8x16xf32>, tensor<2x16x8xf32>) -> tensor<2x8x8xf32>
  %c = stablehlo.constant dense<0.25> : tensor<2x8x8xf32>
  %y = stablehlo.multiply %s, %c : tensor<2x8x8xf32>
  %m = stablehlo.reduce(%y init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x8xf32>
  %d = stablehlo.subtract %y, %mb : tensor<2x8x8xf32>
  %e = stablehlo.exponential %d : tensor<2x8x8xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x8xf32>
  %w = stablehlo.divide %e, %tb : tensor<2x8x8xf32>
  %o = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x8x8xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %wt = stablehlo.transpose %w, dims = [0, 2, 1] : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %dv = stablehlo.dot_general %wt, %g, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x8x8xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %vt = stablehlo.transpose %v, dims = [0, 2, 1] : (tensor<2x8x16xf32>) -> tensor<2x16x8xf32>
  %dw = stablehlo.dot_general %g, %vt, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x8x16xf32>, tensor<2x16x8xf32>) -> tensor<2x8x8xf32>
  %wg = stablehlo.multiply %dw, %w : tensor<2x8x8xf32>
  %tw = stablehlo.reduce(%wg init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %tt = stablehlo.broadcast_in_dim %tw, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x8xf32>
  %back = stablehlo.multiply %w, %tt : tensor<2x8x8xf32>
  %ds = stablehlo.subtract %wg, %back : tensor<2x8x8xf32>
  %dx = stablehlo.multiply %ds, %c : tensor<2x8x8xf32>
  %ktt = stablehlo.transpose %kt, dims = [0, 2, 1] : (tensor<2x16x8xf32>) -> tensor<2x8x16xf32>
  %dq = stablehlo.dot_general %dx, %ktt, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x8x8xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %qt = stablehlo.transpose %q, dims = [0, 2, 1] : (tensor<2x8x16xf32>) -> tensor<2x16x8xf32>
  %dkt = stablehlo.dot_general %qt, %dx, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x16x8xf32>, tensor<2x8x8xf32>) -> tensor<2x16x8xf32>
  %dk = stablehlo.transpose %dkt, dims = [0, 2, 1] : (tensor<2x16x8xf32>) -> tensor<2x8x16xf32>
  return %o, %dq, %dk, %dv : tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>
}

// clusters of precision=bf16 converts_operands fuses_gradients
// #0 loop -> tensor<2x8x16xbf16>
//     convert
//     256 FLOP, 1536 bytes
// #1 loop -> tensor<2x8x16xbf16>
//     convert
//     256 FLOP, 1536 bytes
// #2 loop -> tensor<2x8x16xbf16>
//     convert
//     256 FLOP, 1536 bytes
// #3 attention -> tensor<2x8x16xf32> from #0 #1 #2
//     softmax, scores times 0.25
//     dot x2, broadcast x3, multiply, reduce maximum, subtract, exponential, reduce add, divide, convert
//     9088 FLOP, 2560 bytes
// #4 loop -> tensor<2x8x16xbf16>
//     convert
//     256 FLOP, 1536 bytes
// #5 attention gradient -> tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32> from #0 #1 #2 #4
//     softmax, scores times 0.25
//     dot x5, broadcast x5, multiply x4, reduce maximum, subtract x2, exponential, reduce add x2, divide, convert x2, transpose
//     22144 FLOP, 5120 bytes
// before: 32 kernels, 27264 FLOP, 39300 bytes moved
// after:  6 kernels, 32256 FLOP, 13824 bytes moved
