//! Dimension numbers and other structured attributes of StableHLO.

use crate::attr::{ResultAccuracyMode, write_list};
use crate::types::Type;
use std::fmt;

/// Which dimensions a `dot_general` pairs up.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DotDims {
    /// Batching dimensions of the left operand.
    pub lhs_batching: Vec<i64>,
    /// Batching dimensions of the right operand.
    pub rhs_batching: Vec<i64>,
    /// Contracting dimensions of the left operand.
    pub lhs_contracting: Vec<i64>,
    /// Contracting dimensions of the right operand.
    pub rhs_contracting: Vec<i64>,
}

/// Which dimensions of a convolution's operands mean what.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ConvDims {
    /// Batch dimension of the input.
    pub input_batch: i64,
    /// Feature dimension of the input.
    pub input_feature: i64,
    /// Spatial dimensions of the input.
    pub input_spatial: Vec<i64>,
    /// Input feature dimension of the kernel.
    pub kernel_input_feature: i64,
    /// Output feature dimension of the kernel.
    pub kernel_output_feature: i64,
    /// Spatial dimensions of the kernel.
    pub kernel_spatial: Vec<i64>,
    /// Batch dimension of the output.
    pub output_batch: i64,
    /// Feature dimension of the output.
    pub output_feature: i64,
    /// Spatial dimensions of the output.
    pub output_spatial: Vec<i64>,
}

/// How `gather` maps indices and slices to operand and result.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct GatherDims {
    /// Result dimensions that run over a slice.
    pub offset_dims: Vec<i64>,
    /// Slice dimensions of size one that the result leaves out.
    pub collapsed_slice_dims: Vec<i64>,
    /// Batching dimensions of the operand.
    pub operand_batching_dims: Vec<i64>,
    /// Batching dimensions of the start indices.
    pub start_indices_batching_dims: Vec<i64>,
    /// Which operand dimension each index component addresses.
    pub start_index_map: Vec<i64>,
    /// The dimension of the start indices that holds the components.
    pub index_vector_dim: i64,
}

/// How `scatter` maps updates to the operand.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ScatterDims {
    /// Update dimensions that run over a window.
    pub update_window_dims: Vec<i64>,
    /// Window dimensions of size one that the updates leave out.
    pub inserted_window_dims: Vec<i64>,
    /// Batching dimensions of the operand.
    pub input_batching_dims: Vec<i64>,
    /// Batching dimensions of the scatter indices.
    pub scatter_indices_batching_dims: Vec<i64>,
    /// Which operand dimension each index component addresses.
    pub scatter_dims_to_operand_dims: Vec<i64>,
    /// The dimension of the scatter indices that holds the components.
    pub index_vector_dim: i64,
}

/// Which dimensions CHLO's `ragged_dot` pairs up.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RaggedDotDims {
    /// The dimensions of the dot itself.
    pub dot: DotDims,
    /// Ragged dimensions of the left operand.
    pub lhs_ragged: Vec<i64>,
    /// Group dimensions of the right operand.
    pub rhs_group: Vec<i64>,
}

/// The algorithm that a `dot_general` asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct DotAlgorithm {
    /// Type that the left operand is rounded to.
    pub lhs_precision_type: Type,
    /// Type that the right operand is rounded to.
    pub rhs_precision_type: Type,
    /// Type that sums are kept in.
    pub accumulation_type: Type,
    /// Into how many parts the left operand is split.
    pub lhs_component_count: i64,
    /// Into how many parts the right operand is split.
    pub rhs_component_count: i64,
    /// How many primitive dots are summed.
    pub num_primitive_operations: i64,
    /// Whether sums may be kept in less than the accumulation type for a while.
    pub allow_imprecise_accumulation: bool,
}

/// A result of a custom call that shares memory with an operand.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct OutputOperandAlias {
    /// Path into the result tuple.
    pub output_tuple_indices: Vec<i64>,
    /// The operand.
    pub operand_index: i64,
    /// Path into the operand tuple.
    pub operand_tuple_indices: Vec<i64>,
}

/// The channel of a communicating operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ChannelHandle {
    /// Identity of the channel.
    pub handle: i64,
    /// 0: an independent channel; 1: device to device; 2: device to host; 3: host to device.
    pub kind: i64,
}

/// The accuracy asked of an elementary function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResultAccuracy {
    /// Absolute tolerance.
    pub atol: f64,
    /// Relative tolerance.
    pub rtol: f64,
    /// Tolerance in units in the last place.
    pub ulps: i64,
    /// How the accuracy is given.
    pub mode: ResultAccuracyMode,
}

