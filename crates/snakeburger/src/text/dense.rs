//! Constants: lists, splats and hexadecimal strings, read straight into their bytes.

use std::collections::HashMap;
use std::sync::Arc;

use warpforge_ir::Blob;
use warpforge_ir::attr::{Attribute, DenseElements};
use warpforge_ir::types::{ElementType, FloatType, TensorType, Type};

use super::attrs::fits;
use super::cursor::{Cursor, MAX_DEPTH, Parse, hex_digit};
use super::numbers;
use super::parser::Parser;
use crate::elements;

/// Data that constants refer to by name.
#[derive(Default)]
pub(super) struct Resources {
    blobs: HashMap<String, Blob>,
}

impl Resources {
    pub(super) fn insert(&mut self, name: String, blob: Blob) {
        self.blobs.insert(name, blob);
    }

    pub(super) fn elements(&self, name: &str, ty: TensorType) -> Result<DenseElements, String> {
        let Some(blob) = self.blobs.get(name) else { return Ok(DenseElements::resource(ty, name)) };
        elements::from_file(ty, blob.clone())
    }
}

impl Parser<'_> {
    /// What follows `dense`: `<literal> : type`. The type comes last, so the literal is skipped first and read after.
    pub(super) fn dense(&mut self, start: usize) -> Parse<Attribute> {
        self.cur.expect("<")?;
        self.cur.skip();
        let literal = self.cur.pos();
        self.skip_literal(start)?;
        self.cur.expect(">")?;
        self.cur.expect(":")?;
        self.cur.skip();
        let type_at = self.cur.pos();
        let Type::Tensor(ty) = self.ty()? else {
            return Err(self.cur.error_at(type_at, "a constant needs a ranked tensor type"));
        };
        let end = self.cur.pos();
        let Some(storage) = ty.element().storage() else {
            // Elements of another dialect, such as strings: kept as written.
            let text = self.cur.text().get(start..end).unwrap_or("");
            return Ok(Attribute::Opaque(text.into()));
        };
        if ty.element_count().is_none() {
            return Err(self.cur.error_at(type_at, "a constant needs known dimensions"));
        }
        self.cur.set_pos(literal);
        if ty.element().is_quantized() {
            let why = "a constant of quantized elements is given in its storage type";
            return Err(self.cur.error_at(literal, why));
        }
        let elements = self.literal(&ty, storage)?;
        self.cur.expect(">")?;
        self.cur.set_pos(end);
        Ok(Attribute::Elements(Arc::new(elements)))
    }

    fn skip_literal(&mut self, start: usize) -> Parse<()> {
        loop {
            let rest = self.cur.rest();
            let Some(at) = memchr::memchr2(b'>', b'"', rest) else {
                return Err(self.cur.error_at(start, "the constant is not closed"));
            };
            self.cur.set_pos(self.cur.pos() + at);
            if rest[at] == b'>' {
                return Ok(());
            }
            let Some(length) = memchr::memchr(b'"', &rest[at + 1..]) else {
                return Err(self.cur.error_at(start, "the constant is not closed"));
            };
            self.cur.set_pos(self.cur.pos() + length + 2);
        }
    }

    fn literal(&mut self, ty: &TensorType, storage: ElementType) -> Parse<DenseElements> {
        let start = self.cur.pos();
        let built = match self.cur.peek() {
            Some(b'>') if ty.element_count() == Some(0) => DenseElements::raw(ty.clone(), Vec::new()),
            Some(b'"') => return self.hex_literal(ty),
            Some(b'[') => {
                let bytes = self.listed(ty, storage)?;
                DenseElements::raw(ty.clone(), bytes)
            }
            _ => {
                let mut bytes = Vec::with_capacity(16);
                element(&mut self.cur, storage, &mut bytes)?;
                DenseElements::splat(ty.clone(), bytes)
            }
        };
        built.map_err(|error| self.cur.error_at(start, error.to_string()))
    }

    fn hex_literal(&mut self, ty: &TensorType) -> Parse<DenseElements> {
        let start = self.cur.pos();
        self.cur.expect("\"")?;
        if !self.cur.rest().starts_with(b"0x") {
            return Err(self.cur.error_at(start, "a string of a constant must be hexadecimal, with `0x`"));
        }
        self.cur.set_pos(self.cur.pos() + 2);
        let bytes = self.hex_bytes()?;
        elements::from_file(ty.clone(), bytes).map_err(|why| self.cur.error_at(start, why))
    }

    /// Bytes from hexadecimal digits, up to the closing quote.
    pub(super) fn hex_bytes(&mut self) -> Parse<Blob> {
        let start = self.cur.pos();
        let rest = self.cur.rest();
        if let Some(constant) = self.taken.at(start) {
            let (digits, bytes) = (constant.digits, constant.bytes.clone());
            if digits % 2 != 0 {
                return Err(self.cur.error_at(start, ODD_DIGITS));
            }
            if rest.first() != Some(&b'"') {
                return Err(self.cur.error_at(start, NO_DIGIT));
            }
            self.cur.set_pos(start + 1);
            return Ok(bytes);
        }
        let Some(length) = memchr::memchr(b'"', rest) else {
            return Err(self.cur.error_at(start, "the string is not closed"));
        };
        let digits = &rest[..length];
        if length % 2 != 0 {
            return Err(self.cur.error_at(start, ODD_DIGITS));
        }
        let mut bad = 0u8;
        let pairs = digits.chunks_exact(2).map(|pair| {
            let (high, low) = (HEX[usize::from(pair[0])], HEX[usize::from(pair[1])]);
            bad |= (high | low) & 0xF0;
            high << 4 | low & 0x0F
        });
        let bytes: Vec<u8> = pairs.collect();
        if bad != 0 {
            let at = digits.iter().position(|b| hex_digit(*b).is_none()).unwrap_or(0);
            return Err(self.cur.error_at(start + at, NO_DIGIT));
        }
        self.cur.set_pos(start + length + 1);
        Ok(Blob::from(bytes))
    }

    /// A nested list that has the shape of the type.
    fn listed(&mut self, ty: &TensorType, storage: ElementType) -> Parse<Vec<u8>> {
        let start = self.cur.pos();
        let shape = ty.shape_usize().unwrap_or_default();
        let count = ty.byte_count().map(|bytes| bytes / storage.byte_width());
        // Each element takes a character and a separator, so a type with more is not that of this list.
        let most = self.cur.rest().len();
        let Some(count) = count.filter(|count| *count <= most) else {
            return Err(self.cur.error_at(start, format!("the list has fewer elements than {ty}")));
        };
        if shape.len() > MAX_DEPTH {
            return Err(self.cur.error_at(start, "nested too deeply"));
        }
        let mut bytes = Vec::with_capacity(count * storage.byte_width());
        self.list_level(ty, &shape, storage, &mut bytes)?;
        Ok(bytes)
    }

    fn list_level(
        &mut self,
        ty: &TensorType,
        shape: &[usize],
        storage: ElementType,
        bytes: &mut Vec<u8>,
    ) -> Parse<()> {
        let Some((&size, inner)) = shape.split_first() else {
            return element(&mut self.cur, storage, bytes);
        };
        self.cur.skip();
        let start = self.cur.pos();
        self.cur.expect("[")?;
        let mut found = 0usize;
        while !self.cur.eat("]") {
            if found > 0 {
                self.cur.expect(",")?;
            }
            if found == size {
                return Err(self
                    .cur
                    .error_at(start, format!("a list has more than {size} elements of {ty}")));
            }
            if inner.is_empty() {
                let run = numbers::read(self.cur.rest(), storage, size - found, bytes);
                self.cur.set_pos(self.cur.pos() + run.length);
                found += run.count;
                if run.count > 0 {
                    continue;
                }
            }
            found += 1;
            self.list_level(ty, inner, storage, bytes)?;
        }
        if found != size {
            return Err(self
                .cur
                .error_at(start, format!("a list has {found} elements where {ty} has {size}")));
        }
        Ok(())
    }
}

