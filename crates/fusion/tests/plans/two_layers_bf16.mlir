// What only matmuls read is produced as bf16; what a residual reads too stays f32, and is copied where two matmuls read it.
// plan: precision=bf16 converts_operands
func.func @main(%x: tensor<16x32xf32>, %v: tensor<32x32xf32>, %w: tensor<32x32xf32>) -> (tensor<16x32xf32>, tensor<16x32xf32>) {
  %h = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %t = stablehlo.tanh %h : tensor<16x32xf32>
  %y = stablehlo.dot_general %t, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %r = stablehlo.exponential %y : tensor<16x32xf32>
  %a = stablehlo.dot_general %r, %v, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %b = stablehlo.dot_general %r, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %s = stablehlo.add %a, %r : tensor<16x32xf32>
  return %s, %b : tensor<16x32xf32>, tensor<16x32xf32>
}

// clusters of precision=bf16 converts_operands
// #0 loop -> tensor<32x32xbf16>
//     convert
//     1024 FLOP, 6144 bytes
// #1 matmul -> tensor<16x32xbf16> from #0
//     dot, tanh, convert
//     33792 FLOP, 5120 bytes
// #2 loop -> tensor<32x32xbf16>
//     convert
//     1024 FLOP, 6144 bytes
// #3 matmul -> tensor<16x32xf32> from #1 #2
//     dot, exponential
//     33280 FLOP, 5120 bytes
// #4 loop -> tensor<16x32xbf16> from #3
//     convert
//     512 FLOP, 3072 bytes
// #5 matmul -> tensor<16x32xf32> from #2 #4
//     dot
//     32768 FLOP, 5120 bytes
// #6 matmul -> tensor<16x32xf32> from #0 #3 #4
//     dot, add
//     33280 FLOP, 7168 bytes
// before: 12 kernels, 136192 FLOP, 56320 bytes moved
// after:  7 kernels, 135680 FLOP, 37888 bytes moved
