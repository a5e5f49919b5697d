//! Epilogues of the BLAS libraries.

use warpforge_runtime::Executable as _;
use warpforge_tensor::{Shape, Tensor};

use super::programs::{Extreme, GATES, gelu, gelu_gradient, relu_gradient, relu_training};
use super::{BF16, compiled, input, steps};
use crate::fake::{self, Trouble};
use crate::vendor::Vendor;

/// Attribute codes of the epilogue and of the auxiliary matrix.
const ATTRIBUTES: [(Vendor, i32, [i32; 2]); 2] = [(Vendor::Cuda, 7, [11, 12]), (Vendor::Hip, 2, [10, 11])];

/// Weight and bias gradients of a dense layer, with the output gradient on the left or right.
fn gradients(product: &str, result: &str) -> String {
    format!(
        "func.func @main(%x: tensor<64x32xf32>, %g: tensor<64x16xf32>) -> ({result}, tensor<16xf32>) {{
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %w = stablehlo.dot_general {product} -> {result}
    %b = stablehlo.reduce(%g init: %z) applies stablehlo.add across dimensions = [0] : (tensor<64x16xf32>, tensor<f32>) -> tensor<16xf32>
    return %w, %b : {result}, tensor<16xf32>\n}}"
    )
}

const LEFT: &str = "%g, %x, contracting_dims = [0] x [0] : (tensor<64x16xf32>, tensor<64x32xf32>)";
const RIGHT: &str = "%x, %g, contracting_dims = [0] x [0] : (tensor<64x32xf32>, tensor<64x16xf32>)";

#[test]
fn bias_and_weight_gradients_are_one_call() {
    let inputs = [input(&[64, 32]), input(&[64, 16])];
    for (vendor, attribute, _) in ATTRIBUTES {
        for (product, result, epilogue, sizes) in
            [(LEFT, "tensor<16x32xf32>", 512, "16x32x64"), (RIGHT, "tensor<32x16xf32>", 256, "32x16x64")]
        {
            let compiled = compiled(&gradients(product, result), vendor);
            let calls = fake::calls();
            assert!(calls.contains(&format!("matmul attribute {attribute} = {epilogue}")), "{calls:?}");
            assert_eq!(steps(&compiled, &inputs), [format!("library dot {sizes} f32 + bias gradient")]);
        }
    }
}

#[test]
fn refused_or_slow_bias_gradients_are_a_kernel() {
    let troubles = [
        Trouble { epilogue: Some(512), ..Trouble::default() },
        Trouble { slow: Some(512), ..Trouble::default() },
    ];
    for trouble in troubles {
        fake::trouble(trouble);
        let compiled = compiled(&gradients(LEFT, "tensor<16x32xf32>"), Vendor::Cuda);
        let names = steps(&compiled, &[input(&[64, 32]), input(&[64, 16])]);
        fake::trouble(Trouble::default());
        assert_eq!(names.len(), 2, "{trouble:?}: {names:?}");
        assert_eq!(names[0], "library dot 16x32x64 f32");
    }
}

#[test]
fn sums_over_other_dimensions_are_not_fused() {
    let text = gradients(LEFT, "tensor<16x32xf32>")
        .replace("across dimensions = [0]", "across dimensions = [1]")
        .replace("tensor<16xf32>", "tensor<64xf32>");
    let compiled = compiled(&text, Vendor::Cuda);
    let names = steps(&compiled, &[input(&[64, 32]), input(&[64, 16])]);
    assert_eq!(names.len(), 2, "{names:?}");
}

/// M, N and K of GEMMs with GELU.
const SIZES: [usize; 3] = [8, 16, 32];

fn zeros(dims: &[usize]) -> Tensor {
    Tensor::zeros(BF16, Shape::new(dims).unwrap()).unwrap()
}

#[test]
fn only_tanh_gelu_is_a_blas_epilogue() {
    let inputs = [zeros(&[8, 32]), zeros(&[16, 32]), zeros(&[16])];
    for (vendor, attribute, _) in ATTRIBUTES {
        let compiled = compiled(&gelu("bf16", SIZES), vendor);
        let calls = fake::calls();
        assert!(calls.contains(&format!("matmul attribute {attribute} = 36")), "{calls:?}");
        assert_eq!(steps(&compiled, &inputs), ["library dot 8x16x32 bf16 + bias + gelu"]);
    }
    let narrow = gelu("bf16", SIZES);
    let others = [
        narrow.replace("0.044715", "0.0447"),
        narrow.replace("%halved = stablehlo.multiply %x", "%halved = stablehlo.multiply %square"),
        narrow.replace("%tanh = stablehlo.tanh", "%tanh = stablehlo.logistic"),
        // f32 GELU is computed by generated kernels.
        gelu("f32", SIZES),
    ];
    for text in others {
        let compiled = compiled(&text, Vendor::Cuda);
        let calls = fake::calls();
        assert!(!calls.contains(&"matmul attribute 7 = 36".to_owned()), "{calls:?}");
        assert_eq!(compiled.counters().unwrap().kernel_launches, 2);
    }
}

