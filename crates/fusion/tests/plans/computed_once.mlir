// What depends on constants alone is computed once: a table of positions and its projection, whose result the product of
// the run reads. A mask of 16 MiB is computed in every run, into a cache. A device that keeps nothing computes all in every run.
// plan:
// plan: hoists
func.func @main(%x: tensor<4x512xf32>, %s: tensor<2048x2048xf32>) -> (tensor<4x512xf32>, tensor<2048xf32>, tensor<2048x2048xi1>) {
  %p = stablehlo.iota dim = 0 : tensor<512x512xf32>
  %q = stablehlo.iota dim = 1 : tensor<512x512xf32>
  %t = stablehlo.sine %p : tensor<512x512xf32>
  %u = stablehlo.cosine %q : tensor<512x512xf32>
  %w = stablehlo.dot_general %t, %u, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x512xf32>, tensor<512x512xf32>) -> tensor<4x512xf32>
  %rows = stablehlo.iota dim = 0 : tensor<2048x2048xf32>
  %columns = stablehlo.iota dim = 1 : tensor<2048x2048xf32>
  %mask = stablehlo.subtract %rows, %columns : tensor<2048x2048xf32>
  %1 = stablehlo.dot_general %s, %mask, batching_dims = [0] x [0], contracting_dims = [1] x [1]
    : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048xf32>
  %2 = stablehlo.compare GE, %rows, %columns : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xi1>
  return %0, %1, %2 : tensor<4x512xf32>, tensor<2048xf32>, tensor<2048x2048xi1>
}

// clusters of the model as it is
// #0 loop -> tensor<512x512xf32>
//     iota, sine
//     262144 FLOP, 1048576 bytes
// #1 loop -> tensor<512x512xf32>
//     iota, cosine
//     262144 FLOP, 1048576 bytes
// #2 matmul -> tensor<512x512xf32> from #0 #1
//     dot
//     268435456 FLOP, 3145728 bytes
// #3 matmul -> tensor<4x512xf32> from #2
//     dot
//     2097152 FLOP, 1064960 bytes
// #4 loop -> tensor<2048x2048xf32>
//     iota x2, subtract
//     4194304 FLOP, 16777216 bytes
// #5 matmul -> tensor<2048xf32> from #4
//     dot
//     8388608 FLOP, 33562624 bytes
// #6 loop -> tensor<2048x2048xi1>
//     iota x2, compare ge
//     4194304 FLOP, 4194304 bytes
// before: 11 kernels, 287834112 FLOP, 165699584 bytes moved
// after:  7 kernels, 287834112 FLOP, 60841984 bytes moved

// clusters of hoists
// #0 matmul -> tensor<4x512xf32> from #6
//     dot
//     2097152 FLOP, 1064960 bytes
// #1 loop -> tensor<2048x2048xf32>
//     iota x2, subtract
//     4194304 FLOP, 16777216 bytes
// #2 matmul -> tensor<2048xf32> from #1
//     dot
//     8388608 FLOP, 33562624 bytes
// #3 loop -> tensor<2048x2048xi1>
//     iota x2, compare ge
//     4194304 FLOP, 4194304 bytes
// computed once, from constants:
// #4 loop -> tensor<512x512xf32>
//     iota, sine
//     262144 FLOP, 1048576 bytes
// #5 loop -> tensor<512x512xf32>
//     iota, cosine
//     262144 FLOP, 1048576 bytes
// #6 matmul -> tensor<512x512xf32> from #4 #5
//     dot
//     268435456 FLOP, 3145728 bytes
// before: 11 kernels, 287834112 FLOP, 165699584 bytes moved
// after:  4 kernels, 18874368 FLOP, 55599104 bytes moved
