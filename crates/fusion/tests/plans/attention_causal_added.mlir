// A causal mask of minus infinity that is added.
// plan:
func.func @main(%q: tensor<2x512x16xf32>, %k: tensor<2x512x16xf32>, %v: tensor<2x512x16xf32>) -> tensor<2x512x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x512x16xf32>, tensor<2x512x16xf32>) -> tensor<2x512x512xf32>
  %c = stablehlo.constant dense<0.25> : tensor<2x512x512xf32>
  %y = stablehlo.multiply %s, %c : tensor<2x512x512xf32>
  %i = stablehlo.iota dim = 0 : tensor<512x512xi32>
  %j = stablehlo.iota dim = 1 : tensor<512x512xi32>
  %hidden = stablehlo.compare GT, %j, %i : (tensor<512x512xi32>, tensor<512x512xi32>) -> tensor<512x512xi1>
  %none = stablehlo.constant dense<0xFF800000> : tensor<512x512xf32>
  %zeros = stablehlo.constant dense<0.0> : tensor<512x512xf32>
  %mask = stablehlo.select %hidden, %none, %zeros : tensor<512x512xi1>, tensor<512x512xf32>
  %masks = stablehlo.broadcast_in_dim %mask, dims = [1, 2] : (tensor<512x512xf32>) -> tensor<2x512x512xf32>
  %x = stablehlo.add %y, %masks : tensor<2x512x512xf32>
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
//     causal softmax, scores times 0.25
//     dot x2, broadcast x6, multiply, iota x2, compare gt, select, add, reduce maximum, subtract, exponential, reduce add, divide
//     37748736 FLOP, 262144 bytes
// before: 19 kernels, 37748736 FLOP, 57425932 bytes moved
// after:  1 kernels, 37748736 FLOP, 262144 bytes moved
