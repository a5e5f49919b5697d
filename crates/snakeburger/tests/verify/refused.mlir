// says: there is no operation `stablehlo.nothing`
func.func @f() {
  "stablehlo.nothing"() : () -> ()
  func.return
}

// -----

// says: unknown type `!stablehlo.nothing`
func.func private @f() -> !stablehlo.nothing

// -----

// says: unknown attribute `#stablehlo.nothing`
module attributes {a.b = #stablehlo.nothing<1>} {}

// -----

// says: expected `,` but found `rhs_batching_dimensions`
module attributes {a.b = #stablehlo.dot<lhs_batching_dimensions = [0] rhs_batching_dimensions = [0]>} {}

// -----

// says: stablehlo.abs: I1
func.func @a_sign_in_the_name(%a: tensor<si32>) {
  %0 = stablehlo.abs %a : tensor<si32>
  func.return
}

// -----

// says: `si8` is no storage type
func.func private @f() -> tensor<2x!quant.uniform<si8:f32, 1.0>>

// -----

// says: func.return: signature
func.func @f(%a: tensor<3xf32>) {
  func.return %a : tensor<3xf32>
}

// -----

// says: the attribute `called_computations` must be
func.func @f() {
  stablehlo.custom_call @g() {called_computations = [1]} : () -> ()
  func.return
}

// -----

// says: there is no interface 5
func.func @f() {
  stablehlo.custom_call @g() {api_version = 5 : i32} : () -> ()
  func.return
}

// -----

// says: this call takes nothing and gives a buffer
func.func @f(%a: tensor<2xf32>) {
  %0 = stablehlo.custom_call @CreateBuffer(%a) : (tensor<2xf32>) -> memref<2xf32>
  func.return
}

// -----

// says: this call takes a tensor and gives a buffer of its type
func.func @f(%a: tensor<2xf32>) {
  %0 = stablehlo.custom_call @Pin(%a) : (tensor<2xf32>) -> memref<3xf32>
  func.return
}

// -----

// says: this call takes a buffer and gives a tensor of its type
func.func @f(%a: memref<2xf32>) {
  %0 = stablehlo.custom_call @Unpin(%a) : (memref<2xf32>) -> tensor<2xi32>
  func.return
}

// -----

// says: the buffer [1] of the results comes from no operand
func.func @f(%a: memref<2xf32>) {
  %0:2 = stablehlo.custom_call @g(%a) {output_operand_aliases = [
    #stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>
  ]} : (memref<2xf32>) -> (memref<2xf32>, memref<2xf32>)
  func.return
}

// -----

// says: a buffer is handed on twice
func.func @f(%a: memref<2xf32>) {
  %0:2 = stablehlo.custom_call @g(%a) {output_operand_aliases = [
    #stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>,
    #stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 0, operand_tuple_indices = []>
  ]} : (memref<2xf32>) -> (memref<2xf32>, memref<2xf32>)
  func.return
}

// -----

// says: stablehlo.if: result
func.func @branches_give_no_buffers(%p: tensor<i1>, %a: memref<2xf32>) {
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %a : memref<2xf32>
  }, {
    stablehlo.return %a : memref<2xf32>
  }) : (tensor<i1>) -> memref<2xf32>
  func.return
}

// -----

// says: stablehlo.batch_norm_training: C4
func.func @features(%a: tensor<4x?xf32>, %scale: tensor<2xf32>, %offset: tensor<3xf32>) {
  %0:3 = "stablehlo.batch_norm_training"(%a, %scale, %offset) {epsilon = 0.1 : f32, feature_index = 1 : i64}
    : (tensor<4x?xf32>, tensor<2xf32>, tensor<3xf32>) -> (tensor<4x?xf32>, tensor<?xf32>, tensor<?xf32>)
  func.return
}

// -----

// says: stablehlo.collective_broadcast: C4: the roots are tensor<2xi32>, not tensor<1xi32>
func.func @f(%a: tensor<2xf32>, %roots: tensor<2xi32>) {
  %0 = "stablehlo.collective_broadcast"(%a, %roots) {
    replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, has_dynamic_root
  } : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
  func.return
}

// -----

// says: stablehlo.collective_broadcast: C4: there is no operand to send
func.func @f(%roots: tensor<0xi32>) {
  "stablehlo.collective_broadcast"(%roots) {
    replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, has_dynamic_root
  } : (tensor<0xi32>) -> ()
  func.return
}

