// A transformer encoder layer as torch.export gives it, 128 tokens of width 768. The source of encoder_layer.svg.
func.func @main(%arg0: tensor<2304x768xf32>, %arg1: tensor<2304xf32>, %arg2: tensor<768x768xf32>, %arg3: tensor<768xf32>, %arg4: tensor<768xf32>, %arg5: tensor<768xf32>, %arg6: tensor<3072x768xf32>, %arg7: tensor<3072xf32>, %arg8: tensor<768x3072xf32>, %arg9: tensor<768xf32>, %arg10: tensor<1x128x768xf32>) -> (tensor<1x128x768xf32>) {
  %0 = stablehlo.transpose %arg10, dims = [1, 0, 2] : (tensor<1x128x768xf32>) -> tensor<128x1x768xf32>
  %1 = stablehlo.dot_general %0, %arg0, contracting_dims = [2] x [1] : (tensor<128x1x768xf32>, tensor<2304x768xf32>) -> tensor<128x1x2304xf32>
  %2 = stablehlo.broadcast_in_dim %arg1, dims = [2] : (tensor<2304xf32>) -> tensor<128x1x2304xf32>
  %3 = stablehlo.add %1, %2 : tensor<128x1x2304xf32>
  %4 = stablehlo.reshape %3 : (tensor<128x1x2304xf32>) -> tensor<128x1x3x768xf32>
  %5 = stablehlo.reshape %4 : (tensor<128x1x3x768xf32>) -> tensor<1x128x1x3x768xf32>
  %6 = stablehlo.transpose %5, dims = [3, 1, 2, 0, 4] : (tensor<1x128x1x3x768xf32>) -> tensor<3x128x1x1x768xf32>
  %7 = stablehlo.reshape %6 : (tensor<3x128x1x1x768xf32>) -> tensor<3x128x1x768xf32>
  %8 = stablehlo.convert %7 : tensor<3x128x1x768xf32>
  %9 = stablehlo.slice %8 [0:1, 0:128, 0:1, 0:768] : (tensor<3x128x1x768xf32>) -> tensor<1x128x1x768xf32>
  %10 = stablehlo.reshape %9 : (tensor<1x128x1x768xf32>) -> tensor<128x1x768xf32>
  %11 = stablehlo.slice %8 [1:2, 0:128, 0:1, 0:768] : (tensor<3x128x1x768xf32>) -> tensor<1x128x1x768xf32>
  %12 = stablehlo.reshape %11 : (tensor<1x128x1x768xf32>) -> tensor<128x1x768xf32>
  %13 = stablehlo.slice %8 [2:3, 0:128, 0:1, 0:768] : (tensor<3x128x1x768xf32>) -> tensor<1x128x1x768xf32>
  %14 = stablehlo.reshape %13 : (tensor<1x128x1x768xf32>) -> tensor<128x1x768xf32>
  %15 = stablehlo.reshape %10 : (tensor<128x1x768xf32>) -> tensor<128x12x64xf32>
  %16 = stablehlo.transpose %15, dims = [1, 0, 2] : (tensor<128x12x64xf32>) -> tensor<12x128x64xf32>
  %17 = stablehlo.reshape %12 : (tensor<128x1x768xf32>) -> tensor<128x12x64xf32>
  %18 = stablehlo.transpose %17, dims = [1, 0, 2] : (tensor<128x12x64xf32>) -> tensor<12x128x64xf32>
  %19 = stablehlo.reshape %14 : (tensor<128x1x768xf32>) -> tensor<128x12x64xf32>
  %20 = stablehlo.transpose %19, dims = [1, 0, 2] : (tensor<128x12x64xf32>) -> tensor<12x128x64xf32>
  %cst = stablehlo.constant dense<1.250000e-01> : tensor<12x128x64xf32>
  %21 = stablehlo.multiply %16, %cst : tensor<12x128x64xf32>
  %22 = stablehlo.transpose %18, dims = [0, 2, 1] : (tensor<12x128x64xf32>) -> tensor<12x64x128xf32>
  %23 = stablehlo.dot_general %21, %22, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<12x128x64xf32>, tensor<12x64x128xf32>) -> tensor<12x128x128xf32>
  %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %24 = stablehlo.reduce(%23 init: %cst_0) applies stablehlo.maximum across dimensions = [2] : (tensor<12x128x128xf32>, tensor<f32>) -> tensor<12x128xf32>
  %25 = stablehlo.broadcast_in_dim %24, dims = [0, 1] : (tensor<12x128xf32>) -> tensor<12x128x128xf32>
  %26 = stablehlo.subtract %23, %25 : tensor<12x128x128xf32>
  %27 = stablehlo.exponential %26 : tensor<12x128x128xf32>
  %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %28 = stablehlo.reduce(%27 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<12x128x128xf32>, tensor<f32>) -> tensor<12x128xf32>
  %29 = stablehlo.broadcast_in_dim %28, dims = [0, 1] : (tensor<12x128xf32>) -> tensor<12x128x128xf32>
  %30 = stablehlo.divide %27, %29 : tensor<12x128x128xf32>
  %31 = stablehlo.dot_general %30, %20, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<12x128x128xf32>, tensor<12x128x64xf32>) -> tensor<12x128x64xf32>
  %32 = stablehlo.transpose %31, dims = [1, 0, 2] : (tensor<12x128x64xf32>) -> tensor<128x12x64xf32>
  %33 = stablehlo.reshape %32 : (tensor<128x12x64xf32>) -> tensor<128x768xf32>
  %34 = stablehlo.dot_general %33, %arg2, contracting_dims = [1] x [1] : (tensor<128x768xf32>, tensor<768x768xf32>) -> tensor<128x768xf32>
  %35 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<768xf32>) -> tensor<128x768xf32>
  %36 = stablehlo.add %34, %35 : tensor<128x768xf32>
  %37 = stablehlo.reshape %36 : (tensor<128x768xf32>) -> tensor<128x1x768xf32>
  %38 = stablehlo.reshape %30 : (tensor<12x128x128xf32>) -> tensor<1x12x128x128xf32>
  %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %39 = stablehlo.reduce(%38 init: %cst_2) applies stablehlo.add across dimensions = [1] : (tensor<1x12x128x128xf32>, tensor<f32>) -> tensor<1x128x128xf32>
  %cst_3 = stablehlo.constant dense<1.200000e+01> : tensor<1x128x128xf32>
  %40 = stablehlo.divide %39, %cst_3 : tensor<1x128x128xf32>
  %41 = stablehlo.transpose %37, dims = [1, 0, 2] : (tensor<128x1x768xf32>) -> tensor<1x128x768xf32>
  %42 = stablehlo.convert %41 : tensor<1x128x768xf32>
  %43 = stablehlo.add %arg10, %41 : tensor<1x128x768xf32>
  %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %44 = stablehlo.reduce(%43 init: %cst_4) applies stablehlo.add across dimensions = [2] : (tensor<1x128x768xf32>, tensor<f32>) -> tensor<1x128xf32>
  %cst_5 = stablehlo.constant dense<7.680000e+02> : tensor<1x128xf32>
  %45 = stablehlo.divide %44, %cst_5 : tensor<1x128xf32>
  %46 = stablehlo.broadcast_in_dim %45, dims = [0, 1] : (tensor<1x128xf32>) -> tensor<1x128x768xf32>
  %47 = stablehlo.subtract %43, %46 : tensor<1x128x768xf32>
  %48 = stablehlo.multiply %47, %47 : tensor<1x128x768xf32>
  %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %49 = stablehlo.reduce(%48 init: %cst_6) applies stablehlo.add across dimensions = [2] : (tensor<1x128x768xf32>, tensor<f32>) -> tensor<1x128xf32>
  %cst_7 = stablehlo.constant dense<7.680000e+02> : tensor<1x128xf32>
  %50 = stablehlo.divide %49, %cst_7 : tensor<1x128xf32>
  %cst_8 = stablehlo.constant dense<9.99999974E-6> : tensor<1x128xf32>
  %51 = stablehlo.add %50, %cst_8 : tensor<1x128xf32>
  %52 = stablehlo.rsqrt %51 : tensor<1x128xf32>
  %53 = stablehlo.broadcast_in_dim %45, dims = [0, 1] : (tensor<1x128xf32>) -> tensor<1x128x768xf32>
  %54 = stablehlo.broadcast_in_dim %52, dims = [0, 1] : (tensor<1x128xf32>) -> tensor<1x128x768xf32>
  %55 = stablehlo.subtract %43, %53 : tensor<1x128x768xf32>
  %56 = stablehlo.multiply %55, %54 : tensor<1x128x768xf32>
  %57 = stablehlo.broadcast_in_dim %arg4, dims = [2] : (tensor<768xf32>) -> tensor<1x128x768xf32>
  %58 = stablehlo.multiply %56, %57 : tensor<1x128x768xf32>
  %59 = stablehlo.broadcast_in_dim %arg5, dims = [2] : (tensor<768xf32>) -> tensor<1x128x768xf32>
  %60 = stablehlo.add %58, %59 : tensor<1x128x768xf32>
  %61 = stablehlo.dot_general %60, %arg6, contracting_dims = [2] x [1] : (tensor<1x128x768xf32>, tensor<3072x768xf32>) -> tensor<1x128x3072xf32>
  %62 = stablehlo.broadcast_in_dim %arg7, dims = [2] : (tensor<3072xf32>) -> tensor<1x128x3072xf32>
  %63 = stablehlo.add %61, %62 : tensor<1x128x3072xf32>
  %cst_9 = stablehlo.constant dense<0.707106769> : tensor<1x128x3072xf32>
  %64 = stablehlo.multiply %63, %cst_9 : tensor<1x128x3072xf32>
  %65 = chlo.erf %64 : tensor<1x128x3072xf32> -> tensor<1x128x3072xf32>
  %cst_10 = stablehlo.constant dense<1.000000e+00> : tensor<1x128x3072xf32>
  %66 = stablehlo.add %65, %cst_10 : tensor<1x128x3072xf32>
  %cst_11 = stablehlo.constant dense<5.000000e-01> : tensor<1x128x3072xf32>
  %67 = stablehlo.multiply %63, %cst_11 : tensor<1x128x3072xf32>
  %68 = stablehlo.multiply %67, %66 : tensor<1x128x3072xf32>
  %69 = stablehlo.dot_general %68, %arg8, contracting_dims = [2] x [1] : (tensor<1x128x3072xf32>, tensor<768x3072xf32>) -> tensor<1x128x768xf32>
  %70 = stablehlo.broadcast_in_dim %arg9, dims = [2] : (tensor<768xf32>) -> tensor<1x128x768xf32>
  %71 = stablehlo.add %69, %70 : tensor<1x128x768xf32>
  %72 = stablehlo.add %60, %71 : tensor<1x128x768xf32>
  %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %73 = stablehlo.reduce(%72 init: %cst_12) applies stablehlo.add across dimensions = [2] : (tensor<1x128x768xf32>, tensor<f32>) -> tensor<1x128xf32>
  %cst_13 = stablehlo.constant dense<7.680000e+02> : tensor<1x128xf32>
  %74 = stablehlo.divide %73, %cst_13 : tensor<1x128xf32>
  %75 = stablehlo.broadcast_in_dim %74, dims = [0, 1] : (tensor<1x128xf32>) -> tensor<1x128x768xf32>
  %76 = stablehlo.subtract %72, %75 : tensor<1x128x768xf32>
  %77 = stablehlo.multiply %76, %76 : tensor<1x128x768xf32>
  %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %78 = stablehlo.reduce(%77 init: %cst_14) applies stablehlo.add across dimensions = [2] : (tensor<1x128x768xf32>, tensor<f32>) -> tensor<1x128xf32>
  %cst_15 = stablehlo.constant dense<7.680000e+02> : tensor<1x128xf32>
  %79 = stablehlo.divide %78, %cst_15 : tensor<1x128xf32>
  %cst_16 = stablehlo.constant dense<9.99999974E-6> : tensor<1x128xf32>
  %80 = stablehlo.add %79, %cst_16 : tensor<1x128xf32>
  %81 = stablehlo.rsqrt %80 : tensor<1x128xf32>
  %82 = stablehlo.broadcast_in_dim %74, dims = [0, 1] : (tensor<1x128xf32>) -> tensor<1x128x768xf32>
  %83 = stablehlo.broadcast_in_dim %81, dims = [0, 1] : (tensor<1x128xf32>) -> tensor<1x128x768xf32>
  %84 = stablehlo.subtract %72, %82 : tensor<1x128x768xf32>
  %85 = stablehlo.multiply %84, %83 : tensor<1x128x768xf32>
  %86 = stablehlo.broadcast_in_dim %arg4, dims = [2] : (tensor<768xf32>) -> tensor<1x128x768xf32>
  %87 = stablehlo.multiply %85, %86 : tensor<1x128x768xf32>
  %88 = stablehlo.broadcast_in_dim %arg5, dims = [2] : (tensor<768xf32>) -> tensor<1x128x768xf32>
  %89 = stablehlo.add %87, %88 : tensor<1x128x768xf32>
  return %89 : tensor<1x128x768xf32>
}
