// A gradient clipped by its norm: the norm of a large one goes by partial sums, and both moments scale the gradient as they read it.
// plan:
func.func @main(%x: tensor<8x256xf32>, %g: tensor<8x256xf32>, %m: tensor<256x256xf32>, %v: tensor<256x256xf32>) -> (tensor<256x256xf32>, tensor<256x256xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %dw = stablehlo.dot_general %x, %g, contracting_dims = [0] x [0] : (tensor<8x256xf32>, tensor<8x256xf32>) -> tensor<256x256xf32>
  %square = stablehlo.multiply %dw, %dw : tensor<256x256xf32>
  %sum = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<256x256xf32>, tensor<f32>) -> tensor<f32>
  %norm = stablehlo.sqrt %sum : tensor<f32>
  %part = stablehlo.divide %one, %norm : tensor<f32>
  %factor = stablehlo.minimum %part, %one : tensor<f32>
  %factors = stablehlo.broadcast_in_dim %factor, dims = [] : (tensor<f32>) -> tensor<256x256xf32>
  %clipped = stablehlo.multiply %dw, %factors : tensor<256x256xf32>
  %keep = stablehlo.constant dense<0.9> : tensor<256x256xf32>
  %kept = stablehlo.multiply %m, %keep : tensor<256x256xf32>
  %mean = stablehlo.add %kept, %clipped : tensor<256x256xf32>
  %power = stablehlo.multiply %clipped, %clipped : tensor<256x256xf32>
  %held = stablehlo.multiply %v, %keep : tensor<256x256xf32>
  %variance = stablehlo.add %held, %power : tensor<256x256xf32>
  return %mean, %variance : tensor<256x256xf32>, tensor<256x256xf32>
}

// clusters of the model as it is
// #0 matmul -> tensor<256x256xf32>
//     dot
//     1048576 FLOP, 278528 bytes
// #1 row loop -> tensor<256xf32> from #0
//     multiply, reduce add
//     131072 FLOP, 263168 bytes
// #2 row loop -> tensor<f32> from #1
//     reduce add
//     256 FLOP, 1028 bytes
// #3 loop -> tensor<256x256xf32> from #0 #2
//     sqrt, divide, minimum, broadcast x2, multiply x2, add
//     196611 FLOP, 786436 bytes
// #4 loop -> tensor<256x256xf32> from #0 #2
//     sqrt, divide, minimum, broadcast x2, multiply x3, add
//     262147 FLOP, 786436 bytes
// before: 15 kernels, 1573123 FLOP, 6572076 bytes moved
// after:  5 kernels, 1638662 FLOP, 2115596 bytes moved
