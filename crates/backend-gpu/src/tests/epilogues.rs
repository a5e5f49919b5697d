//! What the vendors' libraries do to the results of products, and besides.

use warpforge_runtime::Executable as _;
use warpforge_tensor::{Shape, Tensor};

use super::programs::{gelu, gelu_gradient};
use super::{BF16, compiled, input, steps};
use crate::fake::{self, Trouble};
use crate::library::Vendor;

/// The number of the attribute that says the epilogue, and of the two about another matrix.
const ATTRIBUTES: [(Vendor, i32, [i32; 2]); 2] = [(Vendor::Cuda, 7, [11, 12]), (Vendor::Hip, 2, [10, 11])];

/// The gradients of a dense layer by its weights and its bias, the gradient of its result left or right.
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
fn the_gradient_of_a_bias_comes_with_that_of_the_weights() {
    let inputs = [input(&[64, 32]), input(&[64, 16])];
    for (vendor, attribute, _) in ATTRIBUTES {
        for (product, result, epilogue, sizes) in
            [(LEFT, "tensor<16x32xf32>", 512, "16x32x64"), (RIGHT, "tensor<32x16xf32>", 256, "32x16x64")]
        {
            let compiled = compiled(&gradients(product, result), vendor);
            let calls = fake::calls();
            assert!(calls.contains(&format!("product attribute {attribute} = {epilogue}")), "{calls:?}");
            assert_eq!(steps(&compiled, &inputs), [format!("library dot {sizes} f32 + bias gradient")]);
        }
    }
}

#[test]
fn sums_that_the_library_refuses_are_a_kernel_beside_its_product() {
    fake::trouble(Trouble { epilogue: Some(512), ..Trouble::default() });
    let compiled = compiled(&gradients(LEFT, "tensor<16x32xf32>"), Vendor::Cuda);
    let names = steps(&compiled, &[input(&[64, 32]), input(&[64, 16])]);
    fake::trouble(Trouble::default());
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(names[0], "library dot 16x32x64 f32");
}

#[test]
fn sums_along_the_other_dimension_stay_apart() {
    let text = gradients(LEFT, "tensor<16x32xf32>")
        .replace("across dimensions = [0]", "across dimensions = [1]")
        .replace("tensor<16xf32>", "tensor<64xf32>");
    let compiled = compiled(&text, Vendor::Cuda);
    let names = steps(&compiled, &[input(&[64, 32]), input(&[64, 16])]);
    assert_eq!(names.len(), 2, "{names:?}");
}

/// Rows, columns and sums of products with GELU.
const SIZES: [usize; 3] = [8, 16, 32];

fn zeros(dims: &[usize]) -> Tensor {
    Tensor::zeros(BF16, Shape::new(dims).unwrap()).unwrap()
}

#[test]
fn gelu_by_the_tangent_is_the_librarys_and_nothing_like_it_is() {
    let inputs = [zeros(&[8, 32]), zeros(&[16, 32]), zeros(&[16])];
    for (vendor, attribute, _) in ATTRIBUTES {
        let compiled = compiled(&gelu("bf16", SIZES), vendor);
        let calls = fake::calls();
        assert!(calls.contains(&format!("product attribute {attribute} = 36")), "{calls:?}");
        assert_eq!(steps(&compiled, &inputs), ["library dot 8x16x32 bf16 + bias + gelu"]);
    }
    let narrow = gelu("bf16", SIZES);
    let others = [
        narrow.replace("0.044715", "0.0447"),
        narrow.replace("%halved = stablehlo.multiply %x", "%halved = stablehlo.multiply %square"),
        narrow.replace("%tanh = stablehlo.tanh", "%tanh = stablehlo.logistic"),
        // f32 is computed by kernels, which are as near as f32 is.
        gelu("f32", SIZES),
    ];
    for text in others {
        let compiled = compiled(&text, Vendor::Cuda);
        let calls = fake::calls();
        assert!(!calls.contains(&"product attribute 7 = 36".to_owned()), "{calls:?}");
        assert_eq!(compiled.counters().unwrap().kernel_launches, 2);
    }
}

#[test]
fn the_gradient_of_gelu_is_the_librarys() {
    let inputs = [zeros(&[8, 32]), zeros(&[32, 16]), zeros(&[8, 16])];
    for (vendor, attribute, beside) in ATTRIBUTES {
        let compiled = compiled(&gelu_gradient("bf16", SIZES), vendor);
        let calls = fake::calls();
        assert!(calls.contains(&format!("product attribute {attribute} = 192")), "{calls:?}");
        for number in beside {
            assert!(calls.contains(&format!("product attribute {number} is given")), "{calls:?}");
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
