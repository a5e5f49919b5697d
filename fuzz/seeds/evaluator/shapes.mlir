func.func @f(%a: tensor<2x3xi32>, %s: tensor<i32>, %d: tensor<2xi32>) -> tensor<3x2xi32> {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
  %1 = stablehlo.pad %a, %s, low = [-1, 2], high = [3, 0], interior = [1, 0] : (tensor<2x3xi32>, tensor<i32>) -> tensor<5x5xi32>
  %2 = stablehlo.dynamic_slice %1, %s, %s, sizes = [2, 2] : (tensor<5x5xi32>, tensor<i32>, tensor<i32>) -> tensor<2x2xi32>
  %3 = stablehlo.dynamic_update_slice %1, %2, %s, %s : (tensor<5x5xi32>, tensor<2x2xi32>, tensor<i32>, tensor<i32>) -> tensor<5x5xi32>
  %4 = stablehlo.concatenate %1, %3, dim = 0 : (tensor<5x5xi32>, tensor<5x5xi32>) -> tensor<10x5xi32>
  %5 = stablehlo.slice %4 [1:10:3, 0:5:2] : (tensor<10x5xi32>) -> tensor<3x3xi32>
  %6 = stablehlo.dynamic_reshape %a, %d : (tensor<2x3xi32>, tensor<2xi32>) -> tensor<?x?xi32>
  %7 = stablehlo.bitcast_convert %a : (tensor<2x3xi32>) -> tensor<2x3x4xi8>
  %8 = stablehlo.reverse %a, dims = [0] : tensor<2x3xi32>
  return %0 : tensor<3x2xi32>
}
