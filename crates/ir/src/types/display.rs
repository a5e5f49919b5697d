//! Types as MLIR writes them.

use std::fmt::{self, Display, Formatter};

use crate::print::float_text;

use super::{Dim, Element, FunctionType, Granularity, QuantizedType, TensorType, Type};

/// Writes `items` separated by `separator`.
pub(crate) fn write_separated<T: Display>(
    f: &mut Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    separator: &str,
) -> fmt::Result {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            f.write_str(separator)?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Type::Tensor(tensor) => tensor.fmt(f),
            Type::UnrankedTensor(element) => write!(f, "tensor<*x{element}>"),
            Type::Token => f.write_str("!stablehlo.token"),
            Type::Tuple(types) => {
                f.write_str("tuple<")?;
                write_separated(f, types.iter(), ", ")?;
                f.write_str(">")
            }
            Type::Function(function) => function.fmt(f),
            Type::Scalar(element) => element.fmt(f),
            Type::None => f.write_str("none"),
            Type::Future(types) => {
                f.write_str("!stablehlo.future<")?;
                write_separated(f, types.iter(), ", ")?;
                f.write_str(">")
            }
            Type::Buffer(tensor) => tensor.write_as(f, "memref"),
            Type::Opaque(text) => f.write_str(text),
        }
    }
}

impl Display for FunctionType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        write_separated(f, &self.inputs, ", ")?;
        f.write_str(") -> ")?;
        match self.results.as_slice() {
            [single] if !matches!(single, Type::Function(_)) => single.fmt(f),
            results => {
                f.write_str("(")?;
                write_separated(f, results, ", ")?;
                f.write_str(")")
            }
        }
    }
}

impl Display for Dim {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Static(size) => size.fmt(f),
            Dim::Dynamic | Dim::Bounded(_) => f.write_str("?"),
        }
    }
}

impl TensorType {
    fn write_as(&self, f: &mut Formatter<'_>, keyword: &str) -> fmt::Result {
        write!(f, "{keyword}<")?;
        for dim in self.dims() {
            write!(f, "{dim}x")?;
        }
        self.element().fmt(f)?;
        if self.dims().iter().any(|d| matches!(d, Dim::Bounded(_))) {
            f.write_str(", #stablehlo.bounds<")?;
            let bounds = self.dims().iter().map(|d| match d {
                Dim::Bounded(bound) => bound.to_string(),
                _ => "?".to_owned(),
            });
            write_separated(f, bounds, ", ")?;
            f.write_str(">")?;
        } else if let Some(encoding) = self.encoding() {
            write!(f, ", {encoding}")?;
        }
        f.write_str(">")
    }
}

impl Display for TensorType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write_as(f, "tensor")
    }
}

impl Display for Element {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Element::Plain(plain) => plain.fmt(f),
            Element::Quantized(quantized) => write_quantized(f, quantized),
            Element::Opaque(text) => f.write_str(text),
        }
    }
}

fn write_quantized(f: &mut Formatter<'_>, quantized: &QuantizedType) -> fmt::Result {
    let storage = quantized.storage;
    let narrow = (i128::from(quantized.storage_min), i128::from(quantized.storage_max));
    let spelled = storage.name().replace("ui", "u");
    write!(f, "!quant.uniform<{spelled}")?;
    if narrow != (storage.min(), storage.max()) {
        write!(f, "<{}:{}>", narrow.0, narrow.1)?;
    }
    write!(f, ":{}", quantized.expressed.name())?;
    let parameter = |index: usize| -> String {
        let Some(p) = quantized.parameters.get(index) else { return String::new() };
        let scale = float_text(p.scale);
        if p.zero_point == 0 { scale } else { format!("{scale}:{}", p.zero_point) }
    };
    let count = quantized.parameters.len();
    match &quantized.granularity {
        Granularity::PerTensor => write!(f, ", {}>", parameter(0)),
        Granularity::PerAxis(axis) => {
            write!(f, ":{axis}, {{")?;
            write_separated(f, (0..count).map(parameter), ",")?;
            f.write_str("}>")
        }
        Granularity::SubChannel(blocks) => {
            f.write_str(":{")?;
            write_separated(f, blocks.iter().map(|(axis, size)| format!("{axis}:{size}")), ", ")?;
            f.write_str("}, ")?;
            write_separated(f, (0..count).map(parameter), ",")?;
            f.write_str(">")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{ElementType, FloatType, IntType};
    use std::sync::Arc;

    #[test]
    fn types_print_as_mlir_writes_them() {
        let dims = vec![Dim::Bounded(4), Dim::Dynamic, Dim::Static(3)];
        let bounded = TensorType::new(dims, ElementType::F32);
        assert_eq!(bounded.to_string(), "tensor<?x?x3xf32, #stablehlo.bounds<4, ?, ?>>");
        assert_eq!(Type::tensor(&[], ElementType::C64).to_string(), "tensor<complex<f32>>");
        let function = Type::function(vec![Type::Token], vec![]);
        assert_eq!(function.to_string(), "(!stablehlo.token) -> ()");
    }

    #[test]
    fn quantized_types_print_ranges_and_axes() {
        let mut quantized = QuantizedType::per_tensor(IntType::U8, FloatType::F32, 0.5, 3);
        let shown = |q: &QuantizedType| Element::Quantized(Arc::new(q.clone())).to_string();
        assert_eq!(shown(&quantized), "!quant.uniform<u8:f32, 5.000000e-01:3>");
        quantized.storage_max = 7;
        quantized.granularity = Granularity::PerAxis(1);
        assert_eq!(shown(&quantized), "!quant.uniform<u8<0:7>:f32:1, {5.000000e-01:3}>");
    }
}
