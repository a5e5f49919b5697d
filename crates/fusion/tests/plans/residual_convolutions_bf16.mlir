// Activations between convolutions are bf16 in memory for all their readers, through a maximum over windows too.
// plan:
// plan: precision=bf16 converts_operands
func.func @main(%x: tensor<1x8x8x4xf32>, %k: tensor<3x3x4x4xf32>) -> tensor<1x4x4x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<1x8x8x4xf32>
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x4xf32>, tensor<3x3x4x4xf32>) -> tensor<1x8x8x4xf32>
  %1 = stablehlo.maximum %0, %zeros : tensor<1x8x8x4xf32>
  %2 = "stablehlo.reduce_window"(%1, %low) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %m = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) : (tensor<1x8x8x4xf32>, tensor<f32>) -> tensor<1x4x4x4xf32>
  %3 = stablehlo.convolution(%2, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x4xf32>, tensor<3x3x4x4xf32>) -> tensor<1x4x4x4xf32>
  %4 = stablehlo.add %3, %2 : tensor<1x4x4x4xf32>
  return %4 : tensor<1x4x4x4xf32>
}

// clusters of the model as it is
// #0 convolution -> tensor<1x8x8x4xf32>
//     ReLU
//     convolution, broadcast, maximum
//     18688 FLOP, 2624 bytes
// #1 unfused -> tensor<1x4x4x4xf32> from #0
//     reduce_window maximum
//     256 FLOP, 1280 bytes
// #2 convolution -> tensor<1x4x4x4xf32> from #1
//     convolution, add
//     4672 FLOP, 1088 bytes
// before: 6 kernels, 23616 FLOP, 9860 bytes moved
// after:  3 kernels, 23616 FLOP, 4992 bytes moved

// clusters of precision=bf16 converts_operands
// #0 loop -> tensor<3x3x4x4xbf16>
//     convert
//     144 FLOP, 864 bytes
// #1 convolution -> tensor<1x8x8x4xbf16> from #0
//     ReLU
//     convolution, broadcast, maximum, convert
//     18944 FLOP, 1824 bytes
// #2 unfused -> tensor<1x4x4x4xbf16> from #1
//     reduce_window maximum
//     256 FLOP, 640 bytes
// #3 convolution -> tensor<1x4x4x4xf32> from #0 #2
//     convolution, convert, add
//     4736 FLOP, 672 bytes
// before: 10 kernels, 24336 FLOP, 12324 bytes moved
// after:  4 kernels, 24080 FLOP, 4000 bytes moved
