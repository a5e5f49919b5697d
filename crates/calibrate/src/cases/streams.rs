//! Elementwise, row-wise and moving operations over much or little memory.

use std::collections::BTreeMap;

use warpforge::Precision;

use super::attention::softmax;
use super::linear::{gelu, relu};
use super::text::{ModuleText, ty};
use super::{Case, Dtype};

/// Rows of the table that a gather reads from.
pub(super) const TABLE_ROWS: usize = 8192;

/// Columns of a row.
pub(super) const COLUMNS: usize = 1024;

/// Channels of an image that is pooled or summed over.
const POOLED: usize = 64;

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Add,
    Gelu,
    /// Twelve multiplications and additions on each element.
    Polynomial,
    AddRelu,
    Softmax,
    LayerNorm,
    AddLayerNorm,
    Transpose,
    Concatenate,
    Gather,
    /// Single elements of a table, as in resampling.
    GatherElements,
    /// The sum over the pixels of an image with [`POOLED`] channels: across elements that lie next to each other.
    ColumnSum,
    /// The largest of windows of three by three, every second one; the rows are those of an image with [`POOLED`] channels.
    MaxPool,
}

impl Stream {
    /// Those whose rates depend on the bits of an element: elementwise and row-wise operations.
    pub(super) const NARROW: [Self; 4] = [Self::Add, Self::Gelu, Self::Softmax, Self::LayerNorm];

    pub(super) const ALL: [Self; 13] = [
        Self::Add,
        Self::Gelu,
        Self::Polynomial,
        Self::AddRelu,
        Self::Softmax,
        Self::LayerNorm,
        Self::AddLayerNorm,
        Self::Transpose,
        Self::Concatenate,
        Self::Gather,
        Self::GatherElements,
        Self::ColumnSum,
        Self::MaxPool,
    ];
}

/// A stream that reads and writes 16 bits, and computes in f32 as kernels do.
pub(super) fn narrow(rows: usize, stream: Stream, dtype: Dtype) -> Option<Case> {
    let element = dtype.narrow()?;
    let wide = case(rows, stream);
    Some(Case { module: wide.module.stored_as(element).rounded_to(element), dtype, ..wide })
}

/// A stream over `rows` rows of [`COLUMNS`] columns.
pub(super) fn case(rows: usize, stream: Stream) -> Case {
    let dims = [rows, COLUMNS];
    let y = ty(&dims, "f32");
    let one = ModuleText::default().input("x", &dims, "f32");
    let two = one.clone().input("z", &dims, "f32");
    let add = || format!("  %add = stablehlo.add %x, %z : {y}\n");
    let (op, pattern, module) = match stream {
        Stream::Add => ("add", None, two.operator("add", &y, add())),
        Stream::Gelu => ("gelu", None, one.operator("gelu", &y, gelu("x", &y))),
        Stream::Polynomial => ("polynomial", None, one.operator("polynomial", &y, polynomial(&y))),
        Stream::AddRelu => {
            let module = two.operator("add", &y, add()).operator("relu", &y, relu("add", &y));
            ("add_relu", Some("Add_ReLU"), module)
        }
        Stream::Softmax => ("softmax", None, one.operator("softmax", &y, softmax("x", &[rows], COLUMNS))),
        Stream::LayerNorm => {
            let module = with_scale(one).operator("layer_norm", &y, layer_norm("x", rows, &y));
            ("layer_norm", None, module)
        }
        Stream::AddLayerNorm => {
            let module = with_scale(two).operator("add", &y, add());
            let module = module.operator("layer_norm", &y, layer_norm("add", rows, &y));
            ("add_layer_norm", Some("Add_LayerNorm"), module)
        }
        Stream::Transpose => {
            let t = ty(&[COLUMNS, rows], "f32");
            let line = format!("  %transpose = stablehlo.transpose %x, dims = [1, 0] : ({y}) -> {t}\n");
            ("transpose", None, one.operator("transpose", &t, line))
        }
        Stream::Concatenate => {
            let t = ty(&[rows, 2 * COLUMNS], "f32");
            let line =
                format!("  %concatenate = stablehlo.concatenate %x, %z, dim = 1 : ({y}, {y}) -> {t}\n");
            ("concatenate", None, two.operator("concatenate", &t, line))
        }
        Stream::Gather => {
            let (table, i) = (ty(&[TABLE_ROWS, COLUMNS], "f32"), ty(&[rows], "i64"));
            let line = format!(
                "  %gather = \"stablehlo.gather\"(%table, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1], \
                 collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, \
                 slice_sizes = array<i64: 1, {COLUMNS}>}}> : ({table}, {i}) -> {y}\n"
            );
            let module = ModuleText::default().weight("table", &[TABLE_ROWS, COLUMNS], "f32");
            ("gather", None, module.input("i", &[rows], "i64").operator("gather", &y, line))
        }
        Stream::GatherElements => {
            let (table, i) = (ty(&[TABLE_ROWS], "f32"), ty(&dims, "i64"));
            let line = format!(
                "  %gather = \"stablehlo.gather\"(%table, %i) <{{dimension_numbers = #stablehlo.gather<\
                 collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, \
                 slice_sizes = array<i64: 1>}}> : ({table}, {i}) -> {y}\n"
            );
            let module = ModuleText::default().weight("table", &[TABLE_ROWS], "f32");
            ("gather_elements", None, module.input("i", &dims, "i64").operator("gather", &y, line))
        }
        Stream::ColumnSum => ("column_sum", None, column_sum(rows)),
        Stream::MaxPool => ("max_pool", None, max_pool(rows)),
    };
    Case {
        op,
        pattern,
        shape: dims.to_vec(),
        dtype: Dtype::Float(Precision::Model),
        module,
        extra: BTreeMap::new(),
    }
}

