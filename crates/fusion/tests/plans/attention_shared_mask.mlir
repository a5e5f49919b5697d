// Two layers share a causal mask, which is in memory; the maximum is taken as JAX writes it.
// plan:
func.func @main(%q: tensor<2x512x16xf32>, %k: tensor<2x512x16xf32>, %v: tensor<2x512x16xf32>) -> tensor<2x512x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %none = stablehlo.constant dense<0xFF800000> : tensor<2x512x512xf32>
  %i = stablehlo.iota dim = 0 : tensor<512x512xi32>
  %j = stablehlo.iota dim = 1 : tensor<512x512xi32>
  %off = stablehlo.constant dense<3> : tensor<512x512xi32>
  %until = stablehlo.add %i, %off : tensor<512x512xi32>
  %see = stablehlo.compare LE, %j, %until : (tensor<512x512xi32>, tensor<512x512xi32>) -> tensor<512x512xi1>
  %seen = stablehlo.broadcast_in_dim %see, dims = [1, 2] : (tensor<512x512xi1>) -> tensor<2x512x512xi1>
  %s1 = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x512x16xf32>, tensor<2x512x16xf32>) -> tensor<2x512x512xf32>
  %x1 = stablehlo.select %seen, %s1, %none : tensor<2x512x512xi1>, tensor<2x512x512xf32>
  %m1 = stablehlo.reduce(%x1 init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<2x512x512xf32>, tensor<f32>) -> tensor<2x512xf32>
  %lows1 = stablehlo.broadcast_in_dim %low, dims = [] : (tensor<f32>) -> tensor<2x512xf32>
  %most1 = stablehlo.maximum %lows1, %m1 : tensor<2x512xf32>
  %mb1 = stablehlo.broadcast_in_dim %most1, dims = [0, 1] : (tensor<2x512xf32>) -> tensor<2x512x512xf32>
  %d1 = stablehlo.subtract %x1, %mb1 : tensor<2x512x512xf32>
  %e1 = stablehlo.exponential %d1 : tensor<2x512x512xf32>
  %t1 = stablehlo.reduce(%e1 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x512x512xf32>, tensor<f32>) -> tensor<2x512xf32>
  %tb1 = stablehlo.broadcast_in_dim %t1, dims = [0, 1] : (tensor<2x512xf32>) -> tensor<2x512x512xf32>
  %w1 = stablehlo.divide %e1, %tb1 : tensor<2x512x512xf32>
  %o1 = stablehlo.dot_general %w1, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x512x512xf32>, tensor<2x512x16xf32>) -> tensor<2x512x16xf32>
  %s2 = stablehlo.dot_general %o1, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x512x16xf32>, tensor<2x512x16xf32>) -> tensor<2x512x512xf32>
  %x2 = stablehlo.select %seen, %s2, %none : tensor<2x512x512xi1>, tensor<2x512x512xf32>
  %m2 = stablehlo.reduce(%x2 init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<2x512x512xf32>, tensor<f32>) -> tensor<2x512xf32>
  %lows2 = stablehlo.broadcast_in_dim %low, dims = [] : (tensor<f32>) -> tensor<2x512xf32>
  %most2 = stablehlo.maximum %lows2, %m2 : tensor<2x512xf32>
  %mb2 = stablehlo.broadcast_in_dim %most2, dims = [0, 1] : (tensor<2x512xf32>) -> tensor<2x512x512xf32>
  %d2 = stablehlo.subtract %x2, %mb2 : tensor<2x512x512xf32>
  %e2 = stablehlo.exponential %d2 : tensor<2x512x512xf32>
  %t2 = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x512x512xf32>, tensor<f32>) -> tensor<2x512xf32>
  %tb2 = stablehlo.broadcast_in_dim %t2, dims = [0, 1] : (tensor<2x512xf32>) -> tensor<2x512x512xf32>
  %w2 = stablehlo.divide %e2, %tb2 : tensor<2x512x512xf32>
  %o2 = stablehlo.dot_general %w2, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x512x512xf32>, tensor<2x512x16xf32>) -> tensor<2x512x16xf32>
  return %o2 : tensor<2x512x16xf32>
}

// clusters of the model as it is
// #0 loop -> tensor<512x512xi1>
//     iota x2, broadcast, add, compare le
//     524288 FLOP, 262144 bytes
// #1 attention -> tensor<2x512x16xf32> from #0
//     causal (+3) softmax
//     dot x2, broadcast x5, select, reduce maximum, maximum, subtract, exponential, reduce add, divide
//     36701184 FLOP, 524288 bytes
// #2 attention -> tensor<2x512x16xf32> from #0 #1
//     causal (+3) softmax
//     dot x2, broadcast x5, select, reduce maximum, maximum, subtract, exponential, reduce add, divide
//     36701184 FLOP, 524288 bytes
// before: 30 kernels, 73926656 FLOP, 84471820 bytes moved
// after:  3 kernels, 73926656 FLOP, 1310720 bytes moved
