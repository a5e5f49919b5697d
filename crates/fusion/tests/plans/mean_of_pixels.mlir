// The mean of each channel: the reduction across channels ends its loop; over a short row, and along neighbours, it does not.
// plan:
func.func @main(%x: tensor<1x28x28x32xf32>, %y: tensor<1x4x4x32xf32>, %r: tensor<32x784xf32>) -> (tensor<1x32xf32>, tensor<1x32xf32>, tensor<32xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<784.0> : tensor<1x32xf32>
  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1, 2] : (tensor<1x28x28x32xf32>, tensor<f32>) -> tensor<1x32xf32>
  %0 = stablehlo.divide %s, %n : tensor<1x32xf32>
  %t = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [1, 2] : (tensor<1x4x4x32xf32>, tensor<f32>) -> tensor<1x32xf32>
  %1 = stablehlo.divide %t, %n : tensor<1x32xf32>
  %m = stablehlo.constant dense<784.0> : tensor<32xf32>
  %u = stablehlo.reduce(%r init: %z) applies stablehlo.add across dimensions = [1] : (tensor<32x784xf32>, tensor<f32>) -> tensor<32xf32>
  %2 = stablehlo.divide %u, %m : tensor<32xf32>
  return %0, %1, %2 : tensor<1x32xf32>, tensor<1x32xf32>, tensor<32xf32>
}

// clusters of the model as it is
// #0 row loop -> tensor<1x32xf32>
//     reduce add
//     25088 FLOP, 100480 bytes
// #1 loop -> tensor<1x32xf32> from #0
//     broadcast, divide
//     32 FLOP, 256 bytes
// #2 row loop -> tensor<1x32xf32>
//     broadcast, reduce add, divide
//     544 FLOP, 2176 bytes
// #3 row loop -> tensor<32xf32>
//     broadcast, reduce add, divide
//     25120 FLOP, 100480 bytes
// before: 8 kernels, 50784 FLOP, 204552 bytes moved
// after:  4 kernels, 50784 FLOP, 203392 bytes moved
