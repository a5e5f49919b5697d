//! Fourier transforms and complex numbers, by kernels for their parts.

use warpforge_tensor::Tensor;

use crate::{exact_kernels, kernels, tensor};

fn sizes(dims: &[usize]) -> String {
    dims.iter().map(|dim| format!("{dim}x")).collect()
}

/// A transform of the last dimensions of a complex tensor, both parts of which are given, or of a real one.
fn transform(kind: &str, dims: &[usize], lengths: &[usize]) -> (String, Vec<Tensor>) {
    // Frequencies of real numbers are half of the line.
    let sizes_of = |is_half: bool| {
        let mut sizes = dims.to_vec();
        if let Some(last) = sizes.last_mut().filter(|_| is_half) {
            *last = *last / 2 + 1;
        }
        sizes
    };
    let (given, result) = (sizes_of(kind == "IRFFT"), sizes_of(kind == "RFFT"));
    let lengths: Vec<String> = lengths.iter().map(ToString::to_string).collect();
    let lengths = lengths.join(", ");
    let (from, to) = (sizes(&given), sizes(&result));
    let text = match kind {
        "RFFT" => format!(
            "func.func @main(%x: tensor<{from}f32>) -> (tensor<{to}f32>, tensor<{to}f32>) {{
            %f = stablehlo.fft %x, type = RFFT, length = [{lengths}] : (tensor<{from}f32>) -> tensor<{to}complex<f32>>
            %r = stablehlo.real %f : (tensor<{to}complex<f32>>) -> tensor<{to}f32>
            %i = stablehlo.imag %f : (tensor<{to}complex<f32>>) -> tensor<{to}f32>
            func.return %r, %i : tensor<{to}f32>, tensor<{to}f32> }}"
        ),
        "IRFFT" => format!(
            "func.func @main(%x: tensor<{from}f32>, %y: tensor<{from}f32>) -> tensor<{to}f32> {{
            %z = stablehlo.complex %x, %y : tensor<{from}complex<f32>>
            %f = stablehlo.fft %z, type = IRFFT, length = [{lengths}] : (tensor<{from}complex<f32>>) -> tensor<{to}f32>
            func.return %f : tensor<{to}f32> }}"
        ),
        _ => format!(
            "func.func @main(%x: tensor<{from}f32>, %y: tensor<{from}f32>) -> (tensor<{to}f32>, tensor<{to}f32>) {{
            %z = stablehlo.complex %x, %y : tensor<{from}complex<f32>>
            %f = stablehlo.fft %z, type = {kind}, length = [{lengths}] : (tensor<{from}complex<f32>>) -> tensor<{to}complex<f32>>
            %r = stablehlo.real %f : (tensor<{to}complex<f32>>) -> tensor<{to}f32>
            %i = stablehlo.imag %f : (tensor<{to}complex<f32>>) -> tensor<{to}f32>
            func.return %r, %i : tensor<{to}f32>, tensor<{to}f32> }}"
        ),
    };
    let count = if kind == "RFFT" { 1 } else { 2 };
    (text, (0..count).map(|seed| tensor(&given, seed + 1)).collect())
}

#[test]
fn lines_of_any_length_are_transformed_by_products() {
    for length in [1, 2, 3, 5, 8, 12, 31, 33, 48, 97, 144, 320] {
        for kind in ["FFT", "IFFT", "RFFT", "IRFFT"] {
            let (text, inputs) = transform(kind, &[3, length], &[length]);
            kernels(&text, vec![], &inputs);
        }
    }
}

#[test]
fn several_dimensions_are_transformed_one_after_the_other() {
    for kind in ["FFT", "IFFT", "RFFT", "IRFFT"] {
        for lengths in [&[6, 40][..], &[36, 9], &[4, 6, 10]] {
            let dims = [&[2][..], lengths].concat();
            let (text, inputs) = transform(kind, &dims, lengths);
            kernels(&text, vec![], &inputs);
        }
    }
}

