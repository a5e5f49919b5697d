//! Groups of processes given as axes of a mesh: kept as text in modules, taken apart for bytecode.

use warpforge_ir::Attribute;

use super::cursor::Parse;
use super::parser::Parser;

/// The processes that differ only along some axes of a mesh.
#[derive(Debug, PartialEq)]
pub(crate) struct MeshGroups {
    /// The mesh.
    pub(crate) mesh: MeshRef,
    /// The axes.
    pub(crate) axes: Vec<AxisRef>,
}

/// A mesh by its name or as it is.
#[derive(Debug, PartialEq)]
pub(crate) enum MeshRef {
    /// The name of a symbol.
    Symbol(String),
    /// The mesh itself.
    Mesh {
        /// Names and sizes of the axes.
        axes: Vec<(String, i64)>,
        /// Which device is where, unless they are in order.
        devices: Option<Attribute>,
    },
}

/// An axis, or a part of one.
#[derive(Debug, PartialEq)]
pub(crate) struct AxisRef {
    /// The axis.
    pub(crate) name: String,
    /// The size of what comes before the part, and the part's size.
    pub(crate) part: Option<(i64, i64)>,
}

impl Parser<'_> {
    /// `#stablehlo.replica_group_mesh_axes<mesh = …, axes = […]>`.
    pub(super) fn mesh_groups(&mut self) -> Parse<MeshGroups> {
        self.tokens(&["#", "stablehlo.replica_group_mesh_axes", "<", "mesh", "="])?;
        let mesh = if self.cur.looking_at("@") {
            MeshRef::Symbol(self.symbol_name()?)
        } else {
            self.tokens(&["#", "stablehlo.mesh", "<"])?;
            self.mesh_body()?
        };
        self.tokens(&[",", "axes", "="])?;
        let axes = self.list_of("[", "]", Self::axis_ref)?;
        self.cur.expect(">")?;
        Ok(MeshGroups { mesh, axes })
    }

    fn tokens(&mut self, tokens: &[&str]) -> Parse<()> {
        tokens.iter().try_for_each(|token| self.cur.expect(token))
    }

    fn mesh_body(&mut self) -> Parse<MeshRef> {
        self.tokens(&["axes", "="])?;
        let axes = self.list_of("[", "]", |parser| {
            if parser.cur.eat("#") {
                parser.cur.expect("stablehlo.mesh_axis")?;
            }
            parser.tokens(&["<", "name", "="])?;
            let name = parser.cur.string()?;
            parser.tokens(&[",", "size", "="])?;
            let size = parser.cur.i64()?;
            parser.cur.expect(">")?;
            Ok((name, size))
        })?;
        let devices = if self.cur.eat(",") {
            self.tokens(&["device_ids", "="])?;
            Some(self.attribute()?)
        } else {
            None
        };
        self.cur.expect(">")?;
        Ok(MeshRef::Mesh { axes, devices })
    }

    fn axis_ref(&mut self) -> Parse<AxisRef> {
        if self.cur.eat("#") {
            self.cur.expect("stablehlo.axis_ref")?;
        }
        self.tokens(&["<", "name", "="])?;
        let name = self.cur.string()?;
        let part = if self.cur.eat(",") {
            self.tokens(&["sub_axis_info", "=", "("])?;
            let before = self.cur.i64()?;
            self.cur.expect(")")?;
            Some((before, self.cur.i64()?))
        } else {
            None
        };
        self.cur.expect(">")?;
        Ok(AxisRef { name, part })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_mesh_groups;

    #[test]
    fn groups_are_taken_apart() {
        let text = "#stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = \"x\", sub_axis_info = (1)2>, #stablehlo.axis_ref<name = \"y\">]>";
        let groups = parse_mesh_groups(text).unwrap();
        assert_eq!(groups.mesh, MeshRef::Symbol("m".to_owned()));
        assert_eq!(groups.axes[0], AxisRef { name: "x".to_owned(), part: Some((1, 2)) });
        assert_eq!(groups.axes[1], AxisRef { name: "y".to_owned(), part: None });
        let text = "#stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes=[<name = \"x\", size = 2>], device_ids=dense<[1, 0]> : tensor<2xi64>>, axes = []>";
        let MeshRef::Mesh { axes, devices } = parse_mesh_groups(text).unwrap().mesh else { panic!("a mesh") };
        assert_eq!(axes, [("x".to_owned(), 2)]);
        assert!(devices.is_some());
        assert!(parse_mesh_groups("#stablehlo.replica_group_mesh_axes<>").is_err());
    }
}
