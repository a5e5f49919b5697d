//! The host side of runs, with fake libraries.

mod align_gemms;
mod amd;
mod attention;
mod attention_gradient;
mod codes;
mod conv_gradient;
mod epilogues;
mod groups;
mod lifetimes;
mod narrow_conv;
mod plan;
mod processes;
pub(crate) mod programs;
mod quantized;
mod ranks;
#[path = "../../../codegen/tests/kernels/softmax.rs"]
mod softmax;
mod state;

use std::sync::Arc;
use std::time::Duration;

use warpforge_runtime::{Executable, Program, RunOptions};
use warpforge_tensor::{ElementType, FloatType, Tensor};

use crate::compile::{CompileRequest, build};
use crate::compile_error::CompileError;
use crate::error::GpuError;
use crate::executable::GpuExecutable;
use crate::fake::{self, Trouble};
use crate::vendor::Vendor;
use warpforge_diag::Source;
use warpforge_fusion::Precision;
use warpforge_runtime::{Tier, Weights};
use warpforge_snakeburger::text;

const BF16: ElementType = ElementType::Float(FloatType::Bf16);

fn compiled(text: &str, vendor: Vendor) -> GpuExecutable {
    compiled_with(text, vendor, false)
}

/// A program for a fake GPU, with or without cuDNN.
fn compiled_with(text: &str, vendor: Vendor, cudnn: bool) -> GpuExecutable {
    compiled_in(Precision::Model, text, vendor, cudnn)
}

/// The same in a precision.
fn compiled_in(precision: Precision, text: &str, vendor: Vendor, cudnn: bool) -> GpuExecutable {
    let module = text::parse(&Source::new("m", text), &text::Options::default()).unwrap();
    let program = Program::new(Arc::new(module), "main", Weights::default()).unwrap();
    let gpu = fake::gpu(vendor).unwrap();
    let blas = Some(fake::blas(&gpu).unwrap());
    let dnn = cudnn.then(|| fake::dnn(&gpu).unwrap());
    let request = CompileRequest { precision, blas, dnn, ..fake::request(&program, Tier::Production) };
    let made = match build(&gpu, &request) {
        Ok(made) => made,
        Err(CompileError::Unsupported(reason)) => panic!("{reason}"),
        Err(CompileError::Import(error)) => panic!("{error}"),
        Err(CompileError::Gpu(error)) => panic!("{error}"),
        Err(CompileError::Refused(refused)) => panic!("refused: {refused:?}"),
    };
    GpuExecutable::new(made)
}

const CHAIN: &str = "func.func @main(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
    %0 = stablehlo.multiply %a, %b : tensor<64xf32>
    %1 = stablehlo.tanh %0 : tensor<64xf32>
    func.return %1 : tensor<64xf32>\n}";

const DENSE: &str =
    "func.func @main(%x: tensor<8x32xf32>, %w: tensor<16x32xf32>, %b: tensor<16xf32>) -> tensor<8x16xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<8x16xf32>
    %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<16xf32>) -> tensor<8x16xf32>
    %2 = stablehlo.add %0, %1 : tensor<8x16xf32>
    %z = stablehlo.constant dense<0.0> : tensor<8x16xf32>
    %3 = stablehlo.maximum %2, %z : tensor<8x16xf32>
    func.return %3 : tensor<8x16xf32>\n}";

fn input(dims: &[usize]) -> Tensor {
    Tensor::from_slice(dims, &vec![1.0f32; dims.iter().product()]).unwrap()
}

#[test]
fn graphs_are_captured_once_and_inputs_stay_bound() {
    for vendor in [Vendor::Cuda, Vendor::Hip] {
        let compiled = compiled(CHAIN, vendor);
        assert_eq!(compiled.counters().unwrap().kernel_launches, 1);
        fake::calls();
        let inputs = [input(&[64]), input(&[64])];
        let mut bound = compiled.bind(&inputs).unwrap().unwrap();
        assert_eq!(fake::calls(), ["copy in 256 on 1", "copy in 256 on 1"]);
        bound.run().unwrap();
        let first = fake::calls();
        assert_eq!(
            (first[0].as_str(), first[2].as_str(), first[3].as_str()),
            ("record", "recorded", "launch all")
        );
        assert_eq!(bound.run().unwrap(), Duration::from_millis(1));
        assert_eq!(fake::calls(), ["launch all"]);
        bound.outputs().unwrap();
        assert_eq!(fake::calls(), ["copy out 256 on 1"]);
    }
}

