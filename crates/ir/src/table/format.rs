//! The notation of text forms, which the parser and the printer both follow.
//!
//! A format is the text that follows an operation's name, printed as it stands, with these pieces in it:
//!
//! | piece | stands for |
//! | --- | --- |
//! | `$name` | an operand, a list of operands or an attribute of that name |
//! | `?(…$name…)` | its contents when the optional attribute or operand group is there |
//! | `{attrs}` | the attributes that appear nowhere else |
//! | `{regions}` | the regions in parentheses, when there are any |
//! | `{fn}` | the types as `(operands) -> results` |
//! | `{same}` | one type when operands and results all have it, else as `{fn}` |
//! | `{operands}`, `{results}` | lists of types |
//! | `{operand}` | the type of all operands, which is the same |
//! | `{arrow}` | the results' types after an arrow, in parentheses unless there is one |
//! | `{select}`, `{complex}`, `{tuple}` | the short types of those operations |
//! | `{slices}`, `{dot_dims}`, `{precision}`, `{algorithm}`, `{window}`, `{conv_dims}`, `{exponent_mantissa}` | the notations of those operations' attributes |
//!
//! `custom` as the whole format means that the form has code of its own, by operation.

use super::{Arity, OpDef};

/// A format, read.
#[derive(Debug, PartialEq, Eq)]
pub enum Syntax {
    /// Only the generic form.
    Generic,
    /// A form with code of its own.
    Custom,
    /// Pieces in order.
    Pieces(Vec<Piece>),
}

/// A piece of a format.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text as it stands.
    Text(&'static str),
    /// An operand group, by its position in the table entry.
    Operand(usize),
    /// An attribute, by its position in the table entry.
    Attr(usize),
    /// Pieces that are there when the attribute or operand group among them is.
    Optional(Vec<Piece>),
    /// The other attributes.
    Attrs,
    /// The regions.
    Regions,
    /// Types.
    Types(TypeForm),
    /// The notation of some operation's attributes.
    Special(Special),
}

/// How types are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeForm {
    /// `(operands) -> results`.
    Function,
    /// One type when all are the same.
    Same,
    /// The operands' types.
    Operands,
    /// The one type of all operands.
    Operand,
    /// The results' types.
    Results,
    /// The results' types after an arrow.
    Arrow,
    /// Those of `select`.
    Select,
    /// Those of `complex`.
    Complex,
    /// Those of `tuple`.
    Tuple,
}

/// Notations of attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// `[start:limit:stride, …]`.
    Slices,
    /// `batching_dims = … x …, contracting_dims = … x …`.
    DotDims,
    /// `, precision = […]`.
    Precision,
    /// `, algorithm = <…>`.
    Algorithm,
    /// `{stride = …, pad = …}`.
    Window,
    /// `[b, 0, f]x[0, i, o]->[b, 0, f]`.
    ConvDims,
    /// `e5m10`.
    ExponentMantissa,
}

impl Special {
    /// The attributes that it writes.
    pub fn attrs(self) -> &'static [&'static str] {
        match self {
            Special::Slices => &["start_indices", "limit_indices", "strides"],
            Special::DotDims => &["dot_dimension_numbers"],
            Special::Precision => &["precision_config"],
            Special::Algorithm => &["algorithm"],
            Special::Window => {
                &["window_strides", "padding", "lhs_dilation", "rhs_dilation", "window_reversal"]
            }
            Special::ConvDims => &["dimension_numbers"],
            Special::ExponentMantissa => &["exponent_bits", "mantissa_bits"],
        }
    }
}

impl Syntax {
    pub(super) fn parse(def: &OpDef) -> Result<Self, String> {
        match def.format {
            "" => Ok(Syntax::Generic),
            "custom" => Ok(Syntax::Custom),
            text => {
                let mut rest = text;
                let pieces = parse_pieces(def, &mut rest, false)?;
                Ok(Syntax::Pieces(pieces))
            }
        }
    }

    /// Whether an attribute is written elsewhere than in the dictionary.
    pub fn writes_attr(&self, def: &OpDef, name: &str) -> bool {
        let Syntax::Pieces(pieces) = self else { return false };
        pieces_write(pieces, def, name)
    }
}