fn with_scale(module: ModuleText) -> ModuleText {
    module.weight("gamma", &[COLUMNS], "f32").weight("beta", &[COLUMNS], "f32")
}

fn polynomial(y: &str) -> String {
    let mut text = format!("  %factor = stablehlo.constant dense<0.99> : {y}\n");
    let mut last = "x".to_owned();
    for at in 0..6 {
        let next = if at == 5 { "polynomial".to_owned() } else { format!("p{at}") };
        text += &format!("  %m{at} = stablehlo.multiply %{last}, %factor : {y}\n");
        text += &format!("  %{next} = stablehlo.add %m{at}, %x : {y}\n");
        last = next;
    }
    text
}

fn layer_norm(of: &str, rows: usize, y: &str) -> String {
    let (r, c) = (ty(&[rows], "f32"), ty(&[COLUMNS], "f32"));
    let inverse = 1.0 / COLUMNS as f64;
    format!(
        "  %l = stablehlo.constant dense<0.0> : tensor<f32>\n  %inverse = stablehlo.constant dense<{inverse:e}> : {r}\n  \
         %epsilon = stablehlo.constant dense<1.0e-5> : {r}\n  \
         %l0 = stablehlo.reduce(%{of} init: %l) applies stablehlo.add across dimensions = [1] : ({y}, tensor<f32>) -> {r}\n  \
         %l1 = stablehlo.multiply %l0, %inverse : {r}\n  %l2 = stablehlo.broadcast_in_dim %l1, dims = [0] : ({r}) -> {y}\n  \
         %l3 = stablehlo.subtract %{of}, %l2 : {y}\n  %l4 = stablehlo.multiply %l3, %l3 : {y}\n  \
         %l5 = stablehlo.reduce(%l4 init: %l) applies stablehlo.add across dimensions = [1] : ({y}, tensor<f32>) -> {r}\n  \
         %l6 = stablehlo.multiply %l5, %inverse : {r}\n  %l7 = stablehlo.add %l6, %epsilon : {r}\n  \
         %l8 = stablehlo.rsqrt %l7 : {r}\n  %l9 = stablehlo.broadcast_in_dim %l8, dims = [0] : ({r}) -> {y}\n  \
         %l10 = stablehlo.multiply %l3, %l9 : {y}\n  \
         %l11 = stablehlo.broadcast_in_dim %gamma, dims = [1] : ({c}) -> {y}\n  \
         %l12 = stablehlo.broadcast_in_dim %beta, dims = [1] : ({c}) -> {y}\n  \
         %l13 = stablehlo.multiply %l10, %l11 : {y}\n  %layer_norm = stablehlo.add %l13, %l12 : {y}\n"
    )
}

fn column_sum(rows: usize) -> ModuleText {
    let dims = [rows * COLUMNS / POOLED, POOLED];
    let (x, y) = (ty(&dims, "f32"), ty(&[POOLED], "f32"));
    let line = format!(
        "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n  \
         %column_sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : ({x}, tensor<f32>) -> {y}\n"
    );
    ModuleText::default().input("x", &dims, "f32").operator("column_sum", &y, line)
}

fn max_pool(rows: usize) -> ModuleText {
    let side = (rows * COLUMNS / POOLED).isqrt();
    let (dims, half) = ([1, side, side, POOLED], (side - 1) / 2 + 1);
    let (x, y) = (ty(&dims, "f32"), ty(&[1, half, half, POOLED], "f32"));
    let line = format!(
        "  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>\n  \
         %max_pool = \"stablehlo.reduce_window\"(%x, %lowest) <{{window_dimensions = array<i64: 1, 3, 3, 1>, \
         window_strides = array<i64: 1, 2, 2, 1>, padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>}}> ({{\n  \
         ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n    %larger = stablehlo.maximum %a, %b : tensor<f32>\n    \
         stablehlo.return %larger : tensor<f32>\n  }}) : ({x}, tensor<f32>) -> {y}\n"
    );
    ModuleText::default().input("x", &dims, "f32").operator("max_pool", &y, line)
}
