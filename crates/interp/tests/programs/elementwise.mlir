// Functions of one real number.
func.func @main() {
  %abs_x = stablehlo.constant dense<[-1.5, -0.5, 0.25, 2.0]> : tensor<4xf64>
  %abs = stablehlo.abs %abs_x : tensor<4xf64>
  check.expect_eq_const %abs, dense<[1.5, 0.5, 0.25, 2.0]> : tensor<4xf64>
  %cbrt_x = stablehlo.constant dense<[-1.5, -0.5, 0.25, 2.0]> : tensor<4xf64>
  %cbrt = stablehlo.cbrt %cbrt_x : tensor<4xf64>
  check.expect_almost_eq_const %cbrt, dense<[-1.1447142425533319, -0.7937005259840998, 0.6299605249474366, 1.2599210498948732]> : tensor<4xf64>, tolerance = 1.000000e-14
  %ceil_x = stablehlo.constant dense<[-1.5, -0.5, 0.25, 2.0]> : tensor<4xf64>
  %ceil = stablehlo.ceil %ceil_x : tensor<4xf64>
  check.expect_eq_const %ceil, dense<[-1.0, 0.0, 1.0, 2.0]> : tensor<4xf64>
  %cosine_x = stablehlo.constant dense<[-1.5, -0.5, 0.25, 2.0]> : tensor<4xf64>
  %cosine = stablehlo.cosine %cosine_x : tensor<4xf64>
  check.expect_almost_eq_const %cosine, dense<[0.0707372016677029, 0.8775825618903728, 0.9689124217106447, -0.4161468365471424]> : tensor<4xf64>, tolerance = 1.000000e-14
  %exponential_x = stablehlo.constant dense<[-1.5, -0.5, 0.25, 2.0]> : tensor<4xf64>
  %exponential = stablehlo.exponential %exponential_x : tensor<4xf64>
  check.expect_almost_eq_const %exponential, dense<[0.22313016014842982, 0.6065306597126334, 1.2840254166877414, 7.38905609893065]> : tensor<4xf64>, tolerance = 1.000000e-14
  %exponential_minus_one_x = stablehlo.constant dense<[-1.5, -0.5, 0.25, 2.0]> : tensor<4xf64>
  %exponential_minus_one = stablehlo.exponential_minus_one %exponential_minus_one_x : tensor<4xf64>
  check.expect_almost_eq_const %exponential_minus_one, dense<[-0.7768698398515702, -0.3934693402873666, 0.2840254166877415, 6.38905609893065]> : tensor<4xf64>, tolerance = 1.000000e-14
  %floor_x = stablehlo.constant dense<[-1.5, -0.5, 0.25, 2.0]> : tensor<4xf64>
  %floor = stablehlo.floor %floor_x : tensor<4xf64>
  check.expect_eq_const %floor, dense<[-2.0, -1.0, 0.0, 2.0]> : tensor<4xf64>
  %log_x = stablehlo.constant dense<[0.25, 0.5, 1.5, 4.0]> : tensor<4xf64>
  %log = stablehlo.log %log_x : tensor<4xf64>
  check.expect_almost_eq_const %log, dense<[-1.3862943611198906, -0.6931471805599453, 0.4054651081081644, 1.3862943611198906]> : tensor<4xf64>, tolerance = 1.000000e-14
  %log_plus_one_x = stablehlo.constant dense<[0.25, 0.5, 1.5, 4.0]> : tensor<4xf64>
  %log_plus_one = stablehlo.log_plus_one %log_plus_one_x : tensor<4xf64>
  check.expect_almost_eq_const %log_plus_one, dense<[0.22314355131420976, 0.4054651081081644, 0.9162907318741551, 1.6094379124341003]> : tensor<4xf64>, tolerance = 1.000000e-14
  %logistic_x = stablehlo.constant dense<[-1.5, -0.5, 0.25, 2.0]> : tensor<4xf64>
  %logistic = stablehlo.logistic %logistic_x : tensor<4xf64>
  check.expect_almost_eq_const %logistic, dense<[0.18242552380635635, 0.3775406687981454, 0.5621765008857981, 0.8807970779778823]> : tensor<4xf64>, tolerance = 1.000000e-14
  %negate_x = stablehlo.constant dense<[-1.5, -0.5, 0.25, 2.0]> : tensor<4xf64>
  %negate = stablehlo.negate %negate_x : tensor<4xf64>
  check.expect_eq_const %negate, dense<[1.5, 0.5, -0.25, -2.0]> : tensor<4xf64>
  %round_nearest_afz_x = stablehlo.constant dense<[-2.5, -1.5, 0.5, 2.5, 3.5]> : tensor<5xf64>
  %round_nearest_afz = stablehlo.round_nearest_afz %round_nearest_afz_x : tensor<5xf64>
  check.expect_eq_const %round_nearest_afz, dense<[-3.0, -2.0, 1.0, 3.0, 4.0]> : tensor<5xf64>
  %round_nearest_even_x = stablehlo.constant dense<[-2.5, -1.5, 0.5, 2.5, 3.5]> : tensor<5xf64>
  %round_nearest_even = stablehlo.round_nearest_even %round_nearest_even_x : tensor<5xf64>
  check.expect_eq_const %round_nearest_even, dense<[-2.0, -2.0, 0.0, 2.0, 4.0]> : tensor<5xf64>
  %rsqrt_x = stablehlo.constant dense<[0.25, 0.5, 1.5, 4.0]> : tensor<4xf64>
  %rsqrt = stablehlo.rsqrt %rsqrt_x : tensor<4xf64>
  check.expect_almost_eq_const %rsqrt, dense<[2.0, 1.414213562373095, 0.8164965809277261, 0.5]> : tensor<4xf64>, tolerance = 1.000000e-14
  %sign_x = stablehlo.constant dense<[-2.0, 0.0, 3.5]> : tensor<3xf64>
  %sign = stablehlo.sign %sign_x : tensor<3xf64>
  check.expect_eq_const %sign, dense<[-1.0, 0.0, 1.0]> : tensor<3xf64>
  %sine_x = stablehlo.constant dense<[-1.5, -0.5, 0.25, 2.0]> : tensor<4xf64>
  %sine = stablehlo.sine %sine_x : tensor<4xf64>
  check.expect_almost_eq_const %sine, dense<[-0.9974949866040544, -0.479425538604203, 0.24740395925452294, 0.9092974268256817]> : tensor<4xf64>, tolerance = 1.000000e-14
  %sqrt_x = stablehlo.constant dense<[0.25, 0.5, 1.5, 4.0]> : tensor<4xf64>
  %sqrt = stablehlo.sqrt %sqrt_x : tensor<4xf64>
  check.expect_almost_eq_const %sqrt, dense<[0.5, 0.7071067811865476, 1.224744871391589, 2.0]> : tensor<4xf64>, tolerance = 1.000000e-14
  %tan_x = stablehlo.constant dense<[-1.5, -0.5, 0.25, 2.0]> : tensor<4xf64>
  %tan = stablehlo.tan %tan_x : tensor<4xf64>
  check.expect_almost_eq_const %tan, dense<[-14.101419947171719, -0.5463024898437905, 0.25534192122103627, -2.185039863261519]> : tensor<4xf64>, tolerance = 1.000000e-14
  %tanh_x = stablehlo.constant dense<[-1.5, -0.5, 0.25, 2.0]> : tensor<4xf64>
  %tanh = stablehlo.tanh %tanh_x : tensor<4xf64>
  check.expect_almost_eq_const %tanh, dense<[-0.9051482536448664, -0.46211715726000974, 0.24491866240370913, 0.9640275800758169]> : tensor<4xf64>, tolerance = 1.000000e-14
  %reduce_precision_x = stablehlo.constant dense<[1.0, 1.0625, 1.03125, 65504.0]> : tensor<4xf32>
  %reduce_precision = stablehlo.reduce_precision %reduce_precision_x, format = e8m4 : tensor<4xf32>
  check.expect_eq_const %reduce_precision, dense<[1.0, 1.0625, 1.0, 65536.0]> : tensor<4xf32>
  %finite_x = stablehlo.constant dense<[1.0, 0x7FF0000000000000, 0x7FF8000000000000]> : tensor<3xf64>
  %finite = stablehlo.is_finite %finite_x : (tensor<3xf64>) -> tensor<3xi1>
  check.expect_eq_const %finite, dense<[true, false, false]> : tensor<3xi1>
  func.return
}

