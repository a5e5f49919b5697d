// Two replicas add up what they have.
func.func @add(%a: tensor<2xi32>) -> tensor<2xi32> {
  %0 = "stablehlo.all_reduce"(%a) <{
    channel_handle = #stablehlo.channel_handle<handle = 0, type = 0>,
    replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>
  }> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %s = stablehlo.add %x, %y : tensor<i32>
      stablehlo.return %s : tensor<i32>
  }) : (tensor<2xi32>) -> tensor<2xi32>
  func.return %0 : tensor<2xi32>
}
func.func @main() {
  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %b = stablehlo.constant dense<[10, 20]> : tensor<2xi32>
  %r:2 = "interpreter.run_parallel"(%a, %b) {programs = [[@add], [@add]]}
    : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>)
  check.expect_eq_const %r#0, dense<[11, 22]> : tensor<2xi32>
  check.expect_eq_const %r#1, dense<[11, 22]> : tensor<2xi32>
  func.return
}

// -----

// Partitions of one replica pass values around a ring; who is no target gets zeros.
func.func @shift(%a: tensor<i32>) -> tensor<i32> {
  %0 = "stablehlo.collective_permute"(%a) <{
    channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
    source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>
  }> : (tensor<i32>) -> tensor<i32>
  func.return %0 : tensor<i32>
}
func.func @main() {
  %a = stablehlo.constant dense<5> : tensor<i32>
  %b = stablehlo.constant dense<6> : tensor<i32>
  %c = stablehlo.constant dense<7> : tensor<i32>
  %r:3 = "interpreter.run_parallel"(%a, %b, %c) {programs = [[@shift, @shift, @shift]]}
    : (tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>, tensor<i32>)
  check.expect_eq_const %r#0, dense<0> : tensor<i32>
  check.expect_eq_const %r#1, dense<5> : tensor<i32>
  check.expect_eq_const %r#2, dense<6> : tensor<i32>
  func.return
}

// -----

func.func @exchange(%a: tensor<1x4xi32>) -> tensor<2x2xi32> {
  %0 = "stablehlo.all_to_all"(%a) <{
    split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64,
    replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>
  }> : (tensor<1x4xi32>) -> tensor<2x2xi32>
  func.return %0 : tensor<2x2xi32>
}
func.func @main() {
  %a = stablehlo.constant dense<[[1, 2, 3, 4]]> : tensor<1x4xi32>
  %b = stablehlo.constant dense<[[5, 6, 7, 8]]> : tensor<1x4xi32>
  %r:2 = "interpreter.run_parallel"(%a, %b) {programs = [[@exchange], [@exchange]]}
    : (tensor<1x4xi32>, tensor<1x4xi32>) -> (tensor<2x2xi32>, tensor<2x2xi32>)
  check.expect_eq_const %r#0, dense<[[1, 2], [5, 6]]> : tensor<2x2xi32>
  check.expect_eq_const %r#1, dense<[[3, 4], [7, 8]]> : tensor<2x2xi32>
  func.return
}

// -----

func.func @who() -> (tensor<ui32>, tensor<ui32>) {
  %r = stablehlo.replica_id : tensor<ui32>
  %p = stablehlo.partition_id : tensor<ui32>
  func.return %r, %p : tensor<ui32>, tensor<ui32>
}
func.func @main() {
  %r:4 = "interpreter.run_parallel"() {programs = [[@who, @who]]}
    : () -> (tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>)
  check.expect_eq_const %r#0, dense<0> : tensor<ui32>
  check.expect_eq_const %r#3, dense<1> : tensor<ui32>
  func.return
}

// -----

