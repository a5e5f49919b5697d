//! Attributes as VHLO encodes them.

use warpforge_ir::attr::{Attribute, DenseElements, Dict, EnumDialect, EnumValue, OutputOperandAlias};
use warpforge_ir::types::{Element, ElementType, FloatType, TensorType, Type};

use super::ops::{Refused, Writer};
use super::pool::{AttrId, Piece};
use crate::bytecode::vhlo::codes::{ENUMS, attr as number};
use crate::elements;

impl Writer<'_> {
    /// An attribute.
    pub(super) fn attr(&mut self, attr: &Attribute) -> Result<AttrId, Refused> {
        let pieces = match attr {
            Attribute::Bool(value) => vec![Piece::Number(number::BOOL), Piece::Number(u64::from(*value))],
            Attribute::Int(value, ty) => {
                let id = self.ty(ty)?;
                vec![Piece::Number(number::INTEGER), Piece::Type(id), integer(*value, ty)?]
            }
            Attribute::Float(value, ty) => {
                let id = self.ty(ty)?;
                vec![Piece::Number(number::FLOAT), Piece::Type(id), float(*value, ty)?]
            }
            Attribute::Str(text) => return Ok(self.string(text)),
            Attribute::Symbol(path) => match path.as_ref() {
                [name] => return Ok(self.string(name)),
                _ => return Err(Refused(format!("the nested symbol {attr}"))),
            },
            Attribute::Type(ty) => vec![Piece::Number(number::TYPE), Piece::Type(self.ty(ty)?)],
            Attribute::Array(items) => self.list(items)?,
            Attribute::Dict(dict) => self.dict(dict)?,
            Attribute::I64s(values) => {
                let elements = DenseElements::i64s(&[values.len() as u64], values);
                return self.attr(&elements.map_err(|error| Refused(error.to_string()))?.into());
            }
            Attribute::Bools(values) => {
                let ty = TensorType::fixed(&[values.len() as u64], ElementType::Bool);
                let bytes: Vec<u8> = values.iter().map(|value| u8::from(*value)).collect();
                let elements = DenseElements::raw(ty, bytes).map_err(|error| Refused(error.to_string()))?;
                return self.attr(&elements.into());
            }
            Attribute::Elements(elements) => self.elements(elements)?,
            Attribute::Enum(EnumDialect::StableHlo, value) => enumeration(*value)?,
            Attribute::Alias(alias) => aliased(alias),
            Attribute::ResultAccuracy(accuracy) => {
                let mode = self.attr(&Attribute::enumeration(accuracy.mode))?;
                vec![
                    Piece::Number(number::RESULT_ACCURACY),
                    Piece::Signed(accuracy.atol.to_bits() as i64),
                    Piece::Signed(accuracy.rtol.to_bits() as i64),
                    Piece::Signed(accuracy.ulps),
                    Piece::Attr(mode),
                ]
            }
            Attribute::Bounds(bounds) => {
                let bound =
                    |bound: &Option<u64>| bound.and_then(|b| i64::try_from(b).ok()).unwrap_or(i64::MIN);
                let bounds: Vec<i64> = bounds.iter().map(bound).collect();
                let mut pieces = vec![Piece::Number(number::TYPE_EXTENSIONS)];
                pieces.extend(signed_list(&bounds));
                pieces
            }
            Attribute::MeshAxes(axes) => return self.mesh_axes(axes),
            Attribute::Opaque(text) => return self.opaque(text),
            Attribute::Unit
            | Attribute::DenseArray(..)
            | Attribute::Enum(EnumDialect::Chlo, _)
            | Attribute::Dot(_)
            | Attribute::Conv(_)
            | Attribute::Gather(_)
            | Attribute::Scatter(_)
            | Attribute::DotAlgorithm(_)
            | Attribute::RaggedDot(_)
            | Attribute::Channel(_) => return Err(Refused(format!("the attribute `{attr}` where it is"))),
        };
        Ok(self.pool.attr("vhlo", pieces))
    }

    /// A string.
    pub(super) fn string(&mut self, text: &str) -> AttrId {
        let text = self.pool.text(text);
        self.pool.attr("vhlo", vec![Piece::Number(number::STRING), text])
    }

    fn list(&mut self, items: &[Attribute]) -> Result<Vec<Piece>, Refused> {
        let mut pieces = vec![Piece::Number(number::ARRAY), Piece::Number(items.len() as u64)];
        for item in items {
            pieces.push(Piece::Attr(self.attr(item)?));
        }
        Ok(pieces)
    }

    fn dict(&mut self, dict: &Dict) -> Result<Vec<Piece>, Refused> {
        let mut pieces = vec![Piece::Number(number::DICT), Piece::Number(dict.len() as u64)];
        for (name, value) in dict.entries() {
            pieces.push(Piece::Attr(self.string(name)));
            pieces.push(Piece::Attr(self.attr(value)?));
        }
        Ok(pieces)
    }

    fn elements(&mut self, elements: &DenseElements) -> Result<Vec<Piece>, Refused> {
        let bytes = elements::to_file(elements)
            .ok_or_else(|| Refused("a constant whose data is not in the module".to_owned()))?;
        let ty = self.ty(&Type::Tensor(elements.ty().clone()))?;
        let mut pieces = vec![Piece::Number(number::TENSOR), Piece::Type(ty)];
        pieces.extend(self.pool.data(bytes));
        Ok(pieces)
    }

    /// An attribute of another dialect, which is kept as text.
    fn opaque(&mut self, text: &str) -> Result<AttrId, Refused> {
        let dialect = text.strip_prefix('#').and_then(|rest| rest.split(['.', '<']).next());
        match dialect {
            Some(dialect) if !matches!(dialect, "stablehlo" | "chlo") => {
                Ok(self.pool.attr_text(dialect, text))
            }
            _ => Err(Refused(format!("the attribute `{text}`"))),
        }
    }
}

