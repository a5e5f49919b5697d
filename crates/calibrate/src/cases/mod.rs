//! What is measured: operations and patterns in given sizes, as modules.
//!
//! A case is a chain of operators. Fused, the module gives the last operator's result alone and the compiler does what it
//! always does. Unfused, it gives the result of every operator: each must lie in memory, so each operator has a kernel of its own, and
//! it is the kernel that production would take.

mod attention;
mod conv;
mod linear;
mod streams;
mod sweep;
mod text;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use warpforge::Precision;

pub(crate) use sweep::{cases, large, linear};
pub(crate) use text::ModuleText;

/// A family of patterns, and what their shapes mean. Elementwise, row-wise and moving operations, `[rows, columns]`, are always
/// measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// `[m, k, n]`: rows times weights of `k` by `n`.
    Linear,
    /// `[batch, channels, height, width, output channels, window, stride, groups]`.
    Conv,
    /// `[batch, heads, sequence, width of a head]`.
    Attention,
}

impl Family {
    /// Those that `--fusion-patterns` names.
    pub const NAMED: [Self; 3] = [Self::Linear, Self::Conv, Self::Attention];

    /// The word for it on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Conv => "conv",
            Self::Attention => "attention",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Family {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMED.into_iter().find(|family| family.name() == text);
        found
            .ok_or_else(|| format!("`{text}` is no family of patterns; there are linear, conv and attention"))
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Tiny sizes, to try the program and not the machine.
    Smoke,
    /// The seed's sizes and what predictions need, one round.
    Quick,
    /// Everything, in rounds.
    Full,
}

/// What contractions multiply in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dtype {
    /// The precision of the compiler, on a module of f32.
    Float(Precision),
    /// A module of 8-bit integers.
    Int8,
    /// A module of 8-bit floats with a 4-bit exponent.
    Float8,
}

impl Dtype {
    /// The name in profiles.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Float(Precision::Model) => "f32",
            Self::Float(Precision::Tf32) => "tf32",
            Self::Float(Precision::Bf16) => "bf16",
            Self::Float(Precision::F16) => "f16",
            Self::Float(Precision::Quantized(_)) => "quantized",
            Self::Int8 => "int8",
            Self::Float8 => "e4m3",
        }
    }

    /// The element type of operands that are rounded, as StableHLO writes it.
    pub(crate) fn narrow(self) -> Option<&'static str> {
        match self {
            Self::Float(Precision::Bf16) => Some("bf16"),
            Self::Float(Precision::F16) => Some("f16"),
            _ => None,
        }
    }

    /// The precision to compile with.
    pub(crate) fn precision(self) -> Precision {
        match self {
            Self::Float(precision) => precision,
            Self::Int8 | Self::Float8 => Precision::Model,
        }
    }
}

/// Something to measure.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// The operation, where there is one operator.
    pub(crate) op: &'static str,
    /// The pattern, where there are several.
    pub(crate) pattern: Option<&'static str>,
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: Dtype,
    pub(crate) module: ModuleText,
    /// What else describes it.
    pub(crate) extra: BTreeMap<String, i64>,
}

impl Case {
    /// Its name for people: `Linear_Bias 512x1024x1024 f32`.
    pub(crate) fn label(&self) -> String {
        let sizes: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        format!("{} {} {}", self.pattern.unwrap_or(self.op), sizes.join("x"), self.dtype.name())
    }
}

impl Case {
    /// The case on inputs in the type that its contractions multiply in. Between convolutions results are of that type too; convolutions of each channel
    /// alone multiply in f32.
    pub(crate) fn in_narrow_memory(mut self) -> Self {
        let Some(narrow) = self.dtype.narrow().filter(|_| !self.is_depthwise()) else { return self };
        self.module = self.module.stored_as(narrow);
        if self.op == "conv2d" && self.pattern.is_none() {
            self.module = self.module.rounded_to(narrow);
        }
        self
    }

