// A matmul takes its bias and GELU along. In bf16 an argument that one matmul reads is converted while it is packed, where
// the device can, and by a kernel of its own where it cannot.
// plan:
// plan: precision=bf16 converts_operands
// plan: precision=bf16
func.func @main(%x: tensor<16x32xf32>, %w: tensor<32x64xf32>, %b: tensor<64xf32>) -> tensor<16x64xf32> {
  %half = stablehlo.constant dense<5.000000e-01> : tensor<16x64xf32>
  %one = stablehlo.constant dense<1.000000e+00> : tensor<16x64xf32>
  %root = stablehlo.constant dense<0.707106769> : tensor<16x64xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<64xf32>) -> tensor<16x64xf32>
  %2 = stablehlo.add %0, %1 : tensor<16x64xf32>
  %3 = stablehlo.multiply %2, %root : tensor<16x64xf32>
  %4 = chlo.erf %3 : tensor<16x64xf32> -> tensor<16x64xf32>
  %5 = stablehlo.add %4, %one : tensor<16x64xf32>
  %6 = stablehlo.multiply %2, %half : tensor<16x64xf32>
  %7 = stablehlo.multiply %6, %5 : tensor<16x64xf32>
  return %7 : tensor<16x64xf32>
}

// clusters of the model as it is
// #0 matmul -> tensor<16x64xf32>
//     GELU
//     dot, broadcast, add, gelu
//     67584 FLOP, 14592 bytes
// before: 4 kernels, 67584 FLOP, 39168 bytes moved
// after:  1 kernels, 67584 FLOP, 14592 bytes moved

// clusters of precision=bf16 converts_operands
// #0 matmul -> tensor<16x64xf32>
//     GELU
//     dot, broadcast, add, gelu
//     67584 FLOP, 14592 bytes
// before: 6 kernels, 70144 FLOP, 49408 bytes moved
// after:  1 kernels, 67584 FLOP, 14592 bytes moved

// clusters of precision=bf16
// #0 loop -> tensor<16x32xbf16>
//     convert
//     512 FLOP, 3072 bytes
// #1 loop -> tensor<32x64xbf16>
//     convert
//     2048 FLOP, 12288 bytes
// #2 matmul -> tensor<16x64xf32> from #0 #1
//     GELU
//     dot, broadcast, add, gelu
//     67584 FLOP, 9472 bytes
// before: 6 kernels, 70144 FLOP, 49408 bytes moved
// after:  3 kernels, 70144 FLOP, 24832 bytes moved
