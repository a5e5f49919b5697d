//! Bringing attributes into the form that the table declares.

use std::sync::Arc;

use super::AttrKind;
use crate::attr::{Attribute, DenseElements, Dict, EnumDialect, EnumValue};
use crate::types::{Element, ElementType, Type};

impl AttrKind {
    /// The attribute in this form: older files have `dense<…>` and lists where newer ones have `array<…>`. What cannot be
    /// brought into the form is returned as it is, for the verifier to refuse.
    pub fn normalise(self, attr: Attribute) -> Attribute {
        let changed = match (self, &attr) {
            (AttrKind::I64s, _) => integers(&attr).map(|values| Attribute::I64s(values.into())),
            (AttrKind::Bools, Attribute::I64s(_) | Attribute::Elements(_) | Attribute::Array(_)) => {
                truths(&attr)
            }
            (AttrKind::I32s, Attribute::I64s(values)) => {
                let items: Vec<Attribute> =
                    values.iter().filter_map(|v| i32::try_from(*v).ok()).map(Attribute::i32).collect();
                (items.len() == values.len()).then(|| Attribute::DenseArray(ElementType::I32, items.into()))
            }
            (AttrKind::Rows | AttrKind::Groups, Attribute::Array(rows)) => rows_of(rows),
            (AttrKind::Symbol, Attribute::Str(name)) => Some(Attribute::symbol(name.to_string())),
            (AttrKind::Enum(name), Attribute::Str(value)) => enum_of(name, value),
            (AttrKind::Enums(name), Attribute::Array(items)) => {
                let items: Option<Vec<Attribute>> = items
                    .iter()
                    .map(|item| match item {
                        Attribute::Str(value) => enum_of(name, value),
                        other => Some(other.clone()),
                    })
                    .collect();
                items.map(|items| Attribute::Array(items.into()))
            }
            _ => None,
        };
        changed.unwrap_or(attr)
    }

    /// Whether an attribute has this form.
    pub fn accepts(self, attr: &Attribute) -> bool {
        let int_of = |element: ElementType| match attr {
            Attribute::Int(_, ty) => *ty == Type::scalar(element),
            _ => false,
        };
        let float_of = |element: ElementType| match attr {
            Attribute::Float(_, ty) => *ty == Type::scalar(element),
            _ => false,
        };
        match self {
            AttrKind::I64 => int_of(ElementType::I64),
            AttrKind::I32 => int_of(ElementType::I32),
            AttrKind::U64 => int_of(ElementType::U64),
            AttrKind::U32 => int_of(ElementType::U32),
            AttrKind::Bool => matches!(attr, Attribute::Bool(_)),
            AttrKind::Unit => matches!(attr, Attribute::Unit),
            AttrKind::F32 => float_of(ElementType::F32),
            AttrKind::F64 => float_of(ElementType::F64),
            AttrKind::Str => matches!(attr, Attribute::Str(_)),
            AttrKind::Symbol => attr.as_symbol().is_some(),
            AttrKind::Symbols => {
                attr.as_array().is_some_and(|items| items.iter().all(|item| item.as_symbol().is_some()))
            }
            AttrKind::I64s => matches!(attr, Attribute::I64s(_)),
            AttrKind::I32s => matches!(attr, Attribute::DenseArray(ElementType::I32, _)),
            AttrKind::Bools => matches!(attr, Attribute::Bools(_)),
            AttrKind::Rows => is_matrix(attr),
            AttrKind::Groups => is_matrix(attr) || matches!(attr, Attribute::MeshAxes(_)),
            AttrKind::Elements => matches!(attr, Attribute::Elements(_)),
            AttrKind::Enum(name) => matches!(attr, Attribute::Enum(_, value) if value.mnemonic() == name),
            AttrKind::Enums(name) => attr.as_array().is_some_and(|items| {
                items.iter().all(|item| matches!(item, Attribute::Enum(_, value) if value.mnemonic() == name))
            }),
            AttrKind::Dot => matches!(attr, Attribute::Dot(_)),
            AttrKind::Conv => matches!(attr, Attribute::Conv(_)),
            AttrKind::Gather => matches!(attr, Attribute::Gather(_)),
            AttrKind::Scatter => matches!(attr, Attribute::Scatter(_)),
            AttrKind::RaggedDot => matches!(attr, Attribute::RaggedDot(_)),
            AttrKind::Algorithm => matches!(attr, Attribute::DotAlgorithm(_)),
            AttrKind::Channel => matches!(attr, Attribute::Channel(_)),
            AttrKind::Accuracy => matches!(attr, Attribute::ResultAccuracy(_)),
            AttrKind::Type => matches!(attr, Attribute::Type(_)),
            AttrKind::Array => matches!(attr, Attribute::Array(_)),
            AttrKind::Dict => matches!(attr, Attribute::Dict(_)),
            AttrKind::Any => true,
        }
    }

