//! Values that go without saying in StableHLO and are written out in artifacts.

use std::sync::Arc;

use warpforge_ir::attr::{
    Attribute, ComparisonType, DenseElements, Dict, EnumValue, Precision, ResultAccuracy,
};
use warpforge_ir::types::{ElementType, TensorType, Type};

/// A value that an attribute has when StableHLO leaves it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Implied {
    /// `false`.
    False,
    /// An integer.
    Int(i64),
    /// `""`.
    EmptyString,
    /// `[]`.
    EmptyArray,
    /// `{}`.
    EmptyDict,
    /// A tensor of 64-bit integers without elements.
    EmptyInts,
    /// One for each dimension.
    Ones,
    /// Zero before and after each dimension.
    NoPadding,
    /// `false` for each dimension.
    NoReversal,
    /// The default precision for both operands.
    Precisions,
    /// No way of comparing.
    NoType,
    /// The first calling convention, number 1.
    OriginalApi,
    /// No accuracy in particular.
    Accuracy,
    /// The type `none`, which stands for nothing.
    Nothing,
}

use Implied::{
    Accuracy, EmptyArray, EmptyDict, EmptyInts, EmptyString, False, Int, NoPadding, NoReversal, NoType,
    Nothing, Ones, OriginalApi, Precisions,
};

/// Operation, attribute, value. Sorted by operation.
const DEFAULTS: &[(&str, &[(&str, Implied)])] = &[
    ("all_gather", &[("channel_id", Int(0)), ("use_global_device_ids", False)]),
    ("all_reduce", &[("channel_id", Int(0)), ("use_global_device_ids", False)]),
    ("all_to_all", &[("channel_id", Int(0))]),
    ("cbrt", ACCURACY),
    ("cholesky", &[("lower", False)]),
    ("collective_broadcast", &[("channel_id", Int(0)), ("has_dynamic_root", False)]),
    ("collective_permute", &[("channel_id", Int(0))]),
    (
        "collective_reduce",
        &[("channel_id", Int(0)), ("has_dynamic_root", False), ("use_global_device_ids", False)],
    ),
    ("compare", &[("compare_type", NoType)]),
    ("composite", &[("composite_attributes", EmptyDict), ("version", Int(0))]),
    ("convolution", CONVOLUTION),
    ("cosine", ACCURACY),
    (
        "custom_call",
        &[
            ("api_version", OriginalApi),
            ("backend_config", EmptyString),
            ("called_computations", EmptyArray),
            ("has_side_effect", False),
            ("operand_layouts", EmptyArray),
            ("output_operand_aliases", EmptyArray),
            ("result_layouts", EmptyArray),
            ("result_tilings", EmptyArray),
        ],
    ),
    ("dot", &[("precision_config", Precisions)]),
    (
        "dot_general",
        &[
            ("accumulation_type", Nothing),
            ("allow_imprecise_accumulation", Nothing),
            ("lhs_component_count", Nothing),
            ("lhs_precision_type", Nothing),
            ("num_primitive_operations", Nothing),
            ("precision_config", Precisions),
            ("rhs_component_count", Nothing),
            ("rhs_precision_type", Nothing),
        ],
    ),
    (
        "dynamic_broadcast_in_dim",
        &[("known_expanding_dimensions", EmptyInts), ("known_nonexpanding_dimensions", EmptyInts)],
    ),
    ("dynamic_conv", CONVOLUTION),
    (
        "dynamic_gather",
        &[
            ("indices_are_sorted", False),
            ("operand_batching_dims", EmptyInts),
            ("start_indices_batching_dims", EmptyInts),
        ],
    ),
    ("exponential", ACCURACY),
    ("exponential_minus_one", ACCURACY),
    ("func", &[("arg_attrs", EmptyArray), ("res_attrs", EmptyArray), ("sym_visibility", EmptyString)]),
    (
        "gather",
        &[
            ("indices_are_sorted", False),
            ("operand_batching_dims", EmptyInts),
            ("start_indices_batching_dims", EmptyInts),
        ],
    ),
    ("infeed", &[("infeed_config", EmptyString), ("layout", EmptyArray)]),
    ("log", ACCURACY),
    ("log_plus_one", ACCURACY),
    ("logistic", ACCURACY),
    ("outfeed", &[("outfeed_config", EmptyString)]),
    ("recv", &[("is_host_transfer", False), ("source_target_pairs", EmptyInts)]),
    ("reduce_scatter", &[("channel_id", Int(0)), ("use_global_device_ids", False)]),
    (
        "reduce_window",
        &[
            ("base_dilations", Ones),
            ("padding", NoPadding),
            ("window_dilations", Ones),
            ("window_strides", Ones),
        ],
    ),
    ("rsqrt", ACCURACY),
    (
        "scatter",
        &[
            ("indices_are_sorted", False),
            ("input_batching_dims", EmptyInts),
            ("scatter_indices_batching_dims", EmptyInts),
            ("unique_indices", False),
        ],
    ),
    ("select_and_scatter", &[("padding", NoPadding), ("window_strides", Ones)]),
    ("send", &[("is_host_transfer", False), ("source_target_pairs", EmptyInts)]),
    ("sine", ACCURACY),
    ("sort", &[("dimension", Int(-1)), ("is_stable", False)]),
    ("sqrt", ACCURACY),
    ("tan", ACCURACY),
    ("tanh", ACCURACY),
];

