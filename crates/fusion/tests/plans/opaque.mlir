// Loops, and operations of types that the graph does not take, stay opaque: the reference evaluates them.
// plan:
func.func @main(%x: tensor<4xf32>, %z: tensor<4xcomplex<f32>>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<4xcomplex<f32>>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %n, %v = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %c = stablehlo.compare GT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %d = stablehlo.subtract %i, %one : tensor<i32>
      %w = stablehlo.add %v, %v : tensor<4xf32>
      stablehlo.return %d, %w : tensor<i32>, tensor<4xf32>
    }
  %1 = stablehlo.tanh %0#1 : tensor<4xf32>
  %2 = stablehlo.multiply %z, %z : tensor<4xcomplex<f32>>
  return %1, %2 : tensor<4xf32>, tensor<4xcomplex<f32>>
}

// clusters of the model as it is
// #0 fallback -> tensor<4xf32>
//     while
//     0 FLOP, 40 bytes
// #1 loop -> tensor<4xf32> from #0
//     tanh
//     4 FLOP, 32 bytes
// #2 fallback -> tensor<4xcomplex<f32>>
//     multiply
//     0 FLOP, 64 bytes
// before: 3 kernels, 4 FLOP, 136 bytes moved
// after:  3 kernels, 4 FLOP, 136 bytes moved
// on the reference interpreter: while, multiply
