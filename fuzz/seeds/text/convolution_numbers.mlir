module attributes {a.b = #stablehlo.conv<raw input_batch_dimension = 0,>} {}
