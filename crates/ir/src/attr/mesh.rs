//! Replica groups as axes of a device mesh: `#stablehlo.replica_group_mesh_axes<mesh = …, axes = […]>`.
//!
//! A mesh arranges devices along named axes. The devices of one group differ only along the listed axes. An axis may be
//! split: `sub_axis_info = (p)s` is the factor of size `s` behind a factor of size `p`.

use std::fmt::{self, Display, Formatter};

use super::display::SymbolText;
use super::{Attribute, DenseElements};
use crate::module::{Module, OpRef};

/// Largest number of devices of a mesh whose groups are computed.
pub const MAX_MESH_DEVICES: usize = 1 << 16;

/// Replica groups by the axes of a mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshAxes {
    /// The mesh.
    pub mesh: MeshRef,
    /// The axes along which the devices of a group differ, the slowest first.
    pub axes: Vec<AxisRef>,
}

/// A mesh by its symbol or by value.
#[derive(Clone, Debug, PartialEq)]
pub enum MeshRef {
    /// The name of an operation `sdy.mesh` of the module.
    Symbol(String),
    /// The mesh itself.
    Mesh(Mesh),
}

/// Devices along named axes, the slowest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Mesh {
    /// The axes.
    pub axes: Vec<MeshAxis>,
    /// The devices in row-major order; absent where they are 0, 1, 2, …
    pub devices: Option<DenseElements>,
}

/// An axis of a mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshAxis {
    /// Its name.
    pub name: String,
    /// How many devices it has.
    pub size: i64,
}

/// An axis of a mesh or a factor of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisRef {
    /// The name of the axis.
    pub name: String,
    /// The factor; the whole axis where there is none.
    pub sub_axis: Option<SubAxis>,
}

/// A factor of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubAxis {
    /// The product of the factors before it.
    pub pre_size: i64,
    /// Its size.
    pub size: i64,
}

/// Why a mesh has no groups along some axes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeshError {
    /// An axis has no positive size, or the mesh has too many devices.
    #[error("a mesh has from 1 to {MAX_MESH_DEVICES} devices")]
    Size,
    /// The list of devices does not fit the axes.
    #[error("the mesh lists {listed} devices where its axes have {expected}")]
    Devices {
        /// How many are listed.
        listed: usize,
        /// The product of the sizes of the axes.
        expected: usize,
    },
    /// A device is listed twice, or is negative.
    #[error("the devices of the mesh are not all different and not negative")]
    Duplicate,
    /// An axis that is named is not in the mesh, or is there twice.
    #[error("the axis {0:?} is not in the mesh once")]
    Axis(String),
    /// A factor does not divide its axis.
    #[error("the sub-axis ({pre_size}){size} is not a factor of the axis {name:?}")]
    SubAxis {
        /// The axis.
        name: String,
        /// The product of the factors before it.
        pre_size: i64,
        /// Its size.
        size: i64,
    },
    /// Two of the axes overlap.
    #[error("the axis {0:?} is named twice or in parts that overlap")]
    Overlap(String),
    /// The definition of a mesh is written in a way that is not known.
    #[error("the definition of the mesh `@{0}` cannot be read")]
    Definition(String),
}

/// A factor of a mesh axis that devices of a group differ along.
struct Factor {
    axis: usize,
    /// Positions along the factor.
    size: usize,
    /// Devices of the axis behind one position.
    stride: usize,
}

impl Mesh {
    /// The devices in groups that differ along the given axes alone, in the order of these axes.
    ///
    /// # Errors
    ///
    /// When the mesh or one of the axes is not valid.
    pub fn groups(&self, axes: &[AxisRef]) -> Result<Vec<Vec<i64>>, MeshError> {
        let sizes = self.sizes()?;
        let devices = self.devices(sizes.iter().product())?;
        let factors = axes.iter().map(|axis| self.factor(&sizes, axis)).collect::<Result<Vec<_>, _>>()?;
        for (index, factor) in factors.iter().enumerate() {
            let overlaps = |other: &Factor| {
                other.axis == factor.axis
                    && other.stride < factor.stride * factor.size
                    && factor.stride < other.stride * other.size
            };
            // A factor of size one has no devices to share.
            if factor.size > 1 && factors[..index].iter().any(|other| other.size > 1 && overlaps(other)) {
                return Err(MeshError::Overlap(axes[index].name.clone()));
            }
            let same = |other: &AxisRef| *other == axes[index];
            if axes[..index].iter().any(same) {
                return Err(MeshError::Overlap(axes[index].name.clone()));
            }
        }
        Ok(grouped(&sizes, &devices, &factors))
    }

