// A comma may follow the last dimension numbers, in any order.
module attributes {
  a.gather = #stablehlo.gather<index_vector_dim = 1, offset_dims = [1],>,
  a.dot = #stablehlo.dot<rhs_contracting_dimensions = [0], lhs_contracting_dimensions = [1],>,
  a.conv = #stablehlo.conv<raw input_batch_dimension = 0, output_feature_dimension = 1,>
} {}

// -----

// A function may end with the return of regions, which is not held against its signature.
func.func @own(%a: tensor<3xf32>) -> tensor<3xf32> {
  stablehlo.return %a : tensor<3xf32>
}
func.func @other(%a: tensor<3xf32>) {
  "stablehlo.return"(%a) : (tensor<3xf32>) -> ()
}

// -----

func.func @barrier_of_nothing() {
  stablehlo.optimization_barrier()
  stablehlo.optimization_barrier() {some.note}
  func.return
}

// -----

// Buffers are filled, handed on and read.
func.func @buffers(%a: tensor<2xf32>) {
  %new = stablehlo.custom_call @CreateBuffer() {api_version = 4 : i32} : () -> memref<2xf32>
  %pinned = stablehlo.custom_call @Pin(%a) {api_version = 4 : i32} : (tensor<2xf32>) -> memref<2xf32>
  %0:2 = stablehlo.custom_call @twice(%new, %pinned) {api_version = 4 : i32, output_operand_aliases = [
    #stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 1, operand_tuple_indices = []>,
    #stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 0, operand_tuple_indices = []>
  ]} : (memref<2xf32>, memref<2xf32>) -> (memref<2xf32>, memref<2xf32>)
  %read = stablehlo.custom_call @Unpin(%0#0) {api_version = 4 : i32} : (memref<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @roots(%a: tensor<2xf32>, %b: tensor<3xf32>, %roots: tensor<2xi32>) {
  %0:2 = "stablehlo.collective_broadcast"(%a, %b, %roots) {
    replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, has_dynamic_root
  } : (tensor<2xf32>, tensor<3xf32>, tensor<2xi32>) -> (tensor<2xf32>, tensor<3xf32>)
  %1 = "stablehlo.collective_reduce"(%a) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      %2 = stablehlo.add %x, %y : tensor<f64>
      stablehlo.return %2 : tensor<f64>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xf32>) -> tensor<2xf64>
  func.return
}

// -----

// What other dialects have is theirs.
func.func @foreign(%a: !other.type<3>) attributes {other.note = #other.note<3>} {
  "other.operation"() {size = 3 : si32} : () -> ()
  func.return
}

// -----

// The check and interpreter dialects.
func.func @feed() -> tensor<2xi32> {
  %0 = stablehlo.constant dense<1> : tensor<2xi32>
  func.return %0 : tensor<2xi32>
}
func.func @program(%a: tensor<2xf32>) -> tensor<2xf32> {
  func.return %a : tensor<2xf32>
}
func.func @main(%a: tensor<2xf32>) {
  %0 = interpreter.print %a : tensor<2xf32>
  %1 = interpreter.probe %0, probe_id = "p" : tensor<2xf32>
  check.expect_serialized_eq %1, probe_id = "p", iter = 0 : tensor<2xf32>
  check.expect_close %1, %0, max_ulp_difference = 18446744073709551615 : tensor<2xf32>, tensor<2xf32>
  %2:2 = "interpreter.run_parallel"(%0, %1) {infeed = [@feed], programs = [[@program], [@program]]} : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  func.return
}

// -----

// One scale for each index of the quantization dimension; none is counted where its size is not known.
func.func @quantized(%a: tensor<1x2x!quant.uniform<i8:f32:1, {0.1:-30, 0.5:-20}>>, %b: tensor<1x?x!quant.uniform<i8:f32:1, {0.1, 0.5, 0.6}>>) {
  %0 = stablehlo.add %a, %a : tensor<1x2x!quant.uniform<i8:f32:1, {0.1:-30, 0.5:-20}>>
  %1 = stablehlo.add %b, %b : tensor<1x?x!quant.uniform<i8:f32:1, {0.1, 0.5, 0.6}>>
  %2 = stablehlo.transpose %a, dims = [1, 0] : (tensor<1x2x!quant.uniform<i8:f32:1, {0.1:-30, 0.5:-20}>>) -> tensor<2x1x!quant.uniform<i8:f32:0, {0.1:-30, 0.5:-20}>>
  %3 = stablehlo.reshape %a : (tensor<1x2x!quant.uniform<i8:f32:1, {0.1:-30, 0.5:-20}>>) -> tensor<2x!quant.uniform<i8:f32:0, {0.1:-30, 0.5:-20}>>
  %4 = stablehlo.tuple %a : tuple<tensor<1x2x!quant.uniform<i8:f32:1, {0.1:-30, 0.5:-20}>>>
  func.return
}

// -----

// Without a mapping, with an empty one for operands of one rank, with one dimension, and with the older constants.
func.func @broadcast(%a: tensor<1xi32>, %b: tensor<1x2xi32>) {
  %0 = chlo.broadcast_add %a, %b : (tensor<1xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
  %1 = chlo.broadcast_add %a, %b {broadcast_dimensions = array<i64: 0>} : (tensor<1xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
  %2 = "chlo.broadcast_add"(%a, %b) {broadcast_dimensions = dense<1> : tensor<i64>} : (tensor<1xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
  %3 = "chlo.broadcast_add"(%a, %b) {broadcast_dimensions = dense<1> : tensor<1xi64>} : (tensor<1xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
  %4 = chlo.broadcast_add %a, %a {broadcast_dimensions = array<i64>} : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
  %5 = chlo.broadcast_add %b, %b {broadcast_dimensions = array<i64: 0, 1>} : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
  func.return
}

// -----

// A mesh by value, by the name of one that the module defines, and by the name of one that it does not.
module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  "sdy.mesh"() <{mesh = #sdy.mesh<["z"=2], device_ids=[1, 0]>, sym_name = "other"}> : () -> ()
  func.func @groups(%a: tensor<2xf32>) {
    %0 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<
      mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>], device_ids = dense<[1, 0]> : tensor<2xi64>>,
      axes = [#stablehlo.axis_ref<name = "x">]>
    } : (tensor<2xf32>) -> tensor<4xf32>
    %1 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups =
      #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "y", sub_axis_info = (2)2>]>
    } : (tensor<2xf32>) -> tensor<4xf32>
    %2 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups =
      #stablehlo.replica_group_mesh_axes<mesh_name = @other, axes = [#stablehlo.axis_ref<name = "z">]>
    } : (tensor<2xf32>) -> tensor<4xf32>
    %3 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups =
      #stablehlo.replica_group_mesh_axes<mesh = @elsewhere, axes = [#stablehlo.axis_ref<name = "z">]>
    } : (tensor<2xf32>) -> tensor<4xf32>
    func.return
  }
}

// -----

func.func @state(%w: tensor<2xf32> {jax.buffer_donor = true}, %m: tensor<4xf32> {tf.aliasing_output = 1 : i32},
    %n: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<4xf32>, tensor<4xf32>, tensor<2xf32>) {
  func.return %m, %n, %w : tensor<4xf32>, tensor<4xf32>, tensor<2xf32>
}
