func.func @f(%a: tensor<2xf64>) -> tensor<2xf64> {
  %0 = call @g(%a) : (tensor<2xf64>) -> tensor<2xf64>
  %1 = stablehlo.composite "x.g" %0 {decomposition = @g} : (tensor<2xf64>) -> tensor<2xf64>
  %2 = chlo.erf_inv %1 : tensor<2xf64> -> tensor<2xf64>
  %3 = chlo.lgamma %2 : tensor<2xf64> -> tensor<2xf64>
  %values, %indices = chlo.top_k(%3, k = 1) : tensor<2xf64> -> (tensor<1xf64>, tensor<1xi32>)
  return %3 : tensor<2xf64>
}
func.func private @g(%a: tensor<2xf64>) -> tensor<2xf64> {
  %0 = stablehlo.tanh %a : tensor<2xf64>
  return %0 : tensor<2xf64>
}
