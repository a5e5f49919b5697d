func.func @f(%a: tensor<2xi32>) -> tensor<2xi32> {
  %0 = arith.constant dense<[
    1, // the first
    2
  ]> : tensor<2xi32>
  %1 = arith.addi %a,
    %0 : tensor<2xi32>
  return %1 : tensor<2xi32>
}
