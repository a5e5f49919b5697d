//! Replica groups as axes of a device mesh.

use warpforge_ir::Attribute;
use warpforge_ir::attr::{AxisRef, DenseElements, Mesh, MeshAxes, MeshAxis, MeshRef, SubAxis};

use super::cursor::Parse;
use super::parser::Parser;

impl Parser<'_> {
    /// What follows `#stablehlo.replica_group_mesh_axes`: `<mesh = …, axes = […]>`. Older files have `mesh_name`.
    pub(super) fn mesh_axes(&mut self) -> Parse<MeshAxes> {
        self.cur.skip();
        let start = self.cur.pos();
        let (mut mesh, mut axes) = (None, None);
        self.fields(|parser, name| {
            match name {
                "mesh" | "mesh_name" => mesh = Some(parser.mesh_ref()?),
                "axes" => axes = Some(parser.list_of("[", "]", Self::axis_ref)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        match (mesh, axes) {
            (Some(mesh), Some(axes)) => Ok(MeshAxes { mesh, axes }),
            _ => Err(self.cur.error_at(start, "expected `mesh` and `axes`")),
        }
    }

    fn mesh_ref(&mut self) -> Parse<MeshRef> {
        if self.cur.looking_at("@") {
            return self.symbol_name().map(MeshRef::Symbol);
        }
        self.cur.expect("#")?;
        self.cur.expect("stablehlo.mesh")?;
        self.cur.skip();
        let start = self.cur.pos();
        let (mut axes, mut devices) = (None, None);
        self.fields(|parser, name| {
            match name {
                "axes" => axes = Some(parser.list_of("[", "]", Self::mesh_axis)?),
                "device_ids" => devices = Some(parser.device_ids()?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let axes = axes.ok_or_else(|| self.cur.error_at(start, "expected `axes`"))?;
        Ok(MeshRef::Mesh(Mesh { axes, devices }))
    }

    fn device_ids(&mut self) -> Parse<DenseElements> {
        self.cur.skip();
        let start = self.cur.pos();
        match self.attribute()? {
            Attribute::Elements(elements) if elements.to_i64s().is_some() => Ok((*elements).clone()),
            _ => Err(self.cur.error_at(start, "expected a constant of integers")),
        }
    }

    /// `#stablehlo.mesh_axis<name = "x", size = 2>`, or the part in angle brackets.
    fn mesh_axis(&mut self) -> Parse<MeshAxis> {
        if self.cur.eat("#") {
            self.cur.expect("stablehlo.mesh_axis")?;
        }
        self.cur.skip();
        let start = self.cur.pos();
        let (mut name, mut size) = (None, None);
        self.fields(|parser, field| {
            match field {
                "name" => name = Some(parser.cur.string()?),
                "size" => size = Some(parser.cur.i64()?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        match (name, size) {
            (Some(name), Some(size)) => Ok(MeshAxis { name, size }),
            _ => Err(self.cur.error_at(start, "expected `name` and `size`")),
        }
    }

    /// `#stablehlo.axis_ref<name = "x", sub_axis_info = (1)2>`, or the part in angle brackets; Shardy writes
    /// `#sdy<axis_ref"x":(1)2>`.
    fn axis_ref(&mut self) -> Parse<AxisRef> {
        if self.cur.eat("#") {
            if self.cur.eat("sdy") {
                self.cur.expect("<")?;
                self.cur.expect("axis_ref")?;
                let name = self.cur.string()?;
                let sub_axis = if self.cur.eat(":") { Some(self.sub_axis()?) } else { None };
                self.cur.expect(">")?;
                return Ok(AxisRef { name, sub_axis });
            }
            self.cur.expect("stablehlo.axis_ref")?;
        }
        self.cur.skip();
        let start = self.cur.pos();
        let (mut name, mut sub_axis) = (None, None);
        self.fields(|parser, field| {
            match field {
                "name" => name = Some(parser.cur.string()?),
                "sub_axis_info" => sub_axis = Some(parser.sub_axis()?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let name = name.ok_or_else(|| self.cur.error_at(start, "expected `name`"))?;
        Ok(AxisRef { name, sub_axis })
    }

    /// `(pre_size)size`.
    fn sub_axis(&mut self) -> Parse<SubAxis> {
        self.cur.expect("(")?;
        let pre_size = self.cur.i64()?;
        self.cur.expect(")")?;
        Ok(SubAxis { pre_size, size: self.cur.i64()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_attribute;

    fn read(text: &str) -> MeshAxes {
        match parse_attribute(text) {
            Ok(Attribute::MeshAxes(axes)) => (*axes).clone(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn groups_are_read_and_printed() {
        let named = "#stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = \"x\", sub_axis_info = (1)2>, #stablehlo.axis_ref<name = \"y\">]>";
        let groups = read(named);
        assert_eq!(groups.mesh, MeshRef::Symbol("m".to_owned()));
        let part = Some(SubAxis { pre_size: 1, size: 2 });
        assert_eq!(groups.axes[0], AxisRef { name: "x".to_owned(), sub_axis: part });
        assert_eq!(groups.to_string(), named);
        let given = "#stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes=[<name = \"x\", size = 2>], device_ids=dense<[1, 0]> : tensor<2xi64>>, axes = []>";
        assert_eq!(read(given).to_string(), given);
    }

    #[test]
    fn other_spellings_are_read_as_the_same() {
        let one = read(
            "#stablehlo.replica_group_mesh_axes<mesh = @m, axes = [<name = \"x\", sub_axis_info = (2)4>]>",
        );
        let older = "#stablehlo.replica_group_mesh_axes<\n  mesh_name = @m, // the mesh\n  axes = [#sdy<axis_ref\"x\":(2)4>]\n>";
        assert_eq!(read(older), one);
    }

    #[test]
    fn what_is_incomplete_is_refused() {
        for text in [
            "#stablehlo.replica_group_mesh_axes<>",
            "#stablehlo.replica_group_mesh_axes<mesh = @m>",
            "#stablehlo.replica_group_mesh_axes<mesh = 3, axes = []>",
            "#stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<>, axes = []>",
            "#stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<sub_axis_info = (1)2>]>",
            "#stablehlo.replica_group_mesh_axes<mesh = @m, axes = [\"x\"]>",
        ] {
            assert!(parse_attribute(text).is_err(), "{text}");
        }
    }
}
