// Products that several readers round are stored rounded. Keys are rotated once for all the queries of a group.
// plan:
func.func @main(%x: tensor<512x64xf32>, %w: tensor<64x128xf32>, %q: tensor<1x8x512x64xbf16>, %u: tensor<64x128xf32>, %c: tensor<512x64xf32>, %s: tensor<512x64xf32>) -> tensor<1x8x512x64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x64xf32>, tensor<64x128xf32>) -> tensor<512x128xf32>
  %1 = stablehlo.convert %0 : (tensor<512x128xf32>) -> tensor<512x128xbf16>
  %2 = stablehlo.reshape %1 : (tensor<512x128xbf16>) -> tensor<1x512x2x64xbf16>
  %k = stablehlo.transpose %2, dims = [0, 2, 1, 3] : (tensor<1x512x2x64xbf16>) -> tensor<1x2x512x64xbf16>
  %cos = stablehlo.broadcast_in_dim %c, dims = [2, 3] : (tensor<512x64xf32>) -> tensor<1x2x512x64xf32>
  %sin = stablehlo.broadcast_in_dim %s, dims = [2, 3] : (tensor<512x64xf32>) -> tensor<1x2x512x64xf32>
  %first = stablehlo.slice %k [0:1, 0:2, 0:512, 0:32] : (tensor<1x2x512x64xbf16>) -> tensor<1x2x512x32xbf16>
  %second = stablehlo.slice %k [0:1, 0:2, 0:512, 32:64] : (tensor<1x2x512x64xbf16>) -> tensor<1x2x512x32xbf16>
  %less = stablehlo.negate %second : tensor<1x2x512x32xbf16>
  %half = stablehlo.concatenate %less, %first, dim = 3 : (tensor<1x2x512x32xbf16>, tensor<1x2x512x32xbf16>) -> tensor<1x2x512x64xbf16>
  %kw = stablehlo.convert %k : (tensor<1x2x512x64xbf16>) -> tensor<1x2x512x64xf32>
  %hw = stablehlo.convert %half : (tensor<1x2x512x64xbf16>) -> tensor<1x2x512x64xf32>
  %a = stablehlo.multiply %kw, %cos : tensor<1x2x512x64xf32>
  %b = stablehlo.multiply %hw, %sin : tensor<1x2x512x64xf32>
  %sum = stablehlo.add %a, %b : tensor<1x2x512x64xf32>
  %rotated = stablehlo.convert %sum : (tensor<1x2x512x64xf32>) -> tensor<1x2x512x64xbf16>
  %repeated = stablehlo.broadcast_in_dim %rotated, dims = [0, 1, 3, 4] : (tensor<1x2x512x64xbf16>) -> tensor<1x2x4x512x64xbf16>
  %keys = stablehlo.reshape %repeated : (tensor<1x2x4x512x64xbf16>) -> tensor<1x8x512x64xbf16>
  %3 = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0] : (tensor<512x64xf32>, tensor<64x128xf32>) -> tensor<512x128xf32>
  %4 = stablehlo.convert %3 : (tensor<512x128xf32>) -> tensor<512x128xbf16>
  %5 = stablehlo.reshape %4 : (tensor<512x128xbf16>) -> tensor<1x512x2x64xbf16>
  %6 = stablehlo.transpose %5, dims = [0, 2, 1, 3] : (tensor<1x512x2x64xbf16>) -> tensor<1x2x512x64xbf16>
  %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1, 3, 4] : (tensor<1x2x512x64xbf16>) -> tensor<1x2x4x512x64xbf16>
  %values = stablehlo.reshape %7 : (tensor<1x2x4x512x64xbf16>) -> tensor<1x8x512x64xbf16>
  %qf = stablehlo.convert %q : (tensor<1x8x512x64xbf16>) -> tensor<1x8x512x64xf32>
  %kf = stablehlo.convert %keys : (tensor<1x8x512x64xbf16>) -> tensor<1x8x512x64xf32>
  %vf = stablehlo.convert %values : (tensor<1x8x512x64xbf16>) -> tensor<1x8x512x64xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %scores = stablehlo.dot_general %qf, %kf, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<1x8x512x64xf32>, tensor<1x8x512x64xf32>) -> tensor<1x8x512x512xf32>
  %most = stablehlo.reduce(%scores init: %low) applies stablehlo.maximum across dimensions = [3] : (tensor<1x8x512x512xf32>, tensor<f32>) -> tensor<1x8x512xf32>
  %mb = stablehlo.broadcast_in_dim %most, dims = [0, 1, 2] : (tensor<1x8x512xf32>) -> tensor<1x8x512x512xf32>
  %d = stablehlo.subtract %scores, %mb : tensor<1x8x512x512xf32>
  %e = stablehlo.exponential %d : tensor<1x8x512x512xf32>
  %total = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<1x8x512x512xf32>, tensor<f32>) -> tensor<1x8x512xf32>
  %tb = stablehlo.broadcast_in_dim %total, dims = [0, 1, 2] : (tensor<1x8x512xf32>) -> tensor<1x8x512x512xf32>
  %weights = stablehlo.divide %e, %tb : tensor<1x8x512x512xf32>
  %out = stablehlo.dot_general %weights, %vf, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<1x8x512x512xf32>, tensor<1x8x512x64xf32>) -> tensor<1x8x512x64xf32>
  return %out : tensor<1x8x512x64xf32>
}

// clusters of the model as it is
// #0 matmul -> tensor<512x128xbf16>
//     dot, convert
//     8454144 FLOP, 294912 bytes
// #1 loop -> tensor<1x2x512x2x32xbf16> from #0
//     rotary embedding
//     reshape x4, transpose, broadcast x3, reverse, convert x3, multiply x3, add
//     458752 FLOP, 524296 bytes
// #2 loop -> tensor<1x2x4x512x64xbf16> from #1
//     reshape, broadcast
//     0 FLOP, 655360 bytes
// #3 matmul -> tensor<512x128xbf16>
//     dot, convert
//     8454144 FLOP, 294912 bytes
// #4 loop -> tensor<1x2x4x512x64xbf16> from #3
//     reshape, transpose, broadcast
//     0 FLOP, 655360 bytes
// #5 attention -> tensor<1x8x512x64xf32> from #2 #4
//     softmax
//     dot x2, reduce maximum, broadcast x2, subtract, exponential, reduce add, divide, convert
//     549453824 FLOP, 2621440 bytes
// before: 37 kernels, 566820864 FLOP, 141819912 bytes moved
// after:  6 kernels, 566820864 FLOP, 5046280 bytes moved
