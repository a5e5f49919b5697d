//! Attributes and types of VHLO, as those of StableHLO and the builtin dialect that they stand for.

use std::sync::Arc;

use warpforge_ir::attr::{
    Attribute, CustomCallApiVersion, EnumDialect, EnumValue, OutputOperandAlias, ResultAccuracy,
};
use warpforge_ir::types::{
    Element, ElementType, FloatType, FunctionType, Granularity, IntType, QuantParameters, QuantizedType, Type,
};

use super::tables::Tables;
use super::{builtin, mesh, scalars};
use crate::bytecode::error::{Error, Read};
use crate::bytecode::vhlo::codes::{self, EnumCode};
use crate::bytecode::wire::Cursor;
use crate::text;

/// Decodes an attribute.
pub(super) fn attr(tables: &mut Tables<'_>, code: u64, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    use codes::attr as number;
    if let Some(value) = enumeration(codes::ENUMS, EnumDialect::StableHlo, code, cursor)? {
        return Ok(value);
    }
    Ok(match code {
        number::ARRAY => Attribute::Array(tables.attrs(cursor)?.into()),
        number::BOOL => Attribute::Bool(truth(cursor)?),
        number::API_VERSION => api_version(cursor)?,
        number::DICT => Attribute::Dict(tables.dict(cursor)?),
        number::FLOAT => {
            let ty = tables.ty(cursor)?;
            scalars::float(ty, cursor)?
        }
        number::INTEGER => {
            let ty = tables.ty(cursor)?;
            scalars::integer(ty, cursor)?
        }
        number::ALIAS => alias(cursor)?,
        number::STRING => Attribute::string(tables.file.string(cursor)?),
        number::TENSOR => {
            let ty = tables.tensor_type(cursor)?;
            tables.constant(ty, cursor)?
        }
        number::TYPE => Attribute::Type(tables.ty(cursor)?),
        number::TYPE_EXTENSIONS => bounds(cursor)?,
        number::RESULT_ACCURACY => accuracy(tables, cursor)?,
        number::SUB_AXIS_INFO => mesh::sub_axis(cursor)?,
        number::AXIS_REF => {
            let name = tables.attr(cursor)?;
            let part = if truth(cursor)? { Some(tables.attr(cursor)?) } else { None };
            mesh::axis(&name, part.as_ref())
        }
        number::REPLICA_GROUP_MESH_AXES => {
            let of = tables.attr(cursor)?;
            let axes = mesh::listed(tables, cursor)?;
            mesh::groups(&of, &axes)
        }
        number::MESH_AXIS => {
            let name = tables.attr(cursor)?;
            mesh::mesh_axis(&name, cursor.signed()?)
        }
        number::MESH => {
            let axes = mesh::listed(tables, cursor)?;
            let devices = tables.optional_attr(cursor)?;
            mesh::mesh(&axes, devices.as_ref())
        }
        other => return Err(cursor.error(format!("VHLO has no attribute {other}"))),
    })
}

/// A value of an enumeration, when the number is that of one.
pub(super) fn enumeration(
    known: &[EnumCode],
    dialect: EnumDialect,
    code: u64,
    cursor: &mut Cursor<'_>,
) -> Read<Option<Attribute>> {
    let Some(found) = known.iter().find(|known| known.code == code) else { return Ok(None) };
    let at = cursor.pos();
    let number = cursor.varint()?;
    let index = number.checked_sub(found.first).and_then(|index| usize::try_from(index).ok());
    let value = index.and_then(|index| EnumValue::nth(found.mnemonic, index));
    let value =
        value.ok_or_else(|| Error::malformed(at, format!("{} has no value {number}", found.mnemonic)))?;
    Ok(Some(Attribute::Enum(dialect, value)))
}

/// A truth value as a number.
fn truth(cursor: &mut Cursor<'_>) -> Read<bool> {
    let at = cursor.pos();
    match cursor.varint()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Error::malformed(at, format!("{other} is no truth value"))),
    }
}

/// The calling convention of a custom call, which StableHLO gives as a number.
fn api_version(cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let at = cursor.pos();
    let number = cursor.varint()?;
    let known = i32::try_from(number).ok().filter(|n| (*n as usize) < CustomCallApiVersion::ALL.len());
    let known =
        known.ok_or_else(|| Error::malformed(at, format!("there is no calling convention {number}")))?;
    Ok(Attribute::i32(known))
}

/// A result that shares memory with an operand.
pub(super) fn alias(cursor: &mut Cursor<'_>) -> Read<Attribute> {
    Ok(Attribute::Alias(Arc::new(OutputOperandAlias {
        output_tuple_indices: cursor.signed_list()?,
        operand_index: cursor.signed()?,
        operand_tuple_indices: cursor.signed_list()?,
    })))
}

/// Upper bounds of dimensions; a negative one is none.
pub(super) fn bounds(cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let bounds = cursor.signed_list()?;
    Ok(Attribute::Bounds(bounds.into_iter().map(|bound| u64::try_from(bound).ok()).collect()))
}