/// The text of a program on `%z` and `%w`, complex tensors of 4x6, that gives the parts of `%result`.
fn arithmetic(steps: &str, dims: &str) -> String {
    format!(
        "func.func @main(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>, %c: tensor<4x6xf32>, %d: tensor<4x6xf32>)
            -> (tensor<{dims}f32>, tensor<{dims}f32>, tensor<{dims}f32>) {{
        %z = stablehlo.complex %a, %b : tensor<4x6xcomplex<f32>>
        %w = stablehlo.complex %c, %d : tensor<4x6xcomplex<f32>>
        %zero = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
        {steps}
        %r = stablehlo.real %result : (tensor<{dims}complex<f32>>) -> tensor<{dims}f32>
        %i = stablehlo.imag %result : (tensor<{dims}complex<f32>>) -> tensor<{dims}f32>
        %m = stablehlo.abs %result : (tensor<{dims}complex<f32>>) -> tensor<{dims}f32>
        func.return %r, %i, %m : tensor<{dims}f32>, tensor<{dims}f32>, tensor<{dims}f32> }}"
    )
}

#[test]
fn complex_numbers_are_computed_by_their_parts() {
    let full = "tensor<4x6xcomplex<f32>>";
    let square = "tensor<4x4xcomplex<f32>>";
    let cases = [
        (format!("%result = stablehlo.multiply %z, %w : {full}"), "4x6x"),
        (format!("%s = stablehlo.subtract %z, %w : {full}\n %result = stablehlo.negate %s : {full}"), "4x6x"),
        (format!("%result = stablehlo.exponential %z : {full}"), "4x6x"),
        (
            format!(
                "%k = stablehlo.constant dense<(2.0, 0.0)> : {full}
                %l = stablehlo.convert %c : (tensor<4x6xf32>) -> {full}
                %result = stablehlo.multiply %l, %k : {full}"
            ),
            "4x6x",
        ),
        (
            format!(
                "%k = stablehlo.constant dense<(0.5, -2.0)> : {full}
                %l = stablehlo.convert %c : (tensor<4x6xf32>) -> {full}
                %p = stablehlo.multiply %z, %l : {full}
                %result = stablehlo.multiply %p, %k : {full}"
            ),
            "4x6x",
        ),
        (
            format!(
                "%result = stablehlo.dot_general %z, %w, contracting_dims = [1] x [1] : ({full}, {full}) -> {square}"
            ),
            "4x4x",
        ),
        (
            format!(
                "%t = stablehlo.transpose %z, dims = [1, 0] : ({full}) -> tensor<6x4xcomplex<f32>>
                %q = stablehlo.reshape %t : (tensor<6x4xcomplex<f32>>) -> {full}
                %v = stablehlo.reverse %q, dims = [1] : {full}
                %s = stablehlo.slice %v [0:4, 1:3] : ({full}) -> tensor<4x2xcomplex<f32>>
                %e = stablehlo.pad %s, %zero, low = [0, 1], high = [0, 1], interior = [0, 0] : (tensor<4x2xcomplex<f32>>, tensor<complex<f32>>) -> {square}
                %result = stablehlo.concatenate %e, %s, dim = 1 : ({square}, tensor<4x2xcomplex<f32>>) -> {full}"
            ),
            "4x6x",
        ),
        (
            format!(
                "%result = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0] : ({full}, tensor<complex<f32>>) -> tensor<6xcomplex<f32>>"
            ),
            "6x",
        ),
    ];
    let inputs: Vec<Tensor> = (0..4).map(|seed| tensor(&[4, 6], seed + 1)).collect();
    for (steps, dims) in &cases {
        kernels(&arithmetic(steps, dims), vec![], &inputs);
    }
}

/// Where the length is infinite, a part that is zero stays zero.
#[test]
fn exponentials_of_large_real_numbers_are_real() {
    let text = "func.func @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
        %z = stablehlo.complex %a, %b : tensor<3xcomplex<f32>>
        %e = stablehlo.exponential %z : tensor<3xcomplex<f32>>
        %i = stablehlo.imag %e : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
        func.return %i : tensor<3xf32> }";
    let numbers = |values: [f32; 3]| Tensor::from_slice(&[3], &values).unwrap();
    exact_kernels(text, &[numbers([100.0, 0.0, -100.0]), numbers([0.0, 0.0, -0.0])]);
}