    /// The form in words, for messages.
    pub fn describe(self) -> String {
        match self {
            AttrKind::I64 => "a 64-bit integer".to_owned(),
            AttrKind::I32 => "a 32-bit integer".to_owned(),
            AttrKind::U64 => "an unsigned 64-bit integer".to_owned(),
            AttrKind::U32 => "an unsigned 32-bit integer".to_owned(),
            AttrKind::Bool => "true or false".to_owned(),
            AttrKind::I64s => "a list of 64-bit integers".to_owned(),
            AttrKind::Bools => "a list of truth values".to_owned(),
            AttrKind::Rows => "a constant of 64-bit integers".to_owned(),
            AttrKind::Groups => "a constant of 64-bit integers or axes of a mesh".to_owned(),
            AttrKind::Enum(name) | AttrKind::Enums(name) => format!("a value of {name}"),
            other => format!("{other:?}").to_lowercase(),
        }
    }
}

/// The attributes of an operation in the forms that its table entry declares.
pub fn normalise_all(def: &super::OpDef, attrs: &mut Dict) {
    for attr in &def.attrs {
        if attrs.get(attr.name).is_some_and(|value| !attr.kind.accepts(value))
            && let Some(value) = attrs.remove(attr.name)
        {
            let value = match value.as_elements() {
                // CHLO takes a constant of rank zero for a list of one dimension.
                Some(only) if attr.name == "broadcast_dimensions" && def.kind.dialect() == "chlo" => {
                    only.to_i64s().filter(|dims| dims.len() == 1).map_or(value, Attribute::i64s)
                }
                _ => value,
            };
            attrs.set(attr.name, attr.kind.normalise(value));
        }
    }
}

fn is_matrix(attr: &Attribute) -> bool {
    attr.as_elements().is_some_and(|e| *e.ty().element() == Element::Plain(ElementType::I64))
}

fn integers(attr: &Attribute) -> Option<Vec<i64>> {
    match attr {
        Attribute::Elements(elements) if elements.ty().rank() == 1 => elements.to_i64s(),
        Attribute::Array(items) => items.iter().map(Attribute::as_i64).collect(),
        _ => None,
    }
}

fn truths(attr: &Attribute) -> Option<Attribute> {
    let values: Option<Vec<bool>> = match attr {
        Attribute::Elements(elements) => elements.to_i64s().map(|all| all.iter().map(|v| *v != 0).collect()),
        Attribute::Array(items) => items.iter().map(Attribute::as_bool).collect(),
        Attribute::I64s(items) => Some(items.iter().map(|v| *v != 0).collect()),
        _ => None,
    };
    values.map(|values| Attribute::Bools(values.into()))
}

fn rows_of(rows: &Arc<[Attribute]>) -> Option<Attribute> {
    let rows: Option<Vec<Vec<i64>>> = rows.iter().map(integers).collect();
    let rows = rows?;
    let columns = rows.first().map_or(0, Vec::len);
    let same = rows.iter().all(|row| row.len() == columns);
    let flat: Vec<i64> = rows.concat();
    let dims = [rows.len() as u64, columns as u64];
    same.then(|| DenseElements::i64s(&dims, &flat).ok()).flatten().map(Attribute::from)
}

fn enum_of(name: &str, value: &str) -> Option<Attribute> {
    EnumValue::parse(name, value).map(|value| Attribute::Enum(EnumDialect::StableHlo, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_forms_become_the_declared_one() {
        let dense = Attribute::from(DenseElements::i64s(&[2], &[1, 2]).unwrap());
        assert_eq!(AttrKind::I64s.normalise(dense), Attribute::i64s([1, 2]));
        let name = AttrKind::Enum("precision").normalise(Attribute::string("HIGH"));
        assert!(AttrKind::Enum("precision").accepts(&name));
        let odd = Attribute::string("x");
        assert_eq!(AttrKind::I64s.normalise(odd.clone()), odd, "what cannot be brought into form is kept");
        assert!(!AttrKind::I64s.accepts(&odd));
        assert!(!AttrKind::I64.accepts(&Attribute::i32(1)));
    }
}
