//! Classes of types that operands and results may have.

use crate::types::{Dim, Element, ElementType, Granularity, TensorType, Type};

/// A set of types: by the kind of their elements, and of tensors by their shape.
///
/// Written as words that are joined by `|`, after a word or two about the shape: `int|float`, `static 1d int|index`,
/// `tensor|axisquant|token`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeClass {
    kinds: u32,
    rank: Option<usize>,
    sizes: Sizes,
}

/// Which dimensions must be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sizes {
    /// None.
    Any,
    /// All.
    Static,
    /// All, except for one that is bounded.
    StaticOrOneBounded,
}

const PRED: u32 = 1;
const SINT: u32 = 1 << 1;
const UINT: u32 = 1 << 2;
const FLOAT: u32 = 1 << 3;
const COMPLEX: u32 = 1 << 4;
const QUANT: u32 = 1 << 5;
const AXIS_QUANT: u32 = 1 << 6;
const INDEX: u32 = 1 << 7;
const TOKEN: u32 = 1 << 8;
const TUPLE: u32 = 1 << 9;
const FUTURE: u32 = 1 << 10;
const BUFFER: u32 = 1 << 11;
const OTHER: u32 = 1 << 12;
const I32: u32 = 1 << 13;
const U32: u32 = 1 << 14;
/// Not a kind of its own: tensors of unknown rank are in the class as well.
const UNRANKED: u32 = 1 << 15;
const TENSOR: u32 = PRED | SINT | UINT | FLOAT | COMPLEX | QUANT;

const WORDS: &[(&str, u32)] = &[
    ("any", u32::MAX),
    ("tensor", TENSOR),
    ("int", SINT | UINT),
    ("pred", PRED),
    ("sint", SINT),
    ("uint", UINT),
    ("i32", I32),
    ("u32", U32),
    ("float", FLOAT),
    ("complex", COMPLEX),
    ("quant", QUANT),
    ("axisquant", AXIS_QUANT),
    ("index", INDEX),
    ("token", TOKEN),
    ("tuple", TUPLE),
    ("future", FUTURE),
    ("buffer", BUFFER),
    ("unranked", UNRANKED),
];

impl TypeClass {
    /// Every type.
    pub const ANY: TypeClass = TypeClass { kinds: u32::MAX, rank: None, sizes: Sizes::Any };

    /// Reads the notation of the table.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut class = Self { kinds: 0, rank: None, sizes: Sizes::Any };
        let mut rest = text.trim();
        while let Some((word, after)) = rest.split_once(' ') {
            match word {
                "static" => class.sizes = Sizes::Static,
                "sized" => class.sizes = Sizes::StaticOrOneBounded,
                _ => class.rank = Some(word.strip_suffix('d')?.parse().ok()?),
            }
            rest = after.trim_start();
        }
        for word in rest.split('|') {
            class.kinds |= WORDS.iter().find(|(name, _)| *name == word)?.1;
        }
        Some(class)
    }

    /// Whether a type belongs to the class.
    pub fn accepts(self, ty: &Type) -> bool {
        match ty {
            Type::Tensor(tensor) => self.has_element(tensor.element()) && self.has_shape(tensor),
            Type::UnrankedTensor(element) => self.kinds & UNRANKED != 0 && self.has_element(element),
            Type::Token => self.kinds & TOKEN != 0,
            // What a tuple holds may be anything that a value may be, tuples among it.
            Type::Tuple(parts) => self.kinds & TUPLE != 0 && parts.iter().all(|part| PART.accepts(part)),
            Type::Future(_) => self.kinds & FUTURE != 0,
            Type::Buffer(buffer) => {
                self.kinds & BUFFER != 0 && kinds_of(buffer.element()) & (TENSOR | OTHER) != 0
            }
            Type::Function(_) | Type::Scalar(_) | Type::None | Type::Opaque(_) => self.kinds & OTHER != 0,
        }
    }

    fn has_element(self, element: &Element) -> bool {
        self.kinds & kinds_of(element) != 0
    }

    fn has_shape(self, tensor: &TensorType) -> bool {
        let unknown: Vec<&Dim> = tensor.dims().iter().filter(|dim| !dim.is_static()).collect();
        let known = match self.sizes {
            Sizes::Any => true,
            Sizes::Static => unknown.is_empty(),
            Sizes::StaticOrOneBounded => matches!(unknown.as_slice(), [] | [Dim::Bounded(_)]),
        };
        known && self.rank.is_none_or(|rank| tensor.rank() == rank)
    }

    /// The class in words, for messages.
    pub fn describe(self) -> String {
        if self.kinds == u32::MAX {
            return "any type".to_owned();
        }
        let mut names = Vec::new();
        let mut left = self.kinds;
        for (name, kinds) in WORDS {
            if left & kinds == *kinds {
                names.push(*name);
                left &= !kinds;
            }
        }
        let sizes = match self.sizes {
            Sizes::Any => "",
            Sizes::Static => " with known dimensions",
            Sizes::StaticOrOneBounded => " with known dimensions, or one that is bounded",
        };
        let rank = self.rank.map_or(String::new(), |rank| format!(" of rank {rank}"));
        format!("{}{rank}{sizes}", names.join(" or "))
    }
}

