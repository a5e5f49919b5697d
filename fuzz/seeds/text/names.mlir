"odd\22name\5C.op"() : () -> ()
module attributes {tool.types = [i36, si7, tensor<2xtf32>, f80]} {
  module {
    func.func @f(%arg0: tensor<2xf32>) -> tensor<2xf32> {
      return %arg0 : tensor<2xf32>
    }
  }
}
