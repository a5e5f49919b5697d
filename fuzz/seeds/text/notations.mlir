#alias = dense<[1, 2]> : tensor<2xi64>
!t = tensor<2x?xf32, #stablehlo.bounds<?, 4>>
#loc = loc("a.py":1:2)
module @m attributes {x.a = #alias, x.b = dense_resource<r> : tensor<2xf32>, x.c = @s::@t, x.d = array<i8: 1, -2>} {
  // A comment.
  func.func private @f(%arg0: !t {x.y = unit}) -> (!t, tensor<2xf32>) {
    %0:2 = "stablehlo.custom_call"(%arg0) <{call_target_name = "t", backend_config = "\01\22"}> {x.z = 0x7F : i8} : (!t) -> (!t, tensor<2xf32>) loc(#loc)
    %1 = stablehlo.constant dense<"0x0000803F00000040"> : tensor<2xf32> loc(callsite("n" at fused["b.py":3:4, #loc]))
    %2 = stablehlo.constant {x.w} dense<(1.0, -2.5e-3)> : tensor<complex<f32>>
    return %0#0, %0#1 : !t, tensor<2xf32>
  }
}
{-#
  dialect_resources: {
    builtin: {
      r: "0x040000000000803F00000040"
    }
  }
#-}