fn pieces_write(pieces: &[Piece], def: &OpDef, name: &str) -> bool {
    pieces.iter().any(|piece| match piece {
        Piece::Attr(index) => def.attrs[*index].name == name,
        Piece::Optional(inner) => pieces_write(inner, def, name),
        Piece::Special(special) => special.attrs().contains(&name),
        _ => false,
    })
}

fn parse_pieces(def: &OpDef, rest: &mut &'static str, nested: bool) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        if nested && rest.starts_with(")?") {
            *rest = &rest[2..];
            return Ok(pieces);
        }
        if let Some(after) = rest.strip_prefix("?(") {
            *rest = after;
            pieces.push(Piece::Optional(parse_pieces(def, rest, true)?));
        } else if let Some(after) = rest.strip_prefix('$') {
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            let (name, after) = after.split_at(end);
            *rest = after;
            pieces.push(named(def, name)?);
        } else if let Some(after) = rest.strip_prefix('{') {
            let (name, after) = after.split_once('}').ok_or("a brace is not closed")?;
            *rest = after;
            pieces.push(directive(name)?);
        } else {
            let special = |at: &usize| {
                let tail = &rest[*at..];
                tail.starts_with(['$', '{']) || tail.starts_with("?(") || nested && tail.starts_with(")?")
            };
            let end = (1..rest.len()).find(special).unwrap_or(rest.len());
            let (text, after) = rest.split_at(end);
            *rest = after;
            pieces.push(Piece::Text(text));
        }
    }
    if nested { Err("a group is not closed".to_owned()) } else { Ok(pieces) }
}

fn named(def: &OpDef, name: &str) -> Result<Piece, String> {
    if let Some(index) = def.operands.iter().position(|operand| operand.name == name) {
        return Ok(Piece::Operand(index));
    }
    let found = def.attrs.iter().position(|attr| attr.name == name);
    found.map(Piece::Attr).ok_or_else(|| format!("`${name}` is neither an operand nor an attribute"))
}

fn directive(name: &str) -> Result<Piece, String> {
    Ok(match name {
        "attrs" => Piece::Attrs,
        "regions" => Piece::Regions,
        "fn" => Piece::Types(TypeForm::Function),
        "same" => Piece::Types(TypeForm::Same),
        "operands" => Piece::Types(TypeForm::Operands),
        "operand" => Piece::Types(TypeForm::Operand),
        "results" => Piece::Types(TypeForm::Results),
        "arrow" => Piece::Types(TypeForm::Arrow),
        "select" => Piece::Types(TypeForm::Select),
        "complex" => Piece::Types(TypeForm::Complex),
        "tuple" => Piece::Types(TypeForm::Tuple),
        "slices" => Piece::Special(Special::Slices),
        "dot_dims" => Piece::Special(Special::DotDims),
        "precision" => Piece::Special(Special::Precision),
        "algorithm" => Piece::Special(Special::Algorithm),
        "window" => Piece::Special(Special::Window),
        "conv_dims" => Piece::Special(Special::ConvDims),
        "exponent_mantissa" => Piece::Special(Special::ExponentMantissa),
        _ => return Err(format!("unknown piece `{{{name}}}`")),
    })
}

/// Whether the values of a group are always exactly one.
pub fn is_single(def: &OpDef, operand: usize) -> bool {
    def.operands.get(operand).is_some_and(|spec| spec.arity == Arity::One)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::OpKind;

    #[test]
    fn a_format_becomes_pieces() {
        let Ok(Syntax::Pieces(pieces)) = OpKind::Compare.def().syntax() else { panic!("compare has a form") };
        assert_eq!(pieces[0], Piece::Attr(0));
        assert_eq!(pieces[1], Piece::Text(", "));
        assert!(pieces.iter().any(|piece| matches!(piece, Piece::Optional(inner) if inner.len() == 2)));
        assert_eq!(pieces.last(), Some(&Piece::Types(TypeForm::Function)));
    }
}
