// A dynamic slice whose start is known is a slice, which loops read with strides; others and updates are operations of their own.
// plan:
// plan: without=dynamic_slice
// plan: op_by_op
func.func @main(%x: tensor<8x6xf32>, %i: tensor<i32>) -> (tensor<2x6xf32>, tensor<8x6xf32>) {
  %two = stablehlo.constant dense<2> : tensor<i32>
  %far = stablehlo.constant dense<100> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_slice %x, %far, %zero, sizes = [2, 6] : (tensor<8x6xf32>, tensor<i32>, tensor<i32>) -> tensor<2x6xf32>
  %1 = stablehlo.dynamic_slice %x, %i, %zero, sizes = [2, 6] : (tensor<8x6xf32>, tensor<i32>, tensor<i32>) -> tensor<2x6xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x6xf32>
  %3 = stablehlo.dynamic_update_slice %x, %2, %i, %two : (tensor<8x6xf32>, tensor<2x6xf32>, tensor<i32>, tensor<i32>) -> tensor<8x6xf32>
  return %2, %3 : tensor<2x6xf32>, tensor<8x6xf32>
}

// clusters of the model as it is
// #0 unfused -> tensor<2x6xf32>
//     dynamic_slice
//     0 FLOP, 104 bytes
// #1 loop -> tensor<2x6xf32> from #0
//     slice, add
//     12 FLOP, 288 bytes
// #2 unfused -> tensor<8x6xf32> from #1
//     dynamic_update_slice
//     0 FLOP, 440 bytes
// before: 4 kernels, 12 FLOP, 784 bytes moved
// after:  3 kernels, 12 FLOP, 832 bytes moved

// clusters of without=dynamic_slice
// #0 fallback -> tensor<2x6xf32>
//     dynamic_slice
//     0 FLOP, 104 bytes
// #1 loop -> tensor<2x6xf32> from #0
//     slice, add
//     12 FLOP, 288 bytes
// #2 unfused -> tensor<8x6xf32> from #1
//     dynamic_update_slice
//     0 FLOP, 440 bytes
// before: 4 kernels, 12 FLOP, 784 bytes moved
// after:  3 kernels, 12 FLOP, 832 bytes moved
// on the reference interpreter: dynamic_slice

// clusters of op_by_op
// #0 unfused -> tensor<2x6xf32>
//     dynamic_slice
//     0 FLOP, 104 bytes
// #1 unfused -> tensor<2x6xf32>
//     dynamic_slice
//     0 FLOP, 104 bytes
// #2 loop -> tensor<2x6xf32> from #0 #1
//     add
//     12 FLOP, 144 bytes
// #3 unfused -> tensor<8x6xf32> from #2
//     dynamic_update_slice
//     0 FLOP, 440 bytes
// before: 4 kernels, 12 FLOP, 792 bytes moved
// after:  4 kernels, 12 FLOP, 792 bytes moved
