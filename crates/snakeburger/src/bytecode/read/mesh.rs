//! Replica groups as axes of a mesh, by the text that StableHLO writes for them.

use warpforge_ir::Attribute;

use super::tables::Tables;
use crate::bytecode::error::{Error, Read};
use crate::bytecode::wire::Cursor;

/// `(pre)size`: a part of an axis, as an axis shows it.
pub(super) fn sub_axis(cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let (before, size) = (cursor.signed()?, cursor.signed()?);
    Ok(opaque(format!("#stablehlo.sub_axis_info<({before}){size}>")))
}

/// An axis or a part of one.
pub(super) fn axis(name: &Attribute, part: Option<&Attribute>) -> Attribute {
    let part = part.map(|part| format!(", sub_axis_info = {}", body(part, "#stablehlo.sub_axis_info")));
    opaque(format!("#stablehlo.axis_ref<name = {name}{}>", part.unwrap_or_default()))
}

/// An axis of a mesh and its size.
pub(super) fn mesh_axis(name: &Attribute, size: i64) -> Attribute {
    opaque(format!("#stablehlo.mesh_axis<name = {name}, size = {size}>"))
}

/// A mesh: its axes, and which device is where unless they are in order.
pub(super) fn mesh(axes: &[Attribute], devices: Option<&Attribute>) -> Attribute {
    let axes: Vec<String> =
        axes.iter().map(|axis| format!("<{}>", body(axis, "#stablehlo.mesh_axis"))).collect();
    let devices = devices.map_or_else(String::new, |devices| format!(", device_ids={devices}"));
    opaque(format!("#stablehlo.mesh<axes=[{}]{devices}>", axes.join(", ")))
}

/// The processes that differ only along axes of a mesh, which is named or given.
pub(super) fn groups(mesh: &Attribute, axes: &[Attribute]) -> Attribute {
    let mesh = match mesh {
        Attribute::Str(name) => Attribute::symbol(name.as_ref()),
        other => other.clone(),
    };
    let axes = Attribute::Array(axes.into());
    let text = format!("#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = {axes}>");
    // What is not read is kept for the verifier to refuse.
    crate::text::parse_attribute(&text).unwrap_or_else(|_| opaque(text))
}

/// A list of attributes, by the number of an array.
pub(super) fn listed(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Read<Vec<Attribute>> {
    let at = cursor.pos();
    match tables.attr(cursor)? {
        Attribute::Array(items) => Ok(items.to_vec()),
        _ => Err(Error::malformed(at, "expected a list here")),
    }
}

fn opaque(text: String) -> Attribute {
    Attribute::Opaque(text.into())
}

/// What stands between the angle brackets of an attribute.
fn body(attr: &Attribute, name: &str) -> String {
    let text = attr.to_string();
    let inner = text.strip_prefix(name).and_then(|rest| rest.strip_prefix('<')?.strip_suffix('>'));
    inner.unwrap_or(&text).to_owned()
}
