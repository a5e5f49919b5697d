//! Attributes and types of MLIR's builtin dialect.

use std::sync::Arc;

use warpforge_ir::attr::{Attribute, Dict};
use warpforge_ir::types::{Dim, Element, ElementType, FloatType, FunctionType, MAX_RANK, TensorType, Type};

use super::scalars;
use super::tables::Tables;
use crate::bytecode::error::{Error, Read};
use crate::bytecode::wire::Cursor;
use crate::text;

/// Decodes an attribute.
pub(super) fn attr(tables: &mut Tables<'_>, code: u64, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    Ok(match code {
        0 => Attribute::Array(tables.attrs(cursor)?.into()),
        1 => Attribute::Dict(tables.dict(cursor)?),
        2 => Attribute::string(tables.file.string(cursor)?),
        3 => {
            let text = tables.file.string(cursor)?;
            tables.ty(cursor)?;
            Attribute::string(text)
        }
        4 => Attribute::symbol(tables.string_attr(cursor)?.to_string()),
        5 => symbol(tables, cursor)?,
        6 => Attribute::Type(tables.ty(cursor)?),
        7 => Attribute::Unit,
        8 => {
            let ty = tables.ty(cursor)?;
            scalars::integer(ty, cursor)?
        }
        9 => {
            let ty = tables.ty(cursor)?;
            scalars::float(ty, cursor)?
        }
        // Locations: `location` reads them where they are asked for; as part of something else they say nothing.
        10..=15 | 22 => {
            cursor.take(cursor.remaining())?;
            Attribute::Opaque("loc(unknown)".into())
        }
        16 => resource(tables, cursor)?,
        17 => array(tables, cursor)?,
        18 => {
            let ty = tables.tensor_type(cursor)?;
            tables.constant(ty, cursor)?
        }
        19 => strings(tables, cursor)?,
        other => return Err(cursor.error(format!("the builtin attribute {other} is not supported"))),
    })
}

fn symbol(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let mut path = vec![tables.string_attr(cursor)?.to_string()];
    let at = cursor.pos();
    for nested in tables.attrs(cursor)? {
        let name = nested.as_symbol().ok_or_else(|| Error::malformed(at, "expected a symbol here"))?;
        path.push(name.to_owned());
    }
    Ok(Attribute::Symbol(path.into()))
}

fn resource(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let ty = tables.tensor_type(cursor)?;
    let at = cursor.pos();
    let index = cursor.varint()?;
    let file = tables.file;
    let found = usize::try_from(index).ok().and_then(|index| file.resources.get(index));
    let found = found.ok_or_else(|| Error::malformed(at, format!("there is no resource {index}")))?;
    match &found.data {
        Some(range) => tables.constant_from(ty, range.clone(), at),
        None => Ok(Attribute::from(warpforge_ir::DenseElements::resource(ty, found.name.as_ref()))),
    }
}

/// `array<T: …>`.
fn array(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let at = cursor.pos();
    let Type::Scalar(Element::Plain(element)) = tables.ty(cursor)? else {
        return Err(Error::malformed(at, "an array needs numbers"));
    };
    let at = cursor.pos();
    let count = cursor.size()?;
    let length = cursor.size()?;
    let bytes = cursor.bytes(length)?;
    let width = element.byte_width();
    if count.checked_mul(width) != Some(bytes.len()) {
        return Err(Error::malformed(at, format!("{count} elements do not take {length} bytes")));
    }
    let ints = bytes.chunks_exact(width).map(|chunk| warpforge_ir::attr::int_from_bytes(element, chunk));
    Ok(match element {
        ElementType::Bool => Attribute::Bools(bytes.iter().map(|b| *b != 0).collect()),
        ElementType::I64 => Attribute::I64s(ints.map(|value| value.unwrap_or(0) as i64).collect()),
        ElementType::Float(float) => {
            let number = |chunk: &[u8]| Attribute::Float(from_le(float, chunk), Type::scalar(element));
            Attribute::DenseArray(element, bytes.chunks_exact(width).map(number).collect())
        }
        _ => {
            let item = |value: Option<i128>| Attribute::Int(value.unwrap_or(0), Type::scalar(element));
            Attribute::DenseArray(element, ints.map(item).collect())
        }
    })
}

fn from_le(float: FloatType, bytes: &[u8]) -> f64 {
    let mut wide = [0u8; 8];
    wide.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    let code = u64::from_le_bytes(wide);
    if float == FloatType::F64 { f64::from_bits(code) } else { float.format().decode(code) }
}

/// A constant whose elements are strings: kept as MLIR writes it.
fn strings(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let at = cursor.pos();
    let ty = tables.tensor_type(cursor)?;
    let splat = cursor.varint()? != 0;
    let count = if splat { 1 } else { cursor_count(&ty, cursor, at)? };
    let mut texts = Vec::new();
    for _ in 0..count {
        texts.push(Attribute::string(tables.file.string(cursor)?).to_string());
    }
    let body = if splat || ty.rank() == 0 { texts.concat() } else { format!("[{}]", texts.join(", ")) };
    if ty.rank() > 1 && !splat {
        return Err(Error::malformed(at, "constants of strings with several dimensions are not supported"));
    }
    Ok(Attribute::Opaque(format!("dense<{body}> : {ty}").into()))
}

fn cursor_count(ty: &TensorType, cursor: &Cursor<'_>, at: usize) -> Read<usize> {
    let count =
        ty.element_count().ok_or_else(|| Error::malformed(at, "a constant needs known dimensions"))?;
    cursor.checked_count(count, at)
}

