//! Attributes.

use std::sync::Arc;

use warpforge_ir::attr::{Attribute, Dict};
use warpforge_ir::types::{Element, ElementType, FloatType, Type};

use super::cursor::{Parse, hex_digit, is_name_byte};
use super::parser::Parser;

/// A number as it is written.
enum Number {
    Int(i128),
    /// The bits of a number in hexadecimal.
    Hex(u128),
    Float(f64),
}

impl<'a> Parser<'a> {
    /// An attribute.
    pub(super) fn attribute(&mut self) -> Parse<Attribute> {
        self.nested(Self::attribute_inner)
    }

    fn attribute_inner(&mut self) -> Parse<Attribute> {
        match self.cur.peek() {
            Some(b'"') => {
                let text = self.cur.string()?;
                if self.cur.looking_at(":") && !self.cur.looking_at("::") {
                    self.cur.expect(":")?;
                    self.ty()?;
                }
                Ok(Attribute::Str(text.into()))
            }
            Some(b'@') => self.symbol_path(),
            Some(b'[') => Ok(Attribute::Array(self.list_of("[", "]", Self::attribute)?.into())),
            Some(b'{') => Ok(Attribute::Dict(self.dictionary()?)),
            Some(b'#') => self.hash_attribute(),
            Some(b'0'..=b'9' | b'-') => self.number_attribute(),
            Some(b'(' | b'!') => Ok(Attribute::Type(self.ty()?)),
            _ => self.word_attribute(),
        }
    }

    fn word_attribute(&mut self) -> Parse<Attribute> {
        let start = self.cur.pos();
        let Some(word) = self.cur.word() else { return Err(self.cur.expected("an attribute")) };
        match word {
            "true" => Ok(Attribute::Bool(true)),
            "false" => Ok(Attribute::Bool(false)),
            "unit" => Ok(Attribute::Unit),
            "dense" => self.dense(start),
            "dense_resource" => self.dense_resource(),
            "array" => self.dense_array(),
            "loc" => self.verbatim(start, b'(', b')'),
            "sparse" => {
                self.verbatim(start, b'<', b'>')?;
                self.cur.expect(":")?;
                self.ty()?;
                let text = self.cur.text().get(start..self.cur.pos()).unwrap_or("");
                Ok(Attribute::Opaque(text.into()))
            }
            "affine_map" | "affine_set" | "strided" | "distinct" | "opaque" => {
                self.verbatim(start, b'<', b'>')
            }
            _ => {
                self.cur.set_pos(start);
                Ok(Attribute::Type(self.ty()?))
            }
        }
    }

    /// The text from `start` to the end of a balanced bracket, kept as it is.
    fn verbatim(&mut self, start: usize, open: u8, close: u8) -> Parse<Attribute> {
        self.cur.balanced(open, close)?;
        let text = self.cur.text().get(start..self.cur.pos()).unwrap_or("");
        Ok(Attribute::Opaque(text.into()))
    }

    /// `@name` with or without quotes.
    pub(super) fn symbol_name(&mut self) -> Parse<String> {
        self.cur.expect("@")?;
        if self.cur.rest().first() == Some(&b'"') {
            return self.cur.string();
        }
        let name = self.cur.take_while(is_name_byte);
        if name.is_empty() { Err(self.cur.expected("a symbol's name")) } else { Ok(name.to_owned()) }
    }

    fn symbol_path(&mut self) -> Parse<Attribute> {
        let mut path = vec![self.symbol_name()?];
        while self.cur.looking_at("::@") {
            self.cur.expect("::")?;
            path.push(self.symbol_name()?);
        }
        Ok(Attribute::Symbol(path.into()))
    }

    /// `{name = value, name}`.
    pub(super) fn dictionary(&mut self) -> Parse<Dict> {
        let mut dict = Dict::new();
        self.cur.expect("{")?;
        if self.cur.eat("}") {
            return Ok(dict);
        }
        loop {
            let start = self.cur.pos();
            let name = if self.cur.peek() == Some(b'"') {
                self.cur.string()?
            } else {
                self.cur.word().ok_or_else(|| self.cur.expected("the name of an attribute"))?.to_owned()
            };
            let value = if self.cur.eat("=") { self.attribute()? } else { Attribute::Unit };
            if dict.set(name.clone(), value).is_some() {
                return Err(self.cur.error_at(start, format!("the attribute `{name}` is given twice")));
            }
            if self.cur.eat("}") {
                return Ok(dict);
            }
            self.cur.expect(",")?;
        }
    }

