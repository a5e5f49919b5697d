// Slices from the places that indices name; an index outside is moved to the nearest place where the slice fits.
func.func @main() {
  %x = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6], [7, 8, 9]]> : tensor<3x3xi32>
  %at = stablehlo.constant dense<[2, 0, 9]> : tensor<3xi32>
  %rows = "stablehlo.gather"(%x, %at) {
    dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 2>, indices_are_sorted = false
  } : (tensor<3x3xi32>, tensor<3xi32>) -> tensor<3x2xi32>
  check.expect_eq_const %rows, dense<[[7, 8], [1, 2], [7, 8]]> : tensor<3x2xi32>
  %sizes = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %dynamic = "stablehlo.dynamic_gather"(%x, %at, %sizes) {
    dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>
  } : (tensor<3x3xi32>, tensor<3xi32>, tensor<2xi32>) -> tensor<3x2xi32>
  check.expect_eq %dynamic, %rows : tensor<3x2xi32>
  %two = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
  %columns = "stablehlo.torch_index_select"(%x, %two) {dim = 1 : i64, batch_dims = 0 : i64}
    : (tensor<3x3xi32>, tensor<2xi32>) -> tensor<3x2xi32>
  check.expect_eq_const %columns, dense<[[2, 1], [5, 4], [8, 7]]> : tensor<3x2xi32>
  func.return
}

// -----

// Updates are folded into what is there; those outside are dropped.
func.func @main() {
  %x = stablehlo.constant dense<[10, 20, 30]> : tensor<3xi32>
  %at = stablehlo.constant dense<[[1], [1], [7]]> : tensor<3x1xi32>
  %updates = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %r = "stablehlo.scatter"(%x, %at, %updates) <{
    scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
    indices_are_sorted = false, unique_indices = false
  }> ({
    ^bb0(%old: tensor<i32>, %new: tensor<i32>):
      %sum = stablehlo.add %old, %new : tensor<i32>
      stablehlo.return %sum : tensor<i32>
  }) : (tensor<3xi32>, tensor<3x1xi32>, tensor<3xi32>) -> tensor<3xi32>
  check.expect_eq_const %r, dense<[10, 23, 30]> : tensor<3xi32>
  func.return
}
