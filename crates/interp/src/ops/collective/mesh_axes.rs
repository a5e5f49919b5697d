//! Replica groups as axes of a mesh: `#stablehlo.replica_group_mesh_axes<mesh = …, axes = […]>`.
//!
//! A mesh gives the devices an order by axes; processes are in one group that differ only along the named axes. An axis
//! may be split: of `sub_axis_info = (p)s`, the part of size `s` behind the first `p` is meant.

use warpforge_ir::{Attribute, Module};

use crate::error::{Result, invalid};

/// Most devices of a mesh: far more than processes can be.
const MAX_DEVICES: usize = 1 << 16;

/// The groups that an attribute of this kind stands for.
pub(super) fn groups(module: &Module, text: &str) -> Result<Vec<Vec<i64>>> {
    let malformed = || invalid(format!("the mesh axes `{text}` cannot be read"));
    let inside = text.strip_prefix("#stablehlo.replica_group_mesh_axes<").ok_or_else(malformed)?;
    let (mesh_text, axes_text) = inside.rsplit_once("axes = [").ok_or_else(malformed)?;
    let mesh_text = mesh_text.trim().strip_prefix("mesh").and_then(|rest| rest.split_once('='));
    let mesh = Mesh::new(module, mesh_text.ok_or_else(malformed)?.1.trim()).ok_or_else(malformed)?;
    let mut parts = Vec::new();
    for axis in axes_text.split("axis_ref").skip(1) {
        parts.push(mesh.part(axis).ok_or_else(malformed)?);
    }
    Ok(mesh.groups(&parts))
}

/// Axes with their sizes, the first the slowest, and the devices in that order.
struct Mesh {
    axes: Vec<(String, usize)>,
    devices: Vec<i64>,
}

/// A part of a mesh's axis: which, how many places the part has, and how many devices apart those are.
struct Part {
    axis: usize,
    size: usize,
    /// Places of the axis behind one place of the part.
    behind: usize,
}

impl Mesh {
    /// From `#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, …]>`, or from the name of an operation
    /// `sdy.mesh` whose attribute says `["x"=2, …]`.
    fn new(module: &Module, text: &str) -> Option<Self> {
        let text = match text.strip_prefix('@') {
            Some(name) => definition(module, name.trim_end_matches([',', ' ']))?,
            None => text.to_owned(),
        };
        let (axes_text, devices_text) = text.split_once("device_ids").unwrap_or((&text, ""));
        let mut axes = Vec::new();
        let mut rest = axes_text;
        while let Some((_, after)) = rest.split_once('"') {
            let (name, after) = after.split_once('"')?;
            let after_size = after.split_once('=')?.1;
            axes.push((name.to_owned(), leading_number(after_size)?));
            rest = after_size;
        }
        let count = axes.iter().try_fold(1usize, |count, (_, size)| count.checked_mul(*size))?;
        if count == 0 || count > MAX_DEVICES {
            return None;
        }
        let listed: Vec<i64> = numbers(devices_text).collect();
        let devices = if listed.is_empty() { (0..count as i64).collect() } else { listed };
        (devices.len() == count).then_some(Self { axes, devices })
    }

    /// From `<name = "y", sub_axis_info = (1)2>`.
    fn part(&self, text: &str) -> Option<Part> {
        let name = text.split('"').nth(1)?;
        let axis = self.axes.iter().position(|(known, _)| known == name)?;
        let whole = self.axes[axis].1;
        let Some((_, info)) = text.split_once("sub_axis_info") else {
            return Some(Part { axis, size: whole, behind: 1 });
        };
        let mut sizes = numbers(info);
        let (before, size) = (usize::try_from(sizes.next()?).ok()?, usize::try_from(sizes.next()?).ok()?);
        let taken = before.checked_mul(size).filter(|&taken| taken > 0 && whole.is_multiple_of(taken))?;
        Some(Part { axis, size, behind: whole / taken })
    }

    /// The devices in groups: those that differ along the parts alone, in the order of the parts.
    fn groups(&self, parts: &[Part]) -> Vec<Vec<i64>> {
        let mut keys: Vec<Vec<usize>> = Vec::new();
        let mut groups: Vec<Vec<(usize, i64)>> = Vec::new();
        for (index, &device) in self.devices.iter().enumerate() {
            let mut rest = index;
            let mut key: Vec<usize> = vec![0; self.axes.len()];
            for (at, (_, size)) in key.iter_mut().zip(&self.axes).rev() {
                *at = rest % size;
                rest /= size;
            }
            let mut order = 0;
            for part in parts {
                let at = key[part.axis] / part.behind % part.size;
                order = order * part.size + at;
                key[part.axis] -= at * part.behind;
            }
            let group = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
                keys.push(key);
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[group].push((order, device));
        }
        let sorted = |mut members: Vec<(usize, i64)>| {
            members.sort_by_key(|(order, _)| *order);
            members.into_iter().map(|(_, device)| device).collect()
        };
        groups.into_iter().map(sorted).collect()
    }
}

/// The mesh of an operation of the module with this name.
fn definition(module: &Module, name: &str) -> Option<String> {
    let found = module.ops_in(module.body()).find(|op| op.attr_str("sym_name") == Some(name))?;
    match found.attr("mesh")? {
        Attribute::Opaque(text) => Some(text.to_string()),
        _ => None,
    }
}

fn leading_number(text: &str) -> Option<usize> {
    numbers(text).next().and_then(|number| usize::try_from(number).ok())
}

/// The numbers in a text, whatever is between them.
fn numbers(text: &str) -> impl Iterator<Item = i64> + '_ {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mesh: &str, axes: &str) -> Option<Vec<Vec<i64>>> {
        let text = format!("#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [{axes}]>");
        groups(&Module::new(), &text).ok()
    }

    const MESH: &str = "#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = \"x\", size = 2>, \
                        #stablehlo.mesh_axis<name = \"y\", size = 4>]>";

    #[test]
    fn whole_axes_and_parts_of_them() {
        let whole = read(MESH, "#stablehlo.axis_ref<name = \"x\">").expect("groups");
        assert_eq!(whole, [[0, 4], [1, 5], [2, 6], [3, 7]]);
        let inner = read(MESH, "#stablehlo.axis_ref<name = \"y\", sub_axis_info = (2)2>").expect("groups");
        assert_eq!(inner, [[0, 1], [2, 3], [4, 5], [6, 7]]);
        let two = read(
            MESH,
            "#stablehlo.axis_ref<name = \"y\", sub_axis_info = (1)2>, #stablehlo.axis_ref<name = \"x\">",
        );
        assert_eq!(two.expect("groups"), [[0, 4, 2, 6], [1, 5, 3, 7]]);
        assert_eq!(read(MESH, "").expect("groups"), [[0], [1], [2], [3], [4], [5], [6], [7]]);
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(read(MESH, "#stablehlo.axis_ref<name = \"z\">"), None);
        assert_eq!(read(MESH, "#stablehlo.axis_ref<name = \"y\", sub_axis_info = (3)2>"), None);
        assert_eq!(read(MESH, "#stablehlo.axis_ref<name = \"y\", sub_axis_info = (0)0>"), None);
        assert_eq!(read("@nowhere", "#stablehlo.axis_ref<name = \"x\">"), None);
        assert_eq!(read("<[\"x\"=4294967296, \"y\"=4294967296]>", ""), None);
        assert_eq!(read("<[\"x\"=2], device_ids=[1]>", ""), None);
        assert_eq!(read("<[\"x\"=2], device_ids=[1, 0]>", "<axis_ref<\"x\">").expect("groups"), [[1, 0]]);
    }
}