/// A value of an enumeration.
fn enumeration(value: EnumValue) -> Result<Vec<Piece>, Refused> {
    let code = ENUMS.iter().find(|code| code.mnemonic == value.mnemonic());
    let code = code.ok_or_else(|| Refused(format!("the enumeration {}", value.mnemonic())))?;
    Ok(vec![Piece::Number(code.code), Piece::Number(code.first + value.index() as u64)])
}

fn aliased(alias: &OutputOperandAlias) -> Vec<Piece> {
    let mut pieces = vec![Piece::Number(number::ALIAS)];
    pieces.extend(signed_list(&alias.output_tuple_indices));
    pieces.push(Piece::Signed(alias.operand_index));
    pieces.extend(signed_list(&alias.operand_tuple_indices));
    pieces
}

fn signed_list(values: &[i64]) -> Vec<Piece> {
    let mut pieces = vec![Piece::Number(values.len() as u64)];
    pieces.extend(values.iter().map(|value| Piece::Signed(*value)));
    pieces
}

fn integer(value: i128, ty: &Type) -> Result<Piece, Refused> {
    let bits = match ty {
        Type::Scalar(Element::Plain(ElementType::Int(int))) => int.bits(),
        Type::Scalar(Element::Plain(ElementType::Index)) => 64,
        _ => return Err(Refused(format!("an integer of the type {ty}"))),
    };
    Ok(code(value as u64, bits))
}

fn float(value: f64, ty: &Type) -> Result<Piece, Refused> {
    let Type::Scalar(Element::Plain(ElementType::Float(float))) = ty else {
        return Err(Refused(format!("a number of the type {ty}")));
    };
    let format = float.format();
    let bits = match float {
        FloatType::F64 => value.to_bits(),
        FloatType::F32 => u64::from((value as f32).to_bits()),
        _ => format.encode(value),
    };
    Ok(code(bits, format.bits()))
}

/// The bits of a number: a byte when it has eight or fewer, else as many bytes as its value takes.
fn code(value: u64, bits: u32) -> Piece {
    let value = if bits < 64 { value & ((1 << bits) - 1) } else { value };
    if bits <= 8 { Piece::Byte(value as u8) } else { Piece::Signed(value as i64) }
}
