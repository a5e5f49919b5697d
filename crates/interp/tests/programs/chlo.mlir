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

// Functions of one number.
func.func @main() {
  %acos_x = stablehlo.constant dense<[-0.75, -0.25, 0.5]> : tensor<3xf64>
  %acos = chlo.acos %acos_x : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %acos, dense<[2.4188584057763776, 1.8234765819369754, 1.0471975511965979]> : tensor<3xf64>, tolerance = 1.000000e-12
  %acosh_x = stablehlo.constant dense<[1.5, 3.0]> : tensor<2xf64>
  %acosh = chlo.acosh %acosh_x : tensor<2xf64> -> tensor<2xf64>
  check.expect_almost_eq_const %acosh, dense<[0.9624236501192069, 1.762747174039086]> : tensor<2xf64>, tolerance = 1.000000e-12
  %asin_x = stablehlo.constant dense<[-0.75, -0.25, 0.5]> : tensor<3xf64>
  %asin = chlo.asin %asin_x : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %asin, dense<[-0.848062078981481, -0.25268025514207865, 0.5235987755982989]> : tensor<3xf64>, tolerance = 1.000000e-12
  %asinh_x = stablehlo.constant dense<[-0.75, -0.25, 0.5]> : tensor<3xf64>
  %asinh = chlo.asinh %asinh_x : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %asinh, dense<[-0.6931471805599453, -0.24746646154726346, 0.48121182505960347]> : tensor<3xf64>, tolerance = 1.000000e-12
  %atan_x = stablehlo.constant dense<[-0.75, -0.25, 0.5]> : tensor<3xf64>
  %atan = chlo.atan %atan_x : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %atan, dense<[-0.6435011087932844, -0.24497866312686414, 0.4636476090008061]> : tensor<3xf64>, tolerance = 1.000000e-12
  %atanh_x = stablehlo.constant dense<[-0.75, -0.25, 0.5]> : tensor<3xf64>
  %atanh = chlo.atanh %atanh_x : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %atanh, dense<[-0.9729550745276566, -0.25541281188299536, 0.5493061443340548]> : tensor<3xf64>, tolerance = 1.000000e-12
  %cosh_x = stablehlo.constant dense<[-0.75, -0.25, 0.5]> : tensor<3xf64>
  %cosh = chlo.cosh %cosh_x : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %cosh, dense<[1.2946832846768448, 1.0314130998795732, 1.1276259652063807]> : tensor<3xf64>, tolerance = 1.000000e-12
  %sinh_x = stablehlo.constant dense<[-0.75, -0.25, 0.5]> : tensor<3xf64>
  %sinh = chlo.sinh %sinh_x : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %sinh, dense<[-0.82231673193583, -0.2526123168081683, 0.5210953054937474]> : tensor<3xf64>, tolerance = 1.000000e-12
  %tan_x = stablehlo.constant dense<[-0.75, -0.25, 0.5]> : tensor<3xf64>
  %tan = chlo.tan %tan_x : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %tan, dense<[-0.9315964599440725, -0.25534192122103627, 0.5463024898437905]> : tensor<3xf64>, tolerance = 1.000000e-12
  %erfc_x = stablehlo.constant dense<[-0.75, -0.25, 0.5]> : tensor<3xf64>
  %erfc = chlo.erfc %erfc_x : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %erfc, dense<[1.7111556336535152, 1.276326390168237, 0.4795001221869535]> : tensor<3xf64>, tolerance = 1.000000e-12
  %lgamma_x = stablehlo.constant dense<[0.5, 1.5, 4.0]> : tensor<3xf64>
  %lgamma = chlo.lgamma %lgamma_x : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %lgamma, dense<[0.5723649429247004, -0.12078223763524543, 1.7917594692280554]> : tensor<3xf64>, tolerance = 1.000000e-12
  %square_x = stablehlo.constant dense<[-0.75, -0.25, 0.5]> : tensor<3xf64>
  %square = chlo.square %square_x : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %square, dense<[0.5625, 0.0625, 0.25]> : tensor<3xf64>, tolerance = 1.000000e-12
  %bessel_i1e_x = stablehlo.constant dense<[0.5, 1.0, 3.0]> : tensor<3xf64>
  %bessel_i1e = chlo.bessel_i1e %bessel_i1e_x : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %bessel_i1e, dense<[0.15642080318487167, 0.20791041534970847, 0.19682671329730084]> : tensor<3xf64>, tolerance = 1.000000e-12
  %digamma_x = stablehlo.constant dense<[1.0, 2.0, 0.5]> : tensor<3xf64>
  %digamma = chlo.digamma %digamma_x : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %digamma, dense<[-0.5772156649015329, 0.4227843350984671, -1.9635100260214235]> : tensor<3xf64>, tolerance = 1.000000e-12
  %erf_inv_x = stablehlo.constant dense<[0.2763263901682369, 0.7111556336535151]> : tensor<2xf64>
  %erf_inv = chlo.erf_inv %erf_inv_x : tensor<2xf64> -> tensor<2xf64>
  check.expect_almost_eq_const %erf_inv, dense<[0.25, 0.75]> : tensor<2xf64>, tolerance = 1.000000e-12
  %odd = stablehlo.constant dense<[0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 1.0]> : tensor<4xf64>
  %is_inf = chlo.is_inf %odd : tensor<4xf64> -> tensor<4xi1>
  check.expect_eq_const %is_inf, dense<[true, true, false, false]> : tensor<4xi1>
  %is_pos_inf = chlo.is_pos_inf %odd : tensor<4xf64> -> tensor<4xi1>
  check.expect_eq_const %is_pos_inf, dense<[true, false, false, false]> : tensor<4xi1>
  %is_neg_inf = chlo.is_neg_inf %odd : tensor<4xf64> -> tensor<4xi1>
  check.expect_eq_const %is_neg_inf, dense<[false, true, false, false]> : tensor<4xi1>
  %z = stablehlo.constant dense<[(1.0, 2.0), (3.0, -4.0)]> : tensor<2xcomplex<f32>>
  %conj = chlo.conj %z : tensor<2xcomplex<f32>> -> tensor<2xcomplex<f32>>
  check.expect_eq_const %conj, dense<[(1.0, -2.0), (3.0, 4.0)]> : tensor<2xcomplex<f32>>
  %constant = "chlo.constant"() {value = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
  %like = "chlo.constant_like"(%constant) {value = 7 : i32} : (tensor<2xi32>) -> tensor<2xi32>
  check.expect_eq_const %like, dense<7> : tensor<2xi32>
  func.return
}

// -----

// Functions of two numbers, of one shape and broadcast.
func.func @main() {
  %m = stablehlo.constant dense<[[6.0, 8.0], [9.0, 2.0]]> : tensor<2x2xf64>
  %r = stablehlo.constant dense<[2.0, 3.0]> : tensor<2xf64>
  %broadcast_atan2 = chlo.broadcast_atan2 %m, %r : (tensor<2x2xf64>, tensor<2xf64>) -> tensor<2x2xf64>
  check.expect_almost_eq_const %broadcast_atan2, dense<[[1.2490457723982544, 1.2120256565243244], [1.3521273809209546, 0.5880026035475675]]> : tensor<2x2xf64>, tolerance = 1.000000e-12
  %broadcast_divide = chlo.broadcast_divide %m, %r : (tensor<2x2xf64>, tensor<2xf64>) -> tensor<2x2xf64>
  check.expect_eq_const %broadcast_divide, dense<[[3.0, 2.6666666666666665], [4.5, 0.6666666666666666]]> : tensor<2x2xf64>
  %broadcast_maximum = chlo.broadcast_maximum %m, %r : (tensor<2x2xf64>, tensor<2xf64>) -> tensor<2x2xf64>
  check.expect_eq_const %broadcast_maximum, dense<[[6.0, 8.0], [9.0, 3.0]]> : tensor<2x2xf64>
  %broadcast_minimum = chlo.broadcast_minimum %m, %r : (tensor<2x2xf64>, tensor<2xf64>) -> tensor<2x2xf64>
  check.expect_eq_const %broadcast_minimum, dense<[[2.0, 3.0], [2.0, 2.0]]> : tensor<2x2xf64>
  %broadcast_multiply = chlo.broadcast_multiply %m, %r : (tensor<2x2xf64>, tensor<2xf64>) -> tensor<2x2xf64>
  check.expect_eq_const %broadcast_multiply, dense<[[12.0, 24.0], [18.0, 6.0]]> : tensor<2x2xf64>
  %broadcast_power = chlo.broadcast_power %m, %r : (tensor<2x2xf64>, tensor<2xf64>) -> tensor<2x2xf64>
  check.expect_almost_eq_const %broadcast_power, dense<[[36.0, 512.0], [81.0, 8.0]]> : tensor<2x2xf64>, tolerance = 1.000000e-12
  %broadcast_remainder = chlo.broadcast_remainder %m, %r : (tensor<2x2xf64>, tensor<2xf64>) -> tensor<2x2xf64>
  check.expect_eq_const %broadcast_remainder, dense<[[0.0, 2.0], [1.0, 2.0]]> : tensor<2x2xf64>
  %broadcast_subtract = chlo.broadcast_subtract %m, %r : (tensor<2x2xf64>, tensor<2xf64>) -> tensor<2x2xf64>
  check.expect_eq_const %broadcast_subtract, dense<[[4.0, 5.0], [7.0, -1.0]]> : tensor<2x2xf64>
  %broadcast_next_after = chlo.broadcast_next_after %m, %r : (tensor<2x2xf64>, tensor<2xf64>) -> tensor<2x2xf64>
  check.expect_eq_const %broadcast_next_after, dense<[[5.999999999999999, 7.999999999999999], [8.999999999999998, 2.0000000000000004]]> : tensor<2x2xf64>
  %z = chlo.broadcast_complex %m, %r : (tensor<2x2xf64>, tensor<2xf64>) -> tensor<2x2xcomplex<f64>>
  check.expect_eq_const %z, dense<[[(6.0, 2.0), (8.0, 3.0)], [(9.0, 2.0), (2.0, 3.0)]]> : tensor<2x2xcomplex<f64>>
  %less = chlo.broadcast_compare %m, %r {comparison_direction = #chlo<comparison_direction LT>} : (tensor<2x2xf64>, tensor<2xf64>) -> tensor<2x2xi1>
  check.expect_eq_const %less, dense<[[false, false], [false, true]]> : tensor<2x2xi1>
  %chosen = chlo.broadcast_select %less, %m, %r : (tensor<2x2xi1>, tensor<2x2xf64>, tensor<2xf64>) -> tensor<2x2xf64>
  check.expect_eq_const %chosen, dense<[[2.0, 3.0], [2.0, 2.0]]> : tensor<2x2xf64>
  %a = stablehlo.constant dense<[[12, 10], [-8, 3]]> : tensor<2x2xi32>
  %b = stablehlo.constant dense<[2, 1]> : tensor<2xi32>
  %broadcast_and = chlo.broadcast_and %a, %b : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %broadcast_and, dense<[[0, 0], [0, 1]]> : tensor<2x2xi32>
  %broadcast_or = chlo.broadcast_or %a, %b : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %broadcast_or, dense<[[14, 11], [-6, 3]]> : tensor<2x2xi32>
  %broadcast_xor = chlo.broadcast_xor %a, %b : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %broadcast_xor, dense<[[14, 11], [-6, 2]]> : tensor<2x2xi32>
  %broadcast_shift_left = chlo.broadcast_shift_left %a, %b : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %broadcast_shift_left, dense<[[48, 20], [-32, 6]]> : tensor<2x2xi32>
  %broadcast_shift_right_arithmetic = chlo.broadcast_shift_right_arithmetic %a, %b : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %broadcast_shift_right_arithmetic, dense<[[3, 5], [-2, 1]]> : tensor<2x2xi32>
  %broadcast_shift_right_logical = chlo.broadcast_shift_right_logical %a, %b : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %broadcast_shift_right_logical, dense<[[3, 5], [1073741822, 1]]> : tensor<2x2xi32>
  %big = stablehlo.constant dense<[1073741824, -1073741824]> : tensor<2xi32>
  %high = chlo.mulhi %big, %big : tensor<2xi32>, tensor<2xi32> -> tensor<2xi32>
  check.expect_eq_const %high, dense<268435456> : tensor<2xi32>
  %from = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf64>
  %to = stablehlo.constant dense<[2.0, 1.0]> : tensor<2xf64>
  %next = chlo.next_after %from, %to : tensor<2xf64>, tensor<2xf64> -> tensor<2xf64>
  check.expect_close %next, %from, max_ulp_difference = 1, min_ulp_difference = 1 : tensor<2xf64>, tensor<2xf64>
  %orders = stablehlo.constant dense<1.0> : tensor<2xf64>
  %points = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf64>
  %polygamma = chlo.polygamma %orders, %points : tensor<2xf64>, tensor<2xf64> -> tensor<2xf64>
  check.expect_almost_eq_const %polygamma, dense<[1.6449340668482264, 0.6449340668482264]> : tensor<2xf64>, tolerance = 1.000000e-12
  %order = stablehlo.constant dense<1.0> : tensor<f64>
  %same = chlo.broadcast_polygamma %order, %points : (tensor<f64>, tensor<2xf64>) -> tensor<2xf64>
  check.expect_eq %same, %polygamma : tensor<2xf64>
  %two = stablehlo.constant dense<2.0> : tensor<2xf64>
  %zeta = chlo.zeta %two, %points : tensor<2xf64>, tensor<2xf64> -> tensor<2xf64>
  check.expect_almost_eq_const %zeta, dense<[1.6449340668482264, 0.6449340668482264]> : tensor<2xf64>, tolerance = 1.000000e-12
  %again = chlo.broadcast_zeta %two, %points : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
  check.expect_eq %again, %zeta : tensor<2xf64>
  func.return
}

// -----

// Sums so far, and the last of them.
func.func @main() {
  %x = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = "chlo.scan"(%x, %zero) <{
    dimension = 0 : i64, is_reverse = false,
    operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>
  }> ({
    ^bb0(%element: tensor<i32>, %sum: tensor<i32>):
      %next = stablehlo.add %sum, %element : tensor<i32>
      stablehlo.return %next, %next : tensor<i32>, tensor<i32>
  }) : (tensor<4xi32>, tensor<i32>) -> (tensor<4xi32>, tensor<i32>)
  check.expect_eq_const %r#0, dense<[1, 3, 6, 10]> : tensor<4xi32>
  check.expect_eq_const %r#1, dense<10> : tensor<i32>
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

// -----

// The square of a complex number whose squared parts overflow has the real part of the exact square.
func.func @main() {
  %a = stablehlo.constant dense<[(3.0e38, 3.0e38), (3.0e38, -3.0e38), (3.0e38, 1.0), (1.0, 3.0e38), (0x7F800000, 0x7F800000), (0x7F800000, 0.0), (-1.5, -1.5)]> : tensor<7xcomplex<f32>>
  %0 = chlo.square %a : tensor<7xcomplex<f32>> -> tensor<7xcomplex<f32>>
  %expected = stablehlo.constant dense<[(0.0, 0x7F800000), (0.0, 0xFF800000), (0x7F800000, 0x7F800000), (0xFF800000, 0x7F800000), (0x7FC00000, 0x7F800000), (0x7F800000, 0x7FC00000), (0.0, 4.5)]> : tensor<7xcomplex<f32>>
  check.expect_close %0, %expected, max_ulp_difference = 0 : tensor<7xcomplex<f32>>, tensor<7xcomplex<f32>>
  func.return
}