    fn sizes(&self) -> Result<Vec<usize>, MeshError> {
        let sizes: Option<Vec<usize>> =
            self.axes.iter().map(|axis| usize::try_from(axis.size).ok().filter(|size| *size > 0)).collect();
        let sizes = sizes.ok_or(MeshError::Size)?;
        let count = sizes.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
        count.filter(|count| *count <= MAX_MESH_DEVICES).ok_or(MeshError::Size)?;
        Ok(sizes)
    }

    fn devices(&self, count: usize) -> Result<Vec<i64>, MeshError> {
        let listed = self.devices.as_ref().and_then(DenseElements::to_i64s).unwrap_or_default();
        if listed.is_empty() {
            return Ok((0..count as i64).collect());
        }
        if listed.len() != count {
            return Err(MeshError::Devices { listed: listed.len(), expected: count });
        }
        let mut sorted = listed.clone();
        sorted.sort_unstable();
        if sorted[0] < 0 || sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(MeshError::Duplicate);
        }
        Ok(listed)
    }

    fn factor(&self, sizes: &[usize], axis: &AxisRef) -> Result<Factor, MeshError> {
        let mut named = self.axes.iter().enumerate().filter(|(_, known)| known.name == axis.name);
        let (Some((index, _)), None) = (named.next(), named.next()) else {
            return Err(MeshError::Axis(axis.name.clone()));
        };
        let whole = sizes[index];
        let Some(SubAxis { pre_size, size }) = axis.sub_axis else {
            return Ok(Factor { axis: index, size: whole, stride: 1 });
        };
        let refused = || MeshError::SubAxis { name: axis.name.clone(), pre_size, size };
        let positive = |value: i64| usize::try_from(value).ok().filter(|value| *value > 0);
        let (before, size) = positive(pre_size).zip(positive(size)).ok_or_else(refused)?;
        let taken = before.checked_mul(size).filter(|taken| whole.is_multiple_of(*taken));
        Ok(Factor { axis: index, size, stride: whole / taken.ok_or_else(refused)? })
    }

    /// From the notation of Shardy: `<["x"=2, "y"=4], device_ids=[…]>`.
    fn from_shardy(text: &str) -> Option<Self> {
        let (_, inside) = text.split_once('[')?;
        let (axes_text, rest) = inside.split_once(']')?;
        let mut axes = Vec::new();
        for axis in axes_text.split(',').filter(|axis| !axis.trim().is_empty()) {
            let (name, size) = axis.split_once('=')?;
            let name = name.trim().strip_prefix('"')?.strip_suffix('"')?.to_owned();
            axes.push(MeshAxis { name, size: size.trim().parse().ok()? });
        }
        let devices = match rest.split_once("device_ids") {
            None => None,
            Some((_, list)) => {
                let list = list.trim_start().strip_prefix('=')?.trim_start().strip_prefix('[')?;
                let numbers = list.split_once(']')?.0.split(',').map(|number| number.trim().parse().ok());
                let numbers: Vec<i64> = numbers.collect::<Option<_>>()?;
                Some(DenseElements::i64s(&[numbers.len() as u64], &numbers).ok()?)
            }
        };
        Some(Self { axes, devices })
    }
}

