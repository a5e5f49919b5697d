func.func @f(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>, %i: tensor<1x5x5x2xf32>, %k: tensor<2x2x2x3xf32>) -> tensor<2x3x5xf32> {
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  %1 = stablehlo.convolution(%i, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 0], [0, 1]], lhs_dilate = [1, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x5x2xf32>, tensor<2x2x2x3xf32>) -> tensor<1x3x9x3xf32>
  return %0 : tensor<2x3x5xf32>
}
