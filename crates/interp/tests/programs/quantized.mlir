// Numbers as integers of half a unit around minus one, and back.
func.func @main() {
  %x = stablehlo.constant dense<[1.0, -1.0, 0.3, 100.0]> : tensor<4xf32>
  %q = stablehlo.uniform_quantize %x : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 5.000000e-01:-1>>
  %bits = stablehlo.bitcast_convert %q : (tensor<4x!quant.uniform<i8:f32, 5.000000e-01:-1>>) -> tensor<4xi8>
  check.expect_eq_const %bits, dense<[1, -3, 0, 127]> : tensor<4xi8>
  %back = stablehlo.uniform_dequantize %q : (tensor<4x!quant.uniform<i8:f32, 5.000000e-01:-1>>) -> tensor<4xf32>
  check.expect_eq_const %back, dense<[1.0, -1.0, 0.5, 64.0]> : tensor<4xf32>
  func.return
}
