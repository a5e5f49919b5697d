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
