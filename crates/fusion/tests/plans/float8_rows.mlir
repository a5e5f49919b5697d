// plan: precision=float8dq-row multiplies_float8 joins_rows
// plan: precision=float8dq-tensor multiplies_float8 joins_rows
// plan: precision=float8dq-row

// Weights and activations become floats of 8 bits with a scale of each row, or one for all.
func.func @main(%x: tensor<4x32xbf16>) -> tensor<4x8xbf16> {
  %w = stablehlo.constant dense<"0x443E823EFDBFF1BF6B3EF93EC7BF01BF883F34BE0F3E0D3EC33FD83E71BFFD3FB03F70BF943ED53E5FBE3DBED83F9BBEFFBF11BF7CBFD43FBBBE2CBF373FC9BEFA3EF03E9DBF573F743E663FCFBEB4BF893EC43F69BF1CBFBA3FD3BFB6BFB13EA9BF0E3F5A3F2EBE103E2A3EE73E8F3F893E5EBE943E553F823F8BBEE8BEFEBF3A3E9FBFAFBF60BE37BE6BBF0A3F09BF4A3E52BFDA3FE63F0FBFA4BF1EBE403F18BE243E9EBE51BF813F043E6FBF573EC13FB13E69BF63BF35BF97BF08BECDBE093F66BE45BEDB3F883EC2BEF83F213E2B3F563F6DBEAABEBCBEAE3E953FFA3F35BE14BF25BF4B3FAE3EC13E723E88BE973EEABE373E973E073ED33E143F7ABF523EE63F7B3F34BFC1BE81BFA13E6ABE143E05BEA3BFC8BECC3E20BEE93E803FF0BE843F6ABE653FB83E8F3EE53EAD3FC7BE15BE5FBE9B3FAB3E2F3F703E7CBF25BE243E0B3E94BEFCBF4E3EA73E583F4C3FA3BE36BE403F483EA13F5BBEDD3F183F813EE4BF80BFE83ECABE57BEF83ED53E1FBE463F46BE8DBFCD3F2D3FF83E5ABEE03F7ABEFDBF73BFACBE703E24BE513F9FBE99BE54BF2B3EC13F4FBEDA3F1ABFC9BEC43F143E823E883E473EE33FC3BFCB3FA6BF40BF6C3EDCBF3CBE8E3FC13E61BF0A3E7CBE693F913F66BE9FBEE43FB6BFD73E6ABF68BE373E3C3E973F26BE9FBFB6BE003EE2BFB3BECCBEFC3EC1BF683E8E3FECBF9C3FE63FB83EC7BF"> : tensor<8x32xbf16>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<4x32xbf16>, tensor<8x32xbf16>) -> tensor<4x8xbf16>
  return %y : tensor<4x8xbf16>
}

// clusters of precision=float8dq-row multiplies_float8 joins_rows
// #0 row loop -> tensor<4x32xf8E4M3FN>, tensor<4xf32>
//     convert x2, abs, reduce maximum, broadcast x4, multiply x2, maximum, divide
//     652 FLOP, 400 bytes
// #1 matmul -> tensor<4x8xbf16> from #0
//     dot, broadcast x2, multiply x2, convert
//     2144 FLOP, 496 bytes
// before: 18 kernels, 2796 FLOP, 7004 bytes moved
// after:  2 kernels, 2796 FLOP, 896 bytes moved

// clusters of precision=float8dq-tensor multiplies_float8 joins_rows
// #0 row loop -> tensor<4xf32>
//     convert, abs, reduce maximum
//     384 FLOP, 272 bytes
// #1 row loop -> tensor<f32> from #0
//     reduce maximum, multiply, maximum
//     6 FLOP, 20 bytes
// #2 loop -> tensor<4x32xf8E4M3FN> from #1
//     convert x2, divide, broadcast, multiply
//     385 FLOP, 388 bytes
// #3 matmul -> tensor<4x8xbf16> from #1 #2
//     dot, broadcast x2, multiply x2, convert
//     2144 FLOP, 452 bytes
// before: 16 kernels, 2791 FLOP, 6804 bytes moved
// after:  4 kernels, 2919 FLOP, 1132 bytes moved

// clusters of precision=float8dq-row
// #0 loop -> tensor<8x32xf32>
//     convert
//     256 FLOP, 1280 bytes
// #1 row loop -> tensor<4xf32>
//     convert, abs, reduce maximum, broadcast x2, multiply, maximum
//     392 FLOP, 272 bytes
// #2 loop -> tensor<4x32xf32> from #1
//     convert, broadcast x7, divide, multiply x2, maximum, minimum, subtract x3, add, abs, compare lt, select
//     1540 FLOP, 784 bytes
// #3 matmul -> tensor<4x8xbf16> from #0 #1 #2
//     dot, broadcast x2, multiply x2, convert
//     2144 FLOP, 1648 bytes
// before: 33 kernels, 4204 FLOP, 25968 bytes moved
// after:  4 kernels, 4332 FLOP, 3984 bytes moved
