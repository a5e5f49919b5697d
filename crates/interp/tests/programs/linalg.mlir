func.func @main() {
  %a = stablehlo.constant dense<[[4.0, 2.0], [2.0, 5.0]]> : tensor<2x2xf32>
  %l = stablehlo.cholesky %a, lower = true : tensor<2x2xf32>
  check.expect_almost_eq_const %l, dense<[[2.0, 0.0], [1.0, 2.0]]> : tensor<2x2xf32>
  %b = stablehlo.constant dense<[[2.0], [5.0]]> : tensor<2x1xf32>
  %x = "stablehlo.triangular_solve"(%l, %b) <{
    left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>
  }> : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  check.expect_almost_eq_const %x, dense<[[1.0], [2.0]]> : tensor<2x1xf32>
  %s = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %f = stablehlo.fft %s, type = RFFT, length = [4] : (tensor<4xf32>) -> tensor<3xcomplex<f32>>
  check.expect_almost_eq_const %f, dense<[(10.0, 0.0), (-2.0, 2.0), (-2.0, 0.0)]> : tensor<3xcomplex<f32>>
  %g = stablehlo.fft %f, type = IRFFT, length = [4] : (tensor<3xcomplex<f32>>) -> tensor<4xf32>
  check.expect_almost_eq %g, %s : tensor<4xf32>
  func.return
}

// -----

func.func @main() {
  %x = stablehlo.constant dense<[[1.0, 2.0], [3.0, 6.0]]> : tensor<2x2xf32>
  %scale = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %offset = stablehlo.constant dense<[0.0, 1.0]> : tensor<2xf32>
  %y, %mean, %var = "stablehlo.batch_norm_training"(%x, %scale, %offset) <{epsilon = 0.0 : f32, feature_index = 1 : i64}>
    : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>)
  check.expect_almost_eq_const %mean, dense<[2.0, 4.0]> : tensor<2xf32>
  check.expect_almost_eq_const %var, dense<[1.0, 4.0]> : tensor<2xf32>
  check.expect_almost_eq_const %y, dense<[[-1.0, -1.0], [1.0, 3.0]]> : tensor<2x2xf32>
  %z = "stablehlo.batch_norm_inference"(%x, %scale, %offset, %mean, %var) <{epsilon = 0.0 : f32, feature_index = 1 : i64}>
    : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  check.expect_almost_eq %z, %y : tensor<2x2xf32>
  %g = stablehlo.constant dense<[[1.0, 0.0], [0.0, 1.0]]> : tensor<2x2xf32>
  %gx, %gs, %go = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %var, %g) <{epsilon = 0.0 : f32, feature_index = 1 : i64}>
    : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x2xf32>)
    -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>)
  check.expect_almost_eq_const %gs, dense<[-1.0, 1.0]> : tensor<2xf32>
  check.expect_almost_eq_const %go, dense<[1.0, 1.0]> : tensor<2xf32>
  check.expect_almost_eq_const %gx, dense<0.0> : tensor<2x2xf32>
  func.return
}

// -----

// No right-hand sides: on the left, on the right, in a batch, and of systems of no equations.
func.func @main() {
  %a = stablehlo.constant dense<[[[2.0, 0.0], [1.0, 4.0]]]> : tensor<1x2x2xf32>
  %left = stablehlo.constant dense<0.0> : tensor<1x2x0xf32>
  %x = "stablehlo.triangular_solve"(%a, %left) <{
    left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>
  }> : (tensor<1x2x2xf32>, tensor<1x2x0xf32>) -> tensor<1x2x0xf32>
  check.expect_eq %x, %left : tensor<1x2x0xf32>
  %right = stablehlo.constant dense<0.0> : tensor<1x0x2xf32>
  %y = "stablehlo.triangular_solve"(%a, %right) <{
    left_side = false, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose ADJOINT>
  }> : (tensor<1x2x2xf32>, tensor<1x0x2xf32>) -> tensor<1x0x2xf32>
  check.expect_eq %y, %right : tensor<1x0x2xf32>
  %none = stablehlo.constant dense<0.0> : tensor<3x0x0xf32>
  %sides = stablehlo.constant dense<0.0> : tensor<3x0x5xf32>
  %z = "stablehlo.triangular_solve"(%none, %sides) <{
    left_side = true, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>
  }> : (tensor<3x0x0xf32>, tensor<3x0x5xf32>) -> tensor<3x0x5xf32>
  check.expect_eq %z, %sides : tensor<3x0x5xf32>
  func.return
}
