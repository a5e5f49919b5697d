// The words are those that XLA gives.
func.func @main() {
  %state = stablehlo.constant dense<3> : tensor<2xui64>
  %next, %word = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<ui64>)
  check.expect_eq_const %next, dense<[3, 4]> : tensor<2xui64>
  check.expect_eq_const %word, dense<3349939604322698703> : tensor<ui64>
  func.return
}