// Replicas join, spread and fold what they have.
func.func @all(%a: tensor<1xi32>) -> (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>) {
  %joined = "stablehlo.all_gather"(%a) <{
    all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
    channel_handle = #stablehlo.channel_handle<handle = 0, type = 0>
  }> : (tensor<1xi32>) -> tensor<2xi32>
  %first = "stablehlo.collective_broadcast"(%a) <{
    replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>,
    channel_handle = #stablehlo.channel_handle<handle = 0, type = 0>
  }> : (tensor<1xi32>) -> tensor<1xi32>
  %part = "stablehlo.reduce_scatter"(%joined) <{
    scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
    channel_handle = #stablehlo.channel_handle<handle = 0, type = 0>
  }> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %s = stablehlo.add %x, %y : tensor<i32>
      stablehlo.return %s : tensor<i32>
  }) : (tensor<2xi32>) -> tensor<1xi32>
  func.return %joined, %first, %part : tensor<2xi32>, tensor<1xi32>, tensor<1xi32>
}
func.func @main() {
  %a = stablehlo.constant dense<[1]> : tensor<1xi32>
  %b = stablehlo.constant dense<[10]> : tensor<1xi32>
  %r:6 = "interpreter.run_parallel"(%a, %b) {programs = [[@all], [@all]]}
    : (tensor<1xi32>, tensor<1xi32>) -> (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<2xi32>, tensor<1xi32>, tensor<1xi32>)
  check.expect_eq_const %r#0, dense<[1, 10]> : tensor<2xi32>
  check.expect_eq_const %r#1, dense<[10]> : tensor<1xi32>
  check.expect_eq_const %r#2, dense<[2]> : tensor<1xi32>
  check.expect_eq_const %r#5, dense<[20]> : tensor<1xi32>
  func.return
}

// -----

// One replica folds what the others have; the rest of them gets zeros.
func.func @fold(%a: tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>) {
  %sum = "stablehlo.collective_reduce"(%a) ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %s = stablehlo.add %x, %y : tensor<i32>
      stablehlo.return %s : tensor<i32>
  }) {replica_groups = dense<[[2, 0]]> : tensor<1x2xi64>} : (tensor<2xi32>) -> tensor<2xi32>
  %last = stablehlo.constant dense<1> : tensor<1xi32>
  %product = "stablehlo.collective_reduce"(%a, %last) ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %s = stablehlo.multiply %x, %y : tensor<i32>
      stablehlo.return %s : tensor<i32>
  }) {replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>, has_dynamic_root} : (tensor<2xi32>, tensor<1xi32>) -> tensor<2xi32>
  func.return %sum, %product : tensor<2xi32>, tensor<2xi32>
}
func.func @main() {
  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %b = stablehlo.constant dense<[3, 5]> : tensor<2xi32>
  %c = stablehlo.constant dense<[7, 9]> : tensor<2xi32>
  %r:6 = "interpreter.run_parallel"(%a, %b, %c) {programs = [[@fold], [@fold], [@fold]]}
    : (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>)
    -> (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>)
  check.expect_eq_const %r#0, dense<0> : tensor<2xi32>
  check.expect_eq_const %r#1, dense<0> : tensor<2xi32>
  check.expect_eq_const %r#2, dense<0> : tensor<2xi32>
  check.expect_eq_const %r#3, dense<[21, 90]> : tensor<2xi32>
  check.expect_eq_const %r#4, dense<[8, 11]> : tensor<2xi32>
  check.expect_eq_const %r#5, dense<0> : tensor<2xi32>
  func.return
}

// -----

// Each value is sent by the process that its root names.
func.func @spread(%a: tensor<i32>, %b: tensor<i32>, %roots: tensor<2xi32>) -> (tensor<i32>, tensor<i32>) {
  %0:2 = "stablehlo.collective_broadcast"(%a, %b, %roots) {
    replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, has_dynamic_root
  } : (tensor<i32>, tensor<i32>, tensor<2xi32>) -> (tensor<i32>, tensor<i32>)
  func.return %0#0, %0#1 : tensor<i32>, tensor<i32>
}
func.func @main() {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %roots = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
  %r:4 = "interpreter.run_parallel"(%one, %one, %roots, %two, %two, %roots) {programs = [[@spread], [@spread]]}
    : (tensor<i32>, tensor<i32>, tensor<2xi32>, tensor<i32>, tensor<i32>, tensor<2xi32>)
    -> (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>)
  check.expect_eq_const %r#0, dense<2> : tensor<i32>
  check.expect_eq_const %r#1, dense<1> : tensor<i32>
  check.expect_eq_const %r#2, dense<2> : tensor<i32>
  check.expect_eq_const %r#3, dense<1> : tensor<i32>
  func.return
}