const ACCURACY: &[(&str, Implied)] = &[("result_accuracy", Accuracy)];

const CONVOLUTION: &[(&str, Implied)] = &[
    ("lhs_dilation", Ones),
    ("padding", NoPadding),
    ("precision_config", Precisions),
    ("rhs_dilation", Ones),
    ("window_reversal", NoReversal),
    ("window_strides", Ones),
];

/// The values that attributes of an operation have when StableHLO leaves them out.
pub(crate) fn of(op: &str) -> &'static [(&'static str, Implied)] {
    let at = DEFAULTS.binary_search_by(|(name, _)| (*name).cmp(op));
    at.ok().and_then(|at| DEFAULTS.get(at)).map_or(&[], |(_, attrs)| attrs)
}

impl Implied {
    /// Whether an attribute has this value.
    pub(crate) fn is(self, attr: &Attribute) -> bool {
        let splat_of = |value: i128| {
            attr.as_elements()
                .is_some_and(|elements| elements.as_splat().is_some() && elements.int(0) == Some(value))
        };
        match (self, attr) {
            (False, Attribute::Bool(value)) => !value,
            (Int(value), Attribute::Int(found, _)) => i128::from(value) == *found,
            (EmptyString, Attribute::Str(text)) => text.is_empty(),
            (EmptyArray, Attribute::Array(items)) => items.is_empty(),
            (EmptyDict, Attribute::Dict(dict)) => dict.is_empty(),
            (EmptyInts, Attribute::Elements(elements)) => elements.ty().element_count() == Some(0),
            (Ones, _) => splat_of(1),
            (NoPadding | NoReversal, _) => splat_of(0),
            (Precisions, Attribute::Array(items)) => items.iter().all(|item| *item == precision()),
            (NoType, Attribute::Enum(_, EnumValue::ComparisonType(ty))) => *ty == ComparisonType::NoType,
            (OriginalApi, Attribute::Int(value, _)) => *value == 1,
            (Accuracy, Attribute::ResultAccuracy(accuracy)) => **accuracy == ResultAccuracy::default(),
            (Nothing, Attribute::Type(Type::None)) => true,
            _ => false,
        }
    }

    /// The value, for an operation with `rank` dimensions where there is one value for each.
    pub(crate) fn value(self, rank: usize) -> Option<Attribute> {
        let splat = |dims: &[u64], element: ElementType, bytes: &[u8]| -> Option<Attribute> {
            let ty = TensorType::fixed(dims, element);
            let bytes = bytes.repeat(usize::try_from(ty.element_count()?).ok()?);
            DenseElements::raw(ty, bytes).ok().map(Attribute::from)
        };
        let rank = rank as u64;
        Some(match self {
            False => Attribute::Bool(false),
            Int(value) => Attribute::i64(value),
            EmptyString => Attribute::string(""),
            EmptyArray => Attribute::Array([].into()),
            EmptyDict => Attribute::Dict(Dict::new()),
            EmptyInts => splat(&[0], ElementType::I64, &[])?,
            Ones => splat(&[rank], ElementType::I64, &1i64.to_le_bytes())?,
            NoPadding => splat(&[rank, 2], ElementType::I64, &0i64.to_le_bytes())?,
            NoReversal => splat(&[rank], ElementType::Bool, &[0])?,
            Precisions => Attribute::Array([precision(), precision()].into()),
            NoType => Attribute::enumeration(ComparisonType::NoType),
            OriginalApi => Attribute::i32(1),
            Accuracy => Attribute::ResultAccuracy(Arc::new(ResultAccuracy::default())),
            Nothing => Attribute::Type(Type::None),
        })
    }
}

fn precision() -> Attribute {
    Attribute::enumeration(Precision::Default)
}

#[cfg(test)]
mod tests {
    use super::super::forms::forms_of;
    use super::*;

    #[test]
    fn defaults_are_of_attributes_that_exist() {
        assert!(DEFAULTS.is_sorted_by_key(|(name, _)| *name));
        for (op, attrs) in DEFAULTS {
            for (attr, _) in *attrs {
                let known = forms_of(op).any(|form| form.has(attr));
                assert!(known, "{op}: {attr}");
            }
        }
    }

    #[test]
    fn what_is_made_is_recognised() {
        for (op, attrs) in DEFAULTS {
            for (attr, default) in *attrs {
                assert!(default.is(&default.value(2).unwrap()), "{op}: {attr}");
            }
        }
        assert!(!Int(0).is(&Attribute::i64(1)));
        assert!(!Ones.is(&NoPadding.value(2).unwrap()));
    }
}
