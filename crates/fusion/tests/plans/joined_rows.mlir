// plan: joins_rows
// plan:

// Rows rounded by their largest magnitude, and the scales, which something else reads too.
func.func @main(%x: tensor<8x64xbf16>, %y: tensor<8xf32>) -> (tensor<8x64xi8>, tensor<8xf32>) {
  %v = stablehlo.convert %x : (tensor<8x64xbf16>) -> tensor<8x64xf32>
  %a = stablehlo.abs %v : tensor<8x64xf32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %most = stablehlo.reduce(%a init: %none) applies stablehlo.maximum across dimensions = [1] : (tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>
  %part = stablehlo.constant dense<0.0078125> : tensor<8xf32>
  %scale = stablehlo.multiply %most, %part : tensor<8xf32>
  %s = stablehlo.broadcast_in_dim %scale, dims = [0] : (tensor<8xf32>) -> tensor<8x64xf32>
  %q = stablehlo.divide %v, %s : tensor<8x64xf32>
  %r = stablehlo.round_nearest_even %q : tensor<8x64xf32>
  %c = stablehlo.convert %r : (tensor<8x64xf32>) -> tensor<8x64xi8>
  %z = stablehlo.multiply %scale, %y : tensor<8xf32>
  return %c, %z : tensor<8x64xi8>, tensor<8xf32>
}

// clusters of joins_rows
// #0 row loop -> tensor<8x64xi8>, tensor<8xf32>
//     ReLU
//     convert x2, abs, reduce maximum, broadcast x3, maximum, multiply, divide, round_nearest_even
//     3088 FLOP, 1568 bytes
// #1 loop -> tensor<8xf32> from #0
//     multiply
//     8 FLOP, 96 bytes
// before: 12 kernels, 3096 FLOP, 24488 bytes moved
// after:  2 kernels, 3096 FLOP, 1664 bytes moved

// clusters of the model as it is
// #0 row loop -> tensor<8xf32>
//     ReLU
//     convert, abs, reduce maximum, broadcast x2, maximum, multiply
//     1552 FLOP, 1056 bytes
// #1 loop -> tensor<8x64xi8> from #0
//     convert x2, broadcast, divide, round_nearest_even
//     2048 FLOP, 1568 bytes
// #2 loop -> tensor<8xf32> from #0
//     multiply
//     8 FLOP, 96 bytes
// before: 12 kernels, 3096 FLOP, 24488 bytes moved
// after:  3 kernels, 3608 FLOP, 2720 bytes moved
