//! Attributes of VHLO operations, of any version, as those of today's StableHLO.

use std::sync::Arc;

use warpforge_ir::attr::{Attribute, ChannelHandle, ConvDims, Dict, DotAlgorithm, DotDims, IndexDims};
use warpforge_ir::types::Type;

use super::defaults;

/// The attributes of a StableHLO operation from those of the VHLO operation `name`, whatever its version.
///
/// # Errors
///
/// What is missing or not of its form.
pub(crate) fn to_stablehlo(name: &str, version: u32, attrs: Dict) -> Result<Dict, String> {
    let mut attrs = Attrs { attrs };
    if name == "dynamic_conv" && version == 1 {
        // An operand said the same, and StableHLO never used the attribute.
        attrs.take("padding");
    }
    attrs.remove_defaults(name);
    match name {
        "convolution" | "dynamic_conv" => attrs.fold_conv()?,
        "dot_general" => attrs.fold_dot()?,
        "gather" | "dynamic_gather" => attrs.fold_gather()?,
        "scatter" => attrs.fold_scatter()?,
        "send" | "recv" => attrs.fold_channel()?,
        "all_gather"
        | "all_reduce"
        | "all_to_all"
        | "collective_broadcast"
        | "collective_permute"
        | "collective_reduce"
        | "reduce_scatter" => attrs.fold_collective()?,
        "call" => attrs.fold_symbol("callee")?,
        "composite" => attrs.fold_symbol("decomposition")?,
        "custom_call" => attrs.fold_symbols("called_computations")?,
        _ => {}
    }
    Ok(attrs.attrs)
}

struct Attrs {
    attrs: Dict,
}

impl Attrs {
    fn take(&mut self, name: &str) -> Option<Attribute> {
        self.attrs.remove(name)
    }

    fn set(&mut self, name: &'static str, value: Attribute) {
        self.attrs.set(name, value);
    }

    fn remove_defaults(&mut self, op: &str) {
        // The layouts of a custom call come in pairs: an empty list beside one that is not means no results.
        let layouts = ["operand_layouts", "result_layouts"];
        let laid_out = op == "custom_call"
            && layouts.iter().any(|name| {
                self.attrs.get(name).and_then(Attribute::as_array).is_some_and(|items| !items.is_empty())
            });
        for (name, default) in defaults::of(op) {
            // MLIR fills in these two when they are left out, and then shows them.
            let filled_in = matches!(*name, "infeed_config" | "outfeed_config");
            let kept = filled_in || laid_out && layouts.contains(name);
            if !kept && self.attrs.get(name).is_some_and(|attr| default.is(attr)) {
                self.attrs.remove(name);
            }
        }
        // The configuration of a custom call is text or, in the newest calling convention, a dictionary.
        let config = self.attrs.get("backend_config").filter(|_| op == "custom_call");
        if config.is_some_and(|config| defaults::Implied::EmptyDict.is(config)) {
            self.attrs.remove("backend_config");
        }
    }

    fn int(&mut self, name: &str) -> Result<i64, String> {
        let found = self.take(name).ok_or_else(|| missing(name))?;
        found.as_i64().ok_or_else(|| format!("the attribute `{name}` must be an integer"))
    }

    /// A list of integers; one that is left out is empty.
    fn ints(&mut self, name: &str) -> Result<Vec<i64>, String> {
        let Some(found) = self.take(name) else { return Ok(Vec::new()) };
        let values = found.as_elements().filter(|elements| elements.ty().rank() == 1);
        let values = values.and_then(warpforge_ir::DenseElements::to_i64s);
        values.ok_or_else(|| format!("the attribute `{name}` must be a list of integers"))
    }

    fn ty(&mut self, name: &str) -> Result<Type, String> {
        match self.take(name) {
            Some(Attribute::Type(ty)) => Ok(ty),
            Some(_) => Err(format!("the attribute `{name}` must be a type")),
            None => Err(missing(name)),
        }
    }

