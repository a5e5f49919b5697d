func.func private @f0(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %x, %x : tensor<f32>
  return %0 : tensor<f32>
}
func.func @f1(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f0(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f0(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f2(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f1(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f1(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f3(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f2(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f2(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f4(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f3(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f3(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f5(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f4(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f4(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f6(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f5(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f5(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f7(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f6(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f6(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f8(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f7(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f7(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f9(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f8(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f8(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f10(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f9(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f9(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f11(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f10(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f10(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f12(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f11(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f11(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f13(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f12(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f12(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f14(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f13(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f13(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f15(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f14(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f14(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f16(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f15(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f15(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f17(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f16(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f16(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f18(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f17(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f17(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f19(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f18(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f18(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f20(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f19(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f19(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f21(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f20(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f20(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f22(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f21(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f21(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f23(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f22(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f22(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f24(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f23(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f23(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f25(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f24(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f24(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f26(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f25(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f25(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f27(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f26(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f26(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f28(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f27(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f27(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f29(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f28(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f28(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f30(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f29(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f29(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f31(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f30(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f30(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f32(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f31(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f31(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f33(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f32(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f32(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f34(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f33(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f33(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f35(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f34(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f34(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f36(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f35(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f35(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f37(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f36(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f36(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f38(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f37(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f37(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f39(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f38(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f38(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @f40(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f39(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f39(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f40(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f40(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
