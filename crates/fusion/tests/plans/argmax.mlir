// A reduction of values with their places, as argmax has it.
// plan:
// plan: without=variadic_reduce
func.func @main(%x: tensor<5x30xf32>) -> (tensor<5xf32>, tensor<5xi64>) {
  %i = stablehlo.iota dim = 1 : tensor<5x30xi64>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %r:2 = stablehlo.reduce(%x init: %least), (%i init: %zero) across dimensions = [1] : (tensor<5x30xf32>, tensor<5x30xi64>, tensor<f32>, tensor<i64>) -> (tensor<5xf32>, tensor<5xi64>)
   reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i64>, %d: tensor<i64>) {
    %p = stablehlo.compare GE, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %v = stablehlo.select %p, %a, %c : tensor<i1>, tensor<f32>
    %w = stablehlo.select %p, %b, %d : tensor<i1>, tensor<i64>
    stablehlo.return %v, %w : tensor<f32>, tensor<i64>
  }
  return %r#0, %r#1 : tensor<5xf32>, tensor<5xi64>
}

// clusters of the model as it is
// #0 unfused -> tensor<5xf32>, tensor<5xi64>
//     variadic_reduce
//     450 FLOP, 1872 bytes
// before: 1 kernels, 450 FLOP, 1872 bytes moved
// after:  1 kernels, 450 FLOP, 1872 bytes moved

// clusters of without=variadic_reduce
// #0 fallback -> tensor<5xf32>, tensor<5xi64>
//     variadic_reduce
//     450 FLOP, 1872 bytes
// before: 1 kernels, 450 FLOP, 1872 bytes moved
// after:  1 kernels, 450 FLOP, 1872 bytes moved
// on the reference interpreter: variadic_reduce
