// A causal mask and key padding: the keys that a query sees by its index are known.
// plan:
func.func @main(%q: tensor<2x512x16xf32>, %k: tensor<2x512x16xf32>, %v: tensor<2x512x16xf32>, %keys: tensor<2x512xi1>) -> tensor<2x512x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x512x16xf32>, tensor<2x512x16xf32>) -> tensor<2x512x512xf32>
  %c = stablehlo.constant dense<0.25> : tensor<2x512x512xf32>
  %y = stablehlo.multiply %s, %c : tensor<2x512x512xf32>
  %none = stablehlo.constant dense<0xFF800000> : tensor<2x512x512xf32>
  %i = stablehlo.iota dim = 0 : tensor<512x512xi32>
  %j = stablehlo.iota dim = 1 : tensor<512x512xi32>
  %before = stablehlo.compare LE, %j, %i : (tensor<512x512xi32>, tensor<512x512xi32>) -> tensor<512x512xi1>
  %all = stablehlo.broadcast_in_dim %before, dims = [1, 2] : (tensor<512x512xi1>) -> tensor<2x512x512xi1>
  %real = stablehlo.broadcast_in_dim %keys, dims = [0, 2] : (tensor<2x512xi1>) -> tensor<2x512x512xi1>
  %seen = stablehlo.and %all, %real : tensor<2x512x512xi1>
  %x = stablehlo.select %seen, %y, %none : tensor<2x512x512xi1>, tensor<2x512x512xf32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<2x512x512xf32>, tensor<f32>) -> tensor<2x512xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x512xf32>) -> tensor<2x512x512xf32>
  %d = stablehlo.subtract %x, %mb : tensor<2x512x512xf32>
  %e = stablehlo.exponential %d : tensor<2x512x512xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x512x512xf32>, tensor<f32>) -> tensor<2x512xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x512xf32>) -> tensor<2x512x512xf32>
  %w = stablehlo.divide %e, %tb : tensor<2x512x512xf32>
  %o = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x512x512xf32>, tensor<2x512x16xf32>) -> tensor<2x512x16xf32>
  return %o : tensor<2x512x16xf32>
}

// clusters of the model as it is
// #0 attention -> tensor<2x512x16xf32>
//     causal key-masked softmax, scores times 0.25
//     dot x2, broadcast x6, multiply, iota x2, compare le, and, select, reduce maximum, subtract, exponential, reduce add, divide
//     38010880 FLOP, 263168 bytes
// before: 19 kernels, 38010880 FLOP, 54281224 bytes moved
// after:  1 kernels, 38010880 FLOP, 263168 bytes moved
