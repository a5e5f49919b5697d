//! The notations in which the table's entries give operands, results, attributes and regions.

use super::{Arity, AttrDef, AttrKind, Presence, RegionDef, TypeClass, ValueSpec};
use crate::attr::{Attribute, EnumDialect, EnumValue};

/// Reads `lhs: int|float, rest*: any`.
pub(super) fn values(text: &'static str) -> Option<Vec<ValueSpec>> {
    items(text)
        .map(|item| {
            let (name, class) = item.split_once(':')?;
            let (name, arity) = match name.as_bytes().last()? {
                b'*' => (&name[..name.len() - 1], Arity::Many),
                b'?' => (&name[..name.len() - 1], Arity::Optional),
                _ => (name, Arity::One),
            };
            Some(ValueSpec { name, arity, class: TypeClass::parse(class)? })
        })
        .collect()
}

/// Reads `dimension: i64, is_stable: bool = false, algorithm?: algorithm`.
pub(super) fn attrs(text: &'static str) -> Option<Vec<AttrDef>> {
    items(text)
        .map(|item| {
            let (name, rest) = item.split_once(':')?;
            let (kind, default) = match rest.split_once('=') {
                Some((kind, default)) => (kind.trim(), Some(default.trim())),
                None => (rest.trim(), None),
            };
            let kind = kind_of(kind)?;
            let (name, optional) = name.strip_suffix('?').map_or((name, false), |name| (name, true));
            let presence = match default {
                Some(text) => Presence::Default(default_value(kind, text)?),
                None if optional => Presence::Optional,
                None => Presence::Required,
            };
            Some(AttrDef { name, kind, presence })
        })
        .collect()
}

/// Reads `cond, body`, `branches+` for at least one, or `extra*` for any number.
pub(super) fn regions(text: &'static str) -> Vec<RegionDef> {
    items(text)
        .map(|item| match item.as_bytes().last() {
            Some(b'*') => RegionDef { name: &item[..item.len() - 1], many: true, required: false },
            Some(b'+') => RegionDef { name: &item[..item.len() - 1], many: true, required: true },
            _ => RegionDef { name: item, many: false, required: true },
        })
        .collect()
}

fn items(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn kind_of(text: &'static str) -> Option<AttrKind> {
    if let Some(name) = text.strip_prefix("enum ") {
        return Some(AttrKind::Enum(name));
    }
    if let Some(name) = text.strip_prefix("enums ") {
        return Some(AttrKind::Enums(name));
    }
    Some(match text {
        "i64" => AttrKind::I64,
        "i32" => AttrKind::I32,
        "u64" => AttrKind::U64,
        "u32" => AttrKind::U32,
        "bool" => AttrKind::Bool,
        "unit" => AttrKind::Unit,
        "f32" => AttrKind::F32,
        "f64" => AttrKind::F64,
        "str" => AttrKind::Str,
        "symbol" => AttrKind::Symbol,
        "symbols" => AttrKind::Symbols,
        "i64s" => AttrKind::I64s,
        "i32s" => AttrKind::I32s,
        "bools" => AttrKind::Bools,
        "rows" => AttrKind::Rows,
        "groups" => AttrKind::Groups,
        "elements" => AttrKind::Elements,
        "dot" => AttrKind::Dot,
        "conv" => AttrKind::Conv,
        "gather" => AttrKind::Gather,
        "scatter" => AttrKind::Scatter,
        "ragged_dot" => AttrKind::RaggedDot,
        "algorithm" => AttrKind::Algorithm,
        "channel" => AttrKind::Channel,
        "accuracy" => AttrKind::Accuracy,
        "type" => AttrKind::Type,
        "array" => AttrKind::Array,
        "dict" => AttrKind::Dict,
        "any" => AttrKind::Any,
        _ => return None,
    })
}

fn default_value(kind: AttrKind, text: &str) -> Option<Attribute> {
    Some(match kind {
        AttrKind::I64 => Attribute::i64(text.parse().ok()?),
        AttrKind::I32 => Attribute::i32(text.parse().ok()?),
        AttrKind::U64 => Attribute::u64(text.parse().ok()?),
        AttrKind::U32 => Attribute::u32(text.parse().ok()?),
        AttrKind::Bool => Attribute::Bool(text.parse().ok()?),
        AttrKind::Str => Attribute::string(text.trim_matches('"')),
        AttrKind::I64s if text == "[]" => Attribute::i64s([]),
        AttrKind::Array | AttrKind::Symbols if text == "[]" => Attribute::Array([].into()),
        AttrKind::Dict if text == "{}" => Attribute::Dict(crate::attr::Dict::new()),
        AttrKind::Enum(name) => Attribute::Enum(EnumDialect::StableHlo, EnumValue::parse(name, text)?),
        AttrKind::Accuracy if text == "DEFAULT" => {
            Attribute::ResultAccuracy(std::sync::Arc::new(crate::attr::ResultAccuracy::default()))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notations_are_read() {
        let specs = values("operand: tensor, start_indices*: 0d int").unwrap();
        assert_eq!((specs[1].name, specs[1].arity), ("start_indices", Arity::Many));
        let defs = attrs("dimension: i64 = -1, algorithm?: algorithm, how: enum precision").unwrap();
        assert_eq!(defs[0].presence, Presence::Default(Attribute::i64(-1)));
        assert_eq!(defs[1].presence, Presence::Optional);
        assert_eq!(defs[2].kind, AttrKind::Enum("precision"));
        assert!(values("x: nonsense").is_none());
        assert!(attrs("x: nonsense").is_none());
        let branches = &regions("branches+")[0];
        assert!(branches.name == "branches" && branches.many && branches.required);
        assert!(!regions("extra*")[0].required);
    }
}
