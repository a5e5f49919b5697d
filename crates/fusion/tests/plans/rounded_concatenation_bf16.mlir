// What a convolution reads through a concatenation is rounded where it is produced, the concatenation is one of rounded values. Where the
// concatenation itself is a result, nothing is rounded for it.
// plan: precision=bf16

func.func @main(%x: tensor<1x8x8x16xf32>, %a: tensor<1x1x16x8xf32>, %b: tensor<1x1x16x24xf32>, %c: tensor<1x1x32x8xf32>, %d: tensor<1x1x32x8xf32>)
    -> (tensor<1x8x8x8xf32>, tensor<1x8x8x8xf32>, tensor<1x8x8x32xf32>) {
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<1x8x8x8xf32>
  %0 = stablehlo.convolution(%x, %a) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x16xf32>, tensor<1x1x16x8xf32>) -> tensor<1x8x8x8xf32>
  %1 = stablehlo.maximum %0, %zero : tensor<1x8x8x8xf32>
  %2 = stablehlo.convolution(%x, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x16xf32>, tensor<1x1x16x24xf32>) -> tensor<1x8x8x24xf32>
  %3 = stablehlo.concatenate %1, %2, dim = 3 : (tensor<1x8x8x8xf32>, tensor<1x8x8x24xf32>) -> tensor<1x8x8x32xf32>
  %4 = stablehlo.convolution(%3, %c) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x32xf32>, tensor<1x1x32x8xf32>) -> tensor<1x8x8x8xf32>
  %5 = stablehlo.tanh %2 : tensor<1x8x8x24xf32>
  %6 = stablehlo.tanh %4 : tensor<1x8x8x8xf32>
  %7 = stablehlo.concatenate %6, %5, dim = 3 : (tensor<1x8x8x8xf32>, tensor<1x8x8x24xf32>) -> tensor<1x8x8x32xf32>
  %8 = stablehlo.convolution(%7, %d) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x32xf32>, tensor<1x1x32x8xf32>) -> tensor<1x8x8x8xf32>
  return %4, %8, %7 : tensor<1x8x8x8xf32>, tensor<1x8x8x8xf32>, tensor<1x8x8x32xf32>
}

// clusters of precision=bf16
// #0 loop -> tensor<1x8x8x16xbf16>
//     convert
//     1024 FLOP, 6144 bytes
// #1 loop -> tensor<1x1x16x8xbf16>
//     convert
//     128 FLOP, 768 bytes
// #2 convolution -> tensor<1x8x8x8xbf16> from #0 #1
//     ReLU
//     convolution, broadcast, maximum, convert
//     17408 FLOP, 3328 bytes
// #3 loop -> tensor<1x1x16x24xbf16>
//     convert
//     384 FLOP, 2304 bytes
// #4 convolution -> tensor<1x8x8x24xbf16> from #0 #3
//     convolution, convert
//     50688 FLOP, 5888 bytes
// #5 unfused -> tensor<1x8x8x32xbf16> from #2 #4
//     concatenate
//     0 FLOP, 8192 bytes
// #6 loop -> tensor<1x1x32x8xbf16>
//     convert
//     256 FLOP, 1536 bytes
// #7 convolution -> tensor<1x8x8x8xf32> from #5 #6
//     convolution
//     32768 FLOP, 6656 bytes
// #8 loop -> tensor<1x8x8x24xf32> from #4
//     convert, tanh
//     3072 FLOP, 9216 bytes
// #9 loop -> tensor<1x8x8x8xf32> from #7
//     tanh
//     512 FLOP, 4096 bytes
// #10 unfused -> tensor<1x8x8x32xf32> from #8 #9
//     concatenate
//     0 FLOP, 16384 bytes
// #11 loop -> tensor<1x8x8x32xbf16> from #10
//     convert
//     2048 FLOP, 12288 bytes
// #12 loop -> tensor<1x1x32x8xbf16>
//     convert
//     256 FLOP, 1536 bytes
// #13 convolution -> tensor<1x8x8x8xf32> from #11 #12
//     convolution
//     32768 FLOP, 6656 bytes
// before: 19 kernels, 141312 FLOP, 121860 bytes moved
// after:  14 kernels, 141312 FLOP, 84992 bytes moved
