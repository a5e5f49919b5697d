//! Attributes as MLIR writes them.

use std::fmt::{self, Display, Formatter};

use super::{Attribute, Dict, write_list};
use crate::print::{float_text, write_elements, write_escaped};
use crate::types::{Element, ElementType, FloatType, Type, write_separated};

impl Display for Attribute {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Attribute::Unit => f.write_str("unit"),
            Attribute::Bool(value) => value.fmt(f),
            Attribute::Int(value, ty) => write!(f, "{value} : {ty}"),
            Attribute::Float(value, ty) => write!(f, "{} : {ty}", typed_float_text(*value, ty)),
            Attribute::Str(text) => write_string(f, text),
            Attribute::Symbol(path) => {
                let symbols = path.iter().map(|name| SymbolText(name));
                write_separated(f, symbols, "::")
            }
            Attribute::Type(ty) => ty.fmt(f),
            Attribute::Array(items) => write_list(f, &items.iter().map(Untyped).collect::<Vec<_>>()),
            Attribute::Dict(dict) => dict.fmt(f),
            Attribute::I64s(values) => write_array(f, "i64", values),
            Attribute::Bools(values) => write_array(f, "i1", values),
            Attribute::DenseArray(element, values) => {
                write_array(f, &element.to_string(), &values.iter().map(Bare).collect::<Vec<_>>())
            }
            Attribute::Elements(elements) => write_elements(f, elements),
            Attribute::Enum(dialect, value) => {
                write!(f, "#{}<{} {}>", dialect.name(), value.mnemonic(), value.name())
            }
            Attribute::Dot(dims) => dims.fmt(f),
            Attribute::Conv(dims) => write!(f, "#stablehlo.conv<{dims}>"),
            Attribute::Gather(dims) => dims.fmt(f),
            Attribute::Scatter(dims) => dims.fmt(f),
            Attribute::RaggedDot(dims) => dims.fmt(f),
            Attribute::DotAlgorithm(algorithm) => write!(f, "#stablehlo.dot_algorithm{algorithm}"),
            Attribute::Alias(alias) => alias.fmt(f),
            Attribute::Channel(channel) => channel.fmt(f),
            Attribute::ResultAccuracy(accuracy) => accuracy.fmt(f),
            Attribute::MeshAxes(axes) => axes.fmt(f),
            Attribute::Bounds(bounds) => {
                f.write_str("#stablehlo.bounds<")?;
                let shown = bounds.iter().map(|b| b.map_or("?".to_owned(), |bound| bound.to_string()));
                write_separated(f, shown, ", ")?;
                f.write_str(">")
            }
            Attribute::Opaque(text) => f.write_str(text),
        }
    }
}

impl Display for Dict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        let entries = self.entries().iter().map(|(name, value)| Entry(name, value));
        write_separated(f, entries, ", ")?;
        f.write_str("}")
    }
}

/// One entry of a dictionary: `name = value`, or the name alone for a unit.
pub(crate) struct Entry<'a>(pub(crate) &'a str, pub(crate) &'a Attribute);

impl Display for Entry<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if is_bare_name(self.0) {
            f.write_str(self.0)?;
        } else {
            write_string(f, self.0)?;
        }
        match self.1 {
            Attribute::Unit => Ok(()),
            value => write!(f, " = {value}"),
        }
    }
}

/// An element of a list: 64-bit integers and doubles are written without their type.
struct Untyped<'a>(&'a Attribute);

impl Display for Untyped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Attribute::Int(value, ty) if *ty == Type::scalar(ElementType::I64) => value.fmt(f),
            Attribute::Float(value, ty) if *ty == Type::scalar(ElementType::F64) => {
                f.write_str(&float_text(*value))
            }
            other => other.fmt(f),
        }
    }
}

/// A number without its type.
pub(crate) struct Bare<'a>(pub(crate) &'a Attribute);

impl Display for Bare<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Attribute::Int(value, _) => value.fmt(f),
            Attribute::Float(value, ty) => f.write_str(&typed_float_text(*value, ty)),
            other => other.fmt(f),
        }
    }
}

/// A symbol's name with its `@`, in quotes where it must be.
pub(crate) struct SymbolText<'a>(pub(crate) &'a str);

impl Display for SymbolText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("@")?;
        if is_bare_name(self.0) { f.write_str(self.0) } else { write_string(f, self.0) }
    }
}

fn typed_float_text(value: f64, ty: &Type) -> String {
    let format = match ty {
        Type::Scalar(Element::Plain(ElementType::Float(float))) => *float,
        _ => FloatType::F64,
    };
    crate::print::float_code_text(format, format.format().encode(value))
}

fn write_array<T: Display>(f: &mut Formatter<'_>, element: &str, values: &[T]) -> fmt::Result {
    write!(f, "array<{element}")?;
    if !values.is_empty() {
        f.write_str(": ")?;
        write_separated(f, values, ", ")?;
    }
    f.write_str(">")
}

fn write_string(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    write_escaped(f, text)?;
    f.write_str("\"")
}

/// Whether a name needs no quotes: a letter or underscore, then letters, digits, `_`, `$`, `.`.
pub(crate) fn is_bare_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::{ComparisonDirection, DenseElements};
    use std::sync::Arc;

    #[test]
    fn attributes_print_as_mlir_writes_them() {
        let list = Attribute::Array(Arc::from([Attribute::i64(1), Attribute::i32(2)]));
        assert_eq!(list.to_string(), "[1, 2 : i32]");
        assert_eq!(Attribute::i64s([]).to_string(), "array<i64>");
        assert_eq!(Attribute::i64s([1, -2]).to_string(), "array<i64: 1, -2>");
        assert_eq!(Attribute::string("a\"\n").to_string(), "\"a\\22\\0A\"");
        assert_eq!(Attribute::symbol("odd name").to_string(), "@\"odd name\"");
        assert_eq!(
            Attribute::enumeration(ComparisonDirection::Lt).to_string(),
            "#stablehlo<comparison_direction LT>"
        );
        let dict: Dict = [("b", Attribute::Unit), ("a c", Attribute::Bool(true))].into_iter().collect();
        assert_eq!(dict.to_string(), "{\"a c\" = true, b}");
        let elements = DenseElements::i64s(&[1, 2], &[3, 4]).unwrap();
        assert_eq!(Attribute::from(elements).to_string(), "dense<[[3, 4]]> : tensor<1x2xi64>");
    }
}