// -----

// Functions of two numbers.
func.func @main() {
  %atan2_a = stablehlo.constant dense<[1.0, -1.0, 0.5]> : tensor<3xf64>
  %atan2_b = stablehlo.constant dense<[1.0, -2.0, 0.0]> : tensor<3xf64>
  %atan2 = stablehlo.atan2 %atan2_a, %atan2_b : tensor<3xf64>
  check.expect_almost_eq_const %atan2, dense<[0.7853981633974483, -2.677945044588987, 1.5707963267948966]> : tensor<3xf64>, tolerance = 1.000000e-14
  %divide_a = stablehlo.constant dense<[1.0, -7.0]> : tensor<2xf64>
  %divide_b = stablehlo.constant dense<[4.0, 2.0]> : tensor<2xf64>
  %divide = stablehlo.divide %divide_a, %divide_b : tensor<2xf64>
  check.expect_eq_const %divide, dense<[0.25, -3.5]> : tensor<2xf64>
  %maximum_a = stablehlo.constant dense<[1.0, -7.0]> : tensor<2xf64>
  %maximum_b = stablehlo.constant dense<[4.0, -8.0]> : tensor<2xf64>
  %maximum = stablehlo.maximum %maximum_a, %maximum_b : tensor<2xf64>
  check.expect_eq_const %maximum, dense<[4.0, -7.0]> : tensor<2xf64>
  %minimum_a = stablehlo.constant dense<[1.0, -7.0]> : tensor<2xf64>
  %minimum_b = stablehlo.constant dense<[4.0, -8.0]> : tensor<2xf64>
  %minimum = stablehlo.minimum %minimum_a, %minimum_b : tensor<2xf64>
  check.expect_eq_const %minimum, dense<[1.0, -8.0]> : tensor<2xf64>
  %power_a = stablehlo.constant dense<[2.0, 4.0, -2.0]> : tensor<3xf64>
  %power_b = stablehlo.constant dense<[10.0, 0.5, 3.0]> : tensor<3xf64>
  %power = stablehlo.power %power_a, %power_b : tensor<3xf64>
  check.expect_almost_eq_const %power, dense<[1024.0, 2.0, -8.0]> : tensor<3xf64>, tolerance = 1.000000e-14
  %remainder_a = stablehlo.constant dense<[7, -7, 7]> : tensor<3xi32>
  %remainder_b = stablehlo.constant dense<[3, 3, -3]> : tensor<3xi32>
  %remainder = stablehlo.remainder %remainder_a, %remainder_b : tensor<3xi32>
  check.expect_eq_const %remainder, dense<[1, -1, 1]> : tensor<3xi32>
  %subtract_a = stablehlo.constant dense<[7, -7]> : tensor<2xi8>
  %subtract_b = stablehlo.constant dense<[3, 3]> : tensor<2xi8>
  %subtract = stablehlo.subtract %subtract_a, %subtract_b : tensor<2xi8>
  check.expect_eq_const %subtract, dense<[4, -10]> : tensor<2xi8>
  %and_a = stablehlo.constant dense<[12, 10]> : tensor<2xi32>
  %and_b = stablehlo.constant dense<[10, 3]> : tensor<2xi32>
  %and = stablehlo.and %and_a, %and_b : tensor<2xi32>
  check.expect_eq_const %and, dense<[8, 2]> : tensor<2xi32>
  %or_a = stablehlo.constant dense<[12, 10]> : tensor<2xui8>
  %or_b = stablehlo.constant dense<[10, 3]> : tensor<2xui8>
  %or = stablehlo.or %or_a, %or_b : tensor<2xui8>
  check.expect_eq_const %or, dense<[14, 11]> : tensor<2xui8>
  %xor_a = stablehlo.constant dense<[12, 10]> : tensor<2xi64>
  %xor_b = stablehlo.constant dense<[10, 3]> : tensor<2xi64>
  %xor = stablehlo.xor %xor_a, %xor_b : tensor<2xi64>
  check.expect_eq_const %xor, dense<[6, 9]> : tensor<2xi64>
  %shift_left_a = stablehlo.constant dense<[1, -3, 5]> : tensor<3xi32>
  %shift_left_b = stablehlo.constant dense<[3, 1, 40]> : tensor<3xi32>
  %shift_left = stablehlo.shift_left %shift_left_a, %shift_left_b : tensor<3xi32>
  check.expect_eq_const %shift_left, dense<[8, -6, 0]> : tensor<3xi32>
  %shift_right_arithmetic_a = stablehlo.constant dense<[-8, 8, -8]> : tensor<3xi32>
  %shift_right_arithmetic_b = stablehlo.constant dense<[1, 1, 40]> : tensor<3xi32>
  %shift_right_arithmetic = stablehlo.shift_right_arithmetic %shift_right_arithmetic_a, %shift_right_arithmetic_b : tensor<3xi32>
  check.expect_eq_const %shift_right_arithmetic, dense<[-4, 4, -1]> : tensor<3xi32>
  %shift_right_logical_a = stablehlo.constant dense<[-8, 8, -8]> : tensor<3xi32>
  %shift_right_logical_b = stablehlo.constant dense<[1, 1, 40]> : tensor<3xi32>
  %shift_right_logical = stablehlo.shift_right_logical %shift_right_logical_a, %shift_right_logical_b : tensor<3xi32>
  check.expect_eq_const %shift_right_logical, dense<[2147483644, 4, 0]> : tensor<3xi32>
  %not_x = stablehlo.constant dense<[true, false]> : tensor<2xi1>
  %not = stablehlo.not %not_x : tensor<2xi1>
  check.expect_eq_const %not, dense<[false, true]> : tensor<2xi1>
  %bits = stablehlo.constant dense<[0, 1, 255, -1]> : tensor<4xi16>
  %zeros = stablehlo.count_leading_zeros %bits : tensor<4xi16>
  check.expect_eq_const %zeros, dense<[16, 15, 8, 0]> : tensor<4xi16>
  %ones = stablehlo.popcnt %bits : tensor<4xi16>
  check.expect_eq_const %ones, dense<[0, 1, 8, 16]> : tensor<4xi16>
  %low = stablehlo.constant dense<0> : tensor<i32>
  %high = stablehlo.constant dense<5> : tensor<i32>
  %many = stablehlo.constant dense<[-3, 3, 9]> : tensor<3xi32>
  %clamped = stablehlo.clamp %low, %many, %high : (tensor<i32>, tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  check.expect_eq_const %clamped, dense<[0, 3, 5]> : tensor<3xi32>
  %which = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
  %chosen = stablehlo.select %which, %many, %clamped : tensor<3xi1>, tensor<3xi32>
  check.expect_eq_const %chosen, dense<[-3, 3, 9]> : tensor<3xi32>
  %converted = stablehlo.convert %many : (tensor<3xi32>) -> tensor<3xf16>
  check.expect_eq_const %converted, dense<[-3.0, 3.0, 9.0]> : tensor<3xf16>
  func.return
}

// -----

// Complex numbers and their parts.
func.func @main() {
  %re = stablehlo.constant dense<[3.0, 0.0]> : tensor<2xf32>
  %im = stablehlo.constant dense<[4.0, -2.0]> : tensor<2xf32>
  %z = stablehlo.complex %re, %im : tensor<2xcomplex<f32>>
  check.expect_eq_const %z, dense<[(3.0, 4.0), (0.0, -2.0)]> : tensor<2xcomplex<f32>>
  %real = stablehlo.real %z : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  check.expect_eq %real, %re : tensor<2xf32>
  %imag = stablehlo.imag %z : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  check.expect_eq %imag, %im : tensor<2xf32>
  %size = stablehlo.abs %z : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  check.expect_eq_const %size, dense<[5.0, 2.0]> : tensor<2xf32>
  func.return
}

// -----

// Any value of a small float but zero is true; NaN is one, and f8E8M0FNU has no zero.
func.func @main() {
  %a = stablehlo.constant dense<[0x80, 0x01, 0x00, 0x7F]> : tensor<4xf8E4M3FNUZ>
  %0 = stablehlo.convert %a : (tensor<4xf8E4M3FNUZ>) -> tensor<4xi1>
  check.expect_eq_const %0, dense<[true, true, false, true]> : tensor<4xi1>
  %b = stablehlo.constant dense<[0x80, 0x01, 0x00, 0x7F]> : tensor<4xf8E4M3FN>
  %1 = stablehlo.convert %b : (tensor<4xf8E4M3FN>) -> tensor<4xi1>
  check.expect_eq_const %1, dense<[false, true, false, true]> : tensor<4xi1>
  %c = stablehlo.constant dense<[0x0, 0x1, 0x8, 0x9]> : tensor<4xf4E2M1FN>
  %2 = stablehlo.convert %c : (tensor<4xf4E2M1FN>) -> tensor<4xi1>
  check.expect_eq_const %2, dense<[false, true, false, true]> : tensor<4xi1>
  %d = stablehlo.constant dense<[0x00, 0x01]> : tensor<2xf6E3M2FN>
  %3 = stablehlo.convert %d : (tensor<2xf6E3M2FN>) -> tensor<2xi1>
  check.expect_eq_const %3, dense<[false, true]> : tensor<2xi1>
  %e = stablehlo.constant dense<[0x00, 0xFF]> : tensor<2xf8E8M0FNU>
  %4 = stablehlo.convert %e : (tensor<2xf8E8M0FNU>) -> tensor<2xi1>
  check.expect_eq_const %4, dense<[true, true]> : tensor<2xi1>
  %f = stablehlo.constant dense<[(-1.0, 0.0), (0.0, 1.0), (1.0, 0.0)]> : tensor<3xcomplex<f64>>
  %5 = stablehlo.convert %f : (tensor<3xcomplex<f64>>) -> tensor<3xi1>
  check.expect_eq_const %5, dense<[true, false, true]> : tensor<3xi1>
  func.return
}

// -----

// Products with an infinity are infinite, as in Annex G of the C standard.
func.func @main() {
  %a = stablehlo.constant dense<[(0x7F800000, 0.0), (0x7F800000, 0x7FC00000), (2.0, 3.0), (1.0, 2.0)]> : tensor<4xcomplex<f32>>
  %b = stablehlo.constant dense<[(0x7F800000, 0x7F800000), (1.0, 0.0), (0x7FC00000, 0xFF800000), (3.0, -1.0)]> : tensor<4xcomplex<f32>>
  %0 = stablehlo.multiply %a, %b : tensor<4xcomplex<f32>>
  %expected = stablehlo.constant dense<[(0x7F800000, 0x7F800000), (0x7F800000, 0x7FC00000), (0x7F800000, 0xFF800000), (5.0, 5.0)]> : tensor<4xcomplex<f32>>
  check.expect_close %0, %expected, max_ulp_difference = 0 : tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>
  func.return
}
