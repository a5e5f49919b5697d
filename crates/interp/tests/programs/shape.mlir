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
