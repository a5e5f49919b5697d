// Loops over the same elements that read each other's results, or the same values, are one where a device joins them.
// A value that is read at other places, too, stays in memory.
// plan:
// plan: joins_loops

func.func @main(%p: tensor<4x64xf32>, %m: tensor<4x64xf32>, %g: tensor<4x64xf32>, %w: tensor<64x32xbf16>, %a: tensor<4x64xf32>)
    -> (tensor<4x64xf32>, tensor<4x64xf32>, tensor<4x32xf32>, tensor<4x64xf32>, tensor<4x64xf32>) {
  %b = stablehlo.constant dense<9.000000e-01> : tensor<4x64xf32>
  %0 = stablehlo.multiply %m, %b : tensor<4x64xf32>
  %1 = stablehlo.add %0, %g : tensor<4x64xf32>
  %2 = stablehlo.tanh %1 : tensor<4x64xf32>
  %3 = stablehlo.subtract %p, %2 : tensor<4x64xf32>
  %4 = stablehlo.convert %3 : (tensor<4x64xf32>) -> tensor<4x64xbf16>
  %5 = stablehlo.dot_general %4, %w, contracting_dims = [1] x [0] : (tensor<4x64xbf16>, tensor<64x32xbf16>) -> tensor<4x32xf32>
  %6 = stablehlo.exponential %a : tensor<4x64xf32>
  %7 = stablehlo.reverse %6, dims = [0] : tensor<4x64xf32>
  %8 = stablehlo.add %6, %7 : tensor<4x64xf32>
  return %3, %1, %5, %6, %8 : tensor<4x64xf32>, tensor<4x64xf32>, tensor<4x32xf32>, tensor<4x64xf32>, tensor<4x64xf32>
}

// clusters of the model as it is
// #0 loop -> tensor<4x64xf32>
//     broadcast, multiply, add
//     512 FLOP, 3072 bytes
// #1 loop -> tensor<4x64xf32> from #0
//     tanh, subtract
//     512 FLOP, 3072 bytes
// #2 loop -> tensor<4x64xbf16> from #1
//     convert
//     256 FLOP, 1536 bytes
// #3 matmul -> tensor<4x32xf32> from #2
//     dot
//     16384 FLOP, 5120 bytes
// #4 loop -> tensor<4x64xf32>
//     exponential
//     256 FLOP, 2048 bytes
// #5 loop -> tensor<4x64xf32> from #4
//     reverse, add
//     256 FLOP, 2048 bytes
// before: 10 kernels, 18176 FLOP, 26116 bytes moved
// after:  6 kernels, 18176 FLOP, 16896 bytes moved

// clusters of joins_loops
// #0 loop -> tensor<4x64xbf16>, tensor<4x64xf32>, tensor<4x64xf32>
//     broadcast, multiply, add, tanh, subtract, convert
//     1280 FLOP, 5632 bytes
// #1 matmul -> tensor<4x32xf32> from #0
//     dot
//     16384 FLOP, 5120 bytes
// #2 loop -> tensor<4x64xf32>
//     exponential
//     256 FLOP, 2048 bytes
// #3 loop -> tensor<4x64xf32> from #2
//     reverse, add
//     256 FLOP, 2048 bytes
// before: 10 kernels, 18176 FLOP, 26116 bytes moved
// after:  4 kernels, 18176 FLOP, 14848 bytes moved
