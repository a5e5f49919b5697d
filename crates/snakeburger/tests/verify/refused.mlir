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
