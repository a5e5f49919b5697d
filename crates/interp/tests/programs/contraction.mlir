func.func @main() {
  %a = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>
  %p = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<2x2xi8>, tensor<2x2xi8>) -> tensor<2x2xi32>
  check.expect_eq_const %p, dense<[[7, 10], [15, 22]]> : tensor<2x2xi32>
  %e = "stablehlo.einsum"(%a, %a) <{einsum_config = "ij,kj->ik"}> : (tensor<2x2xi8>, tensor<2x2xi8>) -> tensor<2x2xi8>
  check.expect_eq_const %e, dense<[[5, 11], [11, 25]]> : tensor<2x2xi8>
  %x = stablehlo.constant dense<[[[1.0], [2.0], [3.0], [4.0]]]> : tensor<1x4x1xf32>
  %k = stablehlo.constant dense<[[[1.0]], [[10.0]]]> : tensor<2x1x1xf32>
  %c = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {stride = [2], pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x4x1xf32>, tensor<2x1x1xf32>) -> tensor<1x3x1xf32>
  check.expect_eq_const %c, dense<[[[10.0], [32.0], [4.0]]]> : tensor<1x3x1xf32>
  func.return
}

// -----

// Two columns of padding before the image, by an operand.
func.func @main() {
  %x = stablehlo.constant dense<[[[1.0], [2.0], [3.0]]]> : tensor<1x3x1xf32>
  %k = stablehlo.constant dense<[[[1.0]], [[10.0]]]> : tensor<2x1x1xf32>
  %padding = stablehlo.constant dense<[[2, 0]]> : tensor<1x2xi64>
  %c = "stablehlo.dynamic_conv"(%x, %k, %padding) {
    batch_group_count = 1 : i64, feature_group_count = 1 : i64,
    dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>
  } : (tensor<1x3x1xf32>, tensor<2x1x1xf32>, tensor<1x2xi64>) -> tensor<1x?x1xf32>
  %static = stablehlo.convert %c : (tensor<1x?x1xf32>) -> tensor<1x4x1xf32>
  check.expect_eq_const %static, dense<[[[0.0], [10.0], [21.0], [32.0]]]> : tensor<1x4x1xf32>
  func.return
}

// -----

// The older forms of a product.
func.func @main() {
  %a = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %v = stablehlo.constant dense<[1.0, 10.0]> : tensor<2xf32>
  %d = stablehlo.dot %a, %v : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2xf32>
  check.expect_eq_const %d, dense<[21.0, 43.0]> : tensor<2xf32>
  %t = stablehlo.unary_einsum %a, config = "ij->j" : (tensor<2x2xf32>) -> tensor<2xf32>
  check.expect_eq_const %t, dense<[4.0, 6.0]> : tensor<2xf32>
  func.return
}
