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

// -----

// Sizes of groups that differ between batches; the ragged dimension is free, and the last row belongs to no group.
func.func @ragged_dot_by_batch() {
  %lhs = stablehlo.constant dense<[[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]]]> : tensor<2x3x1xf32>
  %rhs = stablehlo.constant dense<[[[[10.0]], [[20.0]]], [[[100.0]], [[200.0]]]]> : tensor<2x2x1x1xf32>
  %sizes = stablehlo.constant dense<[[1, 2], [2, 0]]> : tensor<2x2xi32>
  %0 = "chlo.ragged_dot"(%lhs, %rhs, %sizes) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<
      lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [2],
      rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [1], rhs_group_dimensions = [0]>}>
    : (tensor<2x3x1xf32>, tensor<2x2x1x1xf32>, tensor<2x2xi32>) -> tensor<2x3x1xf32>
  check.expect_eq_const %0, dense<[[[10.0], [200.0], [300.0]], [[80.0], [100.0], [0.0]]]> : tensor<2x3x1xf32>
  func.return
}

// -----

// The ragged dimension is free, and the sizes differ along another free dimension before it.
func.func @ragged_dot_by_row() {
  %lhs = stablehlo.constant dense<[[[1.0], [2.0]], [[3.0], [4.0]]]> : tensor<2x2x1xf32>
  %rhs = stablehlo.constant dense<[[[10.0]], [[100.0]]]> : tensor<2x1x1xf32>
  %sizes = stablehlo.constant dense<[[2, 0], [1, 1]]> : tensor<2x2xi64>
  %0 = "chlo.ragged_dot"(%lhs, %rhs, %sizes) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<
      lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [1],
      rhs_group_dimensions = [0]>}>
    : (tensor<2x2x1xf32>, tensor<2x1x1xf32>, tensor<2x2xi64>) -> tensor<2x2x1xf32>
  check.expect_eq_const %0, dense<[[[10.0], [20.0]], [[30.0], [400.0]]]> : tensor<2x2x1xf32>
  func.return
}

// -----

// The ragged dimension is summed over, by batch.
func.func @ragged_dot_sums_by_batch() {
  %lhs = stablehlo.constant dense<[[[1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0]]]> : tensor<2x1x3xf32>
  %rhs = stablehlo.constant dense<1.0> : tensor<2x3x1xf32>
  %sizes = stablehlo.constant dense<[[1, 2], [2, 0]]> : tensor<2x2xi32>
  %0 = "chlo.ragged_dot"(%lhs, %rhs, %sizes) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<
      lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2],
      rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [2]>}>
    : (tensor<2x1x3xf32>, tensor<2x3x1xf32>, tensor<2x2xi32>) -> tensor<2x2x1x1xf32>
  check.expect_eq_const %0, dense<[[[[1.0]], [[9.0]]], [[[5.0]], [[0.0]]]]> : tensor<2x2x1x1xf32>
  func.return
}

// -----

// The ragged dimension is summed over, and the sizes differ along another that is summed over: the parts add up.
func.func @ragged_dot_sums_by_sum() {
  %lhs = stablehlo.constant dense<[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]> : tensor<1x2x3xf32>
  %rhs = stablehlo.constant dense<1.0> : tensor<2x3x1xf32>
  %sizes = stablehlo.constant dense<[[1, 2], [2, 0]]> : tensor<2x2xi32>
  %0 = "chlo.ragged_dot"(%lhs, %rhs, %sizes) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<
      lhs_contracting_dimensions = [1, 2], rhs_contracting_dimensions = [0, 1], lhs_ragged_dimensions = [2]>}>
    : (tensor<1x2x3xf32>, tensor<2x3x1xf32>, tensor<2x2xi32>) -> tensor<2x1x1xf32>
  check.expect_eq_const %0, dense<[[[10.0]], [[5.0]]]> : tensor<2x1x1xf32>
  func.return
}

// -----

// The ragged dimension is a batching one behind another: only so much of it is used.
func.func @ragged_dot_batches() {
  %lhs = stablehlo.constant dense<[[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]]> : tensor<2x2x1x1xf32>
  %rhs = stablehlo.constant dense<10.0> : tensor<2x2x1x1xf32>
  %sizes = stablehlo.constant dense<[[1, 0], [1, 1]]> : tensor<2x2xi32>
  %0 = "chlo.ragged_dot"(%lhs, %rhs, %sizes) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<
      lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3],
      rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [1]>}>
    : (tensor<2x2x1x1xf32>, tensor<2x2x1x1xf32>, tensor<2x2xi32>) -> tensor<2x2x1x1xf32>
  check.expect_eq_const %0, dense<[[[[10.0]], [[0.0]]], [[[30.0]], [[40.0]]]]> : tensor<2x2x1x1xf32>
  func.return
}

// -----

// asin(z) = atan2(z.re, w.re) - i w.im, for a z below the real axis.
func.func @asin_acos_kernel() {
  %z = stablehlo.constant dense<[(0.6, -2.0)]> : tensor<1xcomplex<f64>>
  %k = "chlo._asin_acos_kernel"(%z) : (tensor<1xcomplex<f64>>) -> tensor<1xcomplex<f64>>
  %re = stablehlo.real %k : (tensor<1xcomplex<f64>>) -> tensor<1xf64>
  %im = stablehlo.imag %k : (tensor<1xcomplex<f64>>) -> tensor<1xf64>
  %zre = stablehlo.real %z : (tensor<1xcomplex<f64>>) -> tensor<1xf64>
  %angle = stablehlo.atan2 %zre, %re : tensor<1xf64>
  %minus = stablehlo.negate %im : tensor<1xf64>
  %found = stablehlo.complex %angle, %minus : tensor<1xcomplex<f64>>
  %asin = "chlo.asin"(%z) : (tensor<1xcomplex<f64>>) -> tensor<1xcomplex<f64>>
  check.expect_close %found, %asin, max_ulp_difference = 2 : tensor<1xcomplex<f64>>, tensor<1xcomplex<f64>>
  func.return
}
