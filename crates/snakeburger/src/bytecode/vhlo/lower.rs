//! Attributes of StableHLO operations as those of the VHLO operations of today.

use warpforge_ir::attr::{Attribute, ConvDims, DenseElements, Dict, DotAlgorithm, DotDims, IndexDims};

use super::defaults;

/// The attributes of the newest form of the VHLO operation `name` from those of the StableHLO operation.
///
/// # Errors
///
/// What an artifact has no place for.
pub(crate) fn from_stablehlo(name: &str, attrs: &Dict) -> Result<Dict, String> {
    let mut lowered = Lowered { attrs: Dict::new() };
    for (attr, value) in attrs.entries() {
        lowered.attr(name, attr, value)?;
    }
    let rank = lowered.rank();
    for (attr, default) in defaults::of(name) {
        let absent = lowered.attrs.get(attr).is_none();
        // The padding of a dynamic convolution is an operand.
        if absent && !(name == "dynamic_conv" && *attr == "padding") {
            let value = match (*attr, lowered.attrs.get("api_version").and_then(Attribute::as_i64)) {
                // The newest calling convention configures by a dictionary.
                ("backend_config", Some(4)) => defaults::Implied::EmptyDict.value(rank),
                _ => default.value(rank),
            };
            lowered.attrs.set(*attr, value.ok_or_else(|| format!("too many dimensions for `{attr}`"))?);
        }
    }
    Ok(lowered.attrs)
}

struct Lowered {
    attrs: Dict,
}

impl Lowered {
    fn attr(&mut self, op: &str, name: &str, value: &Attribute) -> Result<(), String> {
        match value {
            Attribute::Conv(dims) if name == "dimension_numbers" => self.conv(dims),
            Attribute::Gather(dims) if name == "dimension_numbers" => self.index_dims(dims.as_ref()),
            Attribute::Dot(dims) if name == "dot_dimension_numbers" => self.dot(dims),
            Attribute::Scatter(dims) if name == "scatter_dimension_numbers" => self.index_dims(dims.as_ref()),
            Attribute::DotAlgorithm(algorithm) if name == "algorithm" => {
                self.algorithm(algorithm);
                Ok(())
            }
            Attribute::Channel(channel) if name == "channel_handle" => {
                self.set("channel_id", Attribute::i64(channel.handle));
                if matches!(op, "send" | "recv") {
                    self.set("channel_type", Attribute::i64(channel.kind));
                }
                Ok(())
            }
            Attribute::Unit if matches!(name, "use_global_device_ids" | "has_dynamic_root") => {
                self.attrs.set(name.to_owned(), Attribute::Bool(true));
                Ok(())
            }
            _ => {
                self.attrs.set(name.to_owned(), value.clone());
                Ok(())
            }
        }
    }

    /// How many dimensions the operation has values for.
    fn rank(&self) -> usize {
        let list =
            ["window_dimensions", "input_spatial_dimensions"].iter().find_map(|name| self.attrs.get(name));
        match list {
            Some(Attribute::I64s(values)) => values.len(),
            Some(Attribute::Elements(elements)) => {
                elements.ty().dim(0).and_then(|dim| usize::try_from(dim.size()?).ok()).unwrap_or(0)
            }
            _ => 0,
        }
    }

    fn set(&mut self, name: &'static str, value: Attribute) {
        self.attrs.set(name, value);
    }

    fn int(&mut self, name: &'static str, value: i64) {
        self.set(name, Attribute::i64(value));
    }

    fn ints(&mut self, name: &'static str, values: &[i64]) -> Result<(), String> {
        let elements =
            DenseElements::i64s(&[values.len() as u64], values).map_err(|error| error.to_string())?;
        self.set(name, Attribute::from(elements));
        Ok(())
    }

    fn conv(&mut self, dims: &ConvDims) -> Result<(), String> {
        self.int("input_batch_dimension", dims.input_batch);
        self.int("input_feature_dimension", dims.input_feature);
        self.ints("input_spatial_dimensions", &dims.input_spatial)?;
        self.int("kernel_input_feature_dimension", dims.kernel_input_feature);
        self.int("kernel_output_feature_dimension", dims.kernel_output_feature);
        self.ints("kernel_spatial_dimensions", &dims.kernel_spatial)?;
        self.int("output_batch_dimension", dims.output_batch);
        self.int("output_feature_dimension", dims.output_feature);
        self.ints("output_spatial_dimensions", &dims.output_spatial)
    }

    fn index_dims<D: IndexDims>(&mut self, dims: &D) -> Result<(), String> {
        let (lists, index_vector_dim) = dims.parts();
        for (name, list) in D::NAMES.into_iter().zip(lists) {
            self.ints(name, list)?;
        }
        self.int("index_vector_dim", index_vector_dim);
        Ok(())
    }

    fn dot(&mut self, dims: &DotDims) -> Result<(), String> {
        self.ints("lhs_batching_dimensions", &dims.lhs_batching)?;
        self.ints("rhs_batching_dimensions", &dims.rhs_batching)?;
        self.ints("lhs_contracting_dimensions", &dims.lhs_contracting)?;
        self.ints("rhs_contracting_dimensions", &dims.rhs_contracting)
    }

    fn algorithm(&mut self, algorithm: &DotAlgorithm) {
        self.set("lhs_precision_type", Attribute::Type(algorithm.lhs_precision_type.clone()));
        self.set("rhs_precision_type", Attribute::Type(algorithm.rhs_precision_type.clone()));
        self.set("accumulation_type", Attribute::Type(algorithm.accumulation_type.clone()));
        self.int("lhs_component_count", algorithm.lhs_component_count);
        self.int("rhs_component_count", algorithm.rhs_component_count);
        self.int("num_primitive_operations", algorithm.num_primitive_operations);
        let imprecise = Attribute::Bool(algorithm.allow_imprecise_accumulation);
        self.set("allow_imprecise_accumulation", imprecise);
    }
}
