//! What the vendors' libraries do to the results of products, and besides.

use warpforge_runtime::Executable as _;
use warpforge_tensor::{Shape, Tensor};

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

/// Lines that compute GELU by the hyperbolic tangent of `%x`, and leave the tangent in `%tanh`.
fn bent(ty: &str) -> String {
    format!(
        "%cubic = stablehlo.constant dense<0.044715> : {ty}
    %beta = stablehlo.constant dense<0.7978845608> : {ty}
    %one = stablehlo.constant dense<1.0> : {ty}
    %half = stablehlo.constant dense<0.5> : {ty}
    %square = stablehlo.multiply %x, %x : {ty}
    %cube = stablehlo.multiply %square, %x : {ty}
    %bend = stablehlo.multiply %cube, %cubic : {ty}
    %inner = stablehlo.add %x, %bend : {ty}
    %scaled = stablehlo.multiply %inner, %beta : {ty}
    %tanh = stablehlo.tanh %scaled : {ty}
    %gate = stablehlo.add %tanh, %one : {ty}"
    )
}

/// A dense layer of bf16 and GELU.
fn layer(last: &str) -> String {
    let (narrow, wide) = ("tensor<8x16xbf16>", "tensor<8x16xf32>");
    format!(
        "func.func @main(%a: tensor<8x32xbf16>, %w: tensor<16x32xbf16>, %b: tensor<16xbf16>) -> {narrow} {{
    %0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [1] : (tensor<8x32xbf16>, tensor<16x32xbf16>) -> {narrow}
    %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<16xbf16>) -> {narrow}
    %2 = stablehlo.add %0, %1 : {narrow}
    %x = stablehlo.convert %2 : ({narrow}) -> {wide}
    {}
    {last}
    %y = stablehlo.multiply %halved, %gate : {wide}
    %r = stablehlo.convert %y : ({wide}) -> {narrow}
    return %r : {narrow}\n}}",
        bent(wide)
    )
}

fn zeros(dims: &[usize]) -> Tensor {
    Tensor::zeros(BF16, Shape::new(dims).unwrap()).unwrap()
}

#[test]
fn gelu_by_the_tangent_is_the_librarys_and_nothing_like_it_is() {
    let inputs = [zeros(&[8, 32]), zeros(&[16, 32]), zeros(&[16])];
    let halved = "%halved = stablehlo.multiply %x, %half : tensor<8x16xf32>";
    for (vendor, attribute, _) in ATTRIBUTES {
        let compiled = compiled(&layer(halved), vendor);
        let calls = fake::calls();
        assert!(calls.contains(&format!("product attribute {attribute} = 36")), "{calls:?}");
        assert_eq!(steps(&compiled, &inputs), ["library dot 8x16x32 bf16 + bias + gelu"]);
    }
    let others = [
        layer(halved).replace("0.044715", "0.0447"),
        layer("%halved = stablehlo.multiply %square, %half : tensor<8x16xf32>"),
        layer(halved).replace("%tanh = stablehlo.tanh", "%tanh = stablehlo.logistic"),
        // f32 is computed by kernels, which are as near as f32 is.
        layer(halved).replace("bf16", "f32"),
    ];
    for text in others {
        let compiled = compiled(&text, Vendor::Cuda);
        let calls = fake::calls();
        assert!(!calls.contains(&"product attribute 7 = 36".to_owned()), "{calls:?}");
        assert_eq!(compiled.counters().unwrap().kernel_launches, 2);
    }
}

/// The gradient of a dense layer's input, times the slope of GELU where it was taken.
fn slope() -> String {
    let (narrow, wide) = ("tensor<8x16xbf16>", "tensor<8x16xf32>");
    format!(
        "func.func @main(%g: tensor<8x32xbf16>, %w: tensor<32x16xbf16>, %before: {narrow}) -> {narrow} {{
    %0 = stablehlo.dot_general %g, %w, contracting_dims = [1] x [0] : (tensor<8x32xbf16>, tensor<32x16xbf16>) -> {narrow}
    %given = stablehlo.convert %0 : ({narrow}) -> {wide}
    %x = stablehlo.convert %before : ({narrow}) -> {wide}
    {}
    %left = stablehlo.multiply %gate, %half : {wide}
    %tangents = stablehlo.multiply %tanh, %tanh : {wide}
    %steep = stablehlo.subtract %one, %tangents : {wide}
    %three = stablehlo.constant dense<0.134145> : {wide}
    %grown = stablehlo.multiply %square, %three : {wide}
    %more = stablehlo.add %grown, %one : {wide}
    %wider = stablehlo.multiply %more, %beta : {wide}
    %halved = stablehlo.multiply %x, %half : {wide}
    %right = stablehlo.multiply %halved, %steep : {wide}
    %rights = stablehlo.multiply %right, %wider : {wide}
    %slope = stablehlo.add %left, %rights : {wide}
    %y = stablehlo.multiply %given, %slope : {wide}
    %r = stablehlo.convert %y : ({wide}) -> {narrow}
    return %r : {narrow}\n}}",
        bent(wide)
    )
}

#[test]
fn the_gradient_of_gelu_is_the_librarys() {
    let inputs = [zeros(&[8, 32]), zeros(&[32, 16]), zeros(&[8, 16])];
    for (vendor, attribute, beside) in ATTRIBUTES {
        let compiled = compiled(&slope(), vendor);
        let calls = fake::calls();
        assert!(calls.contains(&format!("product attribute {attribute} = 192")), "{calls:?}");
        for number in beside {
            assert!(calls.contains(&format!("product attribute {number} is given")), "{calls:?}");
        }
        assert_eq!(steps(&compiled, &inputs), ["library dot 8x16x32 bf16 * gradient of gelu"]);
    }
    fake::trouble(Trouble { epilogue: Some(192), ..Trouble::default() });
    let refused = compiled(&slope(), Vendor::Cuda);
    let names = steps(&refused, &inputs);
    fake::trouble(Trouble::default());
    assert_eq!(names[0], "library dot 8x16x32 bf16");
    assert_eq!(names.len(), 2, "{names:?}");
}
