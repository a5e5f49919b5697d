func.func @f(%a: tensor<2x3xf32>, %b: tensor<2x3xi8>) -> tensor<2x3xf32> {
  %0 = stablehlo.exponential %a : tensor<2x3xf32>
  %1 = stablehlo.convert %b : (tensor<2x3xi8>) -> tensor<2x3xf32>
  %2 = stablehlo.power %0, %1 : tensor<2x3xf32>
  %3 = stablehlo.compare LT, %2, %1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  %4 = stablehlo.select %3, %2, %0 : tensor<2x3xi1>, tensor<2x3xf32>
  %5 = stablehlo.divide %b, %b : tensor<2x3xi8>
  %6 = stablehlo.shift_left %5, %b : tensor<2x3xi8>
  return %4 : tensor<2x3xf32>
}