#[test]
fn transfers_use_a_copy_stream() {
    let compiled = compiled(CHAIN, Vendor::Cuda);
    let inputs = [input(&[64]), input(&[64])];
    compiled.run(&inputs, &RunOptions::default()).unwrap();
    fake::calls();
    // No buffers are allocated again; copies run on stream 2, kernels on stream 1.
    compiled.run(&inputs, &RunOptions::default()).unwrap();
    let calls = fake::calls();
    assert_eq!(
        calls,
        [
            "copy in 256 on 2",
            "copy in 256 on 2",
            "1 waits",
            "copy within 256 on 1",
            "copy within 256 on 1",
            "launch all",
            "copy within 256 on 1",
            "2 waits",
            "copy out 256 on 2",
        ]
    );
}

#[test]
fn large_inputs_are_staged() {
    let text = CHAIN.replace("64xf32", "2500000xf32");
    let compiled = compiled(&text, Vendor::Cuda);
    fake::calls();
    let values: Vec<f32> = (0..2_500_000).map(|at| at as f32).collect();
    let inputs = [0, 1].map(|_| Tensor::from_slice(&[2_500_000], &values).unwrap());
    compiled.run(&inputs, &RunOptions::default()).unwrap();
    let calls = fake::calls();
    let parts: Vec<&String> = calls.iter().filter(|call| call.starts_with("copy in")).collect();
    assert_eq!(parts[..3], ["copy in 4194304 on 2", "copy in 4194304 on 2", "copy in 1611392 on 2"]);
    assert_eq!(parts.len(), 6);
}

#[test]
fn weights_are_shared_between_programs() {
    let text = |rows: usize| {
        format!(
            "func.func @main(%x: tensor<{rows}x64xf32>, %w: tensor<64x64xf32>) -> tensor<{rows}x64xf32> {{
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<{rows}x64xf32>, tensor<64x64xf32>) -> tensor<{rows}x64xf32>
    return %0 : tensor<{rows}x64xf32>\n}}"
        )
    };
    let values: Vec<f32> = (0..4096).map(|at| at as f32).collect();
    let weights = Weights::new(vec![None, Some(Tensor::from_slice(&[64, 64], &values).unwrap())]);
    let gpu = fake::gpu(Vendor::Cuda).unwrap();
    let compile = |rows: usize| {
        let module = text::parse(&Source::new("m", text(rows)), &text::Options::default()).unwrap();
        let program = Program::new(Arc::new(module), "main", weights.clone()).unwrap();
        let Ok(made) = build(&gpu, &fake::request(&program, Tier::Production)) else { panic!("not made") };
        let uploads = fake::calls().iter().filter(|call| call.starts_with("copy in 16384")).count();
        (GpuExecutable::new(made), uploads)
    };
    let (first, uploads) = compile(8);
    assert_eq!(uploads, 1);
    let (second, uploads) = compile(16);
    assert_eq!(uploads, 0);
    drop((first, second));
    assert_eq!(compile(24).1, 1, "nobody holds them any more");
}

#[test]
fn a_dense_layer_is_one_blas_call() {
    // Codes of f32 compute, of a transposed operand, and of the bias and ReLU epilogue.
    for (vendor, sums, transposed, epilogue) in [(Vendor::Cuda, 68, (3, 1), 7), (Vendor::Hip, 2, (0, 112), 2)]
    {
        let compiled = compiled(DENSE, vendor);
        let calls = fake::calls();
        assert!(calls.contains(&format!("describe a product: sums {sums}, scale 0")), "{calls:?}");
        assert!(
            calls.contains(&format!("matmul attribute {} = {}", transposed.0, transposed.1)),
            "{calls:?}"
        );
        assert!(calls.contains(&format!("matmul attribute {epilogue} = 6")), "{calls:?}");
        assert!(calls.contains(&"matrix of 0: 32 x 16, 32 apart".to_owned()), "{calls:?}");
        assert!(calls.contains(&"matrix of 0: 32 x 8, 32 apart".to_owned()), "{calls:?}");
        assert!(calls.contains(&"matrix of 0: 16 x 8, 16 apart".to_owned()), "{calls:?}");
        let inputs = [input(&[8, 32]), input(&[16, 32]), input(&[16])];
        compiled.run(&inputs, &RunOptions::default()).unwrap();
        let calls = fake::calls();
        assert_eq!(calls.iter().filter(|call| *call == "multiply").count(), 1, "{calls:?}");
    }
}

#[test]
fn out_of_memory_reports_sizes() {
    let gpu = fake::gpu(Vendor::Cuda).unwrap();
    let error = gpu.allocate(4 << 30).err().unwrap().to_string();
    assert!(error.contains("4294967296 bytes are needed, 1048576 of 1073741824 are free"), "{error}");
}

