// Grouped convolutions read bf16 where the device multiplies them so; those of each channel alone only where their results are bf16 too.
// plan: precision=bf16
// plan: precision=bf16 narrows_groups
func.func @main(%x: tensor<1x8x8x8xf32>, %k: tensor<3x3x4x8xf32>, %d: tensor<3x3x1x8xf32>) -> (tensor<1x8xf32>, tensor<1x8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<1x8x8x8xf32>
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x8x8x8xf32>, tensor<3x3x4x8xf32>) -> tensor<1x8x8x8xf32>
  %1 = stablehlo.maximum %0, %zeros : tensor<1x8x8x8xf32>
  %e = stablehlo.convolution(%1, %d) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 8 : i64} : (tensor<1x8x8x8xf32>, tensor<3x3x1x8xf32>) -> tensor<1x8x8x8xf32>
  %f = stablehlo.maximum %e, %zeros : tensor<1x8x8x8xf32>
  %2 = stablehlo.convolution(%f, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x8x8x8xf32>, tensor<3x3x4x8xf32>) -> tensor<1x8x8x8xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1, 2] : (tensor<1x8x8x8xf32>, tensor<f32>) -> tensor<1x8xf32>
  %4 = stablehlo.convolution(%x, %d) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 8 : i64} : (tensor<1x8x8x8xf32>, tensor<3x3x1x8xf32>) -> tensor<1x8x8x8xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [1, 2] : (tensor<1x8x8x8xf32>, tensor<f32>) -> tensor<1x8xf32>
  return %3, %5 : tensor<1x8xf32>, tensor<1x8xf32>
}

// clusters of precision=bf16
// #0 convolution -> tensor<1x8x8x8xf32>
//     ReLU
//     convolution, broadcast, maximum
//     37376 FLOP, 5248 bytes
// #1 convolution -> tensor<1x8x8x8xf32> from #0
//     ReLU
//     convolution, broadcast, maximum
//     9728 FLOP, 4384 bytes
// #2 convolution -> tensor<1x8x8x8xf32> from #1
//     convolution
//     36864 FLOP, 5248 bytes
// #3 row loop -> tensor<1x8xf32> from #2
//     reduce add
//     512 FLOP, 2080 bytes
// #4 convolution -> tensor<1x8x8x8xf32>
//     convolution
//     9216 FLOP, 4384 bytes
// #5 row loop -> tensor<1x8xf32> from #4
//     reduce add
//     512 FLOP, 2080 bytes
// before: 9 kernels, 94208 FLOP, 37764 bytes moved
// after:  6 kernels, 94208 FLOP, 23424 bytes moved

// clusters of precision=bf16 narrows_groups
// #0 loop -> tensor<1x8x8x8xbf16>
//     convert
//     512 FLOP, 3072 bytes
// #1 loop -> tensor<3x3x4x8xbf16>
//     convert
//     288 FLOP, 1728 bytes
// #2 convolution -> tensor<1x8x8x8xbf16> from #0 #1
//     ReLU
//     convolution, broadcast, maximum, convert
//     37888 FLOP, 2624 bytes
// #3 loop -> tensor<3x3x1x8xbf16>
//     convert
//     72 FLOP, 432 bytes
// #4 convolution -> tensor<1x8x8x8xbf16> from #2 #3
//     ReLU
//     convolution, broadcast, maximum, convert
//     10240 FLOP, 2192 bytes
// #5 convolution -> tensor<1x8x8x8xf32> from #1 #4
//     convolution
//     36864 FLOP, 3648 bytes
// #6 row loop -> tensor<1x8xf32> from #5
//     reduce add
//     512 FLOP, 2080 bytes
// #7 convolution -> tensor<1x8x8x8xf32>
//     convolution
//     9216 FLOP, 4384 bytes
// #8 row loop -> tensor<1x8xf32> from #7
//     reduce add
//     512 FLOP, 2080 bytes
// before: 14 kernels, 96104 FLOP, 44772 bytes moved
// after:  9 kernels, 96104 FLOP, 22240 bytes moved
