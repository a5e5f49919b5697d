// What tests themselves use.
func.func @main() {
  %x = stablehlo.constant dense<[3, 4]> : tensor<2xi32>
  %printed = interpreter.print %x : tensor<2xi32>
  %probed = interpreter.probe %printed, probe_id = "values" : tensor<2xi32>
  check.expect_serialized_eq %probed, probe_id = "values", iteration = 1 : tensor<2xi32>
  func.return
}
