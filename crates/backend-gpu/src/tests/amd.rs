//! Calls of AMD's libraries, recorded by fakes.

use std::sync::Arc;

use warpforge_diag::Source;
use warpforge_runtime::{Executable, Program, RunOptions, Tier, Weights};
use warpforge_snakeburger::text;
use warpforge_tensor::{ElementType, FloatType, Shape, Tensor};

use super::{DENSE, input, steps};
use crate::blas::Blas;
use crate::compile::{CompileRequest, build};
use crate::driver::Gpu;
use crate::executable::GpuExecutable;
use crate::fake::{self, Trouble};
use crate::vendor::Vendor;

/// A program for a fake AMD GPU with MIOpen and this BLAS.
fn compiled(text: &str, blas: impl Fn(&Arc<Gpu>) -> Blas) -> GpuExecutable {
    let module = text::parse(&Source::new("m", text), &text::Options::default()).unwrap();
    let program = Program::new(Arc::new(module), "main", Weights::default()).unwrap();
    let gpu = fake::gpu(Vendor::Hip).unwrap();
    let (blas, dnn) = (Some(blas(&gpu)), Some(fake::dnn(&gpu).unwrap()));
    let request = CompileRequest { blas, dnn, ..fake::request(&program, Tier::Production) };
    fake::calls();
    let Ok(made) = build(&gpu, &request) else { panic!("not made") };
    GpuExecutable::new(made)
}

fn lt(gpu: &Arc<Gpu>) -> Blas {
    fake::blas(gpu).unwrap()
}

/// A convolution in two groups with bias and ReLU, channels last.
fn convolution(element: &str) -> String {
    let (x, w, y) = (
        format!("tensor<2x9x8x6x{element}>"),
        format!("tensor<3x3x3x4x{element}>"),
        format!("tensor<2x5x4x4x{element}>"),
    );
    format!(
        "func.func @main(%x: {x}, %w: {w}, %b: tensor<4x{element}>) -> {y} {{
    %c = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{stride = [2, 2], pad = [[1, 1], [1, 1]]}} {{feature_group_count = 2 : i64, batch_group_count = 1 : i64}} : ({x}, {w}) -> {y}
    %s = stablehlo.broadcast_in_dim %b, dims = [3] : (tensor<4x{element}>) -> {y}
    %a = stablehlo.add %c, %s : {y}
    %z = stablehlo.constant dense<0.0> : {y}
    %r = stablehlo.maximum %a, %z : {y}
    return %r : {y}\n}}"
    )
}

fn inputs(element: ElementType) -> Vec<Tensor> {
    let zeros = |dims: &[usize]| Tensor::zeros(element, Shape::new(dims).unwrap()).unwrap();
    vec![zeros(&[2, 9, 8, 6]), zeros(&[3, 3, 3, 4]), zeros(&[4])]
}

/// Asserts that these calls happened in order.
fn in_order(calls: &[String], wanted: &[&str]) {
    let mut rest = calls.iter();
    for one in wanted {
        assert!(rest.any(|call| call == one), "{one}, in its place: {calls:#?}");
    }
}

const CONVOLUTION: &str = "library convolution 4x3x3x3 over 2x9x8x6";

#[test]
fn miopen_convolutions_use_the_fastest_exact_solution() {
    let compiled = compiled(&convolution("f32"), lt);
    let calls = fake::calls();
    // Type 1 is f32. NCHW shapes with channels-last strides.
    in_order(
        &calls,
        &[
            "tensor of 1: 2 6 9 8 by 432 1 48 6",
            "tensor of 1: 4 3 3 3 by 27 1 9 3",
            "tensor of 1: 2 4 5 4 by 80 1 16 4",
            "convolution 0: padding 1 1, strides 2 2, dilations 1 1",
            "2 groups",
            "compile solution 72",
            "compile solution 73",
            "run solution 73 with 1024 bytes",
        ],
    );
    // Winograd and solutions with too much workspace are not tried.
    assert!(
        !calls.iter().any(|call| call.contains("solution 70") || call.contains("solution 71")),
        "{calls:#?}"
    );
    // With exact f32, the epilogue is a separate kernel.
    let steps = steps(&compiled, &inputs(ElementType::F32));
    assert!(steps.contains(&format!("{CONVOLUTION} f32 + 0 operations")), "{steps:?}");
    assert!(!calls.iter().any(|call| call.contains("fus")), "{calls:#?}");
    let calls = fake::calls();
    assert!(calls.contains(&"run solution 73 with 1024 bytes".to_owned()), "{calls:#?}");
}