const ODD_DIGITS: &str = "the number of hexadecimal digits is odd";
const NO_DIGIT: &str = "this is no hexadecimal digit";

/// The value of a byte that is known to be a hexadecimal digit.
pub(super) fn digit_value(digit: u8) -> u8 {
    HEX[usize::from(digit)] & 0x0F
}

const HEX: [u8; 256] = {
    let mut table = [0xFFu8; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            digit @ b'0'..=b'9' => digit - b'0',
            letter @ b'a'..=b'f' => letter - b'a' + 10,
            letter @ b'A'..=b'F' => letter - b'A' + 10,
            _ => 0xFF,
        };
        byte += 1;
    }
    table
};

/// One element of a list.
fn element(cur: &mut Cursor<'_>, storage: ElementType, bytes: &mut Vec<u8>) -> Parse<()> {
    match storage {
        ElementType::Complex(part) => {
            cur.expect("(")?;
            float(cur, part, bytes)?;
            cur.expect(",")?;
            float(cur, part, bytes)?;
            cur.expect(")")
        }
        ElementType::Float(format) => float(cur, format, bytes),
        ElementType::Bool => {
            let value = if cur.eat("true") {
                true
            } else if cur.eat("false") {
                false
            } else {
                match cur.i64()? {
                    0 => false,
                    1 | -1 => true,
                    _ => return Err(cur.error_here("a truth value must be true, false, 1 or 0")),
                }
            };
            bytes.push(u8::from(value));
            Ok(())
        }
        ElementType::Int(_) | ElementType::Index => int(cur, storage, bytes),
    }
}