    fn number(&mut self) -> Parse<Number> {
        self.cur.skip();
        let start = self.cur.pos();
        let negative = self.cur.eat("-");
        self.cur.skip();
        let rest = self.cur.rest();
        if rest.starts_with(b"0x") && rest.get(2).is_some_and(|b| hex_digit(*b).is_some()) {
            self.cur.set_pos(self.cur.pos() + 2);
            let digits = self.cur.take_while(|b| b.is_ascii_hexdigit());
            let bits = u128::from_str_radix(digits, 16);
            let bits = bits.map_err(|_| self.cur.error_at(start, "the number is too large"))?;
            return Ok(if negative { Number::Int((bits as i128).wrapping_neg()) } else { Number::Hex(bits) });
        }
        let whole_at = self.cur.pos();
        let whole = self.cur.take_while(|b| b.is_ascii_digit());
        if whole.is_empty() {
            return Err(self.cur.expected("a number"));
        }
        if self.cur.rest().first() == Some(&b'.') {
            self.cur.set_pos(whole_at);
            let value = self.float_literal()?;
            return Ok(Number::Float(if negative { -value } else { value }));
        }
        let value: i128 = whole.parse().map_err(|_| self.cur.error_at(start, "the number is too large"))?;
        Ok(Number::Int(if negative { -value } else { value }))
    }

    fn number_attribute(&mut self) -> Parse<Attribute> {
        let start = self.cur.pos();
        let number = self.number()?;
        let ty = if self.cur.looking_at(":") && !self.cur.looking_at("::") {
            self.cur.expect(":")?;
            Some(self.ty()?)
        } else {
            None
        };
        self.typed_number(start, number, ty)
    }

    fn typed_number(&mut self, start: usize, number: Number, ty: Option<Type>) -> Parse<Attribute> {
        let float = match &ty {
            Some(Type::Scalar(Element::Plain(ElementType::Float(float)))) => Some(*float),
            _ => None,
        };
        match (number, float) {
            (Number::Float(value), _) => {
                let format = float.unwrap_or(FloatType::F64);
                if ty.is_some() && float.is_none() {
                    return Err(self.cur.error_at(start, "a floating-point number cannot have this type"));
                }
                let ty = Type::scalar(ElementType::Float(format));
                Ok(Attribute::Float(format.format().round(value), ty))
            }
            (Number::Hex(bits), Some(format)) => {
                let code = u64::try_from(bits).ok().filter(|code| fits(*code, format.format().bits()));
                let code = code.ok_or_else(|| self.cur.error_at(start, "the number has too many bits"))?;
                Ok(Attribute::Float(format.format().decode(code), Type::scalar(ElementType::Float(format))))
            }
            (Number::Int(_), Some(_)) => {
                Err(self.cur.error_at(start, "expected a floating-point number with a point for this type"))
            }
            (Number::Int(value), None) => self.integer(start, value, ty),
            (Number::Hex(bits), None) => self.integer(start, bits as i128, ty),
        }
    }

    fn integer(&mut self, start: usize, value: i128, ty: Option<Type>) -> Parse<Attribute> {
        let ty = ty.unwrap_or_else(|| Type::scalar(ElementType::I64));
        let fits = match &ty {
            Type::Scalar(Element::Plain(ElementType::Bool)) => return Ok(Attribute::Bool(value != 0)),
            // Without a sign in the type, both readings of the bits are taken.
            Type::Scalar(Element::Plain(ElementType::Int(int))) => {
                let int = *int;
                let unsigned = if int.is_signed() { 2 * (int.max() + 1) - 1 } else { int.max() };
                (int.min()..=unsigned).contains(&value)
            }
            Type::Scalar(Element::Plain(ElementType::Index)) => i64::try_from(value).is_ok(),
            Type::Opaque(_) | Type::Scalar(Element::Opaque(_)) => true,
            _ => return Err(self.cur.error_at(start, format!("an integer cannot have the type {ty}"))),
        };
        if !fits {
            return Err(self.cur.error_at(start, format!("{value} does not fit {ty}")));
        }
        let value = match &ty {
            Type::Scalar(Element::Plain(ElementType::Int(int))) => int.wrap(value),
            _ => value,
        };
        Ok(Attribute::Int(value, ty))
    }

