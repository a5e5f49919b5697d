//! Attributes and types of the StableHLO, CHLO and quantization dialects themselves, as files that are no portable
//! artifacts have them.

use std::sync::Arc;

use warpforge_ir::attr::{Attribute, ChannelHandle, ConvDims, DotAlgorithm, DotDims, EnumDialect, IndexDims};
use warpforge_ir::types::Type;

use super::tables::Tables;
use super::{mesh, vhlo};
use crate::bytecode::error::{Error, Read};
use crate::bytecode::vhlo::codes::{CHLO_ENUMS, STABLEHLO_ENUMS};
use crate::bytecode::wire::Cursor;

/// Decodes an attribute of StableHLO.
pub(super) fn attr(tables: &mut Tables<'_>, code: u64, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    if let Some(value) = vhlo::enumeration(STABLEHLO_ENUMS, EnumDialect::StableHlo, code, cursor)? {
        return Ok(value);
    }
    Ok(match code {
        1 => Attribute::Channel(ChannelHandle { handle: cursor.signed()?, kind: cursor.signed()? }),
        4 => conv(cursor)?,
        5 => Attribute::Dot(Arc::new(DotDims {
            lhs_batching: cursor.signed_list()?,
            rhs_batching: cursor.signed_list()?,
            lhs_contracting: cursor.signed_list()?,
            rhs_contracting: cursor.signed_list()?,
        })),
        7 => Attribute::Gather(Arc::new(index_dims(cursor)?)),
        11 => Attribute::Scatter(Arc::new(index_dims(cursor)?)),
        13 => vhlo::bounds(cursor)?,
        14 => vhlo::alias(cursor)?,
        15 => algorithm(tables, cursor)?,
        17 => vhlo::accuracy(tables, cursor)?,
        18 => {
            let of = tables.attr(cursor)?;
            let axes = tables.attrs(cursor)?;
            mesh::groups(&of, &axes)
        }
        19 => mesh::sub_axis(cursor)?,
        20 => {
            let name = Attribute::string(tables.file.string(cursor)?);
            let part = if byte_truth(cursor)? { Some(tables.attr(cursor)?) } else { None };
            mesh::axis(&name, part.as_ref())
        }
        21 => {
            let name = Attribute::string(tables.file.string(cursor)?);
            mesh::mesh_axis(&name, cursor.signed()?)
        }
        22 => {
            let axes = mesh::listed(tables, cursor)?;
            let devices = if byte_truth(cursor)? { Some(tables.attr(cursor)?) } else { None };
            mesh::mesh(&axes, devices.as_ref())
        }
        other => return Err(cursor.error(format!("StableHLO has no attribute {other}"))),
    })
}

/// A truth value as a byte.
fn byte_truth(cursor: &mut Cursor<'_>) -> Read<bool> {
    let at = cursor.pos();
    match cursor.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Error::malformed(at, format!("{other} is no truth value"))),
    }
}

fn index_dims<D: IndexDims>(cursor: &mut Cursor<'_>) -> Read<D> {
    let mut dims = D::default();
    let (lists, index_vector_dim) = dims.parts_mut();
    for list in lists {
        *list = cursor.signed_list()?;
    }
    *index_vector_dim = cursor.signed()?;
    Ok(dims)
}

fn conv(cursor: &mut Cursor<'_>) -> Read<Attribute> {
    Ok(Attribute::Conv(Arc::new(ConvDims {
        input_batch: cursor.signed()?,
        input_feature: cursor.signed()?,
        input_spatial: cursor.signed_list()?,
        kernel_input_feature: cursor.signed()?,
        kernel_output_feature: cursor.signed()?,
        kernel_spatial: cursor.signed_list()?,
        output_batch: cursor.signed()?,
        output_feature: cursor.signed()?,
        output_spatial: cursor.signed_list()?,
    })))
}

fn algorithm(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    Ok(Attribute::DotAlgorithm(Arc::new(DotAlgorithm {
        lhs_precision_type: tables.ty(cursor)?,
        rhs_precision_type: tables.ty(cursor)?,
        accumulation_type: tables.ty(cursor)?,
        lhs_component_count: cursor.signed()?,
        rhs_component_count: cursor.signed()?,
        num_primitive_operations: cursor.signed()?,
        allow_imprecise_accumulation: byte_truth(cursor)?,
    })))
}

/// Decodes an attribute of CHLO.
pub(super) fn chlo_attr(code: u64, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let value = vhlo::enumeration(CHLO_ENUMS, EnumDialect::Chlo, code, cursor)?;
    value.ok_or_else(|| cursor.error(format!("CHLO has no attribute {code}")))
}

/// Decodes a type of StableHLO.
pub(super) fn ty(tables: &mut Tables<'_>, code: u64, cursor: &mut Cursor<'_>) -> Read<Type> {
    match code {
        0 => Ok(Type::Token),
        1 => Ok(Type::Future(tables.types(cursor)?.into())),
        other => Err(cursor.error(format!("StableHLO has no type {other}"))),
    }
}

/// Decodes a type of the quantization dialect, which VHLO has taken over as they are.
pub(super) fn quant_type(tables: &mut Tables<'_>, code: u64, cursor: &mut Cursor<'_>) -> Read<Type> {
    match code {
        4 => vhlo::quantized(tables, cursor),
        5 => vhlo::quantized_per_axis(tables, cursor),
        other => Err(cursor.error(format!("the quantized type {other} is not supported"))),
    }
}
