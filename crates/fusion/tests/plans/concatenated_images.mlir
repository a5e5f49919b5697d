// Images with channels first that convolutions give are concatenated, pooled and read as they are stored: channels last.
// plan:
func.func @main(%x: tensor<1x8x8x4xf32>, %k: tensor<1x1x4x4xf32>, %l: tensor<1x1x8x4xf32>) -> tensor<1x4x4x4xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x4x8x8xf32>
  %1 = stablehlo.negate %x : tensor<1x8x8x4xf32>
  %2 = stablehlo.convolution(%1, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x4x8x8xf32>
  %3 = stablehlo.concatenate %0, %2, dim = 1 : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x8x8x8xf32>
  %4 = "stablehlo.reduce_window"(%3, %low) <{window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %m = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) : (tensor<1x8x8x8xf32>, tensor<f32>) -> tensor<1x8x4x4xf32>
  %5 = stablehlo.convolution(%4, %l) dim_numbers = [b, f, 0, 1]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x4x4xf32>, tensor<1x1x8x4xf32>) -> tensor<1x4x4x4xf32>
  return %5 : tensor<1x4x4x4xf32>
}

// clusters of the model as it is
// #0 convolution -> tensor<1x8x8x4xf32>
//     convolution
//     2048 FLOP, 2112 bytes
// #1 loop -> tensor<1x8x8x4xf32>
//     negate
//     256 FLOP, 2048 bytes
// #2 convolution -> tensor<1x8x8x4xf32> from #1
//     convolution
//     2048 FLOP, 2112 bytes
// #3 unfused -> tensor<1x8x8x8xf32> from #0 #2
//     concatenate
//     0 FLOP, 4096 bytes
// #4 unfused -> tensor<1x4x4x8xf32> from #3
//     reduce_window maximum
//     512 FLOP, 2560 bytes
// #5 convolution -> tensor<1x4x4x4xf32> from #4
//     convolution
//     1024 FLOP, 896 bytes
// before: 6 kernels, 5888 FLOP, 13824 bytes moved
// after:  6 kernels, 5888 FLOP, 13824 bytes moved
