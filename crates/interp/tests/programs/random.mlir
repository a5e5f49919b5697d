// The words are those that XLA gives.
func.func @main() {
  %state = stablehlo.constant dense<3> : tensor<2xui64>
  %next, %word = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<ui64>)
  check.expect_eq_const %next, dense<[3, 4]> : tensor<2xui64>
  check.expect_eq_const %word, dense<3349939604322698703> : tensor<ui64>
  %seed = stablehlo.constant dense<[8589934593, 17179869187]> : tensor<2xui64>
  %after, %words = stablehlo.rng_bit_generator %seed, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  check.expect_eq_const %after, dense<[8589934593, 17179869188]> : tensor<2xui64>
  check.expect_eq_const %words, dense<[512747620, 1298009047, 1267190206, 761827841]> : tensor<4xui32>
  func.return
}

// -----

// Random numbers stay within their bounds.
func.func @main() {
  %low = stablehlo.constant dense<2.0> : tensor<f32>
  %high = stablehlo.constant dense<3.0> : tensor<f32>
  %shape = stablehlo.constant dense<[100]> : tensor<1xi64>
  %r = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<100xf32>
  %whole = stablehlo.floor %r : tensor<100xf32>
  check.expect_eq_const %whole, dense<2.0> : tensor<100xf32>
  func.return
}
