// Two matmuls with a softmax over rows between them are one cluster, in f32, in bf16, and of bf16 operands that export widened.
// plan:
// plan: precision=bf16 converts_operands
// plan: op_by_op
func.func @main(%q: tensor<2x8x16xf32>, %k: tensor<2x8x16xf32>, %v: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
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
//     dot x2, reduce maximum, broadcast x2, subtract, exponential, reduce add, divide
//     8832 FLOP, 4096 bytes
// before: 9 kernels, 8832 FLOP, 11520 bytes moved
// after:  1 kernels, 8832 FLOP, 4096 bytes moved

// clusters of precision=bf16 converts_operands
// #0 attention -> tensor<2x8x16xf32>
//     softmax
//     dot x2, reduce maximum, broadcast x2, subtract, exponential, reduce add, divide, convert
//     8960 FLOP, 4096 bytes
// before: 13 kernels, 9728 FLOP, 15104 bytes moved
// after:  1 kernels, 8960 FLOP, 4096 bytes moved

// clusters of op_by_op
// #0 matmul -> tensor<2x8x8xf32>
//     dot
//     4096 FLOP, 2560 bytes
// #1 row loop -> tensor<2x8xf32> from #0
//     reduce maximum
//     128 FLOP, 576 bytes
// #2 loop -> tensor<2x8x8xf32> from #1
//     broadcast
//     0 FLOP, 576 bytes
// #3 loop -> tensor<2x8x8xf32> from #0 #2
//     subtract
//     128 FLOP, 1536 bytes
// #4 loop -> tensor<2x8x8xf32> from #3
//     exponential
//     128 FLOP, 1024 bytes
// #5 row loop -> tensor<2x8xf32> from #4
//     reduce add
//     128 FLOP, 576 bytes
// #6 loop -> tensor<2x8x8xf32> from #5
//     broadcast
//     0 FLOP, 576 bytes
// #7 loop -> tensor<2x8x8xf32> from #4 #6
//     softmax
//     divide
//     128 FLOP, 1536 bytes
// #8 matmul -> tensor<2x8x16xf32> from #7
//     dot
//     4096 FLOP, 2560 bytes
// before: 9 kernels, 8832 FLOP, 11520 bytes moved
// after:  9 kernels, 8832 FLOP, 11520 bytes moved