/// The accuracy asked of a function.
pub(super) fn accuracy(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let atol = scalars::number(FloatType::F64, cursor)?;
    let rtol = scalars::number(FloatType::F64, cursor)?;
    let ulps = cursor.signed()?;
    let at = cursor.pos();
    let mode = tables.attr(cursor)?;
    let mode = mode.as_enum().ok_or_else(|| Error::malformed(at, "expected how an accuracy is given"))?;
    Ok(Attribute::ResultAccuracy(Arc::new(ResultAccuracy { atol, rtol, ulps, mode })))
}

/// Decodes a type.
pub(super) fn ty(tables: &mut Tables<'_>, code: u64, cursor: &mut Cursor<'_>) -> Read<Type> {
    use codes::ty as number;
    if let Some(scalar) = codes::SCALARS.iter().find(|scalar| scalar.code == code) {
        return text::parse_type(scalar.name).map_err(|why| cursor.error(why));
    }
    Ok(match code {
        number::COMPLEX => builtin::complex(tables, cursor)?,
        number::FUNCTION => {
            let inputs = tables.types(cursor)?;
            let results = tables.types(cursor)?;
            Type::Function(Arc::new(FunctionType { inputs, results }))
        }
        number::TENSOR => builtin::tensor(tables, None, cursor)?,
        number::TENSOR_WITH_ENCODING => {
            let encoding = tables.attr(cursor)?;
            builtin::tensor(tables, Some(encoding), cursor)?
        }
        number::TOKEN => Type::Token,
        number::TUPLE => Type::Tuple(tables.types(cursor)?.into()),
        number::QUANTIZED => quantized(tables, cursor)?,
        number::QUANTIZED_PER_AXIS => quantized_per_axis(tables, cursor)?,
        number::UNRANKED_TENSOR => Type::UnrankedTensor(builtin::element(tables, cursor)?),
        number::WITNESS => Type::Opaque("!shape.witness".into()),
        number::NONE => Type::None,
        number::BUFFER => builtin::buffer_of(tables, cursor)?,
        number::FUTURE => Type::Future(tables.types(cursor)?.into()),
        other => return Err(cursor.error(format!("VHLO has no type {other}"))),
    })
}

/// What a quantized type stores and what that expresses.
struct Stored {
    storage: IntType,
    expressed: FloatType,
}

fn stored(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Read<Stored> {
    let at = cursor.pos();
    let flags = cursor.varint()?;
    let storage = builtin::element(tables, cursor)?;
    let expressed = builtin::element(tables, cursor)?;
    match (storage, expressed) {
        (Element::Plain(ElementType::Int(storage)), Element::Plain(ElementType::Float(expressed))) => {
            Ok(Stored { storage: with_sign(storage, flags & 1 != 0), expressed })
        }
        _ => Err(Error::malformed(at, "a quantized type needs integers that express numbers")),
    }
}

/// The integers of a quantized type are written without a sign: a flag says whether they have one.
fn with_sign(int: IntType, signed: bool) -> IntType {
    let same_width = |other: &&IntType| other.bits() == int.bits() && other.is_signed() == signed;
    IntType::ALL.iter().find(same_width).copied().unwrap_or(int)
}

/// A quantized type with one scale.
pub(super) fn quantized(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Read<Type> {
    let at = cursor.pos();
    let Stored { storage, expressed } = stored(tables, cursor)?;
    let scale = scalars::number(FloatType::F64, cursor)?;
    let zero_point = cursor.signed()?;
    let (storage_min, storage_max) = (cursor.signed()?, cursor.signed()?);
    let parameters = vec![QuantParameters { scale, zero_point }];
    let granularity = Granularity::PerTensor;
    let ty = QuantizedType { storage, expressed, storage_min, storage_max, granularity, parameters };
    sound(ty, at)
}

/// A quantized type with a scale for each index along a dimension.
pub(super) fn quantized_per_axis(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Read<Type> {
    let at = cursor.pos();
    let Stored { storage, expressed } = stored(tables, cursor)?;
    let axis = cursor.size()?;
    let (storage_min, storage_max) = (cursor.signed()?, cursor.signed()?);
    let scales: Vec<f64> =
        (0..cursor.count()?).map(|_| scalars::number(FloatType::F64, cursor)).collect::<Read<_>>()?;
    let zero_points = cursor.signed_list()?;
    if scales.len() != zero_points.len() {
        return Err(Error::malformed(at, "there must be as many zero points as scales"));
    }
    let parameters = scales
        .into_iter()
        .zip(zero_points)
        .map(|(scale, zero_point)| QuantParameters { scale, zero_point })
        .collect();
    let granularity = Granularity::PerAxis(axis);
    let ty = QuantizedType { storage, expressed, storage_min, storage_max, granularity, parameters };
    sound(ty, at)
}

/// A quantized type that keeps what it promises.
fn sound(ty: QuantizedType, at: usize) -> Read<Type> {
    ty.validate().map_err(|error| Error::malformed(at, error.to_string()))?;
    Ok(Type::Scalar(Element::Quantized(Arc::new(ty))))
}
