//! Types.

use std::sync::Arc;

use warpforge_ir::Attribute;
use warpforge_ir::types::{
    Dim, Element, ElementType, FloatType, FunctionType, Granularity, IntType, MAX_RANK, QuantParameters,
    QuantizedType, TensorType, Type,
};

use super::cursor::Parse;
use super::parser::Parser;

impl Parser<'_> {
    /// A type.
    pub(super) fn ty(&mut self) -> Parse<Type> {
        self.nested(Self::ty_inner)
    }

    fn ty_inner(&mut self) -> Parse<Type> {
        match self.cur.peek() {
            Some(b'(') => self.function_type().map(|f| Type::Function(Arc::new(f))),
            Some(b'!') => self.dialect_type(),
            _ => self.builtin_type(),
        }
    }

    /// `(inputs) -> results`.
    pub(super) fn function_type(&mut self) -> Parse<FunctionType> {
        let inputs = self.list_of("(", ")", Self::ty)?;
        self.cur.expect("->")?;
        let results =
            if self.cur.looking_at("(") { self.list_of("(", ")", Self::ty)? } else { vec![self.ty()?] };
        Ok(FunctionType { inputs, results })
    }

    /// Types separated by commas, at least one.
    pub(super) fn type_list(&mut self) -> Parse<Vec<Type>> {
        let mut types = vec![self.ty()?];
        while self.cur.eat(",") {
            types.push(self.ty()?);
        }
        Ok(types)
    }

    fn builtin_type(&mut self) -> Parse<Type> {
        self.cur.skip();
        let start = self.cur.pos();
        let Some(word) = self.cur.word() else { return Err(self.cur.expected("a type")) };
        match word {
            "tensor" => self.tensor_body(),
            "memref" => match self.tensor_body()? {
                Type::Tensor(tensor) => Ok(Type::Buffer(tensor)),
                _ => Err(self.cur.error_at(start, "a buffer needs a rank")),
            },
            "tuple" => Ok(Type::Tuple(self.list_of("<", ">", Self::ty)?.into())),
            "none" => Ok(Type::None),
            "vector" => {
                let body = self.cur.balanced(b'<', b'>')?;
                Ok(Type::Opaque(format!("vector{body}").into()))
            }
            "tf32" => Ok(Type::Opaque("tf32".into())),
            _ => {
                self.cur.set_pos(start);
                self.element().map(Type::Scalar)
            }
        }
    }

    /// What follows `tensor`: `<2x?xf32, encoding>`.
    fn tensor_body(&mut self) -> Parse<Type> {
        self.cur.expect("<")?;
        if self.cur.eat("*") {
            self.cur.skip();
            self.dimension_separator()?;
            let element = self.element()?;
            self.cur.expect(">")?;
            return Ok(Type::UnrankedTensor(element));
        }
        let mut dims = Vec::new();
        loop {
            let dim = match self.cur.peek() {
                Some(b'?') => {
                    self.cur.expect("?")?;
                    Dim::Dynamic
                }
                Some(b'0'..=b'9') => {
                    let start = self.cur.pos();
                    let size = self.cur.digits()?;
                    // Sizes are signed 64-bit numbers in every other tool.
                    if i64::try_from(size).is_err() {
                        return Err(self.cur.error_at(start, "the dimension is too large"));
                    }
                    Dim::Static(size)
                }
                _ => break,
            };
            self.dimension_separator()?;
            if dims.len() == MAX_RANK {
                let message = format!("a tensor of more than {MAX_RANK} dimensions is not supported");
                return Err(self.cur.error_here(message));
            }
            dims.push(dim);
        }
        let element = self.element()?;
        let mut encoding = None;
        if self.cur.eat(",") {
            let start = self.cur.pos();
            match self.attribute()? {
                Attribute::Bounds(bounds) => {
                    apply_bounds(&mut dims, &bounds).map_err(|why| self.cur.error_at(start, why))?;
                }
                other => encoding = Some(other),
            }
        }
        self.cur.expect(">")?;
        Ok(Type::Tensor(TensorType::new(dims, element).with_encoding(encoding)))
    }

    fn dimension_separator(&mut self) -> Parse<()> {
        if self.cur.rest().first() == Some(&b'x') {
            self.cur.set_pos(self.cur.pos() + 1);
            Ok(())
        } else {
            Err(self.cur.expected("`x` after a dimension"))
        }
    }

    /// An element type.
    pub(super) fn element(&mut self) -> Parse<Element> {
        if self.cur.peek() == Some(b'!') {
            let start = self.cur.pos();
            return match self.dialect_type()? {
                Type::Scalar(element) => Ok(element),
                Type::Opaque(text) => Ok(Element::Opaque(text)),
                _ => Err(self.cur.error_at(start, "this type cannot be an element")),
            };
        }
        let start = self.cur.pos();
        let Some(word) = self.cur.word() else { return Err(self.cur.expected("an element type")) };
        if word == "complex" {
            self.cur.expect("<")?;
            let part = self.nested(Self::element)?;
            self.cur.expect(">")?;
            return match part {
                Element::Plain(ElementType::Float(part @ (FloatType::F32 | FloatType::F64))) => {
                    Ok(Element::Plain(ElementType::Complex(part)))
                }
                other => Ok(Element::Opaque(format!("complex<{other}>").into())),
            };
        }
        let known = plain_element(word).or_else(|| is_builtin(word).then(|| Element::Opaque(word.into())));
        known.ok_or_else(|| self.cur.error_at(start, format!("unknown type `{word}`")))
    }

    fn dialect_type(&mut self) -> Parse<Type> {
        let start = self.cur.pos();
        self.cur.expect("!")?;
        let Some(name) = self.cur.word() else { return Err(self.cur.expected("the name of a type")) };
        match name {
            "stablehlo.token" => return Ok(Type::Token),
            "stablehlo.future" => return Ok(Type::Future(self.list_of("<", ">", Self::ty)?.into())),
            "quant.uniform" => return self.quantized(start),
            _ if name.starts_with("stablehlo.") => {
                return Err(self.cur.error_at(start, format!("unknown type `!{name}`")));
            }
            _ => {}
        }
        if !name.contains('.')
            && let Some(ty) = self.type_aliases.get(name)
        {
            return Ok(ty.clone());
        }
        if !name.contains('.') && self.cur.rest().first() != Some(&b'<') {
            return Err(self.cur.error_at(start, format!("the type alias `!{name}` is not defined")));
        }
        let body = if self.cur.rest().first() == Some(&b'<') { self.cur.balanced(b'<', b'>')? } else { "" };
        Ok(Type::Opaque(format!("!{name}{body}").into()))
    }

    /// What follows `!quant.uniform`: `<i8<-7:7>:f32:1, {0.5:3, 1.0}>`.
    fn quantized(&mut self, start: usize) -> Parse<Type> {
        let opened = self.cur.pos();
        self.cur.expect("<")?;
        let (storage, min, max) = self.storage_type()?;
        self.cur.expect(":")?;
        let expressed_at = self.cur.pos();
        let expressed = match self.element()? {
            Element::Plain(ElementType::Float(float)) => float,
            _ => {
                return Err(self
                    .cur
                    .error_at(expressed_at, "the expressed type must be a floating-point type"));
            }
        };
        let mut granularity = Granularity::PerTensor;
        if self.cur.eat(":") {
            if self.cur.looking_at("{") {
                // Blocks of several dimensions are kept as written: nothing computes with them.
                self.cur.set_pos(opened);
                let body = self.cur.balanced(b'<', b'>')?;
                return Ok(Type::Opaque(format!("!quant.uniform{body}").into()));
            }
            granularity = Granularity::PerAxis(self.cur.digits()? as usize);
        }
        self.cur.expect(",")?;
        let parameters = if granularity == Granularity::PerTensor {
            vec![self.quant_parameters(expressed)?]
        } else {
            self.list_of("{", "}", |parser| parser.quant_parameters(expressed))?
        };
        self.cur.expect(">")?;
        let quantized =
            QuantizedType { storage, expressed, storage_min: min, storage_max: max, granularity, parameters };
        quantized.validate().map_err(|error| self.cur.error_at(start, error.to_string()))?;
        Ok(Type::Scalar(Element::Quantized(Arc::new(quantized))))
    }

    fn storage_type(&mut self) -> Parse<(IntType, i64, i64)> {
        let start = self.cur.pos();
        let Some(word) = self.cur.word() else { return Err(self.cur.expected("a storage type")) };
        // `u8` and `i8` here, `ui8` elsewhere.
        let name = match word.strip_prefix('u') {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => format!("ui{rest}"),
            _ => word.to_owned(),
        };
        let storage = match plain_element(&name) {
            Some(Element::Plain(ElementType::Int(int))) => int,
            _ => return Err(self.cur.error_at(start, format!("`{word}` is no storage type"))),
        };
        if !self.cur.eat("<") {
            return Ok((storage, clip(storage.min()), clip(storage.max())));
        }
        let min = self.cur.i64()?;
        self.cur.expect(":")?;
        let max = self.cur.i64()?;
        self.cur.expect(">")?;
        Ok((storage, min, max))
    }

    fn quant_parameters(&mut self, expressed: FloatType) -> Parse<QuantParameters> {
        let start = self.cur.pos();
        let scale = self.float_literal()?;
        // The scale is a number of the expressed type.
        let rounded = expressed.format().round(scale);
        if !(rounded.is_finite() && rounded > 0.0) {
            return Err(self.cur.error_at(start, format!("the scale {scale} is not a positive number")));
        }
        let zero_point = if self.cur.eat(":") { self.cur.i64()? } else { 0 };
        Ok(QuantParameters { scale, zero_point })
    }

    /// A floating-point number as scales and tolerances have it.
    pub(super) fn float_literal(&mut self) -> Parse<f64> {
        self.cur.skip();
        let start = self.cur.pos();
        let negative = self.cur.eat("-");
        self.cur.skip();
        let mut text = self.cur.take_while(|b| b.is_ascii_alphanumeric() || b == b'.').to_owned();
        if text.ends_with(['e', 'E']) && !text.starts_with("0x") {
            let sign = self.cur.take_while(|b| matches!(b, b'+' | b'-'));
            text.push_str(sign);
            text.push_str(self.cur.take_while(|b| b.is_ascii_digit()));
        }
        let value = match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok().map(f64::from_bits),
            None if text.starts_with(|c: char| c.is_ascii_digit()) => text.parse().ok(),
            None => None,
        };
        match value {
            Some(value) => Ok(if negative { -value } else { value }),
            None => Err(self.cur.error_at(start, "expected a floating-point number")),
        }
    }
}

