// A program for each thing that bytecode encodes in its own way. Written for these tests; see README.md.
module @everything attributes {tool.flag, tool.parts = 2 : i32} {
  func.func private @declared(tensor<f32>) -> tensor<f32>
  func.func private @halved(%arg0: tensor<f32>) -> tensor<f32> {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %0 = stablehlo.multiply %arg0, %cst : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func public @attributes(%arg0: tensor<2xf32> {tool.list = [1, 2.500000e+00 : f32, "a\22\0A", true], tool.name = "x"}) -> (tensor<2xf32> {tool.name = "y"}) attributes {tool.type = tensor<?x3xi8>} {
    %0 = stablehlo.exponential %arg0 {result_accuracy = #stablehlo.result_accuracy<ulps = 4, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>, tool.note = {a = dense<[1, 2]> : tensor<2xi32>, b = "c"}} : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
  func.func @constants() {
    %c = stablehlo.constant dense<true> : tensor<3xi1>
    %c_0 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
    %c_1 = stablehlo.constant dense<[[true, false, false, true, true], [false, false, true, false, true]]> : tensor<2x5xi1>
    %c_2 = stablehlo.constant dense<[-8, 7, -1]> : tensor<3xi4>
    %c_3 = stablehlo.constant dense<[15, 7]> : tensor<2xui4>
    %c_4 = stablehlo.constant dense<-2> : tensor<2xi2>
    %c_5 = stablehlo.constant dense<[-9223372036854775808, 9223372036854775807]> : tensor<2xi64>
    %c_6 = stablehlo.constant dense<18446744073709551615> : tensor<ui64>
    %c_7 = stablehlo.constant dense<> : tensor<0x2xi32>
    %cst = stablehlo.constant dense<[1.000000e+00, -2.500000e+00]> : tensor<2xf64>
    %cst_8 = stablehlo.constant dense<[1.000000e+00, 0x7F80, 0xFFC0]> : tensor<3xbf16>
    %cst_9 = stablehlo.constant dense<(1.000000e+00,-2.000000e+00)> : tensor<2xcomplex<f32>>
    %cst_10 = stablehlo.constant dense<[1.000000e+00, 4.480000e+02]> : tensor<2xf8E4M3FN>
    %cst_11 = stablehlo.constant dense<[5.000000e-01, 6.000000e+00]> : tensor<2xf4E2M1FN>
    return
  }
  func.func @shapes(%arg0: tensor<4x6xf32>, %arg1: tensor<?x6xf32, #stablehlo.bounds<8, ?>>, %arg2: tensor<i32>) -> tensor<6x4xf32> {
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %1 = stablehlo.slice %arg0 [1:4:2, 0:6] : (tensor<4x6xf32>) -> tensor<2x6xf32>
    %2 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %3 = stablehlo.dynamic_slice %arg0, %arg2, %arg2, sizes = [2, 2] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.pad %arg0, %cst, low = [1, 0], high = [-1, 2], interior = [0, 1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x13xf32>
    %5 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?x6xf32, #stablehlo.bounds<8, ?>>) -> tensor<i32>
    %6 = stablehlo.iota dim = 1 : tensor<4x6xi32>
    %7 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %8 = stablehlo.reverse %arg0, dims = [1] : tensor<4x6xf32>
    %9 = stablehlo.dynamic_broadcast_in_dim %arg0, %2, dims = [0, 1] {known_expanding_dimensions = array<i64: 0>} : (tensor<4x6xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    return %0 : tensor<6x4xf32>
  }
  func.func @contractions(%arg0: tensor<2x3x4xf32>, %arg1: tensor<2x4x5xf32>, %arg2: tensor<1x8x8x3xf32>, %arg3: tensor<3x3x3x16xf32>) -> tensor<2x3x5xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGH, HIGHEST] : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
    %1 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
    %2 = stablehlo.convolution(%arg2, %arg3) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [0, 0]], rhs_dilate = [1, 2], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x4x4x16xf32>
    %3 = stablehlo.convolution(%arg2, %arg3) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x6x6x16xf32>
    return %0 : tensor<2x3x5xf32>
  }
  func.func @regions(%arg0: tensor<4x4xf32>, %arg1: tensor<i1>, %arg2: tensor<i32>) -> tensor<4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = "stablehlo.if"(%arg1) ({
      %6 = stablehlo.negate %0 : tensor<4xf32>
      stablehlo.return %6 : tensor<4xf32>
    }, {
      stablehlo.return %0 : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    %2:2 = stablehlo.while(%iterArg = %arg2, %iterArg_0 = %1) : tensor<i32>, tensor<4xf32>
    cond {
      %c = stablehlo.constant dense<3> : tensor<i32>
      %6 = stablehlo.compare LT, %iterArg, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %c = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.add %iterArg, %c : tensor<i32>
      stablehlo.return %6, %iterArg_0 : tensor<i32>, tensor<4xf32>
    }
    %3:2 = "stablehlo.sort"(%arg0, %arg0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>, %arg5: tensor<f32>, %arg6: tensor<f32>):
      %6 = stablehlo.compare GT, %arg3, %arg4, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    }) : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
    %4 = "stablehlo.reduce_window"(%arg0, %cst) <{padding = dense<[[0, 1], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 2>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %6 = stablehlo.maximum %arg3, %arg4 : tensor<f32>
      stablehlo.return %6 : tensor<f32>
    }) : (tensor<4x4xf32>, tensor<f32>) -> tensor<2x2xf32>
    %5 = "stablehlo.case"(%arg2) ({
      stablehlo.return %0 : tensor<4xf32>
    }, {
      stablehlo.return %1 : tensor<4xf32>
    }, {
      stablehlo.return %2#1 : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    return %5 : tensor<4xf32>
  }
  func.func @indexing(%arg0: tensor<2x8x4xf32>, %arg1: tensor<2x3x1xi32>, %arg2: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
    %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 4>}> : (tensor<2x8x4xf32>, tensor<2x3x1xi32>) -> tensor<2x3x4xf32>
    %1 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = true}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %2 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<2x8x4xf32>, tensor<2x3x1xi32>, tensor<2x3x4xf32>) -> tensor<2x8x4xf32>
    return %0 : tensor<2x3x4xf32>
  }
  func.func @collectives(%arg0: tensor<8xf32>, %arg1: !stablehlo.token) -> tensor<8xf32> {
    %0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %5 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %5 : tensor<f32>
    }) : (tensor<8xf32>) -> tensor<8xf32>
    %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<16xf32>
    %2 = "stablehlo.collective_permute"(%0) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
    %3 = "stablehlo.send"(%0, %arg1) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true}> : (tensor<8xf32>, !stablehlo.token) -> !stablehlo.token
    %4:2 = "stablehlo.infeed"(%3) <{infeed_config = "feed", layout = [[0]]}> : (!stablehlo.token) -> (tensor<8xf32>, !stablehlo.token)
    return %2 : tensor<8xf32>
  }
  func.func @calls(%arg0: tensor<f32>) -> tensor<f32> {
    %0 = call @halved(%arg0) : (tensor<f32>) -> tensor<f32>
    %1 = stablehlo.custom_call @target(%0) {api_version = 4 : i32, backend_config = {depth = 3 : i32, name = "n"}, called_computations = [@halved], has_side_effect = true, operand_layouts = [dense<> : tensor<0xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<> : tensor<0xindex>]} : (tensor<f32>) -> tensor<f32>
    %2 = stablehlo.composite "tool.halved" %1 {composite_attributes = {n = 1 : i64}, decomposition = @halved, version = 2 : i32} : (tensor<f32>) -> tensor<f32>
    %3 = stablehlo.tuple %2, %0 : tuple<tensor<f32>, tensor<f32>>
    %4 = stablehlo.get_tuple_element %3[1] : (tuple<tensor<f32>, tensor<f32>>) -> tensor<f32>
    return %4 : tensor<f32>
  }
  func.func @numbers(%arg0: tensor<4x4xf32>, %arg1: tensor<2xui64>) -> tensor<4x!quant.uniform<i8:f32, 5.000000e-01:-3>> {
    %0 = stablehlo.cholesky %arg0, lower = true : tensor<4x4xf32>
    %1 = "stablehlo.triangular_solve"(%0, %arg0) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = false}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = stablehlo.fft %arg0, type = RFFT, length = [4] : (tensor<4x4xf32>) -> tensor<4x3xcomplex<f32>>
    %output_state, %output = stablehlo.rng_bit_generator %arg1, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
    %3 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<4x4xf32>
    %4 = stablehlo.reshape %arg0 : (tensor<4x4xf32>) -> tensor<16xf32>
    %5 = stablehlo.slice %4 [0:4] : (tensor<16xf32>) -> tensor<4xf32>
    %6 = stablehlo.uniform_quantize %5 : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 5.000000e-01:-3>>
    %7 = stablehlo.uniform_quantize %arg0 : (tensor<4x4xf32>) -> tensor<4x4x!quant.uniform<u8<1:254>:f32:1, {1.000000e-01:128,2.000000e-01:128,3.000000e-01:128,4.000000e-01:128}>>
    %output_0, %batch_mean, %batch_var = "stablehlo.batch_norm_training"(%arg0, %5, %5) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>)
    return %6 : tensor<4x!quant.uniform<i8:f32, 5.000000e-01:-3>>
  }
}