/// The devices with one position along everything but the factors, by their positions along the factors.
fn grouped(sizes: &[usize], devices: &[i64], factors: &[Factor]) -> Vec<Vec<i64>> {
    let mut groups: std::collections::BTreeMap<usize, Vec<(usize, i64)>> = std::collections::BTreeMap::new();
    let strides: Vec<usize> = (0..sizes.len()).map(|axis| sizes[axis + 1..].iter().product()).collect();
    for (index, &device) in devices.iter().enumerate() {
        let (mut position, mut first) = (0, index);
        for factor in factors {
            let along = index / strides[factor.axis] % sizes[factor.axis] / factor.stride % factor.size;
            position = position * factor.size + along;
            // The first device of the group has position zero along every factor.
            first -= along * factor.stride * strides[factor.axis];
        }
        groups.entry(first).or_default().push((position, device));
    }
    let sorted = |mut members: Vec<(usize, i64)>| {
        members.sort_unstable();
        members.into_iter().map(|(_, device)| device).collect()
    };
    groups.into_values().map(sorted).collect()
}

impl MeshAxes {
    /// The groups, with the mesh of the module where it is named.
    ///
    /// # Errors
    ///
    /// When the module has no such mesh, or it has no groups along the axes.
    pub fn groups(&self, module: &Module) -> Result<Vec<Vec<i64>>, MeshError> {
        match &self.mesh {
            MeshRef::Mesh(mesh) => mesh.groups(&self.axes),
            MeshRef::Symbol(name) => {
                let mesh = module.mesh(name).ok_or_else(|| MeshError::Definition(name.clone()))??;
                mesh.groups(&self.axes)
            }
        }
    }
}

impl Module {
    /// The mesh that an operation `sdy.mesh` of the module defines; `None` where there is no such operation.
    pub fn mesh(&self, name: &str) -> Option<Result<Mesh, MeshError>> {
        let named = |op: &OpRef<'_>| {
            op.name() == "sdy.mesh"
                && (op.attr_str("sym_name") == Some(name) || short_definition(op, name).is_some())
        };
        let op = self.ops_in(self.body()).find(named)?;
        let text = match op.attr("mesh") {
            Some(Attribute::Opaque(text)) => Some(text.to_string()),
            _ => short_definition(&op, name).map(str::to_owned),
        };
        let mesh = text.and_then(|text| Mesh::from_shardy(&text));
        Some(mesh.ok_or_else(|| MeshError::Definition(name.to_owned())))
    }
}

/// What follows `@name =` in the short form of an operation.
fn short_definition<'m>(op: &OpRef<'m>, name: &str) -> Option<&'m str> {
    let (symbol, definition) = op.module().assembly(op.id())?.split_once('=')?;
    let written = symbol.trim().strip_prefix('@')?;
    let bare = written.strip_prefix('"').and_then(|quoted| quoted.strip_suffix('"')).unwrap_or(written);
    (bare == name).then_some(definition)
}

impl Display for MeshAxes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "#stablehlo.replica_group_mesh_axes<mesh = {}, axes = ", self.mesh)?;
        super::write_list(f, &self.axes)?;
        f.write_str(">")
    }
}

impl Display for MeshRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            MeshRef::Symbol(name) => SymbolText(name).fmt(f),
            MeshRef::Mesh(mesh) => mesh.fmt(f),
        }
    }
}

impl Display for Mesh {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("#stablehlo.mesh<axes=")?;
        super::write_list(f, &self.axes)?;
        if let Some(devices) = &self.devices {
            f.write_str(", device_ids=")?;
            crate::print::write_elements(f, devices)?;
        }
        f.write_str(">")
    }
}

impl Display for MeshAxis {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "<name = {}, size = {}>", Attribute::string(self.name.as_str()), self.size)
    }
}