fn int(cur: &mut Cursor<'_>, storage: ElementType, bytes: &mut Vec<u8>) -> Parse<()> {
    cur.skip();
    let start = cur.pos();
    let negative = cur.eat("-");
    cur.skip();
    let hex = cur.rest().starts_with(b"0x");
    let magnitude = if hex {
        cur.set_pos(cur.pos() + 2);
        u64::from_str_radix(cur.take_while(|b| b.is_ascii_hexdigit()), 16).ok()
    } else {
        Some(cur.digits()?)
    };
    let Some(magnitude) = magnitude.map(i128::from) else {
        return Err(cur.error_at(start, "expected an integer"));
    };
    let value = if negative { -magnitude } else { magnitude };
    let (min, max) = match storage {
        // Signless types take both readings of their bits.
        ElementType::Int(int) if int.is_signed() => (int.min(), 2 * int.max() + 1),
        ElementType::Int(int) => (int.min(), int.max()),
        _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
    };
    if value < min || value > max || matches!(cur.rest().first(), Some(b'.')) {
        return Err(cur.error_at(start, format!("the element is no {storage}")));
    }
    let value = match storage {
        ElementType::Int(int) => int.wrap(value),
        _ => value,
    };
    bytes.extend_from_slice(&value.to_le_bytes()[..storage.byte_width()]);
    Ok(())
}

fn float(cur: &mut Cursor<'_>, format: FloatType, bytes: &mut Vec<u8>) -> Parse<()> {
    cur.skip();
    let start = cur.pos();
    let rest = cur.rest();
    let length = rest
        .iter()
        .position(|b| !matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+' | b'x' | b'a'..=b'f' | b'A'..=b'F'));
    let text = cur.text().get(start..start + length.unwrap_or(rest.len())).unwrap_or("");
    let layout = format.format();
    let code = if let Some(hex) = text.strip_prefix("0x") {
        u64::from_str_radix(hex, 16).ok().filter(|code| fits(*code, layout.bits()))
    } else {
        // Without a point it is an integer, which MLIR does not take for a floating-point number.
        let pointed = text.contains('.') && text.as_bytes().iter().any(u8::is_ascii_digit);
        let number = text.parse::<f64>().ok().filter(|_| pointed);
        number.map(|value| match format {
            FloatType::F32 => u64::from((value as f32).to_bits()),
            FloatType::F64 => value.to_bits(),
            _ => layout.encode(value),
        })
    };
    let Some(code) = code else {
        let wanted = format!("expected a floating-point number with a point for {}", format.name());
        return Err(cur.error_at(start, wanted));
    };
    cur.set_pos(start + text.len());
    let width = ElementType::Float(format).byte_width();
    bytes.extend_from_slice(&code.to_le_bytes()[..width]);
    Ok(())
}