// -----

// The older sum over replicas.
func.func @sum(%a: tensor<2xi32>) -> tensor<2xi32> {
  %0 = "stablehlo.cross-replica-sum"(%a) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xi32>) -> tensor<2xi32>
  func.return %0 : tensor<2xi32>
}
func.func @main() {
  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %r:2 = "interpreter.run_parallel"(%a, %a) {programs = [[@sum], [@sum]]}
    : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>)
  check.expect_eq_const %r#0, dense<[2, 4]> : tensor<2xi32>
  func.return
}

// -----

// A value goes from one partition to the other.
func.func @give(%a: tensor<2xi32>) -> !stablehlo.token {
  %token = stablehlo.after_all : !stablehlo.token
  %0 = "stablehlo.send"(%a, %token) <{
    channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>, is_host_transfer = false,
    source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>
  }> : (tensor<2xi32>, !stablehlo.token) -> !stablehlo.token
  func.return %0 : !stablehlo.token
}
func.func @take() -> tensor<2xi32> {
  %token = stablehlo.after_all : !stablehlo.token
  %0:2 = "stablehlo.recv"(%token) <{
    channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>, is_host_transfer = false,
    source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>
  }> : (!stablehlo.token) -> (tensor<2xi32>, !stablehlo.token)
  func.return %0#0 : tensor<2xi32>
}
func.func @main() {
  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %r:2 = "interpreter.run_parallel"(%a) {programs = [[@give], [@take]]}
    : (tensor<2xi32>) -> (!stablehlo.token, tensor<2xi32>)
  check.expect_eq_const %r#1, dense<[1, 2]> : tensor<2xi32>
  func.return
}

// -----

// Values from the feed, and values for it.
func.func @fed() -> tensor<2xi32> {
  %token = stablehlo.after_all : !stablehlo.token
  %0:2 = "stablehlo.infeed"(%token) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<2xi32>, !stablehlo.token)
  %1 = "stablehlo.outfeed"(%0#0, %0#1) <{outfeed_config = ""}> : (tensor<2xi32>, !stablehlo.token) -> !stablehlo.token
  func.return %0#0 : tensor<2xi32>
}
func.func @feed() -> tensor<2xi32> {
  %0 = stablehlo.constant dense<[7, 8]> : tensor<2xi32>
  func.return %0 : tensor<2xi32>
}
func.func @main() {
  %r = "interpreter.run_parallel"() {infeed = [@feed], programs = [[@fed]]} : () -> tensor<2xi32>
  check.expect_eq_const %r, dense<[7, 8]> : tensor<2xi32>
  func.return
}

// -----

// A sum that is waited for later.
func.func @sum(%a: tensor<2xi32>) -> tensor<2xi32> {
  %0 = "stablehlo.async_start"(%a) ({
    ^bb0(%x: tensor<2xi32>):
      %r = "stablehlo.all_reduce"(%x) <{
        channel_handle = #stablehlo.channel_handle<handle = 0, type = 0>,
        replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>
      }> ({
        ^bb1(%y: tensor<i32>, %z: tensor<i32>):
          %s = stablehlo.add %y, %z : tensor<i32>
          stablehlo.return %s : tensor<i32>
      }) : (tensor<2xi32>) -> tensor<2xi32>
      stablehlo.return %r : tensor<2xi32>
  }) : (tensor<2xi32>) -> !stablehlo.future<tensor<2xi32>>
  %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<2xi32>>) -> tensor<2xi32>
  func.return %1 : tensor<2xi32>
}
func.func @main() {
  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %r:2 = "interpreter.run_parallel"(%a, %a) {programs = [[@sum], [@sum]]}
    : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>)
  check.expect_eq_const %r#1, dense<[2, 4]> : tensor<2xi32>
  func.return
}