// -----

// says: stablehlo.collective_reduce: I3: with use_global_device_ids the channel cannot be 0
func.func @f(%a: tensor<2xf32>) {
  %0 = "stablehlo.collective_reduce"(%a) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      stablehlo.return %x : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids} : (tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

// says: stablehlo.collective_reduce: C4
func.func @f(%a: tensor<2xf32>) {
  %0 = "stablehlo.collective_reduce"(%a) ({
    ^bb0(%x: tensor<f32>, %y: tensor<i32>):
      stablehlo.return %x : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

// says: stablehlo.reshape: C2
func.func @products_beyond_64_bits(%a: tensor<4294967296x4294967296x4xi8>) {
  %0 = stablehlo.reshape %a : (tensor<4294967296x4294967296x4xi8>) -> tensor<0xi8>
  func.return
}

// -----

// says: stablehlo.reshape: C2
func.func @products_beyond_64_bits_that_agree_modulo(%a: tensor<4294967296x4294967296xi8>) {
  %0 = stablehlo.reshape %a : (tensor<4294967296x4294967296xi8>) -> tensor<4294967296x8589934592xi8>
  func.return
}

// -----

// says: error
func.func @a_constant_larger_than_memory() {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<9223372036854775807x9223372036854775807xi64>
  func.return
}

// -----

// says: interpreter.print: result
func.func @f(%a: tensor<2xi32>) {
  %0 = "interpreter.print"(%a) : (tensor<2xi32>) -> tensor<3xi32>
  func.return
}

// -----

// says: interpreter.probe: result
func.func @f(%a: tensor<2xi32>) {
  %0 = "interpreter.probe"(%a) {probe_id = "p"} : (tensor<2xi32>) -> tensor<?xi32>
  func.return
}

// -----

// says: the attribute `probe_id` is missing
func.func @f(%a: tensor<2xi32>) {
  %0 = "interpreter.probe"(%a) : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// says: interpreter.run_parallel: programs: programs is empty
func.func @f() {
  "interpreter.run_parallel"() {programs = []} : () -> ()
  func.return
}

// -----

// says: interpreter.run_parallel: programs: programs is empty
func.func @f() {
  "interpreter.run_parallel"() {programs = [[]]} : () -> ()
  func.return
}

// -----

// says: interpreter.run_parallel: programs: programs is not a list of lists of functions
func.func @f() {
  "interpreter.run_parallel"() {programs = [@g]} : () -> ()
  func.return
}

// -----

// says: the replicas have different numbers of partitions
func.func @g() {
  func.return
}
func.func @f() {
  "interpreter.run_parallel"() {programs = [[@g, @g], [@g]]} : () -> ()
  func.return
}

// -----

// says: interpreter.run_parallel: symbol: there is no function `@g`
func.func @f() {
  "interpreter.run_parallel"() {programs = [[@g]]} : () -> ()
  func.return
}

// -----

// says: interpreter.run_parallel: symbol: 1 inputs where the programs take 2
func.func @g(%a: tensor<f32>) {
  func.return
}
func.func @f(%a: tensor<f32>) {
  "interpreter.run_parallel"(%a) {programs = [[@g, @g]]} : (tensor<f32>) -> ()
  func.return
}

// -----

// says: interpreter.run_parallel: symbol: 1 results where the programs return 2
func.func @g() -> (tensor<f32>, tensor<f32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  func.return %0, %0 : tensor<f32>, tensor<f32>
}
func.func @f() {
  %0 = "interpreter.run_parallel"() {programs = [[@g]]} : () -> tensor<f32>
  func.return
}

// -----

// says: interpreter.run_parallel: infeed: infeed names no function
func.func @g() {
  func.return
}
func.func @f() {
  "interpreter.run_parallel"() {infeed = [], programs = [[@g]]} : () -> ()
  func.return
}

// -----

// says: `@g` of the infeed must return one tensor
func.func @g() {
  func.return
}
func.func @f() {
  "interpreter.run_parallel"() {infeed = [@g], programs = [[@g]]} : () -> ()
  func.return
}

// -----

// says: func.call: recursion
func.func @f() {
  "interpreter.run_parallel"() {programs = [[@f]]} : () -> ()
  func.return
}

// -----

// says: check.expect_eq: operands
func.func @f(%a: tensor<2xi32>, %b: tensor<3xi32>) {
  "check.expect_eq"(%a, %b) : (tensor<2xi32>, tensor<3xi32>) -> ()
  func.return
}

// -----

// says: check.expect_eq_const: value
func.func @f(%a: tensor<2xi32>) {
  check.expect_eq_const %a, dense<1> : tensor<3xi32>
  func.return
}

// -----

// says: must be float or complex
func.func @f(%a: tensor<2xi32>) {
  check.expect_close %a, %a, max_ulp_difference = 3 : tensor<2xi32>, tensor<2xi32>
  func.return
}

// -----

// says: the attribute `max_ulp_difference` must be an unsigned 64-bit integer
func.func @f(%a: tensor<2xf32>) {
  "check.expect_close"(%a, %a) {max_ulp_difference = 3 : i64} : (tensor<2xf32>, tensor<2xf32>) -> ()
  func.return
}

// -----

// says: the number is too large
func.func @f(%a: tensor<2xf32>) {
  check.expect_serialized_eq %a, probe_id = "p", iter = 4294967296 : tensor<2xf32>
  func.return
}

// -----

// says: 1 scales for the quantization dimension 0 of size 2
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:0, {0.1:-30}>>) {
  %0 = stablehlo.add %a, %a : tensor<2x3x!quant.uniform<i8:f32:0, {0.1:-30}>>
  func.return
}

// -----

// says: the quantization dimension 2 is not a dimension of rank 2
func.func @f(%a: tensor<2x3x!quant.uniform<i8:f32:2, {0.1:-30}>>) {
  %0 = stablehlo.uniform_dequantize %a : (tensor<2x3x!quant.uniform<i8:f32:2, {0.1:-30}>>) -> tensor<2x3xf32>
  func.return
}

// -----

// says: 3 scales for the quantization dimension 0 of size 2
func.func @f(%a: tensor<2xf32>) {
  %0 = stablehlo.uniform_quantize %a : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32:0, {0.1, 0.2, 0.3}>>
  func.return
}

// -----

// says: 1 scales for the quantization dimension 0 of size 2
func.func @f(%a: tensor<2x!quant.uniform<i8:f32:0, {0.1}>>) {
  %0 = stablehlo.tuple %a : tuple<tensor<2x!quant.uniform<i8:f32:0, {0.1}>>>
  func.return
}

// -----

// says: a storage type has at most 32 bits, not 64
func.func @f(%a: tensor<2x!quant.uniform<i64:f32, 0.1>>) {
  %0 = stablehlo.add %a, %a : tensor<2x!quant.uniform<i64:f32, 0.1>>
  func.return
}

// -----

// says: zero point 128 is outside the storage range -128:127
func.func private @f() -> tensor<2x!quant.uniform<i8:f32, 1.0:128>>

// -----

// says: zero point 8 is outside the storage range -7:7
func.func private @f() -> tensor<2x!quant.uniform<i8<-7:7>:f32:0, {1.0:0, 1.0:8}>>

// -----

// says: is not a positive
func.func private @f() -> tensor<2x!quant.uniform<i8:f32:0, {1.0, 0.0}>>

// -----

// says: stablehlo.abs: C2
func.func @expressed(%a: tensor<2x!quant.uniform<i8:f32, 1.0:17>>) {
  %0 = "stablehlo.abs"(%a) : (tensor<2x!quant.uniform<i8:f32, 1.0:17>>) -> tensor<2x!quant.uniform<i8:f64, 1.0:17>>
  func.return
}

// -----

// says: stablehlo.select: C2
func.func @storage(%p: tensor<i1>, %a: tensor<2x!quant.uniform<i8:f32, 1.0:17>>) {
  %0 = "stablehlo.select"(%p, %a, %a) : (tensor<i1>, tensor<2x!quant.uniform<i8:f32, 1.0:17>>, tensor<2x!quant.uniform<i8:f32, 1.0:17>>) -> tensor<2x!quant.uniform<i16:f32, 1.0:17>>
  func.return
}

// -----

// says: stablehlo.concatenate: C1
func.func @concatenated(%a: tensor<2x!quant.uniform<i8:f32, 1.0>>, %b: tensor<2x!quant.uniform<i16:f32, 1.0>>) {
  %0 = "stablehlo.concatenate"(%a, %b) {dimension = 0 : i64} : (tensor<2x!quant.uniform<i8:f32, 1.0>>, tensor<2x!quant.uniform<i16:f32, 1.0>>) -> tensor<4x!quant.uniform<i8:f32, 1.0>>
  func.return
}

// -----

// says: stablehlo.transpose: C1
func.func @scales_are_moved_unchanged(%a: tensor<2x2x!quant.uniform<i8:f32:0, {0.1, 0.5}>>) {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x2x!quant.uniform<i8:f32:0, {0.1, 0.5}>>) -> tensor<2x2x!quant.uniform<i8:f32:1, {0.1, 0.6}>>
  func.return
}

// -----

// says: stablehlo.transpose: C4
func.func @scales_move_with_their_dimension(%a: tensor<2x2x!quant.uniform<i8:f32:0, {0.1, 0.5}>>) {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x2x!quant.uniform<i8:f32:0, {0.1, 0.5}>>) -> tensor<2x2x!quant.uniform<i8:f32:0, {0.1, 0.5}>>
  func.return
}

// -----

// says: stablehlo.broadcast_in_dim: C6
func.func @broadcast(%a: tensor<1x2x!quant.uniform<i8:f32:0, {0.1:-30}>>) {
  %0 = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<1x2x!quant.uniform<i8:f32:0, {0.1:-30}>>) -> tensor<2x2x!quant.uniform<i8:f32:0, {0.1:-30, 0.2:-30}>>
  func.return
}

// -----

// says: stablehlo.dot: C17
func.func @dot(%a: tensor<2x2x!quant.uniform<i8:f32, 1.0>>, %b: tensor<2x2x!quant.uniform<i16:f32, 1.0>>) {
  %0 = stablehlo.dot %a, %b : (tensor<2x2x!quant.uniform<i8:f32, 1.0>>, tensor<2x2x!quant.uniform<i16:f32, 1.0>>) -> tensor<2x2x!quant.uniform<i32:f32, 1.0>>
  func.return
}

// -----

// says: stablehlo.dot: C15
func.func @dot(%a: tensor<2x2x!quant.uniform<i8:f32, 1.0>>, %b: tensor<2x2x!quant.uniform<i8:f32, 1.0:3>>) {
  %0 = stablehlo.dot %a, %b : (tensor<2x2x!quant.uniform<i8:f32, 1.0>>, tensor<2x2x!quant.uniform<i8:f32, 1.0:3>>) -> tensor<2x2x!quant.uniform<i32:f32, 1.0>>
  func.return
}

// -----

// says: stablehlo.reduce: C6: the body takes tensor<f32> and tensor<f64> and returns tensor<f32>
func.func @f(%a: tensor<4x4xf32>, %b: tensor<f32>) {
  %0 = stablehlo.reduce(%a init: %b) across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    reducer(%x: tensor<f32>, %y: tensor<f64>) {
    stablehlo.return %x : tensor<f32>
  }
  func.return
}

// -----

// says: stablehlo.reduce: C6: the body takes tensor<f32> and tensor<f32> and returns tensor<i32>
func.func @f(%a: tensor<4xf32>, %b: tensor<4xi32>, %c: tensor<f32>, %d: tensor<i32>) {
  %0:2 = "stablehlo.reduce"(%a, %b, %c, %d) ({
  ^bb0(%x: tensor<f32>, %y: tensor<i32>, %z: tensor<f32>, %w: tensor<i32>):
    stablehlo.return %y, %x : tensor<i32>, tensor<f32>
  }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
  func.return
}

// -----

// says: chlo.broadcast_add: broadcast_dimensions
func.func @count(%a: tensor<1x4xf32>, %b: tensor<4xf32>) {
  %0 = chlo.broadcast_add %a, %b {broadcast_dimensions = array<i64: 0, 1>} : (tensor<1x4xf32>, tensor<4xf32>) -> tensor<1x4xf32>
  func.return
}

// -----

// says: chlo.broadcast_add: broadcast_dimensions
func.func @range(%a: tensor<1x4xf32>, %b: tensor<4xf32>) {
  %0 = chlo.broadcast_add %a, %b {broadcast_dimensions = array<i64: 2>} : (tensor<1x4xf32>, tensor<4xf32>) -> tensor<1x4xf32>
  func.return
}

// -----

// says: chlo.broadcast_add: broadcast_dimensions
func.func @order(%a: tensor<2x3x4xf32>, %b: tensor<3x2xf32>) {
  %0 = chlo.broadcast_add %a, %b {broadcast_dimensions = array<i64: 1, 0>} : (tensor<2x3x4xf32>, tensor<3x2xf32>) -> tensor<2x3x4xf32>
  func.return
}

// -----

// says: chlo.broadcast_add: broadcast: tensor<2x3xf32> and tensor<3xf32> cannot be brought to one shape
func.func @sizes(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  %0 = chlo.broadcast_add %a, %b {broadcast_dimensions = array<i64: 0>} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// says: chlo.broadcast_add: broadcast_dimensions
func.func @equal_ranks(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %0 = chlo.broadcast_add %a, %b {broadcast_dimensions = array<i64: 1>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return
}

// -----

// says: must be a list of 64-bit integers
func.func @rank_of_the_attribute(%a: tensor<1x4xf32>, %b: tensor<4xf32>) {
  %0 = "chlo.broadcast_add"(%a, %b) {broadcast_dimensions = dense<1> : tensor<2x1xi64>} : (tensor<1x4xf32>, tensor<4xf32>) -> tensor<1x4xf32>
  func.return
}

// -----

// says: stablehlo.all_gather: C2: the axis "z" is not in the mesh once
func.func @mesh(%a: tensor<2xf32>) {
  %0 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<
    mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>]>, axes = [#stablehlo.axis_ref<name = "z">]>
  } : (tensor<2xf32>) -> tensor<4xf32>
  func.return
}

// -----

// says: stablehlo.collective_broadcast: C1: the axis "x" is named twice or in parts that overlap
func.func @mesh(%a: tensor<2xf32>) {
  %0 = "stablehlo.collective_broadcast"(%a) {replica_groups = #stablehlo.replica_group_mesh_axes<
    mesh = #stablehlo.mesh<axes = [<name = "x", size = 2>]>, axes = [<name = "x">, <name = "x">]>
  } : (tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

// says: stablehlo.all_to_all: C8
func.func @mesh(%a: tensor<4xf32>) {
  %0 = "stablehlo.all_to_all"(%a) {split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 4 : i64,
    replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [<name = "x", size = 2>]>, axes = [<name = "x">]>
  } : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// says: stablehlo.all_gather: replica_groups: the sub-axis (3)2 is not a factor of the axis "x"
module {
  sdy.mesh @mesh = <["x"=4]>
  func.func @mesh(%a: tensor<2xf32>) {
    %0 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups =
      #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x", sub_axis_info = (3)2>]>
    } : (tensor<2xf32>) -> tensor<4xf32>
    func.return
  }
}

// -----

// says: expected `mesh` and `axes`
func.func @mesh(%a: tensor<2xf32>) {
  %0 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m>
  } : (tensor<2xf32>) -> tensor<4xf32>
  func.return
}

// -----

// says: func.func: tf.aliasing_output: argument 0 of `@state`: it is aliased with result 1 of 1
func.func @state(%a: tensor<4xf32> {tf.aliasing_output = 1 : i32}) -> tensor<4xf32> {
  func.return %a : tensor<4xf32>
}

// -----

// says: func.func: tf.aliasing_output: argument 0 of `@state`: it is tensor<5xf32>, the result 0 that it is aliased with is tensor<4xf32>
func.func @state(%b: tensor<5xf32> {tf.aliasing_output = 0 : i32}, %a: tensor<4xf32>) -> tensor<4xf32> {
  func.return %a : tensor<4xf32>
}

// -----

// says: func.func: tf.aliasing_output: argument 1 of `@state`: result 0 is aliased with argument 0 already
func.func @state(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  func.return %a : tensor<4xf32>
}

// -----

// says: func.func: tf.aliasing_output: argument 0 of `@state`: tf.aliasing_output is the number of a result, not -1 : i32
func.func @state(%a: tensor<4xf32> {tf.aliasing_output = -1 : i32}) -> tensor<4xf32> {
  func.return %a : tensor<4xf32>
}

// -----

// says: func.func: jax.buffer_donor: argument 0 of `@state`: jax.buffer_donor and tf.aliasing_output exclude each other
func.func @state(%a: tensor<4xf32> {jax.buffer_donor = true, tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  func.return %a : tensor<4xf32>
}

// -----

// says: func.func: jax.buffer_donor: argument 0 of `@state`: jax.buffer_donor is true or false, not "yes"
func.func @state(%a: tensor<4xf32> {jax.buffer_donor = "yes"}) -> tensor<4xf32> {
  func.return %a : tensor<4xf32>
}
