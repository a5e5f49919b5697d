// Keys and their places in descending order, as top-k has them. A result that nothing reads is not there.
// plan:
// plan: without=sort
func.func @main(%x: tensor<3x37xf32>) -> tensor<3x5xi32> {
  %i = stablehlo.iota dim = 1 : tensor<3x37xi32>
  %0:2 = "stablehlo.sort"(%x, %i) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %p = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<3x37xf32>, tensor<3x37xi32>) -> (tensor<3x37xf32>, tensor<3x37xi32>)
  %1 = stablehlo.slice %0#1 [0:3, 0:5] : (tensor<3x37xi32>) -> tensor<3x5xi32>
  return %1 : tensor<3x5xi32>
}

// clusters of the model as it is
// #0 unfused -> tensor<3x37xi32>
//     sort
//     0 FLOP, 1332 bytes
// #1 loop -> tensor<3x5xi32> from #0
//     slice
//     0 FLOP, 504 bytes
// before: 2 kernels, 0 FLOP, 1452 bytes moved
// after:  2 kernels, 0 FLOP, 1836 bytes moved

// clusters of without=sort
// #0 fallback -> tensor<3x37xi32>
//     sort
//     0 FLOP, 1332 bytes
// #1 loop -> tensor<3x5xi32> from #0
//     slice
//     0 FLOP, 504 bytes
// before: 2 kernels, 0 FLOP, 1452 bytes moved
// after:  2 kernels, 0 FLOP, 1836 bytes moved
// on the reference interpreter: sort