#[test]
fn miopen_fuses_bias_and_relu() {
    // 0 is f16, 5 bf16.
    for (element, ty, number) in [("f16", FloatType::F16, 0), ("bf16", FloatType::Bf16, 5)] {
        let compiled = compiled(&convolution(element), lt);
        let calls = fake::calls();
        in_order(
            &calls,
            &[
                &format!("tensor of {number}: 2 6 9 8 by 432 1 48 6"),
                &format!("tensor of {number}: 1 4 1 1 by 4 1 4 4"),
                "fusion 0",
                "fuse a convolution",
                "fuse a bias",
                "fuse activation 3",
                "compile the fusion",
                "run the fusion",
            ],
        );
        let steps = steps(&compiled, &inputs(ElementType::Float(ty)));
        assert!(steps.contains(&format!("{CONVOLUTION} {element} + 2 operations")), "{steps:?}");
    }
}

#[test]
fn unfused_miopen_epilogues_are_a_kernel() {
    fake::trouble(Trouble { fusion: 8, ..Trouble::default() });
    let compiled = compiled(&convolution("f16"), lt);
    let calls = fake::calls();
    fake::trouble(Trouble::default());
    // Inexact solutions are allowed here.
    in_order(&calls, &["compile the fusion", "compile solution 70", "run solution 70 with 0 bytes"]);
    let steps = steps(&compiled, &inputs(ElementType::Float(FloatType::F16)));
    assert!(steps.contains(&format!("{CONVOLUTION} f16 + 0 operations")), "{steps:?}");
    assert!(compiled.fallbacks().is_empty());
}

/// A dense layer by rocBLAS: weights transposed, f32 accumulation (151).
const BY_ROCBLAS: &str =
    "rocBLAS: 1 x 16 x 8 x 32 in 151, beta 0: 112 of 151 32 0, 111 of 151 32 0, gives 151 16 128";

fn dense_inputs() -> [Tensor; 3] {
    [input(&[8, 32]), input(&[16, 32]), input(&[16])]
}

#[test]
fn without_hipblaslt_gemms_use_rocblas_and_a_bias_kernel() {
    let compiled = compiled(DENSE, |gpu| fake::rocblas(gpu, false).unwrap());
    let calls = fake::calls();
    assert!(calls.contains(&BY_ROCBLAS.to_owned()), "{calls:#?}");
    let names = steps(&compiled, &dense_inputs());
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(names[0], "library dot 8x16x32 f32");
    fake::calls();
    compiled.run(&dense_inputs(), &RunOptions::default()).unwrap();
    let calls = fake::calls();
    in_order(&calls, &["record", "rocBLAS: workspace of 67108864", "recorded", "launch all"]);
}

#[test]
fn rocblas_computes_what_hipblaslt_refuses() {
    fake::trouble(Trouble { blas: 15, ..Trouble::default() });
    let compiled = compiled(DENSE, |gpu| fake::rocblas(gpu, true).unwrap());
    let calls = fake::calls();
    fake::trouble(Trouble::default());
    assert!(calls.contains(&BY_ROCBLAS.to_owned()), "{calls:#?}");
    assert_eq!(steps(&compiled, &dense_inputs())[0], "library dot 8x16x32 f32");
    // hipBLASLt computes the whole layer.
    let whole = self::compiled(DENSE, |gpu| fake::rocblas(gpu, true).unwrap());
    assert!(!fake::calls().iter().any(|call| call.contains("rocBLAS")));
    assert_eq!(steps(&whole, &dense_inputs()), ["library dot 8x16x32 f32 + bias + relu"]);
}

#[test]
fn rocblas_adds_residuals_and_supports_batches() {
    let text = "func.func @main(%x: tensor<4x8x32xbf16>, %y: tensor<4x32x16xbf16>, %z: tensor<4x8x16xf32>) -> tensor<4x8x16xf32> {
    %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x8x32xbf16>, tensor<4x32x16xbf16>) -> tensor<4x8x16xf32>
    %1 = stablehlo.add %0, %z : tensor<4x8x16xf32>
    return %1 : tensor<4x8x16xf32>\n}";
    compiled(text, |gpu| fake::rocblas(gpu, false).unwrap());
    let calls = fake::calls();
    let wanted =
        "rocBLAS: 4 x 16 x 8 x 32 in 151, beta 1: 111 of 168 16 512, 111 of 168 32 256, gives 151 16 128";
    assert!(calls.contains(&wanted.to_owned()), "{calls:#?}");
}