impl Default for ResultAccuracy {
    fn default() -> Self {
        Self { atol: 0.0, rtol: 0.0, ulps: 0, mode: ResultAccuracyMode::Default }
    }
}

/// Writes `name = value` fields between angle brackets, leaving out empty lists.
struct Fields<'a, 'f> {
    f: &'a mut fmt::Formatter<'f>,
    first: bool,
}

impl Fields<'_, '_> {
    fn list(&mut self, name: &str, values: &[i64]) -> fmt::Result {
        if values.is_empty() { Ok(()) } else { self.full_list(name, values) }
    }

    fn full_list(&mut self, name: &str, values: &[i64]) -> fmt::Result {
        self.name(name)?;
        write_list(self.f, values)
    }

    fn value(&mut self, name: &str, value: impl fmt::Display) -> fmt::Result {
        self.name(name)?;
        write!(self.f, "{value}")
    }

    fn name(&mut self, name: &str) -> fmt::Result {
        let separator = if std::mem::take(&mut self.first) { "" } else { ", " };
        write!(self.f, "{separator}{name} = ")
    }
}

fn fields<'a, 'f>(f: &'a mut fmt::Formatter<'f>) -> Fields<'a, 'f> {
    Fields { f, first: true }
}

impl DotDims {
    fn write(&self, out: &mut Fields<'_, '_>) -> fmt::Result {
        out.list("lhs_batching_dimensions", &self.lhs_batching)?;
        out.list("rhs_batching_dimensions", &self.rhs_batching)?;
        out.list("lhs_contracting_dimensions", &self.lhs_contracting)?;
        out.list("rhs_contracting_dimensions", &self.rhs_contracting)
    }
}

impl fmt::Display for DotDims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("#stablehlo.dot<")?;
        self.write(&mut fields(f))?;
        f.write_str(">")
    }
}

impl fmt::Display for RaggedDotDims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("#chlo.ragged_dot<")?;
        let mut out = fields(f);
        self.dot.write(&mut out)?;
        out.list("lhs_ragged_dimensions", &self.lhs_ragged)?;
        out.list("rhs_group_dimensions", &self.rhs_group)?;
        f.write_str(">")
    }
}

/// Dimension numbers of `gather` and `scatter`: lists of dimensions, and the dimension that holds the index components.
pub trait IndexDims: Default {
    /// The names of the lists, as text and bytecode have them.
    const NAMES: [&'static str; 5];

    /// The lists, in the order of their names, and `index_vector_dim`.
    fn parts(&self) -> ([&[i64]; 5], i64);

    /// The same, to be set.
    fn parts_mut(&mut self) -> ([&mut Vec<i64>; 5], &mut i64);
}

macro_rules! index_dims {
    ($($dims:ident as $text:literal { $($list:ident),* })*) => {$(
        impl IndexDims for $dims {
            const NAMES: [&'static str; 5] = [$(stringify!($list)),*];

            fn parts(&self) -> ([&[i64]; 5], i64) {
                ([$(&self.$list),*], self.index_vector_dim)
            }

            fn parts_mut(&mut self) -> ([&mut Vec<i64>; 5], &mut i64) {
                ([$(&mut self.$list),*], &mut self.index_vector_dim)
            }
        }

        impl fmt::Display for $dims {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!("#stablehlo.", $text, "<"))?;
                let (lists, index_vector_dim) = self.parts();
                let mut out = fields(f);
                for (name, list) in Self::NAMES.iter().zip(lists) {
                    out.list(name, list)?;
                }
                if index_vector_dim != 0 {
                    out.value("index_vector_dim", index_vector_dim)?;
                }
                f.write_str(">")
            }
        }
    )*};
}

index_dims! {
    GatherDims as "gather" {
        offset_dims, collapsed_slice_dims, operand_batching_dims, start_indices_batching_dims, start_index_map
    }
    ScatterDims as "scatter" {
        update_window_dims, inserted_window_dims, input_batching_dims, scatter_indices_batching_dims,
        scatter_dims_to_operand_dims
    }
}

impl fmt::Display for ConvDims {
    /// The short form: `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`, or each number with its name when they are not those of
    /// dimensions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let input = ConvGroup::new(&self.input_spatial, [(self.input_batch, "b"), (self.input_feature, "f")]);
        let kernel = [(self.kernel_input_feature, "i"), (self.kernel_output_feature, "o")];
        let kernel = ConvGroup::new(&self.kernel_spatial, kernel);
        let output = [(self.output_batch, "b"), (self.output_feature, "f")];
        let output = ConvGroup::new(&self.output_spatial, output);
        match (input, kernel, output) {
            (Some(input), Some(kernel), Some(output)) => write!(f, "{input}x{kernel}->{output}"),
            _ => self.raw(f),
        }
    }
}

