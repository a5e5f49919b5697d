//! The oldest version of StableHLO that has all that a module uses.

use warpforge_ir::attr::{Attribute, Dict};
use warpforge_ir::types::{Element, ElementType, Granularity, Type};
use warpforge_ir::{Module, OpRef};

use super::ops::vhlo_name;
use crate::bytecode::version::Version;
use crate::bytecode::vhlo::codes::{BUFFER_SINCE, FUTURE_SINCE, MESH_SINCE, PER_AXIS_SINCE, SCALARS};
use crate::bytecode::vhlo::forms::{self, Form};
use crate::bytecode::vhlo::{defaults, lower};

/// The version that a module needs, and what needs it.
#[derive(Clone, Debug)]
pub(super) struct Needed {
    pub(super) version: Version,
    pub(super) what: String,
}

/// Surveys a module.
pub(super) fn of_module(module: &Module) -> Needed {
    let mut needed = Needed { version: Version::OLDEST_WRITTEN, what: String::new() };
    let mut pending = vec![module.root()];
    while let Some(op) = pending.pop() {
        needed.op(op);
        for &region in op.regions() {
            for &block in module.blocks(region) {
                for &argument in module.arguments(block) {
                    needed.ty(module.value_type(argument));
                }
                pending.extend(module.ops_in(block));
            }
        }
    }
    needed
}

impl Needed {
    /// Notes that something came with a version.
    fn since(&mut self, version: Version, what: impl FnOnce() -> String) {
        if self.version.is_before(version) {
            *self = Self { version, what: what() };
        }
    }

    fn op(&mut self, op: OpRef<'_>) {
        op.result_types().for_each(|ty| self.ty(ty));
        let Some(name) = vhlo_name(op) else { return };
        // What cannot be lowered is refused when it is written.
        let Ok(attrs) = lower::from_stablehlo(name, op.attrs()) else { return };
        attrs.entries().iter().for_each(|(_, attr)| self.attr(attr));
        if let Some(form) = forms::forms_of(name).find(|form| fits(op, form, &attrs)) {
            self.since(form.since, || format!("`{}` in this form", op.name()));
        }
        match name {
            "custom_call" => self.custom_call(op, &attrs),
            "convolution" | "dynamic_conv" => {
                let element = |index| op.operand_type(index).and_then(Type::element);
                if element(0) != element(1) && element(0).and_then(Element::storage).is_some_and(is_f8) {
                    self.since(Version::new(1, 20), || "convolutions of two 8-bit types".to_owned());
                }
            }
            _ => {}
        }
    }

    fn custom_call(&mut self, op: OpRef<'_>, attrs: &Dict) {
        let typed = attrs.get("api_version").and_then(Attribute::as_i64) == Some(4);
        if typed || attrs.get("backend_config").is_some_and(|config| config.as_dict().is_some()) {
            self.since(Version::new(1, 3), || "custom calls configured by a dictionary".to_owned());
        }
        let mut types = op.operand_types().chain(op.result_types());
        if types.any(|ty| matches!(ty, Type::Future(_))) {
            self.since(Version::new(1, 17), || "custom calls with pending results".to_owned());
        }
    }

    fn attr(&mut self, attr: &Attribute) {
        match attr {
            Attribute::Int(_, ty) | Attribute::Float(_, ty) | Attribute::Type(ty) => self.ty(ty),
            Attribute::Array(items) => items.iter().for_each(|item| self.attr(item)),
            Attribute::Dict(dict) => dict.entries().iter().for_each(|(_, item)| self.attr(item)),
            Attribute::Elements(elements) => self.element(elements.ty().element()),
            Attribute::MeshAxes(_) => {
                self.since(MESH_SINCE, || "groups of processes by the axes of a mesh".to_owned());
            }
            _ => {}
        }
    }

    fn ty(&mut self, ty: &Type) {
        match ty {
            Type::Tensor(tensor) => self.element(tensor.element()),
            Type::Buffer(tensor) => {
                self.since(BUFFER_SINCE, || "buffers".to_owned());
                self.element(tensor.element());
            }
            Type::Future(types) => {
                self.since(FUTURE_SINCE, || "pending results".to_owned());
                types.iter().for_each(|ty| self.ty(ty));
            }
            Type::Tuple(types) => types.iter().for_each(|ty| self.ty(ty)),
            Type::Function(function) => {
                function.inputs.iter().chain(&function.results).for_each(|ty| self.ty(ty));
            }
            Type::UnrankedTensor(element) | Type::Scalar(element) => self.element(element),
            Type::Opaque(name) => self.word(name),
            Type::Token | Type::None => {}
        }
    }

    fn element(&mut self, element: &Element) {
        match element {
            Element::Plain(plain) => self.word(&plain.to_string()),
            Element::Quantized(quantized) => {
                self.word(quantized.storage.name());
                self.word(quantized.expressed.name());
                if quantized.granularity != Granularity::PerTensor {
                    self.since(PER_AXIS_SINCE, || "quantization by axis".to_owned());
                }
            }
            Element::Opaque(_) => {}
        }
    }

    fn word(&mut self, name: &str) {
        if let Some(scalar) = SCALARS.iter().find(|scalar| scalar.name == name) {
            self.since(scalar.since, || format!("the type {name}"));
        }
    }
}

fn is_f8(element: ElementType) -> bool {
    element.is_float() && element.bits() == 8
}

/// Whether an operation can be written in a form: what the form has no attribute for goes without saying, and there are
/// no more values and regions than it has.
fn fits(op: OpRef<'_>, form: &Form, attrs: &Dict) -> bool {
    let implied = defaults::of(form.name);
    let newest = forms::forms_of(form.name).last();
    let covered = newest.is_some_and(|newest| {
        newest.attrs().filter(|attr| !form.has(attr)).all(|attr| {
            let default = implied.iter().find(|(name, _)| *name == attr).map(|(_, default)| default);
            default.is_some_and(|default| attrs.get(attr).is_none_or(|value| default.is(value)))
        })
    });
    let shaped = match (form.name, form.version) {
        ("all_gather" | "all_reduce" | "all_to_all", 1) => op.operands().len() == 1 && op.result_count() == 1,
        ("composite", 1) => op.regions().is_empty(),
        // Its padding was an attribute.
        ("dynamic_conv", 1) => false,
        _ => true,
    };
    covered && shaped
}