/// The names of the steps.
fn steps(compiled: &GpuExecutable, inputs: &[Tensor]) -> Vec<String> {
    let options = RunOptions { profile: true, ..RunOptions::default() };
    let outcome = compiled.run(inputs, &options).unwrap();
    outcome.profile.events.iter().map(|event| event.name.clone()).collect()
}

#[test]
fn scalars_on_a_single_channel_result_are_device_constants() {
    let inputs = |channels| [input(&[2, 64, 64, 32]), input(&[channels, 32, 1, 1])];
    // With many channels, scalars of the chain are on the host.
    for (channels, on_host) in [(1, 0), (48, 2)] {
        let text = programs::convolution_with_numbers("f32", channels, &["multiply", "add", "maximum"]);
        let compiled = compiled_with(&text, Vendor::Cuda, true);
        let calls = fake::calls();
        let found = calls.iter().filter(|call| *call == "attribute 908 = true").count();
        assert_eq!(found, on_host, "{calls:?}");
        let name = format!("library convolution {channels}x1x1x32 over 2x64x64x32 f32 + 3 operations");
        assert_eq!(steps(&compiled, &inputs(channels)).last(), Some(&name));
    }
}

#[test]
fn a_relu_right_behind_a_convolution_has_a_bias_before_it() {
    let inputs = [input(&[2, 64, 64, 32]), input(&[48, 32, 1, 1])];
    let compiled =
        compiled_with(&programs::convolution_with_numbers("f32", 48, &["maximum"]), Vendor::Cuda, true);
    let name = "library convolution 48x1x1x32 over 2x64x64x32 f32 + 2 operations".to_owned();
    assert_eq!(steps(&compiled, &inputs).last(), Some(&name));
}

#[test]
fn constant_tasks_run_once() {
    let text = "func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %i = stablehlo.iota dim = 0 : tensor<64x64xf32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%i init: %z) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
    %t = stablehlo.reduce(%i init: %z) applies stablehlo.add across dimensions = [0] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
    %p = stablehlo.dot_general %s, %t, contracting_dims = [] x [] : (tensor<64xf32>, tensor<64xf32>) -> tensor<64x64xf32>
    %r = stablehlo.dot_general %x, %p, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    return %r : tensor<64x64xf32>\n}";
    let compiled = compiled(text, Vendor::Cuda);
    assert_eq!(steps(&compiled, &[input(&[64, 64])]), ["library dot 64x64x64 f32"]);
}

/// The message of an error.
fn message<T, E: ToString>(result: std::result::Result<T, E>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn unusable_devices_report_the_reason() {
    fake::trouble(Trouble { version: Some(11_080), ..Trouble::default() });
    let old = message(fake::gpu(Vendor::Cuda));
    assert_eq!(old, "the cuda driver supports version 11.8, and 12.0 is needed; update the driver");
    fake::trouble(Trouble { version: Some(50_700_000), ..Trouble::default() });
    let old = message(fake::gpu(Vendor::Hip));
    assert_eq!(old, "the hip driver supports version 5.7, and 6.0 is needed; update the driver");
    fake::trouble(Trouble::default());
    assert_eq!(message(fake::gpu_at(Vendor::Cuda, 3)), "there is no device 3: the driver shows 1");
}

#[test]
fn a_lost_device_is_an_error() {
    let compiled = compiled(CHAIN, Vendor::Cuda);
    fake::trouble(Trouble { launch: 700, ..Trouble::default() });
    let lost = message(compiled.run(&[input(&[64]), input(&[64])], &RunOptions::default()));
    assert_eq!(lost, "cuda: the device is lost (launch: as told); start the program again");
    fake::trouble(Trouble { launch: 1, ..Trouble::default() });
    let failed = message(compiled.run(&[input(&[64]), input(&[64])], &RunOptions::default()));
    assert_eq!(failed, "cuda: launch failed with code 1: as told");
    // Most kernel errors are reported by synchronisation.
    fake::trouble(Trouble { wait: 719, ..Trouble::default() });
    let lost = message(compiled.run(&[input(&[64]), input(&[64])], &RunOptions::default()));
    assert_eq!(lost, "cuda: the device is lost (stream_synchronise: as told); start the program again");
}

#[test]
fn a_failing_kernel_is_kept_with_its_log() {
    let gpu = fake::gpu(Vendor::Cuda).unwrap();
    fake::trouble(Trouble { compile: 6, ..Trouble::default() });
    let source = "what only this test compiles";
    let error = gpu.compiler().unwrap().compile("broken", source, &gpu.properties).unwrap_err();
    let GpuError::Compile { name, first, source_file, log_file } = error else { panic!("{error}") };
    assert_eq!((name.as_str(), first.as_str()), ("broken", "code"));
    assert_eq!(std::fs::read_to_string(&source_file).unwrap(), source);
    assert_eq!(std::fs::read_to_string(&log_file).unwrap(), "code");
    for file in [source_file, log_file] {
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn gemms_of_one_value_with_several_weights_are_merged() {
    let text = "func.func @main(%x: tensor<90000x2xf32>) -> (tensor<90000x2xf32>, tensor<90000x2xf32>) {
    %v = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
    %w = stablehlo.constant dense<[[5.0, 6.0], [0.0, 1.0]]> : tensor<2x2xf32>
    %b = stablehlo.constant dense<[7.0, 8.0]> : tensor<2xf32>
    %c = stablehlo.constant dense<[9.0, 1.0]> : tensor<2xf32>
    %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [1] : (tensor<90000x2xf32>, tensor<2x2xf32>) -> tensor<90000x2xf32>
    %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<90000x2xf32>, tensor<2x2xf32>) -> tensor<90000x2xf32>
    %2 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<2xf32>) -> tensor<90000x2xf32>
    %3 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<2xf32>) -> tensor<90000x2xf32>
    %4 = stablehlo.add %0, %2 : tensor<90000x2xf32>
    %5 = stablehlo.add %1, %3 : tensor<90000x2xf32>
    return %4, %5 : tensor<90000x2xf32>, tensor<90000x2xf32>\n}";
    let compiled = compiled(text, Vendor::Cuda);
    let names = steps(&compiled, &[input(&[90000, 2])]);
    // The additions are so cheap that both copies recompute them.
    assert_eq!(
        names,
        ["library dot 90000x4x2 f32", "elements of 1 over 90000x2", "elements of 1 over 90000x2"]
    );
}

