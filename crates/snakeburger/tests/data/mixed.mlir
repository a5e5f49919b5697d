module {
  func.func @main(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = chlo.erf %arg0 : tensor<4x6xf32> -> tensor<4x6xf32>
    %1 = chlo.broadcast_compare %0, %arg0 {compare_type = #chlo<comparison_type FLOAT>, comparison_direction = #chlo<comparison_direction LT>} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
    %values, %indices = chlo.top_k(%0, k = 2) : tensor<4x6xf32> -> (tensor<4x2xf32>, tensor<4x2xi32>)
    %2 = stablehlo.select %1, %arg0, %0 : tensor<4x6xi1>, tensor<4x6xf32>
    return %2 : tensor<4x6xf32>
  }
}
