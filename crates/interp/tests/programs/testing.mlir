// What tests themselves use.
func.func @main() {
  %x = stablehlo.constant dense<[3, 4]> : tensor<2xi32>
  %printed = interpreter.print %x : tensor<2xi32>
  %probed = interpreter.probe %printed, probe_id = "values" : tensor<2xi32>
  check.expect_serialized_eq %probed, probe_id = "values" : tensor<2xi32>
  func.return
}

// -----

// A probe in a loop writes once for each iteration, counted from zero.
func.func @main() {
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %one = stablehlo.constant dense<1> : tensor<i64>
  %two = stablehlo.constant dense<2> : tensor<i64>
  %last = stablehlo.while(%i = %zero) : tensor<i64>
  cond {
    %more = stablehlo.compare LT, %i, %two : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i64>
    %probed = interpreter.probe %next, probe_id = "loop" : tensor<i64>
    stablehlo.return %probed : tensor<i64>
  }
  check.expect_eq_const %last, dense<2> : tensor<i64>
  check.expect_serialized_eq %one, probe_id = "loop", iter = 0 : tensor<i64>
  check.expect_serialized_eq %two, probe_id = "loop", iter = 1 : tensor<i64>
  func.return
}

// -----

// The bounds of a ULP distance are unsigned 64-bit integers.
func.func @main() {
  %a = stablehlo.constant dense<1.0> : tensor<f64>
  %b = stablehlo.constant dense<-1.0> : tensor<f64>
  check.expect_close %a, %b, max_ulp_difference = 18446744073709551615, min_ulp_difference = 9214364837600034815 : tensor<f64>, tensor<f64>
  "check.expect_close"(%a, %a) <{max_ulp_difference = 3 : ui64}> : (tensor<f64>, tensor<f64>) -> ()
  func.return
}