impl Display for AxisRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "#stablehlo.axis_ref<name = {}", Attribute::string(self.name.as_str()))?;
        if let Some(SubAxis { pre_size, size }) = self.sub_axis {
            write!(f, ", sub_axis_info = ({pre_size}){size}")?;
        }
        f.write_str(">")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mesh(sizes: &[(&str, i64)], devices: &[i64]) -> Mesh {
        let axes = sizes.iter().map(|(name, size)| MeshAxis { name: (*name).to_owned(), size: *size });
        let devices =
            DenseElements::i64s(&[devices.len() as u64], devices).ok().filter(|_| !devices.is_empty());
        Mesh { axes: axes.collect(), devices }
    }

    fn axis(name: &str, part: Option<(i64, i64)>) -> AxisRef {
        let sub_axis = part.map(|(pre_size, size)| SubAxis { pre_size, size });
        AxisRef { name: name.to_owned(), sub_axis }
    }

    #[test]
    fn groups_along_axes_and_factors_of_them() {
        let mesh = mesh(&[("x", 2), ("y", 4)], &[]);
        let groups = |axes: &[AxisRef]| mesh.groups(axes).unwrap();
        assert_eq!(groups(&[axis("x", None)]), [[0, 4], [1, 5], [2, 6], [3, 7]]);
        assert_eq!(groups(&[axis("y", Some((2, 2)))]), [[0, 1], [2, 3], [4, 5], [6, 7]]);
        assert_eq!(groups(&[axis("y", Some((1, 2)))]), [[0, 2], [1, 3], [4, 6], [5, 7]]);
        assert_eq!(groups(&[axis("y", Some((1, 2))), axis("x", None)]), [[0, 4, 2, 6], [1, 5, 3, 7]]);
        assert_eq!(groups(&[]), [[0], [1], [2], [3], [4], [5], [6], [7]]);
        assert_eq!(groups(&[axis("y", Some((2, 2))), axis("y", Some((1, 2)))])[0], [0, 2, 1, 3]);
    }

    #[test]
    fn devices_may_be_listed() {
        let mesh = mesh(&[("x", 2), ("y", 2)], &[3, 1, 2, 0]);
        assert_eq!(mesh.groups(&[axis("x", None)]).unwrap(), [[3, 2], [1, 0]]);
    }

    #[test]
    fn invalid_meshes_and_axes_are_errors() {
        let small = mesh(&[("x", 2), ("y", 4)], &[]);
        let refused = |axes: &[AxisRef]| small.groups(axes).unwrap_err();
        assert_eq!(refused(&[axis("z", None)]), MeshError::Axis("z".to_owned()));
        for part in [(3, 2), (0, 2), (2, 0), (4, 2), (-1, 2), (i64::MAX, i64::MAX)] {
            assert!(matches!(refused(&[axis("y", Some(part))]), MeshError::SubAxis { .. }), "{part:?}");
        }
        assert_eq!(refused(&[axis("x", None), axis("x", None)]), MeshError::Overlap("x".to_owned()));
        let overlap = [axis("y", None), axis("y", Some((1, 2)))];
        assert_eq!(refused(&overlap), MeshError::Overlap("y".to_owned()));
        assert_eq!(mesh(&[("x", 0)], &[]).groups(&[]), Err(MeshError::Size));
        assert_eq!(mesh(&[("x", i64::MAX), ("y", 4)], &[]).groups(&[]), Err(MeshError::Size));
        assert_eq!(
            mesh(&[("x", 2), ("x", 2)], &[]).groups(&[axis("x", None)]),
            Err(MeshError::Axis("x".into()))
        );
        assert_eq!(mesh(&[("x", 2)], &[0, 0]).groups(&[]), Err(MeshError::Duplicate));
        let listed = MeshError::Devices { listed: 1, expected: 2 };
        assert_eq!(mesh(&[("x", 2)], &[1]).groups(&[]), Err(listed));
    }

    #[test]
    fn the_notation_of_shardy_is_read() {
        let read = Mesh::from_shardy("#sdy.mesh<[\"x\"=2, \"y\"=4], device_ids=[1, 0]>").unwrap();
        assert_eq!(read.axes[1], MeshAxis { name: "y".to_owned(), size: 4 });
        assert_eq!(read.devices.unwrap().to_i64s().unwrap(), [1, 0]);
        assert!(Mesh::from_shardy("<[]>").unwrap().axes.is_empty());
        for text in ["", "<[\"x\"]>", "<[x=2]>", "<[\"x\"=two]>", "<[\"x\"=2], device_ids=1>"] {
            assert!(Mesh::from_shardy(text).is_none(), "{text}");
        }
    }
}
