func.func @main() {
  %x = stablehlo.constant dense<[[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]]> : tensor<2x3xf32>
  %v, %i = chlo.top_k(%x, k = 2) : tensor<2x3xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>)
  check.expect_eq_const %v, dense<[[3.0, 2.0], [6.0, 5.0]]> : tensor<2x2xf32>
  check.expect_eq_const %i, dense<[[0, 2], [1, 2]]> : tensor<2x2xi32>
  %row = stablehlo.constant dense<[10.0, 20.0, 30.0]> : tensor<3xf32>
  %s = chlo.broadcast_add %x, %row : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  check.expect_eq_const %s, dense<[[13.0, 21.0, 32.0], [14.0, 26.0, 35.0]]> : tensor<2x3xf32>
  %e = chlo.erf %row : tensor<3xf32> -> tensor<3xf32>
  check.expect_eq_const %e, dense<1.0> : tensor<3xf32>
  func.return
}

// -----

// Rows 0 and 1 meet the first matrix, row 2 the second.
func.func @main() {
  %lhs = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %rhs = stablehlo.constant dense<[[[1.0], [0.0]], [[0.0], [1.0]]]> : tensor<2x2x1xf32>
  %sizes = stablehlo.constant dense<[2, 1]> : tensor<2xi64>
  %r = "chlo.ragged_dot"(%lhs, %rhs, %sizes) {ragged_dot_dimension_numbers = #chlo.ragged_dot<
    lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1],
    lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}
    : (tensor<3x2xf32>, tensor<2x2x1xf32>, tensor<2xi64>) -> tensor<3x1xf32>
  check.expect_eq_const %r, dense<[[1.0], [3.0], [6.0]]> : tensor<3x1xf32>
  func.return
}
