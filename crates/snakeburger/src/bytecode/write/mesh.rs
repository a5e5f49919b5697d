//! Replica groups as axes of a mesh, as VHLO encodes them.

use warpforge_ir::attr::{Attribute, AxisRef, MeshAxes, MeshRef, SubAxis};

use super::ops::{Refused, Writer};
use super::pool::{AttrId, Piece};
use crate::bytecode::vhlo::codes::attr as number;

impl Writer<'_> {
    /// Replica groups as axes of a mesh.
    pub(super) fn mesh_axes(&mut self, groups: &MeshAxes) -> Result<AttrId, Refused> {
        let mesh = match &groups.mesh {
            MeshRef::Symbol(name) => self.string(name),
            MeshRef::Mesh(mesh) => {
                let axes: Vec<AttrId> =
                    mesh.axes.iter().map(|axis| self.mesh_axis(&axis.name, axis.size)).collect();
                let axes = self.listed(&axes);
                let devices = mesh.devices.clone().map(Attribute::from);
                let devices = devices.map(|devices| self.attr(&devices)).transpose()?;
                let pieces = vec![Piece::Number(number::MESH), Piece::Attr(axes), Piece::Optional(devices)];
                self.pool.attr("vhlo", pieces)
            }
        };
        let axes: Vec<AttrId> = groups.axes.iter().map(|axis| self.axis(axis)).collect();
        let axes = self.listed(&axes);
        let pieces =
            vec![Piece::Number(number::REPLICA_GROUP_MESH_AXES), Piece::Attr(mesh), Piece::Attr(axes)];
        Ok(self.pool.attr("vhlo", pieces))
    }

    fn listed(&mut self, items: &[AttrId]) -> AttrId {
        let mut pieces = vec![Piece::Number(number::ARRAY), Piece::Number(items.len() as u64)];
        pieces.extend(items.iter().map(|item| Piece::Attr(*item)));
        self.pool.attr("vhlo", pieces)
    }

    fn mesh_axis(&mut self, name: &str, size: i64) -> AttrId {
        let name = self.string(name);
        let pieces = vec![Piece::Number(number::MESH_AXIS), Piece::Attr(name), Piece::Signed(size)];
        self.pool.attr("vhlo", pieces)
    }

    fn axis(&mut self, axis: &AxisRef) -> AttrId {
        let name = self.string(&axis.name);
        let mut pieces = vec![Piece::Number(number::AXIS_REF), Piece::Attr(name)];
        match axis.sub_axis {
            None => pieces.push(Piece::Number(0)),
            Some(SubAxis { pre_size, size }) => {
                let part =
                    vec![Piece::Number(number::SUB_AXIS_INFO), Piece::Signed(pre_size), Piece::Signed(size)];
                let part = self.pool.attr("vhlo", part);
                pieces.extend([Piece::Number(1), Piece::Attr(part)]);
            }
        }
        self.pool.attr("vhlo", pieces)
    }
}
