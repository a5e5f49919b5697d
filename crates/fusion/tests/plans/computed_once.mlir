// What depends on constants alone is computed once: a table of positions and its projection, whose result the product of
// the run reads. A mask of 16 MiB is computed in every run, into a cache. A device that keeps nothing computes all in every run.
// plan:
// plan: hoists
func.func @main(%x: tensor<4x64xf32>, %s: tensor<2048x2048xf32>) -> (tensor<4x64xf32>, tensor<2048xf32>, tensor<2048x2048xi1>) {
  %p = stablehlo.iota dim = 0 : tensor<64x64xf32>
  %q = stablehlo.iota dim = 1 : tensor<64x64xf32>
  %t = stablehlo.sine %p : tensor<64x64xf32>
  %u = stablehlo.cosine %q : tensor<64x64xf32>
  %w = stablehlo.dot_general %t, %u, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  %rows = stablehlo.iota dim = 0 : tensor<2048x2048xf32>
  %columns = stablehlo.iota dim = 1 : tensor<2048x2048xf32>
  %mask = stablehlo.subtract %rows, %columns : tensor<2048x2048xf32>
  %1 = stablehlo.dot_general %s, %mask, batching_dims = [0] x [0], contracting_dims = [1] x [1]
    : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048xf32>
  %2 = stablehlo.compare GE, %rows, %columns : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xi1>
  return %0, %1, %2 : tensor<4x64xf32>, tensor<2048xf32>, tensor<2048x2048xi1>
}
