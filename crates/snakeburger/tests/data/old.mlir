module {
  func.func @main(%arg0: tensor<8x4xf32>, %arg1: tensor<3x1xi32>, %arg2: tensor<4x5xf32>, %arg3: !stablehlo.token) -> tensor<3x4xf32> {
    %0 = stablehlo.exponential %arg0 : tensor<8x4xf32>
    %1 = "stablehlo.gather"(%0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
    %2 = "stablehlo.scatter"(%0, %arg1, %1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      stablehlo.return %arg5 : tensor<f32>
    }) : (tensor<8x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<8x4xf32>
    %3 = stablehlo.dot_general %1, %arg2, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
    %4 = "stablehlo.all_reduce"(%1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %9 = stablehlo.add %arg4, %arg5 : tensor<f32>
      stablehlo.return %9 : tensor<f32>
    }) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %5 = stablehlo.custom_call @target(%4) {backend_config = "config"} : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %6 = "stablehlo.send"(%5, %arg3) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>}> : (tensor<3x4xf32>, !stablehlo.token) -> !stablehlo.token
    %7:2 = "stablehlo.recv"(%6) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>}> : (!stablehlo.token) -> (tensor<3x4xf32>, !stablehlo.token)
    %c = stablehlo.constant dense<[true, false, true, true]> : tensor<4xi1>
    %8 = stablehlo.tanh %7#0 : tensor<3x4xf32>
    return %8 : tensor<3x4xf32>
  }
}
