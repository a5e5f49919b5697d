module {
  func.func @main(%arg0: tensor<64x32xf32> {warpforge.name = "model.embed_tokens.weight", warpforge.role = "parameter"}, %arg1: tensor<32x32xf32> {warpforge.name = "model.layers.0.self_attn.q_proj.weight", warpforge.role = "parameter"}, %arg2: tensor<16x32xf32> {warpforge.name = "model.layers.0.self_attn.k_proj.weight", warpforge.role = "parameter"}, %arg3: tensor<16x32xf32> {warpforge.name = "model.layers.0.self_attn.v_proj.weight", warpforge.role = "parameter"}, %arg4: tensor<32x32xf32> {warpforge.name = "model.layers.0.self_attn.o_proj.weight", warpforge.role = "parameter"}, %arg5: tensor<64x32xf32> {warpforge.name = "model.layers.0.mlp.gate_proj.weight", warpforge.role = "parameter"}, %arg6: tensor<64x32xf32> {warpforge.name = "model.layers.0.mlp.up_proj.weight", warpforge.role = "parameter"}, %arg7: tensor<32x64xf32> {warpforge.name = "model.layers.0.mlp.down_proj.weight", warpforge.role = "parameter"}, %arg8: tensor<32xf32> {warpforge.name = "model.layers.0.input_layernorm.weight", warpforge.role = "parameter"}, %arg9: tensor<32xf32> {warpforge.name = "model.layers.0.post_attention_layernorm.weight", warpforge.role = "parameter"}, %arg10: tensor<32x32xf32> {warpforge.name = "model.layers.1.self_attn.q_proj.weight", warpforge.role = "parameter"}, %arg11: tensor<16x32xf32> {warpforge.name = "model.layers.1.self_attn.k_proj.weight", warpforge.role = "parameter"}, %arg12: tensor<16x32xf32> {warpforge.name = "model.layers.1.self_attn.v_proj.weight", warpforge.role = "parameter"}, %arg13: tensor<32x32xf32> {warpforge.name = "model.layers.1.self_attn.o_proj.weight", warpforge.role = "parameter"}, %arg14: tensor<64x32xf32> {warpforge.name = "model.layers.1.mlp.gate_proj.weight", warpforge.role = "parameter"}, %arg15: tensor<64x32xf32> {warpforge.name = "model.layers.1.mlp.up_proj.weight", warpforge.role = "parameter"}, %arg16: tensor<32x64xf32> {warpforge.name = "model.layers.1.mlp.down_proj.weight", warpforge.role = "parameter"}, %arg17: tensor<32xf32> {warpforge.name = "model.layers.1.input_layernorm.weight", warpforge.role = "parameter"}, %arg18: tensor<32xf32> {warpforge.name = "model.layers.1.post_attention_layernorm.weight", warpforge.role = "parameter"}, %arg19: tensor<32xf32> {warpforge.name = "model.norm.weight", warpforge.role = "parameter"}, %arg20: tensor<64x32xf32> {warpforge.name = "lm_head.weight", warpforge.role = "parameter"}, %arg21: tensor<4xf32> {warpforge.name = "model.rotary_emb.inv_freq", warpforge.role = "buffer"}, %arg22: tensor<4xf32> {warpforge.name = "model.rotary_emb.original_inv_freq", warpforge.role = "buffer"}, %arg23: tensor<1x8xi64> {warpforge.name = "input_ids", warpforge.role = "input"}) -> (tensor<1x8x64xf32> {warpforge.name = "logits", warpforge.role = "output"}) {
    %0 = stablehlo.reshape %arg23 : (tensor<1x8xi64>) -> tensor<8xi64>
    %1 = "stablehlo.gather"(%arg0, %0) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 32>}> : (tensor<64x32xf32>, tensor<8xi64>) -> tensor<8x32xf32>
    %2 = stablehlo.reshape %1 : (tensor<8x32xf32>) -> tensor<1x8x32xf32>
    %3 = stablehlo.iota dim = 0 : tensor<8xi64>
    %c = stablehlo.constant dense<0> : tensor<8xi64>
    %4 = stablehlo.add %3, %c : tensor<8xi64>
    %5 = stablehlo.reshape %4 : (tensor<8xi64>) -> tensor<1x8xi64>
    %6 = stablehlo.slice %5 [0:1, 0:1] : (tensor<1x8xi64>) -> tensor<1x1xi64>
    %c_0 = stablehlo.constant dense<1> : tensor<1x1xi64>
    %7 = stablehlo.subtract %6, %c_0 : tensor<1x1xi64>
    %8 = stablehlo.concatenate %7, %5, dim = 1 : (tensor<1x1xi64>, tensor<1x8xi64>) -> tensor<1x9xi64>
    %9 = stablehlo.slice %8 [0:1, 1:9] : (tensor<1x9xi64>) -> tensor<1x8xi64>
    %10 = stablehlo.slice %8 [0:1, 0:8] : (tensor<1x9xi64>) -> tensor<1x8xi64>
    %11 = stablehlo.subtract %9, %10 : tensor<1x8xi64>
    %c_1 = stablehlo.constant dense<1> : tensor<1x8xi64>
    %12 = stablehlo.compare NE, %11, %c_1, SIGNED : (tensor<1x8xi64>, tensor<1x8xi64>) -> tensor<1x8xi1>
    %13 = stablehlo.convert %12 : (tensor<1x8xi1>) -> tensor<1x8xi64>
    %14 = stablehlo.slice %13 [0:1, 0:7] : (tensor<1x8xi64>) -> tensor<1x7xi64>
    %c_2 = stablehlo.constant dense<0> : tensor<i64>
    %15 = stablehlo.pad %14, %c_2, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<1x7xi64>, tensor<i64>) -> tensor<1x8xi64>
    %16 = stablehlo.add %15, %13 : tensor<1x8xi64>
    %17 = stablehlo.slice %16 [0:1, 0:6] : (tensor<1x8xi64>) -> tensor<1x6xi64>
    %c_3 = stablehlo.constant dense<0> : tensor<i64>
    %18 = stablehlo.pad %17, %c_3, low = [0, 2], high = [0, 0], interior = [0, 0] : (tensor<1x6xi64>, tensor<i64>) -> tensor<1x8xi64>
    %19 = stablehlo.add %18, %16 : tensor<1x8xi64>
    %20 = stablehlo.slice %19 [0:1, 0:4] : (tensor<1x8xi64>) -> tensor<1x4xi64>
    %c_4 = stablehlo.constant dense<0> : tensor<i64>
    %21 = stablehlo.pad %20, %c_4, low = [0, 4], high = [0, 0], interior = [0, 0] : (tensor<1x4xi64>, tensor<i64>) -> tensor<1x8xi64>
    %22 = stablehlo.add %21, %19 : tensor<1x8xi64>
    %23 = stablehlo.convert %5 : tensor<1x8xi64>
    %24 = stablehlo.iota dim = 0 : tensor<1xi64>
    %25 = stablehlo.iota dim = 0 : tensor<1xi64>
    %26 = stablehlo.iota dim = 0 : tensor<8xi64>
    %c_5 = stablehlo.constant dense<0> : tensor<8xi64>
    %27 = stablehlo.add %26, %c_5 : tensor<8xi64>
    %28 = stablehlo.iota dim = 0 : tensor<8xi64>
    %c_6 = stablehlo.constant dense<0> : tensor<8xi64>
    %29 = stablehlo.add %28, %c_6 : tensor<8xi64>
    %30 = stablehlo.reshape %24 : (tensor<1xi64>) -> tensor<1x1xi64>
    %31 = stablehlo.reshape %30 : (tensor<1x1xi64>) -> tensor<1x1x1xi64>
    %32 = stablehlo.reshape %31 : (tensor<1x1x1xi64>) -> tensor<1x1x1x1xi64>
    %33 = stablehlo.reshape %25 : (tensor<1xi64>) -> tensor<1x1xi64>
    %34 = stablehlo.reshape %33 : (tensor<1x1xi64>) -> tensor<1x1x1xi64>
    %35 = stablehlo.reshape %34 : (tensor<1x1x1xi64>) -> tensor<1x1x1x1xi64>
    %36 = stablehlo.reshape %27 : (tensor<8xi64>) -> tensor<1x8xi64>
    %37 = stablehlo.reshape %36 : (tensor<1x8xi64>) -> tensor<1x1x8xi64>
    %38 = stablehlo.reshape %37 : (tensor<1x1x8xi64>) -> tensor<1x1x8x1xi64>
    %39 = stablehlo.reshape %29 : (tensor<8xi64>) -> tensor<1x8xi64>
    %40 = stablehlo.reshape %39 : (tensor<1x8xi64>) -> tensor<1x1x8xi64>
    %41 = stablehlo.reshape %40 : (tensor<1x1x8xi64>) -> tensor<1x1x1x8xi64>
    %c_7 = stablehlo.constant dense<true> : tensor<i1>
    %c_8 = stablehlo.constant dense<1> : tensor<i64>
    %42 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i64>) -> tensor<1x1x1x1xi64>
    %43 = stablehlo.add %32, %42 : tensor<1x1x1x1xi64>
    %c_9 = stablehlo.constant dense<0> : tensor<1x1x1x1xi64>
    %44 = stablehlo.compare LT, %32, %c_9, SIGNED : (tensor<1x1x1x1xi64>, tensor<1x1x1x1xi64>) -> tensor<1x1x1x1xi1>
    %45 = stablehlo.select %44, %43, %32 : tensor<1x1x1x1xi1>, tensor<1x1x1x1xi64>
    %c_10 = stablehlo.constant dense<8> : tensor<i64>
    %46 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<i64>) -> tensor<1x1x8x1xi64>
    %47 = stablehlo.add %38, %46 : tensor<1x1x8x1xi64>
    %c_11 = stablehlo.constant dense<0> : tensor<1x1x8x1xi64>
    %48 = stablehlo.compare LT, %38, %c_11, SIGNED : (tensor<1x1x8x1xi64>, tensor<1x1x8x1xi64>) -> tensor<1x1x8x1xi1>
    %49 = stablehlo.select %48, %47, %38 : tensor<1x1x8x1xi1>, tensor<1x1x8x1xi64>
    %50 = stablehlo.broadcast_in_dim %45, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi64>) -> tensor<1x1x8x1xi64>
    %51 = stablehlo.reshape %50 : (tensor<1x1x8x1xi64>) -> tensor<1x1x8x1x1xi64>
    %52 = stablehlo.reshape %49 : (tensor<1x1x8x1xi64>) -> tensor<1x1x8x1x1xi64>
    %53 = stablehlo.concatenate %51, %52, dim = 4 : (tensor<1x1x8x1x1xi64>, tensor<1x1x8x1x1xi64>) -> tensor<1x1x8x1x2xi64>
    %54 = "stablehlo.gather"(%22, %53) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 4>, slice_sizes = array<i64: 1, 1>}> : (tensor<1x8xi64>, tensor<1x1x8x1x2xi64>) -> tensor<1x1x8x1xi64>
    %55 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i64>) -> tensor<1x1x1x1xi64>
    %56 = stablehlo.add %32, %55 : tensor<1x1x1x1xi64>
    %c_12 = stablehlo.constant dense<0> : tensor<1x1x1x1xi64>
    %57 = stablehlo.compare LT, %32, %c_12, SIGNED : (tensor<1x1x1x1xi64>, tensor<1x1x1x1xi64>) -> tensor<1x1x1x1xi1>
    %58 = stablehlo.select %57, %56, %32 : tensor<1x1x1x1xi1>, tensor<1x1x1x1xi64>
    %59 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<i64>) -> tensor<1x1x1x8xi64>
    %60 = stablehlo.add %41, %59 : tensor<1x1x1x8xi64>
    %c_13 = stablehlo.constant dense<0> : tensor<1x1x1x8xi64>
    %61 = stablehlo.compare LT, %41, %c_13, SIGNED : (tensor<1x1x1x8xi64>, tensor<1x1x1x8xi64>) -> tensor<1x1x1x8xi1>
    %62 = stablehlo.select %61, %60, %41 : tensor<1x1x1x8xi1>, tensor<1x1x1x8xi64>
    %63 = stablehlo.broadcast_in_dim %58, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi64>) -> tensor<1x1x1x8xi64>
    %64 = stablehlo.reshape %63 : (tensor<1x1x1x8xi64>) -> tensor<1x1x1x8x1xi64>
    %65 = stablehlo.reshape %62 : (tensor<1x1x1x8xi64>) -> tensor<1x1x1x8x1xi64>
    %66 = stablehlo.concatenate %64, %65, dim = 4 : (tensor<1x1x1x8x1xi64>, tensor<1x1x1x8x1xi64>) -> tensor<1x1x1x8x2xi64>
    %67 = "stablehlo.gather"(%22, %66) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 4>, slice_sizes = array<i64: 1, 1>}> : (tensor<1x8xi64>, tensor<1x1x1x8x2xi64>) -> tensor<1x1x1x8xi64>
    %68 = stablehlo.broadcast_in_dim %54, dims = [0, 1, 2, 3] : (tensor<1x1x8x1xi64>) -> tensor<1x1x8x8xi64>
    %69 = stablehlo.broadcast_in_dim %67, dims = [0, 1, 2, 3] : (tensor<1x1x1x8xi64>) -> tensor<1x1x8x8xi64>
    %70 = stablehlo.compare EQ, %68, %69, SIGNED : (tensor<1x1x8x8xi64>, tensor<1x1x8x8xi64>) -> tensor<1x1x8x8xi1>
    %71 = stablehlo.convert %70 : tensor<1x1x8x8xi1>
    %72 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i1>) -> tensor<1x1x8x8xi1>
    %73 = stablehlo.and %72, %70 : tensor<1x1x8x8xi1>
    %74 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i64>) -> tensor<1x1x1x1xi64>
    %75 = stablehlo.add %32, %74 : tensor<1x1x1x1xi64>
    %c_14 = stablehlo.constant dense<0> : tensor<1x1x1x1xi64>
    %76 = stablehlo.compare LT, %32, %c_14, SIGNED : (tensor<1x1x1x1xi64>, tensor<1x1x1x1xi64>) -> tensor<1x1x1x1xi1>
    %77 = stablehlo.select %76, %75, %32 : tensor<1x1x1x1xi1>, tensor<1x1x1x1xi64>
    %78 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<i64>) -> tensor<1x1x8x1xi64>
    %79 = stablehlo.add %38, %78 : tensor<1x1x8x1xi64>
    %c_15 = stablehlo.constant dense<0> : tensor<1x1x8x1xi64>
    %80 = stablehlo.compare LT, %38, %c_15, SIGNED : (tensor<1x1x8x1xi64>, tensor<1x1x8x1xi64>) -> tensor<1x1x8x1xi1>
    %81 = stablehlo.select %80, %79, %38 : tensor<1x1x8x1xi1>, tensor<1x1x8x1xi64>
    %82 = stablehlo.broadcast_in_dim %77, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi64>) -> tensor<1x1x8x1xi64>
    %83 = stablehlo.reshape %82 : (tensor<1x1x8x1xi64>) -> tensor<1x1x8x1x1xi64>
    %84 = stablehlo.reshape %81 : (tensor<1x1x8x1xi64>) -> tensor<1x1x8x1x1xi64>
    %85 = stablehlo.concatenate %83, %84, dim = 4 : (tensor<1x1x8x1x1xi64>, tensor<1x1x8x1x1xi64>) -> tensor<1x1x8x1x2xi64>
    %86 = "stablehlo.gather"(%5, %85) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 4>, slice_sizes = array<i64: 1, 1>}> : (tensor<1x8xi64>, tensor<1x1x8x1x2xi64>) -> tensor<1x1x8x1xi64>
    %87 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i64>) -> tensor<1x1x1x1xi64>
    %88 = stablehlo.add %32, %87 : tensor<1x1x1x1xi64>
    %c_16 = stablehlo.constant dense<0> : tensor<1x1x1x1xi64>
    %89 = stablehlo.compare LT, %32, %c_16, SIGNED : (tensor<1x1x1x1xi64>, tensor<1x1x1x1xi64>) -> tensor<1x1x1x1xi1>
    %90 = stablehlo.select %89, %88, %32 : tensor<1x1x1x1xi1>, tensor<1x1x1x1xi64>
    %91 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<i64>) -> tensor<1x1x1x8xi64>
    %92 = stablehlo.add %41, %91 : tensor<1x1x1x8xi64>
    %c_17 = stablehlo.constant dense<0> : tensor<1x1x1x8xi64>
    %93 = stablehlo.compare LT, %41, %c_17, SIGNED : (tensor<1x1x1x8xi64>, tensor<1x1x1x8xi64>) -> tensor<1x1x1x8xi1>
    %94 = stablehlo.select %93, %92, %41 : tensor<1x1x1x8xi1>, tensor<1x1x1x8xi64>
    %95 = stablehlo.broadcast_in_dim %90, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi64>) -> tensor<1x1x1x8xi64>
    %96 = stablehlo.reshape %95 : (tensor<1x1x1x8xi64>) -> tensor<1x1x1x8x1xi64>
    %97 = stablehlo.reshape %94 : (tensor<1x1x1x8xi64>) -> tensor<1x1x1x8x1xi64>
    %98 = stablehlo.concatenate %96, %97, dim = 4 : (tensor<1x1x1x8x1xi64>, tensor<1x1x1x8x1xi64>) -> tensor<1x1x1x8x2xi64>
    %99 = "stablehlo.gather"(%5, %98) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 4>, slice_sizes = array<i64: 1, 1>}> : (tensor<1x8xi64>, tensor<1x1x1x8x2xi64>) -> tensor<1x1x1x8xi64>
    %100 = stablehlo.broadcast_in_dim %99, dims = [0, 1, 2, 3] : (tensor<1x1x1x8xi64>) -> tensor<1x1x8x8xi64>
    %101 = stablehlo.broadcast_in_dim %86, dims = [0, 1, 2, 3] : (tensor<1x1x8x1xi64>) -> tensor<1x1x8x8xi64>
    %102 = stablehlo.compare LE, %100, %101, SIGNED : (tensor<1x1x8x8xi64>, tensor<1x1x8x8xi64>) -> tensor<1x1x8x8xi1>
    %103 = stablehlo.convert %102 : tensor<1x1x8x8xi1>
    %104 = stablehlo.and %73, %102 : tensor<1x1x8x8xi1>
    %105 = stablehlo.convert %104 : tensor<1x1x8x8xi1>
    %106 = stablehlo.reshape %5 : (tensor<1x8xi64>) -> tensor<1x8x1xi64>
    %107 = stablehlo.convert %106 : (tensor<1x8x1xi64>) -> tensor<1x8x1xf32>
    %108 = stablehlo.convert %arg21 : tensor<4xf32>
    %109 = stablehlo.broadcast_in_dim %107, dims = [0, 1, 2] : (tensor<1x8x1xf32>) -> tensor<1x8x4xf32>
    %110 = stablehlo.broadcast_in_dim %arg21, dims = [2] : (tensor<4xf32>) -> tensor<1x8x4xf32>
    %111 = stablehlo.multiply %109, %110 : tensor<1x8x4xf32>
    %112 = stablehlo.concatenate %111, %111, dim = 2 : (tensor<1x8x4xf32>, tensor<1x8x4xf32>) -> tensor<1x8x8xf32>
    %113 = stablehlo.cosine %112 : tensor<1x8x8xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<1x8x8xf32>
    %114 = stablehlo.multiply %113, %cst : tensor<1x8x8xf32>
    %115 = stablehlo.sine %112 : tensor<1x8x8xf32>
    %cst_18 = stablehlo.constant dense<1.000000e+00> : tensor<1x8x8xf32>
    %116 = stablehlo.multiply %115, %cst_18 : tensor<1x8x8xf32>
    %117 = stablehlo.convert %114 : tensor<1x8x8xf32>
    %118 = stablehlo.convert %116 : tensor<1x8x8xf32>
    %119:2 = stablehlo.optimization_barrier %114, %116 : tensor<1x8x8xf32>, tensor<1x8x8xf32>
    %120 = stablehlo.convert %114 : tensor<1x8x8xf32>
    %121 = stablehlo.convert %116 : tensor<1x8x8xf32>
    %122 = stablehlo.convert %2 : tensor<1x8x32xf32>
    %123 = stablehlo.multiply %2, %2 : tensor<1x8x32xf32>
    %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %124 = stablehlo.reduce(%123 init: %cst_19) applies stablehlo.add across dimensions = [2] : (tensor<1x8x32xf32>, tensor<f32>) -> tensor<1x8xf32>
    %cst_20 = stablehlo.constant dense<3.200000e+01> : tensor<1x8xf32>
    %125 = stablehlo.divide %124, %cst_20 : tensor<1x8xf32>
    %126 = stablehlo.reshape %125 : (tensor<1x8xf32>) -> tensor<1x8x1xf32>
    %cst_21 = stablehlo.constant dense<9.99999997E-7> : tensor<1x8x1xf32>
    %127 = stablehlo.add %126, %cst_21 : tensor<1x8x1xf32>
    %128 = stablehlo.rsqrt %127 : tensor<1x8x1xf32>
    %129 = stablehlo.broadcast_in_dim %128, dims = [0, 1, 2] : (tensor<1x8x1xf32>) -> tensor<1x8x32xf32>
    %130 = stablehlo.multiply %2, %129 : tensor<1x8x32xf32>
    %131 = stablehlo.convert %130 : tensor<1x8x32xf32>
    %132 = stablehlo.broadcast_in_dim %arg8, dims = [2] : (tensor<32xf32>) -> tensor<1x8x32xf32>
    %133 = stablehlo.multiply %132, %130 : tensor<1x8x32xf32>
    %134 = stablehlo.dot_general %133, %arg1, contracting_dims = [2] x [1] : (tensor<1x8x32xf32>, tensor<32x32xf32>) -> tensor<1x8x32xf32>
    %135 = stablehlo.reshape %134 : (tensor<1x8x32xf32>) -> tensor<1x8x4x8xf32>
    %136 = stablehlo.transpose %135, dims = [0, 2, 1, 3] : (tensor<1x8x4x8xf32>) -> tensor<1x4x8x8xf32>
    %137 = stablehlo.dot_general %133, %arg2, contracting_dims = [2] x [1] : (tensor<1x8x32xf32>, tensor<16x32xf32>) -> tensor<1x8x16xf32>
    %138 = stablehlo.reshape %137 : (tensor<1x8x16xf32>) -> tensor<1x8x2x8xf32>
    %139 = stablehlo.transpose %138, dims = [0, 2, 1, 3] : (tensor<1x8x2x8xf32>) -> tensor<1x2x8x8xf32>
    %140 = stablehlo.dot_general %133, %arg3, contracting_dims = [2] x [1] : (tensor<1x8x32xf32>, tensor<16x32xf32>) -> tensor<1x8x16xf32>
    %141 = stablehlo.reshape %140 : (tensor<1x8x16xf32>) -> tensor<1x8x2x8xf32>
    %142 = stablehlo.transpose %141, dims = [0, 2, 1, 3] : (tensor<1x8x2x8xf32>) -> tensor<1x2x8x8xf32>
    %143 = stablehlo.reshape %114 : (tensor<1x8x8xf32>) -> tensor<1x1x8x8xf32>
    %144 = stablehlo.reshape %116 : (tensor<1x8x8xf32>) -> tensor<1x1x8x8xf32>
    %145 = stablehlo.broadcast_in_dim %143, dims = [0, 1, 2, 3] : (tensor<1x1x8x8xf32>) -> tensor<1x4x8x8xf32>
    %146 = stablehlo.multiply %136, %145 : tensor<1x4x8x8xf32>
    %147 = stablehlo.slice %136 [0:1, 0:4, 0:8, 0:4] : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x4xf32>
    %148 = stablehlo.slice %136 [0:1, 0:4, 0:8, 4:8] : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x4xf32>
    %149 = stablehlo.negate %148 : tensor<1x4x8x4xf32>
    %150 = stablehlo.concatenate %149, %147, dim = 3 : (tensor<1x4x8x4xf32>, tensor<1x4x8x4xf32>) -> tensor<1x4x8x8xf32>
    %151 = stablehlo.broadcast_in_dim %144, dims = [0, 1, 2, 3] : (tensor<1x1x8x8xf32>) -> tensor<1x4x8x8xf32>
    %152 = stablehlo.multiply %150, %151 : tensor<1x4x8x8xf32>
    %153 = stablehlo.add %146, %152 : tensor<1x4x8x8xf32>
    %154 = stablehlo.broadcast_in_dim %143, dims = [0, 1, 2, 3] : (tensor<1x1x8x8xf32>) -> tensor<1x2x8x8xf32>
    %155 = stablehlo.multiply %139, %154 : tensor<1x2x8x8xf32>
    %156 = stablehlo.slice %139 [0:1, 0:2, 0:8, 0:4] : (tensor<1x2x8x8xf32>) -> tensor<1x2x8x4xf32>
    %157 = stablehlo.slice %139 [0:1, 0:2, 0:8, 4:8] : (tensor<1x2x8x8xf32>) -> tensor<1x2x8x4xf32>
    %158 = stablehlo.negate %157 : tensor<1x2x8x4xf32>
    %159 = stablehlo.concatenate %158, %156, dim = 3 : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x8xf32>
    %160 = stablehlo.broadcast_in_dim %144, dims = [0, 1, 2, 3] : (tensor<1x1x8x8xf32>) -> tensor<1x2x8x8xf32>
    %161 = stablehlo.multiply %159, %160 : tensor<1x2x8x8xf32>
    %162 = stablehlo.add %155, %161 : tensor<1x2x8x8xf32>
    %163 = stablehlo.reshape %162 : (tensor<1x2x8x8xf32>) -> tensor<1x2x1x8x8xf32>
    %164 = stablehlo.broadcast_in_dim %163, dims = [0, 1, 2, 3, 4] : (tensor<1x2x1x8x8xf32>) -> tensor<1x2x2x8x8xf32>
    %165 = stablehlo.reshape %164 : (tensor<1x2x2x8x8xf32>) -> tensor<1x4x8x8xf32>
    %166 = stablehlo.reshape %142 : (tensor<1x2x8x8xf32>) -> tensor<1x2x1x8x8xf32>
    %167 = stablehlo.broadcast_in_dim %166, dims = [0, 1, 2, 3, 4] : (tensor<1x2x1x8x8xf32>) -> tensor<1x2x2x8x8xf32>
    %168 = stablehlo.reshape %167 : (tensor<1x2x2x8x8xf32>) -> tensor<1x4x8x8xf32>
    %169 = stablehlo.dot_general %153, %165, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %cst_22 = stablehlo.constant dense<0.353553385> : tensor<1x4x8x8xf32>
    %170 = stablehlo.multiply %169, %cst_22 : tensor<1x4x8x8xf32>
    %171 = stablehlo.broadcast_in_dim %104, dims = [0, 1, 2, 3] : (tensor<1x1x8x8xi1>) -> tensor<1x4x8x8xi1>
    %cst_23 = stablehlo.constant dense<0xFF800000> : tensor<1x4x8x8xf32>
    %172 = stablehlo.select %171, %170, %cst_23 : tensor<1x4x8x8xi1>, tensor<1x4x8x8xf32>
    %cst_24 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %173 = stablehlo.reduce(%172 init: %cst_24) applies stablehlo.maximum across dimensions = [3] : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x8xf32>
    %cst_25 = stablehlo.constant dense<0xFF800000> : tensor<1x4x8xf32>
    %174 = stablehlo.compare EQ, %173, %cst_25, FLOAT : (tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> tensor<1x4x8xi1>
    %175 = stablehlo.broadcast_in_dim %173, dims = [0, 1, 2] : (tensor<1x4x8xf32>) -> tensor<1x4x8x8xf32>
    %176 = stablehlo.subtract %172, %175 : tensor<1x4x8x8xf32>
    %177 = stablehlo.exponential %176 : tensor<1x4x8x8xf32>
    %cst_26 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %178 = stablehlo.reduce(%177 init: %cst_26) applies stablehlo.add across dimensions = [3] : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x8xf32>
    %179 = stablehlo.broadcast_in_dim %178, dims = [0, 1, 2] : (tensor<1x4x8xf32>) -> tensor<1x4x8x8xf32>
    %180 = stablehlo.divide %177, %179 : tensor<1x4x8x8xf32>
    %181 = stablehlo.broadcast_in_dim %174, dims = [0, 1, 2] : (tensor<1x4x8xi1>) -> tensor<1x4x8x8xi1>
    %cst_27 = stablehlo.constant dense<0.000000e+00> : tensor<1x4x8x8xf32>
    %182 = stablehlo.select %181, %cst_27, %180 : tensor<1x4x8x8xi1>, tensor<1x4x8x8xf32>
    %cst_28 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %183 = stablehlo.reduce(%172 init: %cst_28) applies stablehlo.maximum across dimensions = [3] : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x8xf32>
    %184 = stablehlo.is_finite %183 : (tensor<1x4x8xf32>) -> tensor<1x4x8xi1>
    %cst_29 = stablehlo.constant dense<0.000000e+00> : tensor<1x4x8xf32>
    %185 = stablehlo.select %184, %183, %cst_29 : tensor<1x4x8xi1>, tensor<1x4x8xf32>
    %186 = stablehlo.broadcast_in_dim %185, dims = [0, 1, 2] : (tensor<1x4x8xf32>) -> tensor<1x4x8x8xf32>
    %187 = stablehlo.subtract %172, %186 : tensor<1x4x8x8xf32>
    %188 = stablehlo.exponential %187 : tensor<1x4x8x8xf32>
    %cst_30 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %189 = stablehlo.reduce(%188 init: %cst_30) applies stablehlo.add across dimensions = [3] : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x8xf32>
    %190 = stablehlo.log %189 : tensor<1x4x8xf32>
    %191 = stablehlo.add %190, %185 : tensor<1x4x8xf32>
    %192 = stablehlo.dot_general %182, %168, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %193 = stablehlo.convert %192 : tensor<1x4x8x8xf32>
    %194 = stablehlo.transpose %192, dims = [0, 2, 1, 3] : (tensor<1x4x8x8xf32>) -> tensor<1x8x4x8xf32>
    %195 = stablehlo.reshape %194 : (tensor<1x8x4x8xf32>) -> tensor<1x8x32xf32>
    %196 = stablehlo.dot_general %195, %arg4, contracting_dims = [2] x [1] : (tensor<1x8x32xf32>, tensor<32x32xf32>) -> tensor<1x8x32xf32>
    %197 = stablehlo.add %2, %196 : tensor<1x8x32xf32>
    %198 = stablehlo.convert %197 : tensor<1x8x32xf32>
    %199 = stablehlo.multiply %197, %197 : tensor<1x8x32xf32>
    %cst_31 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %200 = stablehlo.reduce(%199 init: %cst_31) applies stablehlo.add across dimensions = [2] : (tensor<1x8x32xf32>, tensor<f32>) -> tensor<1x8xf32>
    %cst_32 = stablehlo.constant dense<3.200000e+01> : tensor<1x8xf32>
    %201 = stablehlo.divide %200, %cst_32 : tensor<1x8xf32>
    %202 = stablehlo.reshape %201 : (tensor<1x8xf32>) -> tensor<1x8x1xf32>
    %cst_33 = stablehlo.constant dense<9.99999997E-7> : tensor<1x8x1xf32>
    %203 = stablehlo.add %202, %cst_33 : tensor<1x8x1xf32>
    %204 = stablehlo.rsqrt %203 : tensor<1x8x1xf32>
    %205 = stablehlo.broadcast_in_dim %204, dims = [0, 1, 2] : (tensor<1x8x1xf32>) -> tensor<1x8x32xf32>
    %206 = stablehlo.multiply %197, %205 : tensor<1x8x32xf32>
    %207 = stablehlo.convert %206 : tensor<1x8x32xf32>
    %208 = stablehlo.broadcast_in_dim %arg9, dims = [2] : (tensor<32xf32>) -> tensor<1x8x32xf32>
    %209 = stablehlo.multiply %208, %206 : tensor<1x8x32xf32>
    %210 = stablehlo.dot_general %209, %arg5, contracting_dims = [2] x [1] : (tensor<1x8x32xf32>, tensor<64x32xf32>) -> tensor<1x8x64xf32>
    %211 = stablehlo.logistic %210 : tensor<1x8x64xf32>
    %212 = stablehlo.multiply %210, %211 : tensor<1x8x64xf32>
    %213 = stablehlo.dot_general %209, %arg6, contracting_dims = [2] x [1] : (tensor<1x8x32xf32>, tensor<64x32xf32>) -> tensor<1x8x64xf32>
    %214 = stablehlo.multiply %212, %213 : tensor<1x8x64xf32>
    %215 = stablehlo.dot_general %214, %arg7, contracting_dims = [2] x [1] : (tensor<1x8x64xf32>, tensor<32x64xf32>) -> tensor<1x8x32xf32>
    %216 = stablehlo.add %197, %215 : tensor<1x8x32xf32>
    %217 = stablehlo.convert %216 : tensor<1x8x32xf32>
    %218 = stablehlo.multiply %216, %216 : tensor<1x8x32xf32>
    %cst_34 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %219 = stablehlo.reduce(%218 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<1x8x32xf32>, tensor<f32>) -> tensor<1x8xf32>
    %cst_35 = stablehlo.constant dense<3.200000e+01> : tensor<1x8xf32>
    %220 = stablehlo.divide %219, %cst_35 : tensor<1x8xf32>
    %221 = stablehlo.reshape %220 : (tensor<1x8xf32>) -> tensor<1x8x1xf32>
    %cst_36 = stablehlo.constant dense<9.99999997E-7> : tensor<1x8x1xf32>
    %222 = stablehlo.add %221, %cst_36 : tensor<1x8x1xf32>
    %223 = stablehlo.rsqrt %222 : tensor<1x8x1xf32>
    %224 = stablehlo.broadcast_in_dim %223, dims = [0, 1, 2] : (tensor<1x8x1xf32>) -> tensor<1x8x32xf32>
    %225 = stablehlo.multiply %216, %224 : tensor<1x8x32xf32>
    %226 = stablehlo.convert %225 : tensor<1x8x32xf32>
    %227 = stablehlo.broadcast_in_dim %arg17, dims = [2] : (tensor<32xf32>) -> tensor<1x8x32xf32>
    %228 = stablehlo.multiply %227, %225 : tensor<1x8x32xf32>
    %229 = stablehlo.dot_general %228, %arg10, contracting_dims = [2] x [1] : (tensor<1x8x32xf32>, tensor<32x32xf32>) -> tensor<1x8x32xf32>
    %230 = stablehlo.reshape %229 : (tensor<1x8x32xf32>) -> tensor<1x8x4x8xf32>
    %231 = stablehlo.transpose %230, dims = [0, 2, 1, 3] : (tensor<1x8x4x8xf32>) -> tensor<1x4x8x8xf32>
    %232 = stablehlo.dot_general %228, %arg11, contracting_dims = [2] x [1] : (tensor<1x8x32xf32>, tensor<16x32xf32>) -> tensor<1x8x16xf32>
    %233 = stablehlo.reshape %232 : (tensor<1x8x16xf32>) -> tensor<1x8x2x8xf32>
    %234 = stablehlo.transpose %233, dims = [0, 2, 1, 3] : (tensor<1x8x2x8xf32>) -> tensor<1x2x8x8xf32>
    %235 = stablehlo.dot_general %228, %arg12, contracting_dims = [2] x [1] : (tensor<1x8x32xf32>, tensor<16x32xf32>) -> tensor<1x8x16xf32>
    %236 = stablehlo.reshape %235 : (tensor<1x8x16xf32>) -> tensor<1x8x2x8xf32>
    %237 = stablehlo.transpose %236, dims = [0, 2, 1, 3] : (tensor<1x8x2x8xf32>) -> tensor<1x2x8x8xf32>
    %238 = stablehlo.reshape %114 : (tensor<1x8x8xf32>) -> tensor<1x1x8x8xf32>
    %239 = stablehlo.reshape %116 : (tensor<1x8x8xf32>) -> tensor<1x1x8x8xf32>
    %240 = stablehlo.broadcast_in_dim %238, dims = [0, 1, 2, 3] : (tensor<1x1x8x8xf32>) -> tensor<1x4x8x8xf32>
    %241 = stablehlo.multiply %231, %240 : tensor<1x4x8x8xf32>
    %242 = stablehlo.slice %231 [0:1, 0:4, 0:8, 0:4] : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x4xf32>
    %243 = stablehlo.slice %231 [0:1, 0:4, 0:8, 4:8] : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x4xf32>
    %244 = stablehlo.negate %243 : tensor<1x4x8x4xf32>
    %245 = stablehlo.concatenate %244, %242, dim = 3 : (tensor<1x4x8x4xf32>, tensor<1x4x8x4xf32>) -> tensor<1x4x8x8xf32>
    %246 = stablehlo.broadcast_in_dim %239, dims = [0, 1, 2, 3] : (tensor<1x1x8x8xf32>) -> tensor<1x4x8x8xf32>
    %247 = stablehlo.multiply %245, %246 : tensor<1x4x8x8xf32>
    %248 = stablehlo.add %241, %247 : tensor<1x4x8x8xf32>
    %249 = stablehlo.broadcast_in_dim %238, dims = [0, 1, 2, 3] : (tensor<1x1x8x8xf32>) -> tensor<1x2x8x8xf32>
    %250 = stablehlo.multiply %234, %249 : tensor<1x2x8x8xf32>
    %251 = stablehlo.slice %234 [0:1, 0:2, 0:8, 0:4] : (tensor<1x2x8x8xf32>) -> tensor<1x2x8x4xf32>
    %252 = stablehlo.slice %234 [0:1, 0:2, 0:8, 4:8] : (tensor<1x2x8x8xf32>) -> tensor<1x2x8x4xf32>
    %253 = stablehlo.negate %252 : tensor<1x2x8x4xf32>
    %254 = stablehlo.concatenate %253, %251, dim = 3 : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x8xf32>
    %255 = stablehlo.broadcast_in_dim %239, dims = [0, 1, 2, 3] : (tensor<1x1x8x8xf32>) -> tensor<1x2x8x8xf32>
    %256 = stablehlo.multiply %254, %255 : tensor<1x2x8x8xf32>
    %257 = stablehlo.add %250, %256 : tensor<1x2x8x8xf32>
    %258 = stablehlo.reshape %257 : (tensor<1x2x8x8xf32>) -> tensor<1x2x1x8x8xf32>
    %259 = stablehlo.broadcast_in_dim %258, dims = [0, 1, 2, 3, 4] : (tensor<1x2x1x8x8xf32>) -> tensor<1x2x2x8x8xf32>
    %260 = stablehlo.reshape %259 : (tensor<1x2x2x8x8xf32>) -> tensor<1x4x8x8xf32>
    %261 = stablehlo.reshape %237 : (tensor<1x2x8x8xf32>) -> tensor<1x2x1x8x8xf32>
    %262 = stablehlo.broadcast_in_dim %261, dims = [0, 1, 2, 3, 4] : (tensor<1x2x1x8x8xf32>) -> tensor<1x2x2x8x8xf32>
    %263 = stablehlo.reshape %262 : (tensor<1x2x2x8x8xf32>) -> tensor<1x4x8x8xf32>
    %264 = stablehlo.dot_general %248, %260, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %cst_37 = stablehlo.constant dense<0.353553385> : tensor<1x4x8x8xf32>
    %265 = stablehlo.multiply %264, %cst_37 : tensor<1x4x8x8xf32>
    %266 = stablehlo.broadcast_in_dim %104, dims = [0, 1, 2, 3] : (tensor<1x1x8x8xi1>) -> tensor<1x4x8x8xi1>
    %cst_38 = stablehlo.constant dense<0xFF800000> : tensor<1x4x8x8xf32>
    %267 = stablehlo.select %266, %265, %cst_38 : tensor<1x4x8x8xi1>, tensor<1x4x8x8xf32>
    %cst_39 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %268 = stablehlo.reduce(%267 init: %cst_39) applies stablehlo.maximum across dimensions = [3] : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x8xf32>
    %cst_40 = stablehlo.constant dense<0xFF800000> : tensor<1x4x8xf32>
    %269 = stablehlo.compare EQ, %268, %cst_40, FLOAT : (tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> tensor<1x4x8xi1>
    %270 = stablehlo.broadcast_in_dim %268, dims = [0, 1, 2] : (tensor<1x4x8xf32>) -> tensor<1x4x8x8xf32>
    %271 = stablehlo.subtract %267, %270 : tensor<1x4x8x8xf32>
    %272 = stablehlo.exponential %271 : tensor<1x4x8x8xf32>
    %cst_41 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %273 = stablehlo.reduce(%272 init: %cst_41) applies stablehlo.add across dimensions = [3] : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x8xf32>
    %274 = stablehlo.broadcast_in_dim %273, dims = [0, 1, 2] : (tensor<1x4x8xf32>) -> tensor<1x4x8x8xf32>
    %275 = stablehlo.divide %272, %274 : tensor<1x4x8x8xf32>
    %276 = stablehlo.broadcast_in_dim %269, dims = [0, 1, 2] : (tensor<1x4x8xi1>) -> tensor<1x4x8x8xi1>
    %cst_42 = stablehlo.constant dense<0.000000e+00> : tensor<1x4x8x8xf32>
    %277 = stablehlo.select %276, %cst_42, %275 : tensor<1x4x8x8xi1>, tensor<1x4x8x8xf32>
    %cst_43 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %278 = stablehlo.reduce(%267 init: %cst_43) applies stablehlo.maximum across dimensions = [3] : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x8xf32>
    %279 = stablehlo.is_finite %278 : (tensor<1x4x8xf32>) -> tensor<1x4x8xi1>
    %cst_44 = stablehlo.constant dense<0.000000e+00> : tensor<1x4x8xf32>
    %280 = stablehlo.select %279, %278, %cst_44 : tensor<1x4x8xi1>, tensor<1x4x8xf32>
    %281 = stablehlo.broadcast_in_dim %280, dims = [0, 1, 2] : (tensor<1x4x8xf32>) -> tensor<1x4x8x8xf32>
    %282 = stablehlo.subtract %267, %281 : tensor<1x4x8x8xf32>
    %283 = stablehlo.exponential %282 : tensor<1x4x8x8xf32>
    %cst_45 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %284 = stablehlo.reduce(%283 init: %cst_45) applies stablehlo.add across dimensions = [3] : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x8xf32>
    %285 = stablehlo.log %284 : tensor<1x4x8xf32>
    %286 = stablehlo.add %285, %280 : tensor<1x4x8xf32>
    %287 = stablehlo.dot_general %277, %263, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %288 = stablehlo.convert %287 : tensor<1x4x8x8xf32>
    %289 = stablehlo.transpose %287, dims = [0, 2, 1, 3] : (tensor<1x4x8x8xf32>) -> tensor<1x8x4x8xf32>
    %290 = stablehlo.reshape %289 : (tensor<1x8x4x8xf32>) -> tensor<1x8x32xf32>
    %291 = stablehlo.dot_general %290, %arg13, contracting_dims = [2] x [1] : (tensor<1x8x32xf32>, tensor<32x32xf32>) -> tensor<1x8x32xf32>
    %292 = stablehlo.add %216, %291 : tensor<1x8x32xf32>
    %293 = stablehlo.convert %292 : tensor<1x8x32xf32>
    %294 = stablehlo.multiply %292, %292 : tensor<1x8x32xf32>
    %cst_46 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %295 = stablehlo.reduce(%294 init: %cst_46) applies stablehlo.add across dimensions = [2] : (tensor<1x8x32xf32>, tensor<f32>) -> tensor<1x8xf32>
    %cst_47 = stablehlo.constant dense<3.200000e+01> : tensor<1x8xf32>
    %296 = stablehlo.divide %295, %cst_47 : tensor<1x8xf32>
    %297 = stablehlo.reshape %296 : (tensor<1x8xf32>) -> tensor<1x8x1xf32>
    %cst_48 = stablehlo.constant dense<9.99999997E-7> : tensor<1x8x1xf32>
    %298 = stablehlo.add %297, %cst_48 : tensor<1x8x1xf32>
    %299 = stablehlo.rsqrt %298 : tensor<1x8x1xf32>
    %300 = stablehlo.broadcast_in_dim %299, dims = [0, 1, 2] : (tensor<1x8x1xf32>) -> tensor<1x8x32xf32>
    %301 = stablehlo.multiply %292, %300 : tensor<1x8x32xf32>
    %302 = stablehlo.convert %301 : tensor<1x8x32xf32>
    %303 = stablehlo.broadcast_in_dim %arg18, dims = [2] : (tensor<32xf32>) -> tensor<1x8x32xf32>
    %304 = stablehlo.multiply %303, %301 : tensor<1x8x32xf32>
    %305 = stablehlo.dot_general %304, %arg14, contracting_dims = [2] x [1] : (tensor<1x8x32xf32>, tensor<64x32xf32>) -> tensor<1x8x64xf32>
    %306 = stablehlo.logistic %305 : tensor<1x8x64xf32>
    %307 = stablehlo.multiply %305, %306 : tensor<1x8x64xf32>
    %308 = stablehlo.dot_general %304, %arg15, contracting_dims = [2] x [1] : (tensor<1x8x32xf32>, tensor<64x32xf32>) -> tensor<1x8x64xf32>
    %309 = stablehlo.multiply %307, %308 : tensor<1x8x64xf32>
    %310 = stablehlo.dot_general %309, %arg16, contracting_dims = [2] x [1] : (tensor<1x8x64xf32>, tensor<32x64xf32>) -> tensor<1x8x32xf32>
    %311 = stablehlo.add %292, %310 : tensor<1x8x32xf32>
    %312 = stablehlo.convert %311 : tensor<1x8x32xf32>
    %313 = stablehlo.multiply %311, %311 : tensor<1x8x32xf32>
    %cst_49 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %314 = stablehlo.reduce(%313 init: %cst_49) applies stablehlo.add across dimensions = [2] : (tensor<1x8x32xf32>, tensor<f32>) -> tensor<1x8xf32>
    %cst_50 = stablehlo.constant dense<3.200000e+01> : tensor<1x8xf32>
    %315 = stablehlo.divide %314, %cst_50 : tensor<1x8xf32>
    %316 = stablehlo.reshape %315 : (tensor<1x8xf32>) -> tensor<1x8x1xf32>
    %cst_51 = stablehlo.constant dense<9.99999997E-7> : tensor<1x8x1xf32>
    %317 = stablehlo.add %316, %cst_51 : tensor<1x8x1xf32>
    %318 = stablehlo.rsqrt %317 : tensor<1x8x1xf32>
    %319 = stablehlo.broadcast_in_dim %318, dims = [0, 1, 2] : (tensor<1x8x1xf32>) -> tensor<1x8x32xf32>
    %320 = stablehlo.multiply %311, %319 : tensor<1x8x32xf32>
    %321 = stablehlo.convert %320 : tensor<1x8x32xf32>
    %322 = stablehlo.broadcast_in_dim %arg19, dims = [2] : (tensor<32xf32>) -> tensor<1x8x32xf32>
    %323 = stablehlo.multiply %322, %320 : tensor<1x8x32xf32>
    %324 = stablehlo.convert %323 : tensor<1x8x32xf32>
    %325 = stablehlo.dot_general %323, %arg20, contracting_dims = [2] x [1] : (tensor<1x8x32xf32>, tensor<64x32xf32>) -> tensor<1x8x64xf32>
    return %325 : tensor<1x8x64xf32>
  }
}