#[test]
fn byte_gemms_use_the_blas_with_contiguous_k() {
    let of = |vendor: Vendor, left: &str, right: &str, out: &str| {
        let text = format!(
            "func.func @main(%x: tensor<16x32x{left}>, %y: tensor<48x32x{right}>) -> tensor<16x48x{out}> {{
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] : (tensor<16x32x{left}>, tensor<48x32x{right}>) -> tensor<16x48x{out}>
    return %0 : tensor<16x48x{out}>\n}}"
        );
        fake::calls();
        let compiled = compiled(&text, vendor);
        let fallbacks: Vec<String> = compiled.fallbacks().iter().map(ToString::to_string).collect();
        (fallbacks, fake::calls())
    };
    for (left, right, out, sums, types) in
        [("i8", "i8", "i32", 72, (3, 3)), ("f8E4M3FN", "f8E5M2", "f32", 68, (29, 28))]
    {
        let (fallbacks, calls) = of(Vendor::Cuda, left, right, out);
        assert!(fallbacks.is_empty(), "{fallbacks:?}");
        let scale = if out == "i32" { 10 } else { 0 };
        for wanted in [
            format!("describe a product: sums {sums}, scale {scale}"),
            "matmul attribute 3 = 1".to_owned(),
            format!("matrix of {}: 32 x 48, 32 apart", types.0),
            format!("matrix of {}: 32 x 16, 32 apart", types.1),
        ] {
            assert!(calls.contains(&wanted), "{wanted}: {calls:?}");
        }
    }
    let (_, calls) = of(Vendor::Hip, "i8", "i8", "i32");
    assert!(calls.contains(&"describe a product: sums 9, scale 10".to_owned()), "{calls:?}");
    // cuBLASLt has no product of these: a generated kernel computes it.
    let (fallbacks, calls) = of(Vendor::Cuda, "f8E5M2", "f8E5M2", "f32");
    assert!(fallbacks.is_empty() && !calls.iter().any(|call| call.starts_with("describe a product")));
}

#[test]
fn an_empty_contraction_is_a_kernel_of_zeros() {
    let text = "func.func @main(%x: tensor<4x0xf32>, %y: tensor<0x5xf32>) -> tensor<4x5xf32> {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x0xf32>, tensor<0x5xf32>) -> tensor<4x5xf32>
    return %0 : tensor<4x5xf32>\n}";
    let compiled = compiled(text, Vendor::Cuda);
    let names = steps(&compiled, &[input(&[4, 0]), input(&[0, 5])]);
    assert_eq!(names, ["copy over 4x5"]);
}