    /// What follows `array`: `<i64: 1, 2>`.
    fn dense_array(&mut self) -> Parse<Attribute> {
        self.cur.expect("<")?;
        let start = self.cur.pos();
        let element = match self.element()? {
            Element::Plain(plain) => plain,
            _ => return Err(self.cur.error_at(start, "an array needs a numeric element type")),
        };
        let mut items = Vec::new();
        if self.cur.eat(":") {
            loop {
                items.push(self.array_item(element)?);
                if !self.cur.eat(",") {
                    break;
                }
            }
        }
        self.cur.expect(">")?;
        Ok(match element {
            ElementType::I64 => Attribute::I64s(items.iter().filter_map(Attribute::as_i64).collect()),
            ElementType::Bool => Attribute::Bools(items.iter().filter_map(Attribute::as_bool).collect()),
            _ => Attribute::DenseArray(element, items.into()),
        })
    }

    fn array_item(&mut self, element: ElementType) -> Parse<Attribute> {
        let start = self.cur.pos();
        if element == ElementType::Bool && self.cur.eat("true") {
            return Ok(Attribute::Bool(true));
        }
        if element == ElementType::Bool && self.cur.eat("false") {
            return Ok(Attribute::Bool(false));
        }
        let number = match (self.number()?, element) {
            (Number::Int(value), ElementType::Float(_)) => Number::Float(value as f64),
            (number, _) => number,
        };
        self.typed_number(start, number, Some(Type::scalar(element)))
    }

    /// An alias or an attribute of a dialect.
    fn hash_attribute(&mut self) -> Parse<Attribute> {
        let start = self.cur.pos();
        self.cur.expect("#")?;
        let name = self.cur.take_while(is_name_byte);
        if name.is_empty() {
            return Err(self.cur.expected("the name of an attribute"));
        }
        let has_body = self.cur.rest().first() == Some(&b'<');
        if !name.contains('.') && !has_body {
            let known = self.aliases.get(name).cloned();
            return known
                .ok_or_else(|| self.cur.error_at(start, format!("the alias `#{name}` is not defined")));
        }
        if let Some(attribute) = self.stablehlo_attribute(name)? {
            return Ok(attribute);
        }
        let body = if has_body { self.cur.balanced(b'<', b'>')? } else { "" };
        Ok(Attribute::Opaque(self.without_aliases(&format!("#{name}{body}")).into()))
    }

    /// Text of another dialect with the aliases in it replaced by what they stand for.
    fn without_aliases(&self, text: &str) -> String {
        /// Aliases inside aliases must not multiply into something huge.
        const LONGEST: usize = 1 << 16;
        let mut out = text.to_owned();
        if !text[1..].contains('#') {
            return out;
        }
        for (name, value) in &self.aliases {
            let marked = format!("#{name}");
            if out.contains(&marked) && out.len() < LONGEST {
                let shown = value.to_string();
                let mut replaced = String::new();
                let mut rest = out.as_str();
                while let Some(at) = rest.find(&marked) {
                    let after = &rest[at + marked.len()..];
                    let ends = !after.starts_with(|c: char| c.is_ascii_alphanumeric() || "_$.<".contains(c));
                    replaced.push_str(&rest[..at]);
                    replaced.push_str(if ends { &shown } else { &marked });
                    rest = after;
                }
                replaced.push_str(rest);
                out = replaced;
            }
        }
        out
    }

    /// `#name = attribute` or `!name = type` between operations.
    pub(super) fn alias_definition(&mut self) -> Parse<()> {
        let start = self.cur.pos();
        let is_type = self.cur.peek() == Some(b'!');
        self.cur.set_pos(start + 1);
        let name: &'a str =
            self.cur.take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'-'));
        if name.is_empty() {
            return Err(self.cur.expected("the name of an alias"));
        }
        self.cur.expect("=")?;
        if is_type {
            let ty = self.ty()?;
            self.type_aliases.insert(name, ty);
        } else {
            let value = self.attribute()?;
            self.note_location_alias(name, &value);
            self.aliases.insert(name, value);
        }
        Ok(())
    }

    fn dense_resource(&mut self) -> Parse<Attribute> {
        self.cur.expect("<")?;
        let name = if self.cur.peek() == Some(b'"') {
            self.cur.string()?
        } else {
            self.cur.word().ok_or_else(|| self.cur.expected("the name of a resource"))?.to_owned()
        };
        self.cur.expect(">")?;
        self.cur.expect(":")?;
        let start = self.cur.pos();
        let Type::Tensor(ty) = self.ty()? else {
            return Err(self.cur.error_at(start, "a constant needs a tensor type"));
        };
        let elements = self.resources.elements(&name, ty).map_err(|why| self.cur.error_at(start, why))?;
        Ok(Attribute::Elements(Arc::new(elements)))
    }
}

/// Whether a code has no more bits than its format.
pub(super) fn fits(code: u64, bits: u32) -> bool {
    bits >= 64 || code >> bits == 0
}
