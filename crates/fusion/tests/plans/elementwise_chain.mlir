// A chain of elementwise operations is one loop, whatever broadcasts are in it.
// plan:
func.func @main(%x: tensor<64x32xf32>, %b: tensor<32xf32>) -> tensor<64x32xf32> {
  %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<32xf32>) -> tensor<64x32xf32>
  %1 = stablehlo.add %x, %0 : tensor<64x32xf32>
  %2 = stablehlo.tanh %1 : tensor<64x32xf32>
  %3 = stablehlo.multiply %2, %x : tensor<64x32xf32>
  return %3 : tensor<64x32xf32>
}

// clusters of the model as it is
// #0 loop -> tensor<64x32xf32>
//     broadcast, add, tanh, multiply
//     6144 FLOP, 16512 bytes
// before: 4 kernels, 6144 FLOP, 73856 bytes moved
// after:  1 kernels, 6144 FLOP, 16512 bytes moved