// -----

// Groups of processes that differ along the second half of a mesh's axis.
module @mesh_axes {
  func.func @gather(%a : tensor<1xi64>) -> tensor<2xi64> {
    %0 = "stablehlo.all_gather"(%a) {
      all_gather_dim = 0 : i64,
      replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [
        #stablehlo.mesh_axis<name = "rows", size = 1>, #stablehlo.mesh_axis<name = "columns", size = 4>]>,
        axes = [#stablehlo.axis_ref<name = "columns", sub_axis_info = (2)2>]>
    } : (tensor<1xi64>) -> tensor<2xi64>
    return %0 : tensor<2xi64>
  }
  func.func @main() {
    %0 = stablehlo.constant dense<10> : tensor<1xi64>
    %1 = stablehlo.constant dense<11> : tensor<1xi64>
    %2 = stablehlo.constant dense<12> : tensor<1xi64>
    %3 = stablehlo.constant dense<13> : tensor<1xi64>
    %r:4 = "interpreter.run_parallel"(%0, %1, %2, %3) {
      programs = [[@gather], [@gather], [@gather], [@gather]]
    } : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>)
      -> (tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>)
    check.expect_eq_const %r#0, dense<[10, 11]> : tensor<2xi64>
    check.expect_eq_const %r#1, dense<[10, 11]> : tensor<2xi64>
    check.expect_eq_const %r#2, dense<[12, 13]> : tensor<2xi64>
    check.expect_eq_const %r#3, dense<[12, 13]> : tensor<2xi64>
    func.return
  }
}

// -----

// Replica groups along axes of a mesh that the module defines, in both forms of the definition.
module @named_mesh {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  "sdy.mesh"() <{mesh = #sdy.mesh<["z"=4], device_ids=[3, 2, 1, 0]>, sym_name = "reversed"}> : () -> ()
  func.func @gather(%a : tensor<1xi64>) -> (tensor<2xi64>, tensor<4xi64>) {
    %0 = "stablehlo.all_gather"(%a) {
      all_gather_dim = 0 : i64,
      replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>
    } : (tensor<1xi64>) -> tensor<2xi64>
    %1 = "stablehlo.all_gather"(%a) {
      all_gather_dim = 0 : i64,
      replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @reversed, axes = [#stablehlo.axis_ref<name = "z">]>
    } : (tensor<1xi64>) -> tensor<4xi64>
    return %0, %1 : tensor<2xi64>, tensor<4xi64>
  }
  func.func @main() {
    %0 = stablehlo.constant dense<10> : tensor<1xi64>
    %1 = stablehlo.constant dense<11> : tensor<1xi64>
    %2 = stablehlo.constant dense<12> : tensor<1xi64>
    %3 = stablehlo.constant dense<13> : tensor<1xi64>
    %r:8 = "interpreter.run_parallel"(%0, %1, %2, %3) {
      programs = [[@gather], [@gather], [@gather], [@gather]]
    } : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>)
      -> (tensor<2xi64>, tensor<4xi64>, tensor<2xi64>, tensor<4xi64>, tensor<2xi64>, tensor<4xi64>, tensor<2xi64>, tensor<4xi64>)
    check.expect_eq_const %r#0, dense<[10, 12]> : tensor<2xi64>
    check.expect_eq_const %r#1, dense<[13, 12, 11, 10]> : tensor<4xi64>
    check.expect_eq_const %r#2, dense<[11, 13]> : tensor<2xi64>
    check.expect_eq_const %r#4, dense<[10, 12]> : tensor<2xi64>
    check.expect_eq_const %r#7, dense<[13, 12, 11, 10]> : tensor<4xi64>
    func.return
  }
}
