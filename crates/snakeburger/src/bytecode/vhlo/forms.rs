//! The forms of VHLO's operations: their attributes, and since and until when each form was written.
//!
//! An operation that is not listed has one form, `name_v1`, without attributes, from the first version on. The
//! attributes stand in the order of the alphabet, which is their order in a file.

use crate::bytecode::version::Version;

/// One form of an operation.
#[derive(Debug)]
pub(crate) struct Form {
    /// The operation, without dialect and version.
    pub(crate) name: &'static str,
    /// The number at the end of its name.
    pub(crate) version: u32,
    /// The first version of StableHLO that has it.
    pub(crate) since: Version,
    /// Its attributes, separated by blanks.
    attrs: &'static str,
}

impl Form {
    /// The attributes, in the order of a file.
    pub(crate) fn attrs(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.attrs.split_ascii_whitespace()
    }

    /// Whether it has an attribute.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.attrs().any(|attr| attr == name)
    }

    /// The name in a file, without the dialect.
    pub(crate) fn file_name(&self) -> String {
        format!("{}_v{}", self.name, self.version)
    }
}

const fn first(name: &'static str, attrs: &'static str) -> Form {
    since(name, 1, (0, 9), attrs)
}

const fn since(name: &'static str, version: u32, since: (u32, u32), attrs: &'static str) -> Form {
    Form { name, version, since: Version::new(since.0, since.1), attrs }
}

const CONVOLUTION: &str = "batch_group_count feature_group_count input_batch_dimension input_feature_dimension \
    input_spatial_dimensions kernel_input_feature_dimension kernel_output_feature_dimension \
    kernel_spatial_dimensions lhs_dilation output_batch_dimension output_feature_dimension \
    output_spatial_dimensions padding precision_config rhs_dilation window_reversal window_strides";

/// Every form that has attributes or is not the only one of its operation, in the order of names and numbers.
pub(crate) const FORMS: &[Form] = &[
    first("all_gather", "all_gather_dim channel_id replica_groups use_global_device_ids"),
    since("all_gather", 2, (1, 5), "all_gather_dim channel_id replica_groups use_global_device_ids"),
    first("all_reduce", "channel_id replica_groups use_global_device_ids"),
    since("all_reduce", 2, (1, 5), "channel_id replica_groups use_global_device_ids"),
    first("all_to_all", "channel_id concat_dimension replica_groups split_count split_dimension"),
    since("all_to_all", 2, (1, 5), "channel_id concat_dimension replica_groups split_count split_dimension"),
    since("async_done", 1, (1, 15), ""),
    since("async_start", 1, (1, 15), ""),
    first("batch_norm_grad", "epsilon feature_index"),
    first("batch_norm_inference", "epsilon feature_index"),
    first("batch_norm_training", "epsilon feature_index"),
    first("broadcast", "broadcast_sizes"),
    first("broadcast_in_dim", "broadcast_dimensions"),
    first("call", "callee"),
    first("cbrt", ""),
    since("cbrt", 2, (1, 10), "result_accuracy"),
    first("cholesky", "lower"),
    since("collective_broadcast", 1, (0, 16), "channel_id replica_groups"),
    since("collective_broadcast", 2, (1, 20), "channel_id has_dynamic_root replica_groups"),
    first("collective_permute", "channel_id source_target_pairs"),
    since(
        "collective_reduce",
        1,
        (1, 19),
        "channel_id has_dynamic_root replica_groups use_global_device_ids",
    ),
    first("compare", "compare_type comparison_direction"),
    since("composite", 1, (0, 19), "composite_attributes decomposition name version"),
    since("composite", 2, (1, 14), "composite_attributes decomposition name version"),
    first("concatenate", "dimension"),
    first("constant", "value"),
    first("convolution", CONVOLUTION),
    first("cosine", ""),
    since("cosine", 2, (1, 10), "result_accuracy"),
    first("cross-replica-sum", "replica_groups"),
    first(
        "custom_call",
        "api_version backend_config call_target_name called_computations has_side_effect operand_layouts \
         output_operand_aliases result_layouts",
    ),
    since(
        "custom_call",
        2,
        (1, 18),
        "api_version backend_config call_target_name called_computations has_side_effect operand_layouts \
         output_operand_aliases result_layouts result_tilings",
    ),
    first("dot", "precision_config"),
    first(
        "dot_general",
        "lhs_batching_dimensions lhs_contracting_dimensions precision_config rhs_batching_dimensions \
         rhs_contracting_dimensions",
    ),
    since(
        "dot_general",
        2,
        (1, 6),
        "accumulation_type allow_imprecise_accumulation lhs_batching_dimensions lhs_component_count \
         lhs_contracting_dimensions lhs_precision_type num_primitive_operations precision_config \
         rhs_batching_dimensions rhs_component_count rhs_contracting_dimensions rhs_precision_type",
    ),
    first(
        "dynamic_broadcast_in_dim",
        "broadcast_dimensions known_expanding_dimensions known_nonexpanding_dimensions",
    ),
    first("dynamic_conv", CONVOLUTION),
    since(
        "dynamic_conv",
        2,
        (0, 20),
        "batch_group_count feature_group_count input_batch_dimension input_feature_dimension \
         input_spatial_dimensions kernel_input_feature_dimension kernel_output_feature_dimension \
         kernel_spatial_dimensions lhs_dilation output_batch_dimension output_feature_dimension \
         output_spatial_dimensions precision_config rhs_dilation window_reversal window_strides",
    ),
    first(
        "dynamic_gather",
        "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims start_index_map",
    ),
    since(
        "dynamic_gather",
        2,
        (1, 1),
        "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims operand_batching_dims \
         start_index_map start_indices_batching_dims",
    ),
    first("dynamic_iota", "iota_dimension"),
    first("dynamic_slice", "slice_sizes"),
    first("einsum", "einsum_config"),
    first("exponential", ""),
    since("exponential", 2, (1, 9), "result_accuracy"),
    first("exponential_minus_one", ""),
    since("exponential_minus_one", 2, (1, 10), "result_accuracy"),
    first("fft", "fft_length fft_type"),
    first("func", "arg_attrs function_type res_attrs sym_name sym_visibility"),
    first(
        "gather",
        "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims slice_sizes start_index_map",
    ),
    since(
        "gather",
        2,
        (1, 1),
        "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims operand_batching_dims slice_sizes \
         start_index_map start_indices_batching_dims",
    ),
    first("get_dimension_size", "dimension"),
    first("get_tuple_element", "index"),
    first("infeed", "infeed_config layout"),
    first("iota", "iota_dimension"),
    first("log", ""),
    since("log", 2, (1, 10), "result_accuracy"),
    first("log_plus_one", ""),
    since("log_plus_one", 2, (1, 10), "result_accuracy"),
    first("logistic", ""),
    since("logistic", 2, (1, 10), "result_accuracy"),
    first("map", "dimensions"),
    first("outfeed", "outfeed_config"),
    first("pad", "edge_padding_high edge_padding_low interior_padding"),
    first("recv", "channel_id channel_type is_host_transfer"),
    since("recv", 2, (1, 12), "channel_id channel_type is_host_transfer source_target_pairs"),
    first("reduce", "dimensions"),
    first("reduce_precision", "exponent_bits mantissa_bits"),
    first("reduce_scatter", "channel_id replica_groups scatter_dimension use_global_device_ids"),
    first("reduce_window", "base_dilations padding window_dilations window_dimensions window_strides"),
    first("reverse", "dimensions"),
    first("rng", "rng_distribution"),
    first("rng_bit_generator", "rng_algorithm"),
    first("rsqrt", ""),
    since("rsqrt", 2, (1, 10), "result_accuracy"),
    first(
        "scatter",
        "index_vector_dim indices_are_sorted inserted_window_dims scatter_dims_to_operand_dims unique_indices \
         update_window_dims",
    ),
    since(
        "scatter",
        2,
        (1, 1),
        "index_vector_dim indices_are_sorted input_batching_dims inserted_window_dims \
         scatter_dims_to_operand_dims scatter_indices_batching_dims unique_indices update_window_dims",
    ),
    first("select_and_scatter", "padding window_dimensions window_strides"),
    first("send", "channel_id channel_type is_host_transfer"),
    since("send", 2, (1, 12), "channel_id channel_type is_host_transfer source_target_pairs"),
    first("set_dimension_size", "dimension"),
    first("sine", ""),
    since("sine", 2, (1, 10), "result_accuracy"),
    first("slice", "limit_indices start_indices strides"),
    first("sort", "dimension is_stable"),
    first("sqrt", ""),
    since("sqrt", 2, (1, 10), "result_accuracy"),
    since("tan", 1, (1, 4), ""),
    since("tan", 2, (1, 10), "result_accuracy"),
    first("tanh", ""),
    since("tanh", 2, (1, 10), "result_accuracy"),
    first("torch_index_select", "batch_dims dim"),
    first("transpose", "permutation"),
    first("triangular_solve", "left_side lower transpose_a unit_diagonal"),
    first("unary_einsum", "einsum_config"),
];