/// Element types by name.
pub(super) fn plain_element(word: &str) -> Option<Element> {
    let element = match word {
        "f32" => ElementType::F32,
        "i1" => ElementType::Bool,
        "i32" => ElementType::I32,
        "i64" => ElementType::I64,
        // StableHLO's signed integers are those without a sign in their name.
        signed if signed.starts_with("si") => return None,
        other => other.parse().ok()?,
    };
    Some(Element::Plain(element))
}

/// Whether a word is a number type of MLIR that StableHLO has no operations for: it is kept, and no more.
fn is_builtin(word: &str) -> bool {
    let width = ["i", "si", "ui"].iter().find_map(|sign| word.strip_prefix(sign));
    let wide = width.is_some_and(|digits| {
        digits.len() <= 7
            && !digits.starts_with('0')
            && digits.parse::<u32>().is_ok_and(|bits| bits < 1 << 24)
    });
    wide || matches!(word, "tf32" | "f80" | "f128")
}

fn clip(value: i128) -> i64 {
    value.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

/// Gives dimensions the bounds that an encoding lists for them.
pub(crate) fn apply_bounds(dims: &mut [Dim], bounds: &[Option<u64>]) -> Result<(), &'static str> {
    if bounds.len() != dims.len() {
        return Err("the number of bounds is not that of the dimensions");
    }
    for (dim, bound) in dims.iter_mut().zip(bounds) {
        match (*dim, bound) {
            (_, None) => {}
            (Dim::Static(_), Some(_)) => return Err("a dimension of known size has a bound"),
            (_, Some(bound)) => *dim = Dim::Bounded(*bound),
        }
    }
    Ok(())
}
