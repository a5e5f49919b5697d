// A backward pass reads the input of an activation and computes what follows from it again. In bf16 it is stored rounded, and so is the
// gradient that a matmul and the sum of a bias read, in the layout that both read it in.
// plan:
// plan: precision=bf16

func.func @main(%x: tensor<16x32xf32>, %v: tensor<32x32xf32>, %b: tensor<32xf32>, %w: tensor<32x32xf32>)
    -> (tensor<16x32xf32>, tensor<32x32xf32>, tensor<32xf32>) {
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %d = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %c = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<32xf32>) -> tensor<16x32xf32>
  %h = stablehlo.add %d, %c : tensor<16x32xf32>
  %e = stablehlo.exponential %h : tensor<16x32xf32>
  %s = stablehlo.tanh %e : tensor<16x32xf32>
  %t = stablehlo.multiply %h, %s : tensor<16x32xf32>
  %y = stablehlo.dot_general %t, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %g = stablehlo.dot_general %y, %w, contracting_dims = [1] x [1] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %p = stablehlo.multiply %e, %h : tensor<16x32xf32>
  %q = stablehlo.add %s, %p : tensor<16x32xf32>
  %gh = stablehlo.multiply %g, %q : tensor<16x32xf32>
  %gt = stablehlo.transpose %gh, dims = [1, 0] : (tensor<16x32xf32>) -> tensor<32x16xf32>
  %dv = stablehlo.dot_general %x, %gt, contracting_dims = [0] x [1] : (tensor<16x32xf32>, tensor<32x16xf32>) -> tensor<32x32xf32>
  %db = stablehlo.reduce(%gt init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<32x16xf32>, tensor<f32>) -> tensor<32xf32>
  return %y, %dv, %db : tensor<16x32xf32>, tensor<32x32xf32>, tensor<32xf32>
}

// clusters of the model as it is
// #0 matmul -> tensor<16x32xf32>
//     dot, broadcast, add
//     33280 FLOP, 8320 bytes
// #1 loop -> tensor<16x32xf32> from #0
//     exponential, tanh, multiply
//     1536 FLOP, 4096 bytes
// #2 matmul -> tensor<16x32xf32> from #1
//     dot
//     32768 FLOP, 8192 bytes
// #3 matmul -> tensor<16x32xf32> from #0 #2
//     dot, exponential, tanh, multiply x2, add
//     35328 FLOP, 10240 bytes
// #4 matmul -> tensor<32x32xf32> from #3
//     dot
//     32768 FLOP, 8192 bytes
// #5 row loop -> tensor<32xf32> from #3
//     reduce add
//     512 FLOP, 2176 bytes
// before: 16 kernels, 136192 FLOP, 88320 bytes moved
// after:  6 kernels, 136192 FLOP, 41216 bytes moved

// clusters of precision=bf16
// #0 loop -> tensor<16x32xbf16>
//     convert
//     512 FLOP, 3072 bytes
// #1 loop -> tensor<32x32xbf16>
//     convert
//     1024 FLOP, 6144 bytes
// #2 matmul -> tensor<16x32xbf16> from #0 #1
//     dot, broadcast, add, convert
//     33792 FLOP, 4224 bytes
// #3 loop -> tensor<16x32xbf16> from #2
//     convert x2, exponential, tanh, multiply
//     2560 FLOP, 2048 bytes
// #4 loop -> tensor<32x32xbf16>
//     convert
//     1024 FLOP, 6144 bytes
// #5 matmul -> tensor<16x32xf32> from #3 #4
//     dot
//     32768 FLOP, 5120 bytes
// #6 loop -> tensor<16x32xbf16> from #5
//     convert
//     512 FLOP, 3072 bytes
// #7 matmul -> tensor<16x32xbf16> from #2 #4 #6
//     dot, convert x2, exponential, tanh, multiply x2, add
//     36352 FLOP, 5120 bytes
// #8 matmul -> tensor<32x32xf32> from #0 #7
//     dot
//     32768 FLOP, 6144 bytes
// #9 row loop -> tensor<32xf32> from #7
//     convert, reduce add
//     1024 FLOP, 1152 bytes
// before: 26 kernels, 142336 FLOP, 111872 bytes moved
// after:  10 kernels, 142336 FLOP, 42240 bytes moved
