//! Types as VHLO encodes them.

use warpforge_ir::attr::Attribute;
use warpforge_ir::types::{Dim, Element, ElementType, Granularity, QuantizedType, TensorType, Type};

use super::ops::{Refused, Writer};
use super::pool::{Piece, TypeId};
use crate::bytecode::vhlo::codes::{SCALARS, ty as number};

impl Writer<'_> {
    /// A type.
    pub(super) fn ty(&mut self, ty: &Type) -> Result<TypeId, Refused> {
        let pieces = match ty {
            Type::Tensor(tensor) => self.tensor(tensor)?,
            Type::UnrankedTensor(element) => {
                vec![Piece::Number(number::UNRANKED_TENSOR), Piece::Type(self.element(element)?)]
            }
            Type::Token => vec![Piece::Number(number::TOKEN)],
            Type::Tuple(types) => self.type_list(number::TUPLE, &[types])?,
            Type::Future(types) => self.type_list(number::FUTURE, &[types])?,
            Type::Function(function) => {
                self.type_list(number::FUNCTION, &[&function.inputs, &function.results])?
            }
            Type::Scalar(element) => return self.element(element),
            Type::None => vec![Piece::Number(number::NONE)],
            Type::Buffer(tensor) => {
                let mut pieces = vec![Piece::Number(number::BUFFER)];
                pieces.extend(dims(tensor));
                pieces.push(Piece::Type(self.element(tensor.element())?));
                pieces
            }
            Type::Opaque(text) => return self.opaque_type(text),
        };
        Ok(self.pool.ty("vhlo", pieces))
    }

    fn type_list(&mut self, code: u64, lists: &[&[Type]]) -> Result<Vec<Piece>, Refused> {
        let mut pieces = vec![Piece::Number(code)];
        for types in lists {
            pieces.push(Piece::Number(types.len() as u64));
            for ty in *types {
                pieces.push(Piece::Type(self.ty(ty)?));
            }
        }
        Ok(pieces)
    }

    fn tensor(&mut self, tensor: &TensorType) -> Result<Vec<Piece>, Refused> {
        let bounded = tensor.dims().iter().any(|dim| matches!(dim, Dim::Bounded(_)));
        let encoding = if bounded {
            let bound = |dim: &Dim| match dim {
                Dim::Bounded(bound) => Some(*bound),
                _ => None,
            };
            Some(self.attr(&Attribute::Bounds(tensor.dims().iter().map(bound).collect()))?)
        } else {
            tensor.encoding().map(|encoding| self.attr(encoding)).transpose()?
        };
        let mut pieces = match encoding {
            Some(encoding) => vec![Piece::Number(number::TENSOR_WITH_ENCODING), Piece::Attr(encoding)],
            None => vec![Piece::Number(number::TENSOR)],
        };
        pieces.extend(dims(tensor));
        pieces.push(Piece::Type(self.element(tensor.element())?));
        Ok(pieces)
    }

    fn element(&mut self, element: &Element) -> Result<TypeId, Refused> {
        match element {
            Element::Plain(ElementType::Complex(part)) => {
                let part = self.element(&Element::Plain(ElementType::Float(*part)))?;
                Ok(self.pool.ty("vhlo", vec![Piece::Number(number::COMPLEX), Piece::Type(part)]))
            }
            Element::Plain(plain) => self.word(&plain.to_string()),
            Element::Quantized(quantized) => self.quantized(quantized),
            Element::Opaque(text) => self.opaque_type(text),
        }
    }

    fn word(&mut self, name: &str) -> Result<TypeId, Refused> {
        let scalar = SCALARS.iter().find(|scalar| scalar.name == name);
        let scalar = scalar.ok_or_else(|| Refused(format!("the type {name}")))?;
        Ok(self.pool.ty("vhlo", vec![Piece::Number(scalar.code)]))
    }

    fn quantized(&mut self, quantized: &QuantizedType) -> Result<TypeId, Refused> {
        // The integers have no sign of their own: a flag says whether they are read with one.
        let signless = quantized.storage.name().trim_start_matches('u');
        let head = [
            Piece::Number(u64::from(quantized.storage.is_signed())),
            Piece::Type(self.word(signless)?),
            Piece::Type(self.word(quantized.expressed.name())?),
        ];
        let range = [Piece::Signed(quantized.storage_min), Piece::Signed(quantized.storage_max)];
        let scale = |scale: f64| Piece::Signed(scale.to_bits() as i64);
        let mut pieces = Vec::new();
        match &quantized.granularity {
            Granularity::PerTensor => {
                let parameter = quantized
                    .parameters
                    .first()
                    .ok_or_else(|| Refused("a type without a scale".to_owned()))?;
                pieces.push(Piece::Number(number::QUANTIZED));
                pieces.extend(head);
                pieces.extend([scale(parameter.scale), Piece::Signed(parameter.zero_point)]);
                pieces.extend(range);
            }
            Granularity::PerAxis(axis) => {
                let count = Piece::Number(quantized.parameters.len() as u64);
                pieces.push(Piece::Number(number::QUANTIZED_PER_AXIS));
                pieces.extend(head);
                pieces.push(Piece::Number(*axis as u64));
                pieces.extend(range);
                pieces.push(count.clone());
                pieces.extend(quantized.parameters.iter().map(|parameter| scale(parameter.scale)));
                pieces.push(count);
                pieces.extend(quantized.parameters.iter().map(|p| Piece::Signed(p.zero_point)));
            }
            Granularity::SubChannel(_) => return Err(Refused("quantization by blocks".to_owned())),
        }
        Ok(self.pool.ty("vhlo", pieces))
    }

    /// A type that is kept as text: a word of VHLO, or a type of another dialect.
    fn opaque_type(&mut self, text: &str) -> Result<TypeId, Refused> {
        if text == "!shape.witness" {
            return Ok(self.pool.ty("vhlo", vec![Piece::Number(number::WITNESS)]));
        }
        match text.strip_prefix('!').and_then(|rest| rest.split(['.', '<']).next()) {
            Some(dialect) if !matches!(dialect, "quant" | "stablehlo") => {
                Ok(self.pool.type_text(dialect, text))
            }
            Some(_) => Err(Refused(format!("the type {text}"))),
            None => self.word(text),
        }
    }
}

/// Sizes of dimensions; the most negative number is one that is not known.
fn dims(tensor: &TensorType) -> Vec<Piece> {
    let mut pieces = vec![Piece::Number(tensor.rank() as u64)];
    let size = |dim: &Dim| dim.size().and_then(|size| i64::try_from(size).ok()).unwrap_or(i64::MIN);
    pieces.extend(tensor.dims().iter().map(|dim| Piece::Signed(size(dim))));
    pieces
}