#[test]
fn gelu_gradient_is_a_blas_epilogue() {
    let inputs = [zeros(&[8, 32]), zeros(&[32, 16]), zeros(&[8, 16])];
    for (vendor, attribute, aux) in ATTRIBUTES {
        let compiled = compiled(&gelu_gradient("bf16", SIZES), vendor);
        let calls = fake::calls();
        assert!(calls.contains(&format!("matmul attribute {attribute} = 192")), "{calls:?}");
        for number in aux {
            assert!(calls.contains(&format!("matmul attribute {number} is given")), "{calls:?}");
        }
        assert_eq!(steps(&compiled, &inputs), ["library dot 8x16x32 bf16 * gradient of gelu"]);
    }
    fake::trouble(Trouble { epilogue: Some(192), ..Trouble::default() });
    let refused = compiled(&gelu_gradient("bf16", SIZES), Vendor::Cuda);
    let names = steps(&refused, &inputs);
    fake::trouble(Trouble::default());
    assert_eq!(names[0], "library dot 8x16x32 bf16");
    assert_eq!(names.len(), 2, "{names:?}");
}

/// M, N and K of a layer with ReLU, and N of the next.
const TRAINED: [usize; 4] = [8, 128, 32, 16];

/// The distinct epilogues of the calls.
fn epilogues(calls: &[String]) -> Vec<i32> {
    let numbers = calls.iter().filter_map(|call| call.strip_prefix("matmul attribute 7 = "));
    let mut found: Vec<i32> = numbers.map(|number| number.parse().unwrap()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn trained(text: &str, vendor: Vendor, [m, n, k, after]: [usize; 4]) -> (Vec<String>, Vec<String>) {
    fake::calls();
    let compiled = compiled(text, vendor);
    let calls = fake::calls();
    let inputs = [&[m, k][..], &[k, n], &[n], &[n, after], &[m, after]].map(input);
    (steps(&compiled, &inputs), calls)
}

#[test]
fn relu_gradient_is_a_blas_epilogue_with_a_bit_mask() {
    for gate in GATES {
        let (names, calls) = trained(&relu_training("f32", TRAINED, gate), Vendor::Cuda, TRAINED);
        assert_eq!(
            names,
            [
                "library dot 8x128x32 f32 + bias + relu",
                "library dot 8x16x128 f32",
                "rows of 5 over 8x16x8",
                "library dot 8x128x16 f32 * gradient of relu",
                "library dot 32x128x8 f32 + bias gradient",
            ],
            "{gate}"
        );
        // The forward GEMM writes no mask: 6 is bias and ReLU, 136 the gradient.
        assert_eq!(epilogues(&calls), [1, 6, 136, 256]);
        for wanted in ["matmul attribute 11 is given", "matmul attribute 12 is given"] {
            assert!(calls.contains(&wanted.to_owned()), "{wanted}: {calls:?}");
        }
    }
}

#[test]
fn relu_gradient_epilogue_in_all_supported_types() {
    for element in ["f32", "bf16", "f16"] {
        for extreme in [Extreme::No, Extreme::Nan, Extreme::Infinite] {
            fake::calls();
            compiled(&relu_gradient(element, [8, 128, 32], GATES[0], extreme), Vendor::Cuda);
            assert_eq!(epilogues(&fake::calls()), [1, 136], "{element} {extreme:?}");
        }
    }
}

#[test]
fn refused_or_slow_relu_gradients_are_a_kernel() {
    let text = relu_training("f32", TRAINED, GATES[0]);
    let troubles = [
        Trouble { epilogue: Some(136), ..Trouble::default() },
        Trouble { slow: Some(136), ..Trouble::default() },
    ];
    for trouble in troubles {
        fake::trouble(trouble);
        let (names, _) = trained(&text, Vendor::Cuda, TRAINED);
        fake::trouble(Trouble::default());
        assert_eq!(names[2..4], ["library dot 8x128x16 f32", "elements of 2 over 8x128"], "{trouble:?}");
    }
    // hipBLASLt uses another interface.
    let (names, _) = trained(&text, Vendor::Hip, TRAINED);
    assert_eq!(names[2..4], ["library dot 8x128x16 f32", "elements of 2 over 8x128"]);
}

#[test]
fn near_misses_of_the_relu_gradient_are_not_fused() {
    let [torch, ..] = GATES;
    let one = torch.replace("%c =", "%one = stablehlo.constant dense<1.0> : TYPE\n    %c =");
    let gates = [
        one.replace("LE, %y, %zero", "LE, %y, %one"),
        one.replace("%c, %zero, %dy", "%c, %one, %dy"),
        torch.replace("LE, %y", "LE, %dy"),
        // The total order distinguishes zeros.
        torch.replace("%y, %zero :", "%y, %zero, TOTALORDER :"),
    ];
    let mut others: Vec<String> = gates.iter().map(|gate| relu_training("f32", TRAINED, gate)).collect();
    // Columns that are not a multiple of 128, and an unsupported type.
    others.push(relu_training("f32", [8, 120, 32, 16], torch));
    others.push(relu_training("f64", TRAINED, torch).replace("f32", "f64"));
    for text in others {
        fake::calls();
        let compiled = compiled(&text, Vendor::Cuda);
        let query = epilogues(&fake::calls());
        assert!(query.contains(&6) && !query.contains(&136), "{query:?}: {text}");
        assert!(compiled.fallbacks().is_empty());
    }
}
