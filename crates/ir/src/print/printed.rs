//! A printed module whose large constants are turned into digits only when they are written out.

use std::io::{self, Write};
use std::sync::Arc;

use super::elements::hex_digits;
use crate::attr::{DenseElements, ElementData};

/// Constants of at least so many bytes stay out of the text.
const LARGE: usize = 1 << 16;

/// The text of a module, with the places where the digits of large constants belong.
#[derive(Debug, Default)]
pub struct Printed {
    pub(super) text: String,
    pub(super) large: Large,
}

/// Constants whose digits are left out of a text, each with the place where they belong.
pub(super) type Large = Vec<(usize, Arc<DenseElements>)>;

/// Adds a constant as `dense<"0x…"> : type` without its digits, if it is large.
pub(super) fn push_large(text: &mut String, large: &mut Large, elements: &Arc<DenseElements>) -> bool {
    if !matches!(elements.data(), ElementData::Raw(bytes) if bytes.len() >= LARGE) {
        return false;
    }
    text.push_str("dense<\"0x");
    large.push((text.len(), Arc::clone(elements)));
    text.push_str("\"> : ");
    text.push_str(&elements.ty().to_string());
    true
}

impl Printed {
    /// Writes the whole text, the digits among it.
    ///
    /// # Errors
    ///
    /// When writing fails.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        self.pieces(|piece| out.write_all(piece.as_bytes()))
    }

    /// The whole text in one piece.
    #[must_use]
    pub fn into_text(self) -> String {
        if self.large.is_empty() {
            return self.text;
        }
        let digits: usize = self.large.iter().filter_map(|(_, large)| large.ty().byte_count()).sum();
        let mut text = String::with_capacity(self.text.len() + 2 * digits);
        let push = |piece: &str| {
            text.push_str(piece);
            Ok::<(), std::convert::Infallible>(())
        };
        match self.pieces(push) {
            Ok(()) => text,
        }
    }

    fn pieces<E>(&self, mut take: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        let mut start = 0;
        for (at, elements) in &self.large {
            take(&self.text[start..*at])?;
            if let (ElementData::Raw(bytes), Some(storage)) =
                (elements.data(), elements.ty().element().storage())
            {
                hex_digits(storage, bytes, &mut take)?;
            }
            start = *at;
        }
        take(&self.text[start..])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Form, print, printed};
    use super::*;
    use crate::{Attribute, Dict, ElementType, Module, OpKind, TensorType};
    use warpforge_diag::Span;

    #[test]
    fn large_constants_are_written_as_they_would_be_printed() {
        let mut module = Module::new();
        let body = module.body();
        let count = LARGE + 3;
        let ty = TensorType::fixed(&[count as u64], ElementType::I8);
        let bytes: Vec<u8> = (0..count).map(|at| (at % 251) as u8).collect();
        let expected: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        let value = Attribute::from(DenseElements::raw(ty.clone(), bytes).unwrap());
        for name in ["value", "value"] {
            let attrs: Dict = [(name, value.clone())].into_iter().collect();
            let op = module.create_op(OpKind::Constant, vec![], vec![ty.clone().into()], attrs, Span::NONE);
            module.append_op(body, op);
        }
        let slim = printed(&module, Form::Pretty);
        assert!(slim.text.len() < 400, "the digits are not held");
        let mut written = Vec::new();
        slim.write_to(&mut written).unwrap();
        let text = print(&module);
        assert_eq!(String::from_utf8(written).unwrap(), text);
        assert_eq!(text.matches(&format!("dense<\"0x{expected}\"> : {ty}")).count(), 2);
    }
}