    fn fold_conv(&mut self) -> Result<(), String> {
        let dims = ConvDims {
            input_batch: self.int("input_batch_dimension")?,
            input_feature: self.int("input_feature_dimension")?,
            input_spatial: self.ints("input_spatial_dimensions")?,
            kernel_input_feature: self.int("kernel_input_feature_dimension")?,
            kernel_output_feature: self.int("kernel_output_feature_dimension")?,
            kernel_spatial: self.ints("kernel_spatial_dimensions")?,
            output_batch: self.int("output_batch_dimension")?,
            output_feature: self.int("output_feature_dimension")?,
            output_spatial: self.ints("output_spatial_dimensions")?,
        };
        self.set("dimension_numbers", Attribute::Conv(Arc::new(dims)));
        Ok(())
    }

    fn fold_dot(&mut self) -> Result<(), String> {
        let dims = DotDims {
            lhs_batching: self.ints("lhs_batching_dimensions")?,
            rhs_batching: self.ints("rhs_batching_dimensions")?,
            lhs_contracting: self.ints("lhs_contracting_dimensions")?,
            rhs_contracting: self.ints("rhs_contracting_dimensions")?,
        };
        self.set("dot_dimension_numbers", Attribute::Dot(Arc::new(dims)));
        if self.attrs.get("lhs_precision_type").is_none() {
            return Ok(());
        }
        let algorithm = DotAlgorithm {
            lhs_precision_type: self.ty("lhs_precision_type")?,
            rhs_precision_type: self.ty("rhs_precision_type")?,
            accumulation_type: self.ty("accumulation_type")?,
            lhs_component_count: self.int("lhs_component_count")?,
            rhs_component_count: self.int("rhs_component_count")?,
            num_primitive_operations: self.int("num_primitive_operations")?,
            allow_imprecise_accumulation: self
                .take("allow_imprecise_accumulation")
                .and_then(|attr| attr.as_bool())
                .ok_or_else(|| missing("allow_imprecise_accumulation"))?,
        };
        self.set("algorithm", Attribute::DotAlgorithm(Arc::new(algorithm)));
        Ok(())
    }

    fn fold_gather(&mut self) -> Result<(), String> {
        let dims = self.index_dims()?;
        self.set("dimension_numbers", Attribute::Gather(Arc::new(dims)));
        Ok(())
    }

    fn fold_scatter(&mut self) -> Result<(), String> {
        let dims = self.index_dims()?;
        self.set("scatter_dimension_numbers", Attribute::Scatter(Arc::new(dims)));
        Ok(())
    }

    fn index_dims<D: IndexDims>(&mut self) -> Result<D, String> {
        let mut dims = D::default();
        let (lists, index_vector_dim) = dims.parts_mut();
        for (name, list) in D::NAMES.into_iter().zip(lists) {
            *list = self.ints(name)?;
        }
        *index_vector_dim = self.int("index_vector_dim")?;
        Ok(dims)
    }

    fn fold_channel(&mut self) -> Result<(), String> {
        let channel = ChannelHandle { handle: self.int("channel_id")?, kind: self.int("channel_type")? };
        self.set("channel_handle", Attribute::Channel(channel));
        Ok(())
    }

    fn fold_collective(&mut self) -> Result<(), String> {
        if self.attrs.get("channel_id").is_some() {
            let channel = ChannelHandle { handle: self.int("channel_id")?, kind: 0 };
            self.set("channel_handle", Attribute::Channel(channel));
        }
        for name in ["has_dynamic_root", "use_global_device_ids"] {
            match self.attrs.get(name) {
                Some(Attribute::Bool(true)) => self.set(name, Attribute::Unit),
                Some(_) => return Err(format!("the attribute `{name}` must be true or false")),
                None => {}
            }
        }
        Ok(())
    }

    fn fold_symbol(&mut self, name: &'static str) -> Result<(), String> {
        let symbol = self.take(name).as_ref().and_then(symbol).ok_or_else(|| missing(name))?;
        self.set(name, symbol);
        Ok(())
    }

    fn fold_symbols(&mut self, name: &'static str) -> Result<(), String> {
        let Some(found) = self.take(name) else { return Ok(()) };
        let symbols: Option<Vec<Attribute>> =
            found.as_array().and_then(|items| items.iter().map(symbol).collect());
        let symbols = symbols.ok_or_else(|| format!("the attribute `{name}` must be a list of names"))?;
        self.set(name, Attribute::Array(symbols.into()));
        Ok(())
    }
}

fn symbol(name: &Attribute) -> Option<Attribute> {
    name.as_str().map(Attribute::symbol)
}

fn missing(name: &str) -> String {
    format!("the attribute `{name}` is missing or not of its form")
}
