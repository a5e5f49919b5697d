//! Classes of types that operands and results may have.

use crate::types::{Element, ElementType, Granularity, IntType, Type};

/// A set of types, by the kind of their elements and their rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeClass {
    bits: u16,
    rank: Option<usize>,
}

const PRED: u16 = 1;
const SINT: u16 = 1 << 1;
const UINT: u16 = 1 << 2;
const FLOAT: u16 = 1 << 3;
const COMPLEX: u16 = 1 << 4;
const QUANT: u16 = 1 << 5;
const AXIS_QUANT: u16 = 1 << 6;
const INDEX: u16 = 1 << 7;
const TOKEN: u16 = 1 << 8;
const TUPLE: u16 = 1 << 9;
const FUTURE: u16 = 1 << 10;
const BUFFER: u16 = 1 << 11;
const OTHER: u16 = 1 << 12;
const TENSOR: u16 = PRED | SINT | UINT | FLOAT | COMPLEX | QUANT | AXIS_QUANT;

const WORDS: &[(&str, u16)] = &[
    ("pred", PRED),
    ("int", SINT | UINT),
    ("sint", SINT),
    ("uint", UINT),
    ("float", FLOAT),
    ("complex", COMPLEX),
    ("quant", QUANT),
    ("axisquant", AXIS_QUANT),
    ("index", INDEX),
    ("token", TOKEN),
    ("tuple", TUPLE),
    ("future", FUTURE),
    ("buffer", BUFFER),
    ("tensor", TENSOR),
    ("any", u16::MAX),
];

impl TypeClass {
    /// Every type.
    pub const ANY: TypeClass = TypeClass { bits: u16::MAX, rank: None };

    /// Reads `1d int|index`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (rank, words) = match text.split_once("d ") {
            Some((digits, rest)) if digits.bytes().all(|b| b.is_ascii_digit()) => (digits.parse().ok(), rest),
            _ => (None, text),
        };
        let mut bits = 0;
        for word in words.split('|') {
            bits |= WORDS.iter().find(|(name, _)| *name == word.trim())?.1;
        }
        Some(Self { bits, rank })
    }

    /// Whether a type belongs to the class.
    pub fn accepts(self, ty: &Type) -> bool {
        if let (Some(rank), Type::Tensor(tensor)) = (self.rank, ty)
            && tensor.rank() != rank
        {
            return false;
        }
        self.bits & bit_of(ty) != 0
    }

    /// The class in words, for messages.
    pub fn describe(self) -> String {
        if self.bits == u16::MAX {
            return "any type".to_owned();
        }
        let mut names = Vec::new();
        let mut left = self.bits;
        for (name, bits) in [WORDS[13], WORDS[1]].iter().chain(WORDS) {
            if left & bits == *bits {
                names.push(*name);
                left &= !bits;
            }
        }
        let rank = self.rank.map_or(String::new(), |rank| format!(" of rank {rank}"));
        format!("{}{rank}", names.join(" or "))
    }
}

fn bit_of(ty: &Type) -> u16 {
    match ty {
        Type::Tensor(tensor) => element_bit(tensor.element()),
        Type::UnrankedTensor(_) => OTHER,
        Type::Token => TOKEN,
        Type::Tuple(_) => TUPLE,
        Type::Future(_) => FUTURE,
        Type::Buffer(_) => BUFFER,
        Type::Function(_) | Type::Scalar(_) | Type::None | Type::Opaque(_) => OTHER,
    }
}

fn element_bit(element: &Element) -> u16 {
    match element {
        Element::Plain(ElementType::Bool) => PRED,
        Element::Plain(ElementType::Int(int)) => int_bit(*int),
        Element::Plain(ElementType::Float(_)) => FLOAT,
        Element::Plain(ElementType::Complex(_)) => COMPLEX,
        Element::Plain(ElementType::Index) => INDEX,
        Element::Quantized(quantized) => match quantized.granularity {
            Granularity::PerTensor => QUANT,
            Granularity::PerAxis(_) | Granularity::SubChannel(_) => AXIS_QUANT,
        },
        Element::Opaque(_) => OTHER,
    }
}

fn int_bit(int: IntType) -> u16 {
    if int.is_signed() { SINT } else { UINT }
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
}