impl ConvDims {
    fn raw(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("raw ")?;
        let mut out = fields(f);
        out.value("input_batch_dimension", self.input_batch)?;
        out.value("input_feature_dimension", self.input_feature)?;
        out.full_list("input_spatial_dimensions", &self.input_spatial)?;
        out.value("kernel_input_feature_dimension", self.kernel_input_feature)?;
        out.value("kernel_output_feature_dimension", self.kernel_output_feature)?;
        out.full_list("kernel_spatial_dimensions", &self.kernel_spatial)?;
        out.value("output_batch_dimension", self.output_batch)?;
        out.value("output_feature_dimension", self.output_feature)?;
        out.full_list("output_spatial_dimensions", &self.output_spatial)
    }
}

/// The dimensions of one tensor of a convolution: which is named by a letter, which by its number.
struct ConvGroup(Vec<String>);

impl ConvGroup {
    /// `None` when the numbers are not those of all dimensions, each once.
    fn new(spatial: &[i64], named: [(i64, &str); 2]) -> Option<Self> {
        let mut names: Vec<Option<String>> = vec![None; spatial.len() + named.len()];
        let letters = named.into_iter().map(|(at, letter)| (at, letter.to_owned()));
        let numbers = spatial.iter().enumerate().map(|(index, &at)| (at, index.to_string()));
        for (at, name) in letters.chain(numbers) {
            let place = names.get_mut(usize::try_from(at).ok()?)?;
            if place.replace(name).is_some() {
                return None;
            }
        }
        names.into_iter().collect::<Option<_>>().map(Self)
    }
}

impl fmt::Display for ConvGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.0.join(", "))
    }
}

impl fmt::Display for DotAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<")?;
        let mut out = fields(f);
        out.value("lhs_precision_type", &self.lhs_precision_type)?;
        out.value("rhs_precision_type", &self.rhs_precision_type)?;
        out.value("accumulation_type", &self.accumulation_type)?;
        out.value("lhs_component_count", self.lhs_component_count)?;
        out.value("rhs_component_count", self.rhs_component_count)?;
        out.value("num_primitive_operations", self.num_primitive_operations)?;
        out.value("allow_imprecise_accumulation", self.allow_imprecise_accumulation)?;
        f.write_str(">")
    }
}

impl fmt::Display for OutputOperandAlias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("#stablehlo.output_operand_alias<")?;
        let mut out = fields(f);
        out.full_list("output_tuple_indices", &self.output_tuple_indices)?;
        out.value("operand_index", self.operand_index)?;
        out.full_list("operand_tuple_indices", &self.operand_tuple_indices)?;
        f.write_str(">")
    }
}

impl fmt::Display for ChannelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#stablehlo.channel_handle<handle = {}, type = {}>", self.handle, self.kind)
    }
}

impl fmt::Display for ResultAccuracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("#stablehlo.result_accuracy<")?;
        let mut out = fields(f);
        if self.atol != 0.0 {
            out.value("atol", crate::print::float_text(self.atol))?;
        }
        if self.rtol != 0.0 {
            out.value("rtol", crate::print::float_text(self.rtol))?;
        }
        if self.ulps != 0 {
            out.value("ulps", self.ulps)?;
        }
        out.value("mode", format_args!("#stablehlo.result_accuracy_mode<{}>", self.mode))?;
        f.write_str(">")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn convolution_dimensions_print_as_letters() {
        let dims = ConvDims {
            input_feature: 3,
            input_spatial: vec![1, 2],
            kernel_input_feature: 2,
            kernel_output_feature: 3,
            kernel_spatial: vec![0, 1],
            output_feature: 3,
            output_spatial: vec![1, 2],
            ..ConvDims::default()
        };
        assert_eq!(dims.to_string(), "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]");
    }

    #[test]
    fn empty_lists_are_left_out() {
        let dims = GatherDims { offset_dims: vec![1, 2], index_vector_dim: 1, ..GatherDims::default() };
        assert_eq!(dims.to_string(), "#stablehlo.gather<offset_dims = [1, 2], index_vector_dim = 1>");
        assert_eq!(ScatterDims::default().to_string(), "#stablehlo.scatter<>");
    }
}
