//! Convolutions, channels last, then batch normalisation and ReLU.

use std::collections::BTreeMap;

use super::linear::relu;
use super::text::{ModuleText, ty};
use super::{Case, Dtype};

/// What follows the convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Nothing,
    Relu,
    Bn,
    BnRelu,
}

impl Then {
    pub(super) const ALL: [Self; 4] = [Self::Nothing, Self::Relu, Self::Bn, Self::BnRelu];
}

/// The sizes of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Geometry {
    pub(super) batch: usize,
    pub(super) channels: usize,
    /// Height and width.
    pub(super) side: usize,
    pub(super) outputs: usize,
    pub(super) window: usize,
    pub(super) stride: usize,
    pub(super) groups: usize,
}

impl Geometry {
    /// A convolution of a square image, padded so that its size stays.
    pub(super) fn square(batch: usize, channels: usize, side: usize, outputs: usize, window: usize) -> Self {
        Self { batch, channels, side, outputs, window, stride: 1, groups: 1 }
    }

    /// The same with every second window.
    pub(super) fn strided(self) -> Self {
        Self { stride: 2, ..self }
    }

    /// The same in groups of so many channels.
    pub(super) fn grouped(self, width: usize) -> Self {
        Self { groups: self.channels / width, ..self }
    }

    /// A window for each channel alone.
    pub(super) fn depthwise(batch: usize, channels: usize, side: usize, window: usize) -> Self {
        Self::square(batch, channels, side, channels, window).grouped(1)
    }
}

/// A convolution and what follows it.
pub(super) fn case(geometry: Geometry, then: Then, dtype: Dtype) -> Case {
    let Geometry { batch, channels, side, outputs, window, stride, groups } = geometry;
    let pad = window / 2;
    let out = (side + 2 * pad - window) / stride + 1;
    let x_dims = [batch, side, side, channels];
    let w_dims = [window, window, channels / groups, outputs];
    let (x, w, y) = (ty(&x_dims, "f32"), ty(&w_dims, "f32"), ty(&[batch, out, out, outputs], "f32"));
    let conv = format!(
        "  %conv = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = \
         {{stride = [{stride}, {stride}], pad = [[{pad}, {pad}], [{pad}, {pad}]]}} {{batch_group_count = 1 : i64, \
         feature_group_count = {groups} : i64}} : ({x}, {w}) -> {y}\n"
    );
    let mut module = ModuleText::default().input("x", &x_dims, "f32").weight("w", &w_dims, "f32");
    module = module.operator("conv", &y, conv);
    if matches!(then, Then::Bn | Then::BnRelu) {
        for name in ["gamma", "beta", "mean", "var"] {
            module = module.weight(name, &[outputs], "f32");
        }
        module = module.operator("batch_norm", &y, batch_norm(outputs, &y));
    }
    if matches!(then, Then::Relu | Then::BnRelu) {
        let of = if then == Then::Relu { "conv" } else { "batch_norm" };
        module = module.operator("relu", &y, relu(of, &y));
    }
    let pattern = match then {
        Then::Nothing => None,
        Then::Relu => Some("Conv2d_ReLU"),
        Then::Bn => Some("Conv2d_BatchNorm"),
        Then::BnRelu => Some("Conv2d_BatchNorm_ReLU"),
    };
    let shape = vec![batch, channels, side, side, outputs, window, stride, groups];
    let named = [("kernel_size", window), ("stride", stride), ("groups", groups), ("out_channels", outputs)];
    let extra: BTreeMap<String, i64> =
        named.into_iter().map(|(name, value)| (name.to_owned(), value as i64)).collect();
    Case { op: "conv2d", pattern, shape, dtype, module, extra }
}

/// The lines of `%batch_norm`, from parameters.
fn batch_norm(channels: usize, y: &str) -> String {
    let c = ty(&[channels], "f32");
    format!(
        "  %epsilon = stablehlo.constant dense<1.0e-5> : {c}\n  %b0 = stablehlo.add %var, %epsilon : {c}\n  \
         %b1 = stablehlo.rsqrt %b0 : {c}\n  %scale = stablehlo.multiply %gamma, %b1 : {c}\n  \
         %b2 = stablehlo.multiply %mean, %scale : {c}\n  %shift = stablehlo.subtract %beta, %b2 : {c}\n  \
         %b3 = stablehlo.broadcast_in_dim %scale, dims = [3] : ({c}) -> {y}\n  \
         %b4 = stablehlo.broadcast_in_dim %shift, dims = [3] : ({c}) -> {y}\n  \
         %b5 = stablehlo.multiply %conv, %b3 : {y}\n  %batch_norm = stablehlo.add %b5, %b4 : {y}\n"
    )
}
