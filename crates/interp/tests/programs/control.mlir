func.func @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %sum = %zero) : tensor<i32>, tensor<i32>
    cond {
      %c = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %next = stablehlo.add %i, %one : tensor<i32>
      %more = stablehlo.add %sum, %i : tensor<i32>
      stablehlo.return %next, %more : tensor<i32>, tensor<i32>
    }
  check.expect_eq_const %r#1, dense<45> : tensor<i32>
  // An index that names no branch takes the last.
  %b = "stablehlo.case"(%ten) ({
    stablehlo.return %zero : tensor<i32>
  }, {
    stablehlo.return %ten : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  check.expect_eq_const %b, dense<10> : tensor<i32>
  %p = stablehlo.constant dense<false> : tensor<i1>
  %c = "stablehlo.if"(%p) ({
    stablehlo.return %zero : tensor<i32>
  }, {
    stablehlo.return %one : tensor<i32>
  }) : (tensor<i1>) -> tensor<i32>
  check.expect_eq_const %c, dense<1> : tensor<i32>
  %t = stablehlo.tuple %zero, %one : tuple<tensor<i32>, tensor<i32>>
  %e = stablehlo.get_tuple_element %t[1] : (tuple<tensor<i32>, tensor<i32>>) -> tensor<i32>
  check.expect_eq_const %e, dense<1> : tensor<i32>
  %f = stablehlo.composite "lib.double" %ten {decomposition = @double} : (tensor<i32>) -> tensor<i32>
  check.expect_eq_const %f, dense<20> : tensor<i32>
  func.return
}
func.func private @double(%a: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.add %a, %a : tensor<i32>
  func.return %0 : tensor<i32>
}

// -----

// Calls, tokens, and calls of what the program does not define.
func.func @main() {
  %x = stablehlo.constant dense<[3, 4]> : tensor<2xi32>
  %doubled = func.call @double(%x) : (tensor<2xi32>) -> tensor<2xi32>
  check.expect_eq_const %doubled, dense<[6, 8]> : tensor<2xi32>
  %first = stablehlo.create_token : !stablehlo.token
  %second = stablehlo.after_all %first, %first : !stablehlo.token
  check.expect_eq %first, %second : !stablehlo.token
  %same = stablehlo.custom_call @Sharding(%x) : (tensor<2xi32>) -> tensor<2xi32>
  check.expect_eq %same, %x : tensor<2xi32>
  func.return
}
func.func private @double(%a: tensor<2xi32>) -> tensor<2xi32> {
  %0 = stablehlo.add %a, %a : tensor<2xi32>
  func.return %0 : tensor<2xi32>
}
