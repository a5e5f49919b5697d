module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @f(%a: tensor<2xf32>) {
    %0 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<
      mesh = #stablehlo.mesh<axes = [<name = "x", size = 2>], device_ids = dense<[1, 0]> : tensor<2xi64>>,
      axes = [#stablehlo.axis_ref<name = "x">]>
    } : (tensor<2xf32>) -> tensor<4xf32>
    %1 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups =
      #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#sdy<axis_ref"y":(2)2>]>
    } : (tensor<2xf32>) -> tensor<4xf32>
    return
  }
}
