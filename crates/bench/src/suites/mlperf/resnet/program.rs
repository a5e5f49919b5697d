//! StableHLO text of ResNet-50: images in, logits out.

use super::layers::{CLASSES, Conv, FEATURES, blocks, convs, stem};
use crate::suites::pepbench::emit::{Lines, float, variable};

/// A value and the sizes of its images.
struct Images {
    name: String,
    dims: [usize; 4],
}

/// The module for batches of so many square images of `side` pixels.
pub(super) fn module(batch: usize, side: usize) -> String {
    let mut lines = Lines::default();
    let images = [batch, side, side, 3];
    let mut x = convolved(&mut lines, &Images { name: "%images".to_owned(), dims: images }, &stem());
    x = relu(&mut lines, &x);
    x = pooled(&mut lines, &x);
    for block in blocks() {
        let mut y = Images { name: x.name.clone(), dims: x.dims };
        for (at, conv) in block.convs.iter().enumerate() {
            y = convolved(&mut lines, &y, conv);
            if at < 2 {
                y = relu(&mut lines, &y);
            }
        }
        let shortcut = match &block.shortcut {
            Some(conv) => convolved(&mut lines, &x, conv).name,
            None => x.name,
        };
        let name = lines.binary("add", &y.name, &shortcut, &y.dims);
        x = relu(&mut lines, &Images { name, dims: y.dims });
    }
    let [_, height, width, _] = x.dims;
    let rows = lines.reduce("add", 0.0, &x.name, &x.dims, 1);
    let sums = lines.reduce("add", 0.0, &rows, &[batch, width, FEATURES], 1);
    let features = [batch, FEATURES];
    let count = lines.filled((height * width) as f64, &features);
    let means = lines.binary("divide", &sums, &count, &features);
    let out = [batch, CLASSES];
    let product = lines.value(&format!(
        "stablehlo.dot_general {means}, %fc1000_kernel, contracting_dims = [1] x [0] : ({}, {}) -> {}",
        float(&features),
        float(&[FEATURES, CLASSES]),
        float(&out)
    ));
    let bias = lines.broadcast("%fc1000_bias", &[CLASSES], &[1], &out);
    let logits = lines.binary("add", &product, &bias, &out);

    let mut arguments = vec![format!("%images: {} {{warpforge.name = \"images\"}}", float(&images))];
    let mut parameter = |name: &str, dims: &[usize]| {
        let (variable, ty) = (variable(name), float(dims));
        arguments.push(format!(
            "%{variable}: {ty} {{warpforge.name = \"{name}\", warpforge.role = \"parameter\"}}"
        ));
    };
    for conv in convs() {
        parameter(&format!("{}.kernel", conv.name), &conv.dims());
        parameter(&format!("{}.bias", conv.name), &[conv.outputs]);
    }
    parameter("fc1000.kernel", &[FEATURES, CLASSES]);
    parameter("fc1000.bias", &[CLASSES]);
    let out = float(&out);
    format!(
        "func.func @main({}) -> ({out} {{warpforge.name = \"logits\"}}) {{\n{}\n  func.return {logits} : {out}\n}}\n",
        arguments.join(", "),
        lines.text()
    )
}

fn convolved(lines: &mut Lines, x: &Images, conv: &Conv) -> Images {
    let [batch, height, width, _] = x.dims;
    let (pad, stride) = (conv.padding(), conv.stride);
    let after = |size: usize| (size + 2 * pad - conv.kernel) / stride + 1;
    let dims = [batch, after(height), after(width), conv.outputs];
    let product = lines.value(&format!(
        "stablehlo.convolution({}, %{}_kernel) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{stride = \
         [{stride}, {stride}], pad = [[{pad}, {pad}], [{pad}, {pad}]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : \
         i64}} : ({}, {}) -> {}",
        x.name,
        conv.name,
        float(&x.dims),
        float(&conv.dims()),
        float(&dims)
    ));
    let bias = lines.broadcast(&format!("%{}_bias", conv.name), &[conv.outputs], &[3], &dims);
    Images { name: lines.binary("add", &product, &bias, &dims), dims }
}

fn relu(lines: &mut Lines, x: &Images) -> Images {
    let zeros = lines.filled(0.0, &x.dims);
    Images { name: lines.binary("maximum", &x.name, &zeros, &x.dims), dims: x.dims }
}

/// The largest of three by three, every second one.
fn pooled(lines: &mut Lines, x: &Images) -> Images {
    let [batch, height, width, channels] = x.dims;
    let after = |size: usize| (size + 2 - 3) / 2 + 1;
    let dims = [batch, after(height), after(width), channels];
    let least = lines.number(f64::NEG_INFINITY);
    let name = lines.value(&format!(
        "\"stablehlo.reduce_window\"({}, {least}) <{{padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>, \
         window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>}}> ({{\n  ^bb0(%a: tensor<f32>, %b: \
         tensor<f32>):\n    %m = stablehlo.maximum %a, %b : tensor<f32>\n    stablehlo.return %m : tensor<f32>\n  }}) : ({}, \
         tensor<f32>) -> {}",
        x.name,
        float(&x.dims),
        float(&dims)
    ));
    Images { name, dims }
}
