func.func @main() {
  %x = stablehlo.constant dense<[[3, 1, 2], [6, 5, 4]]> : tensor<2x3xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
  check.expect_eq_const %sum, dense<[6, 15]> : tensor<2xi32>
  %w = "stablehlo.reduce_window"(%x, %zero) <{
    window_dimensions = array<i64: 1, 2>, padding = dense<[[0, 0], [1, 0]]> : tensor<2x2xi64>
  }> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %m = stablehlo.maximum %a, %b : tensor<i32>
      stablehlo.return %m : tensor<i32>
  }) : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi32>
  check.expect_eq_const %w, dense<[[3, 3, 2], [6, 6, 5]]> : tensor<2x3xi32>
  %s = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %c = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }) : (tensor<2x3xi32>) -> tensor<2x3xi32>
  check.expect_eq_const %s, dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  // A computation that is not made of scalars only: it captures a vector and reduces it.
  %v = stablehlo.constant dense<[1, 1]> : tensor<2xi32>
  %m = "stablehlo.map"(%x) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%a: tensor<i32>):
      %two = stablehlo.reduce(%v init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
      %p = stablehlo.multiply %a, %two : tensor<i32>
      stablehlo.return %p : tensor<i32>
  }) : (tensor<2x3xi32>) -> tensor<2x3xi32>
  check.expect_eq_const %m, dense<[[6, 2, 4], [12, 10, 8]]> : tensor<2x3xi32>
  %src = stablehlo.constant dense<[[5], [7]]> : tensor<2x1xi32>
  %sel = "stablehlo.select_and_scatter"(%x, %src, %zero) <{
    window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 3>
  }> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %c = stablehlo.compare GE, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }, {
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %t = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %t : tensor<i32>
  }) : (tensor<2x3xi32>, tensor<2x1xi32>, tensor<i32>) -> tensor<2x3xi32>
  check.expect_eq_const %sel, dense<[[5, 0, 0], [7, 0, 0]]> : tensor<2x3xi32>
  func.return
}