/// The operation that a name in a file means, and its form where one is listed: `add_v1` is `add`.
pub(crate) fn of_file_name(file_name: &str) -> Option<(&str, Option<&'static Form>)> {
    let (name, version) = file_name.rsplit_once("_v")?;
    let version: u32 = version.parse().ok()?;
    let mut forms = forms_of(name).peekable();
    let listed = forms.peek().is_some();
    let form = forms.find(|form| form.version == version);
    match form {
        Some(form) => Some((name, Some(form))),
        None if listed || version != 1 => None,
        None => Some((name, None)),
    }
}

/// The forms of an operation, oldest first; none when it is not listed.
pub(crate) fn forms_of(name: &str) -> impl Iterator<Item = &'static Form> + use<'_> {
    let start = FORMS.partition_point(|form| form.name < name);
    FORMS[start..].iter().take_while(move |form| form.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_sorted_and_so_are_their_attributes() {
        for pair in FORMS.windows(2) {
            let order = (pair[0].name, pair[0].version) < (pair[1].name, pair[1].version);
            assert!(order, "{} after {}", pair[1].file_name(), pair[0].file_name());
            if pair[0].name == pair[1].name {
                assert!(pair[0].since < pair[1].since, "{}", pair[1].file_name());
            }
        }
        for form in FORMS {
            let attrs: Vec<&str> = form.attrs().collect();
            assert!(attrs.is_sorted(), "{}: {attrs:?}", form.file_name());
        }
    }

    #[test]
    fn names_in_files_mean_operations() {
        assert!(matches!(of_file_name("add_v1"), Some(("add", None))));
        assert!(matches!(of_file_name("gather_v2"), Some(("gather", Some(form))) if form.has("slice_sizes")));
        assert!(of_file_name("gather_v3").is_none());
        assert!(of_file_name("add_v2").is_none());
        assert!(of_file_name("add").is_none());
    }
}