/// Types that are a word, by number.
const WORDS: &[(u64, &str)] = &[
    (1, "index"),
    (3, "bf16"),
    (4, "f16"),
    (5, "f32"),
    (6, "f64"),
    (12, "none"),
    (21, "tf32"),
    (22, "f8E5M2"),
    (23, "f8E4M3"),
    (24, "f8E4M3FN"),
    (25, "f8E5M2FNUZ"),
    (26, "f8E4M3FNUZ"),
    (27, "f8E4M3B11FNUZ"),
    (28, "f8E3M4"),
    (29, "f4E2M1FN"),
    (30, "f6E2M3FN"),
    (31, "f6E3M2FN"),
    (32, "f8E8M0FNU"),
];

/// Decodes a type.
pub(super) fn ty(tables: &mut Tables<'_>, code: u64, cursor: &mut Cursor<'_>) -> Read<Type> {
    if let Some((_, name)) = WORDS.iter().find(|(known, _)| *known == code) {
        return text::parse_type(name).map_err(|why| cursor.error(why));
    }
    Ok(match code {
        0 => integer(cursor)?,
        2 => {
            let inputs = tables.types(cursor)?;
            let results = tables.types(cursor)?;
            Type::Function(Arc::new(FunctionType { inputs, results }))
        }
        7 => Type::Scalar(Element::Opaque("f80".into())),
        8 => Type::Scalar(Element::Opaque("f128".into())),
        9 => complex(tables, cursor)?,
        10 => buffer(tables, cursor)?,
        13 => tensor(tables, None, cursor)?,
        14 => {
            let encoding = tables.attr(cursor)?;
            tensor(tables, Some(encoding), cursor)?
        }
        15 => Type::Tuple(tables.types(cursor)?.into()),
        18 => Type::UnrankedTensor(element(tables, cursor)?),
        other => return Err(cursor.error(format!("the builtin type {other} is not supported"))),
    })
}

fn integer(cursor: &mut Cursor<'_>) -> Read<Type> {
    let at = cursor.pos();
    let both = cursor.varint()?;
    let (width, sign) = (both >> 2, both & 3);
    let prefix = match sign {
        0 => "i",
        1 => "si",
        2 => "ui",
        _ => return Err(Error::malformed(at, "an integer type has no such sign")),
    };
    if width == 0 || width >= 1 << 24 {
        return Err(Error::malformed(at, format!("an integer type cannot have {width} bits")));
    }
    let name = format!("{prefix}{width}");
    let plain = name.parse().ok().filter(|_| sign != 1).map(Element::Plain);
    Ok(Type::Scalar(plain.unwrap_or_else(|| Element::Opaque(name.into()))))
}

/// The type that the next number names, as what a tensor has elements of.
pub(super) fn element(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Read<Element> {
    let at = cursor.pos();
    match tables.ty(cursor)? {
        Type::Scalar(element) => Ok(element),
        Type::Opaque(text) => Ok(Element::Opaque(text)),
        other => Err(Error::malformed(at, format!("a tensor cannot have elements of the type {other}"))),
    }
}

pub(super) fn complex(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Read<Type> {
    let part = element(tables, cursor)?;
    Ok(Type::Scalar(match part {
        Element::Plain(ElementType::Float(part @ (FloatType::F32 | FloatType::F64))) => {
            Element::Plain(ElementType::Complex(part))
        }
        other => Element::Opaque(format!("complex<{other}>").into()),
    }))
}

/// Sizes of dimensions; the most negative number is one that is not known.
fn dims(cursor: &mut Cursor<'_>) -> Read<Vec<Dim>> {
    let at = cursor.pos();
    let sizes = cursor.signed_list()?;
    if sizes.len() > MAX_RANK {
        let message = format!("a tensor of more than {MAX_RANK} dimensions is not supported");
        return Err(Error::malformed(at, message));
    }
    let dim = |size: i64| match u64::try_from(size) {
        Ok(size) => Ok(Dim::Static(size)),
        Err(_) if size == i64::MIN || size == -1 => Ok(Dim::Dynamic),
        Err(_) => Err(Error::malformed(at, format!("a dimension cannot have the size {size}"))),
    };
    sizes.into_iter().map(dim).collect()
}

/// A ranked tensor type: the sizes, the elements, and what was read of an encoding before them.
pub(super) fn tensor(
    tables: &mut Tables<'_>,
    encoding: Option<Attribute>,
    cursor: &mut Cursor<'_>,
) -> Read<Type> {
    let at = cursor.pos();
    let mut dims = dims(cursor)?;
    let element = element(tables, cursor)?;
    let encoding = match encoding {
        Some(Attribute::Bounds(bounds)) => {
            text::apply_bounds(&mut dims, &bounds).map_err(|why| Error::malformed(at, why))?;
            None
        }
        other => other,
    };
    Ok(Type::Tensor(TensorType::new(dims, element).with_encoding(encoding)))
}

/// `memref<…>` in the plain layout, the only one that StableHLO has.
fn buffer(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Read<Type> {
    let plain = buffer_of(tables, cursor)?;
    tables.attr(cursor)?;
    Ok(plain)
}

/// A buffer: the sizes and the elements.
pub(super) fn buffer_of(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Read<Type> {
    let dims = dims(cursor)?;
    let element = element(tables, cursor)?;
    Ok(Type::Buffer(TensorType::new(dims, element)))
}

/// The attributes of an operation: a dictionary by its number.
pub(super) fn attr_dict(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Read<Dict> {
    let at = cursor.pos();
    match tables.attr(cursor)? {
        Attribute::Dict(dict) => Ok(dict),
        _ => Err(Error::malformed(at, "expected the attributes of an operation")),
    }
}
