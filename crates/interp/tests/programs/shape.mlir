func.func @main() {
  %x = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %nine = stablehlo.constant dense<9> : tensor<i32>
  %p = stablehlo.pad %x, %nine, low = [0, -1], high = [1, 0], interior = [0, 1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<3x4xi32>
  check.expect_eq_const %p, dense<[[9, 2, 9, 3], [9, 5, 9, 6], [9, 9, 9, 9]]> : tensor<3x4xi32>
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
  check.expect_eq_const %t, dense<[[1, 4], [2, 5], [3, 6]]> : tensor<3x2xi32>
  %r = stablehlo.reverse %x, dims = [1] : tensor<2x3xi32>
  check.expect_eq_const %r, dense<[[3, 2, 1], [6, 5, 4]]> : tensor<2x3xi32>
  %s = stablehlo.slice %x [0:2, 0:3:2] : (tensor<2x3xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %s, dense<[[1, 3], [4, 6]]> : tensor<2x2xi32>
  // A start beyond the end is moved inside.
  %d = stablehlo.dynamic_slice %x, %nine, %nine, sizes = [1, 2] : (tensor<2x3xi32>, tensor<i32>, tensor<i32>) -> tensor<1x2xi32>
  check.expect_eq_const %d, dense<[[5, 6]]> : tensor<1x2xi32>
  %u = stablehlo.dynamic_update_slice %x, %d, %nine, %nine : (tensor<2x3xi32>, tensor<1x2xi32>, tensor<i32>, tensor<i32>) -> tensor<2x3xi32>
  check.expect_eq_const %u, dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %c = stablehlo.concatenate %d, %s, dim = 0 : (tensor<1x2xi32>, tensor<2x2xi32>) -> tensor<3x2xi32>
  check.expect_eq_const %c, dense<[[5, 6], [1, 3], [4, 6]]> : tensor<3x2xi32>
  func.return
}

// -----

func.func @main() {
  %sizes = stablehlo.constant dense<[2, 2]> : tensor<2xi64>
  %i = stablehlo.dynamic_iota %sizes, dim = 1 : (tensor<2xi64>) -> tensor<?x?xi32>
  %j = stablehlo.constant dense<[[0, 1], [0, 1]]> : tensor<2x2xi32>
  %k = stablehlo.reshape %j : (tensor<2x2xi32>) -> tensor<4xi32>
  check.expect_eq_const %k, dense<[0, 1, 0, 1]> : tensor<4xi32>
  %b = stablehlo.bitcast_convert %j : (tensor<2x2xi32>) -> tensor<2x2x4xi8>
  check.expect_eq_const %b, dense<[[[0, 0, 0, 0], [1, 0, 0, 0]], [[0, 0, 0, 0], [1, 0, 0, 0]]]> : tensor<2x2x4xi8>
  %n = "stablehlo.get_dimension_size"(%i) <{dimension = 1 : i64}> : (tensor<?x?xi32>) -> tensor<i32>
  check.expect_eq_const %n, dense<2> : tensor<i32>
  func.return
}

// -----

// Shapes that operands give.
func.func @main() {
  %x = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %shape = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %b = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [1] : (tensor<3xi32>, tensor<2xi64>) -> tensor<?x?xi32>
  %b_static = stablehlo.convert %b : (tensor<?x?xi32>) -> tensor<2x3xi32>
  check.expect_eq_const %b_static, dense<[[1, 2, 3], [1, 2, 3]]> : tensor<2x3xi32>
  %turned = stablehlo.constant dense<[3, 2]> : tensor<2xi64>
  %r = stablehlo.dynamic_reshape %b, %turned : (tensor<?x?xi32>, tensor<2xi64>) -> tensor<?x?xi32>
  %r_static = stablehlo.convert %r : (tensor<?x?xi32>) -> tensor<3x2xi32>
  check.expect_eq_const %r_static, dense<[[1, 2], [3, 1], [2, 3]]> : tensor<3x2xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %low = stablehlo.constant dense<[1]> : tensor<1xi64>
  %high = stablehlo.constant dense<[0]> : tensor<1xi64>
  %inner = stablehlo.constant dense<[1]> : tensor<1xi64>
  %p = stablehlo.dynamic_pad %x, %zero, %low, %high, %inner : (tensor<3xi32>, tensor<i32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xi32>
  %p_static = stablehlo.convert %p : (tensor<?xi32>) -> tensor<6xi32>
  check.expect_eq_const %p_static, dense<[0, 1, 0, 2, 0, 3]> : tensor<6xi32>
  %start = stablehlo.constant dense<[0]> : tensor<1xi64>
  %limit = stablehlo.constant dense<[3]> : tensor<1xi64>
  %stride = stablehlo.constant dense<[2]> : tensor<1xi64>
  %s = stablehlo.real_dynamic_slice %x, %start, %limit, %stride : (tensor<3xi32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xi32>
  %s_static = stablehlo.convert %s : (tensor<?xi32>) -> tensor<2xi32>
  check.expect_eq_const %s_static, dense<[1, 3]> : tensor<2xi32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %d = stablehlo.set_dimension_size %x, %two, dim = 0 : (tensor<3xi32>, tensor<i32>) -> tensor<?xi32, #stablehlo.bounds<3>>
  %size = stablehlo.get_dimension_size %d, dim = 0 : (tensor<?xi32, #stablehlo.bounds<3>>) -> tensor<i32>
  check.expect_eq_const %size, dense<2> : tensor<i32>
  func.return
}

// -----

// Repeating, counting, and leaving alone.
func.func @main() {
  %x = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %b = stablehlo.broadcast %x, sizes = [3] : (tensor<2xi32>) -> tensor<3x2xi32>
  check.expect_eq_const %b, dense<[[1, 2], [1, 2], [1, 2]]> : tensor<3x2xi32>
  %d = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<2xi32>) -> tensor<2x3xi32>
  check.expect_eq_const %d, dense<[[1, 1, 1], [2, 2, 2]]> : tensor<2x3xi32>
  %i = stablehlo.iota dim = 1 : tensor<2x3xi32>
  check.expect_eq_const %i, dense<[[0, 1, 2], [0, 1, 2]]> : tensor<2x3xi32>
  %same:2 = stablehlo.optimization_barrier %x, %i : tensor<2xi32>, tensor<2x3xi32>
  check.expect_eq %same#1, %i : tensor<2x3xi32>
  func.return
}