/// What may be in a tuple.
const PART: TypeClass = TypeClass {
    kinds: TENSOR | AXIS_QUANT | TOKEN | TUPLE | BUFFER | UNRANKED,
    rank: None,
    sizes: Sizes::Any,
};

fn kinds_of(element: &Element) -> u32 {
    match element {
        Element::Plain(ElementType::Bool) => PRED,
        Element::Plain(ElementType::I32) => SINT | I32,
        Element::Plain(ElementType::U32) => UINT | U32,
        Element::Plain(ElementType::Int(int)) => {
            if int.is_signed() {
                SINT
            } else {
                UINT
            }
        }
        Element::Plain(ElementType::Float(_)) => FLOAT,
        Element::Plain(ElementType::Complex(_)) => COMPLEX,
        Element::Plain(ElementType::Index) => INDEX,
        Element::Quantized(quantized) => match quantized.granularity {
            Granularity::PerTensor => QUANT,
            Granularity::PerAxis(_) => AXIS_QUANT,
            // No operation computes with blocks that have scales of their own.
            Granularity::SubChannel(_) => OTHER,
        },
        Element::Opaque(_) => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_accept_by_element_and_rank() {
        let class = TypeClass::parse("1d int|index").unwrap();
        assert!(class.accepts(&Type::tensor(&[3], ElementType::Index)));
        assert!(class.accepts(&Type::tensor(&[3], ElementType::U4)));
        assert!(!class.accepts(&Type::tensor(&[3], ElementType::F32)));
        assert!(!class.accepts(&Type::tensor(&[], ElementType::I32)));
        assert!(!class.accepts(&Type::Token));
        assert_eq!(class.describe(), "int or index of rank 1");
        assert_eq!(TypeClass::parse("tensor|token").unwrap().describe(), "tensor or token");
        assert!(TypeClass::parse("nonsense").is_none());
    }

    #[test]
    fn classes_accept_by_what_is_known_of_the_shape() {
        let dims = |dims: &[Dim]| Type::Tensor(TensorType::new(dims.to_vec(), ElementType::F32));
        let sized = TypeClass::parse("sized tensor").unwrap();
        assert!(sized.accepts(&dims(&[Dim::Static(2), Dim::Bounded(3)])));
        assert!(!sized.accepts(&dims(&[Dim::Bounded(2), Dim::Bounded(3)])));
        assert!(!sized.accepts(&dims(&[Dim::Dynamic])));
        let fixed = TypeClass::parse("static 1d float").unwrap();
        assert!(fixed.accepts(&dims(&[Dim::Static(2)])) && !fixed.accepts(&dims(&[Dim::Bounded(2)])));
        let unranked = Type::UnrankedTensor(ElementType::F32.into());
        assert!(TypeClass::parse("tensor|unranked").unwrap().accepts(&unranked));
        assert!(!TypeClass::parse("tensor").unwrap().accepts(&unranked));
        let narrow = TypeClass::parse("i32").unwrap();
        assert!(narrow.accepts(&Type::tensor(&[], ElementType::I32)));
        assert!(!narrow.accepts(&Type::tensor(&[], ElementType::I64)));
    }
}
