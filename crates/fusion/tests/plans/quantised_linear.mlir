// A product of integers is a matmul and takes its epilogue along; on a device that has no such kernel it stays alone.
// plan:
// plan: without=dot
// plan: op_by_op without=dot
func.func @main(%x: tensor<16x32xi8>, %w: tensor<8x32xi8>, %scale: tensor<8xf32>) -> tensor<16x8xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<16x32xi8>, tensor<8x32xi8>) -> tensor<16x8xi32>
  %1 = stablehlo.convert %0 : (tensor<16x8xi32>) -> tensor<16x8xf32>
  %2 = stablehlo.broadcast_in_dim %scale, dims = [1] : (tensor<8xf32>) -> tensor<16x8xf32>
  %3 = stablehlo.multiply %1, %2 : tensor<16x8xf32>
  return %3 : tensor<16x8xf32>
}

// clusters of the model as it is
// #0 matmul -> tensor<16x8xf32>
//     dot, convert, broadcast, multiply
//     8448 FLOP, 1312 bytes
// before: 4 kernels, 8448 FLOP, 4384 bytes moved
// after:  1 kernels, 8448 FLOP, 1312 bytes moved

// clusters of without=dot
// #0 fallback -> tensor<16x8xi32>
//     dot
//     8192 FLOP, 1280 bytes
// #1 loop -> tensor<16x8xf32> from #0
//     convert, broadcast, multiply
//     256 FLOP, 1056 bytes
// before: 4 kernels, 8448 FLOP, 4384 bytes moved
// after:  2 kernels, 8448 FLOP, 2336 bytes moved
// on the reference interpreter: dot

// clusters of op_by_op without=dot
// #0 fallback -> tensor<16x8xi32>
//     dot
//     8192 FLOP, 1280 bytes
// #1 loop -> tensor<16x8xf32> from #0
//     convert
//     128 FLOP, 1024 bytes
// #2 loop -> tensor<16x8xf32>
//     broadcast
//     0 FLOP, 544 bytes
// #3 loop -> tensor<16x8xf32> from #1 #2
//     multiply
//     128 FLOP, 1536 bytes
// before: 4 kernels, 8448 FLOP, 4384 bytes moved
// after:  4 kernels, 8448 FLOP, 4384 bytes moved
// on the reference interpreter: dot