    fn is_depthwise(&self) -> bool {
        let extra = |name: &str| self.extra.get(name).copied().unwrap_or(1);
        extra("groups") > 1 && extra("groups") == extra("out_channels")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpforge::{CompileOptions, Model};
    use warpforge_fusion::cluster::Cost;
    use warpforge_tensor::ElementType;

    /// Bytes and kernels of a case, fused and unfused.
    fn plans(case: &Case) -> [(usize, Cost); 2] {
        [false, true].map(|unfused| {
            let mut model = Model::from_text("case.mlir", case.module.text(unfused)).unwrap();
            model.bind_weights(&case.module.weights().unwrap()).unwrap();
            let options = CompileOptions { precision: case.dtype.precision(), ..CompileOptions::default() };
            let plan = model.plan(&options).unwrap();
            (plan.clusters.clusters.len(), plan.clusters.cost(&plan.graph))
        })
    }

    fn reduction(case: &Case) -> (f64, usize, usize) {
        let [(fused_kernels, fused), (unfused_kernels, unfused)] = plans(case);
        let percent = 100.0 * (1.0 - fused.bytes as f64 / unfused.bytes as f64);
        ((percent * 10.0).round() / 10.0, fused_kernels, unfused_kernels)
    }

    const F32: Dtype = Dtype::Float(Precision::Model);
    const BF16: Dtype = Dtype::Float(Precision::Bf16);

    #[test]
    fn matmuls_of_8_bits_are_of_their_type_and_a_gpu_has_those_of_every_linear_size() {
        for dtype in [Dtype::Int8, Dtype::Float8] {
            let own = |all: Vec<Case>| all.into_iter().filter(|case| case.dtype == dtype).collect::<Vec<_>>();
            let small = own(cases(Scale::Smoke, &[Family::Linear], &[F32], &[dtype]));
            let inputs = small[0].module.inputs().unwrap();
            assert_eq!(inputs[0].element_type().byte_width(), 1);
            plans(&small[0]);
            let rows = |all: &[Case]| {
                let mut rows: Vec<usize> = all.iter().map(|case| case.shape[0]).collect();
                rows.sort_unstable();
                rows.dedup();
                rows
            };
            let full = own(cases(Scale::Full, &[Family::Linear], &[F32], &[dtype]));
            assert_eq!(rows(&full), [1, 8, 32, 128, 512, 2048]);
            let on_gpu = own(large(Scale::Full, &[Family::Linear], &[F32], &[dtype]));
            let of_f32 = cases(Scale::Full, &[Family::Linear], &[F32], &[]);
            let grid = of_f32.iter().filter(|case| case.pattern == Some("Linear_Bias")).count();
            assert_eq!(
                on_gpu.iter().filter(|case| case.shape[0] <= 2048 && case.shape[1] >= 512).count(),
                grid
            );
        }
    }

    #[test]
    fn streams_of_16_bits_read_and_write_16_bits() {
        for scale in [Scale::Quick, Scale::Full] {
            let all = cases(scale, &[], &[F32, BF16], &[]);
            let of = |dtype, op| {
                all.iter().filter(move |case| case.dtype == dtype && case.op == op).map(|case| &case.shape)
            };
            for op in ["add", "gelu", "softmax", "layer_norm"] {
                assert!(of(BF16, op).count() > 1, "{scale:?} {op}");
                assert!(of(BF16, op).all(|shape| of(F32, op).any(|known| known == shape)), "{op}");
            }
        }
        let smoke = cases(Scale::Smoke, &[], &[F32, BF16], &[]);
        let bytes = |dtype| {
            let add = smoke.iter().find(|case| case.dtype == dtype && case.op == "add").unwrap();
            let [(kernels, cost), _] = plans(add);
            assert_eq!(kernels, 1);
            cost.bytes
        };
        assert_eq!(bytes(F32), 2 * bytes(BF16));
    }

    #[test]
    fn memory_reductions_are_those_that_follow_from_the_shapes() {
        use attention::Steps;
        use conv::{Geometry, Then};
        use linear::Epilogue;
        let linear = |epilogue| linear::case(512, 1024, 1024, epilogue, F32);
        assert_eq!(reduction(&linear(Epilogue::Bias)), (33.3, 1, 2));
        assert_eq!(reduction(&linear(Epilogue::Relu)), (50.0, 1, 3));
        assert_eq!(reduction(&linear(Epilogue::Gelu)), (50.0, 1, 3));
        let conv = |then| conv::case(Geometry::square(4, 128, 28, 128, 3), then, F32);
        assert_eq!(reduction(&conv(Then::Bn)), (45.8, 1, 2));
        assert_eq!(reduction(&conv(Then::BnRelu)), (62.8, 1, 3));
        let attention = |steps| attention::case([4, 1, 256, 64], steps, F32);
        assert_eq!(reduction(&attention(Steps::Scores)), (57.1, 1, 2));
        // Six passes over the scores, not three: 85.7 % and not 75.0 %.
        assert_eq!(reduction(&attention(Steps::Full)), (85.7, 1, 4));
    }

    #[test]
    fn unfused_means_a_kernel_for_each_operator_and_fused_fewer() {
        for case in cases(Scale::Smoke, &Family::NAMED, &[F32], &[]) {
            let [(fused, _), (unfused, _)] = plans(&case);
            match case.pattern {
                Some(_) => {
                    assert_eq!(unfused, case.module.operators().len(), "{}", case.label());
                    assert!(fused < unfused, "{}: {fused} {unfused}", case.label());
                }
                None => assert!(fused >= 1, "{}", case.label()),
            }
        }
    }

    #[test]
    fn the_seeds_sizes_are_in_every_scale_but_smoke() {
        for scale in [Scale::Quick, Scale::Full] {
            let all = cases(scale, &Family::NAMED, &[F32], &[]);
            for (pattern, shape) in [
                ("Linear_Bias", vec![512, 1024, 1024]),
                ("Linear_Bias_ReLU", vec![512, 1024, 1024]),
                ("Conv2d_BatchNorm", vec![4, 128, 28, 28, 128, 3, 1, 1]),
                ("Conv2d_BatchNorm_ReLU", vec![4, 128, 28, 28, 128, 3, 1, 1]),
                ("QK^T", vec![4, 1, 256, 64]),
                ("FullAttention", vec![4, 1, 256, 64]),
            ] {
                let found = all.iter().any(|case| case.pattern == Some(pattern) && case.shape == shape);
                assert!(found, "{scale:?} lacks {pattern} {shape:?}");
            }
        }
    }

    #[test]
    fn contractions_read_narrow_inputs_as_they_are() {
        let bf16 = BF16;
        for case in cases(Scale::Smoke, &Family::NAMED, &[bf16], &[]) {
            let narrow = case.clone().in_narrow_memory();
            let [(kernels, wide), _] = plans(&case);
            let [(same, cost), _] = plans(&narrow);
            assert!(same <= kernels && cost.bytes <= wide.bytes, "{}: {same} of {kernels}", case.label());
            let is_narrow = narrow.module.inputs().unwrap()[0].element_type() == ElementType::BF16;
            assert_eq!(is_narrow, case.dtype == bf16 && !case.is_depthwise(), "{}", case.label());
            let outputs = Model::from_text("case.mlir", narrow.module.text(false)).unwrap();
            let outputs = outputs.plan(&CompileOptions::default()).unwrap();
            let result = outputs.graph.node(outputs.clusters.outputs[0].value).element;
            let is_narrow = is_narrow && case.op != "linear" && case.pattern.is_none();
            assert_eq!(result == ElementType::BF16, is_narrow, "{}", case.label());
        }
    }

    #[test]
    fn attention_to_another_sequence_fuses_as_attention_does() {
        let all = large(Scale::Quick, &[Family::Attention], &[F32], &[]);
        let cross: Vec<&Case> = all.iter().filter(|case| case.shape.len() == 5).collect();
        assert!(!cross.is_empty());
        for case in cross {
            let [(fused, _), (unfused, _)] = plans(case);
            assert_eq!((fused, unfused), (1, 4), "{}", case.label());
        }
    }

    #[test]
    fn no_case_is_measured_twice() {
        for scale in [Scale::Smoke, Scale::Quick, Scale::Full] {
            let mut labels: Vec<String> =
                cases(scale, &Family::NAMED, &[F32, BF16], &[Dtype::Int8, Dtype::Float8])
                    .iter()
                    .map(Case::label)
                    .collect();
            let count = labels.len();
            labels.sort_unstable();
            labels.dedup();
            assert_eq!(labels.len(), count, "{scale:?}");
        }
    }
}
