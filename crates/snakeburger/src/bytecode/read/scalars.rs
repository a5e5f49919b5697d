//! Numbers in attributes.

use warpforge_ir::Attribute;
use warpforge_ir::types::{Element, ElementType, FloatType, Type};

use crate::bytecode::error::{Error, Read};
use crate::bytecode::wire::Cursor;

/// An integer or truth value of a type.
pub(super) fn integer(ty: Type, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let at = cursor.pos();
    let bits = match &ty {
        Type::Scalar(Element::Plain(ElementType::Bool)) => 1,
        Type::Scalar(Element::Plain(ElementType::Int(int))) => int.bits(),
        Type::Scalar(Element::Plain(ElementType::Index)) => 64,
        Type::Scalar(Element::Opaque(name)) => odd_width(name)
            .ok_or_else(|| Error::malformed(at, format!("an integer cannot have the type {name}")))?,
        other => return Err(Error::malformed(at, format!("an integer cannot have the type {other}"))),
    };
    let code = bits_of(bits, cursor)?;
    Ok(match &ty {
        Type::Scalar(Element::Plain(ElementType::Bool)) => Attribute::Bool(code & 1 != 0),
        Type::Scalar(Element::Plain(ElementType::Int(int))) => Attribute::Int(int.wrap(i128::from(code)), ty),
        _ => Attribute::Int(i128::from(code as i64), ty),
    })
}

/// The width of an integer type that no tensor has: `si8`, `i128`.
fn odd_width(name: &str) -> Option<u32> {
    let digits = name.trim_start_matches(['s', 'u', 'i']);
    digits.parse().ok().filter(|bits| (1..=64).contains(bits))
}

/// A floating-point number of a type.
pub(super) fn float(ty: Type, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let at = cursor.pos();
    let Type::Scalar(Element::Plain(ElementType::Float(float))) = &ty else {
        return Err(Error::malformed(at, format!("a number cannot have the type {ty}")));
    };
    let value = number(*float, cursor)?;
    Ok(Attribute::Float(value, ty))
}

/// A floating-point number of a format.
pub(super) fn number(float: FloatType, cursor: &mut Cursor<'_>) -> Read<f64> {
    let format = float.format();
    let code = bits_of(format.bits(), cursor)?;
    Ok(if float == FloatType::F64 { f64::from_bits(code) } else { format.decode(code) })
}

/// The bits of a number: a byte when it has eight or fewer, else as many bytes as its value takes.
fn bits_of(bits: u32, cursor: &mut Cursor<'_>) -> Read<u64> {
    let code = if bits <= 8 { u64::from(cursor.byte()?) } else { cursor.signed()? as u64 };
    Ok(if bits < 64 { code & ((1 << bits) - 1) } else { code })
}
