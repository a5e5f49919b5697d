//! What a file's tables hold, each thing once: attributes, types, strings, names of operations, properties.

use std::collections::HashMap;
use std::hash::Hash;

use warpforge_ir::Blob;

use crate::bytecode::wire::{LATEST_FORMAT, MAGIC, Output, Section};

/// An attribute, in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct AttrId(usize);

/// A type, in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TypeId(usize);

/// The name of an operation, in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct OpNameId(usize);

/// A part of an encoding. The numbers of attributes, types and names are only known when all are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Piece {
    /// A number.
    Number(u64),
    /// A number with a sign.
    Signed(i64),
    /// A byte.
    Byte(u8),
    /// Bytes as they are.
    Bytes(Vec<u8>),
    /// Bytes that are too many to be compared with others, by position.
    Large(usize),
    /// The number of a string.
    Text(u64),
    /// The number of an attribute.
    Attr(AttrId),
    /// The number of an attribute, or none.
    Optional(Option<AttrId>),
    /// The number of a type.
    Type(TypeId),
    /// The number of a type, with a flag.
    FlaggedType(TypeId, bool),
    /// The number of an operation's name.
    Name(OpNameId),
    /// A region in a section of its own.
    Section(Vec<Piece>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Node {
    dialect: usize,
    encoded: bool,
    pieces: Vec<Piece>,
}

/// Things that occur once each.
struct Once<T> {
    items: Vec<T>,
    known: HashMap<T, usize>,
}

impl<T: Clone + Eq + Hash> Once<T> {
    fn new() -> Self {
        Self { items: Vec::new(), known: HashMap::new() }
    }

    fn add(&mut self, item: T) -> usize {
        if let Some(&at) = self.known.get(&item) {
            return at;
        }
        self.items.push(item.clone());
        self.known.insert(item, self.items.len() - 1);
        self.items.len() - 1
    }
}

/// The tables of a file under construction.
pub(super) struct Pool {
    dialects: Once<String>,
    strings: Once<Vec<u8>>,
    attrs: Once<Node>,
    types: Once<Node>,
    names: Once<(usize, u64)>,
    properties: Once<Vec<Piece>>,
    large: Vec<Blob>,
}

/// How many bytes are compared with others to write them once.
const LARGE: usize = 4096;

impl Pool {
    pub(super) fn new() -> Self {
        Self {
            dialects: Once::new(),
            strings: Once::new(),
            attrs: Once::new(),
            types: Once::new(),
            names: Once::new(),
            properties: Once::new(),
            large: Vec::new(),
        }
    }

    /// A string.
    pub(super) fn text(&mut self, text: &str) -> Piece {
        Piece::Text(self.strings.add(text.as_bytes().to_vec()) as u64)
    }

    /// Data with its length before it.
    pub(super) fn data(&mut self, bytes: Blob) -> [Piece; 2] {
        let length = Piece::Number(bytes.len() as u64);
        if bytes.len() < LARGE {
            return [length, Piece::Bytes(bytes.to_vec())];
        }
        self.large.push(bytes);
        [length, Piece::Large(self.large.len() - 1)]
    }

    /// An attribute of a dialect by its encoding.
    pub(super) fn attr(&mut self, dialect: &str, pieces: Vec<Piece>) -> AttrId {
        let dialect = self.dialects.add(dialect.to_owned());
        AttrId(self.attrs.add(Node { dialect, encoded: true, pieces }))
    }

    /// An attribute of a dialect by its text.
    pub(super) fn attr_text(&mut self, dialect: &str, text: &str) -> AttrId {
        let dialect = self.dialects.add(dialect.to_owned());
        AttrId(self.attrs.add(Node { dialect, encoded: false, pieces: assembly(text) }))
    }

    /// A type of a dialect by its encoding.
    pub(super) fn ty(&mut self, dialect: &str, pieces: Vec<Piece>) -> TypeId {
        let dialect = self.dialects.add(dialect.to_owned());
        TypeId(self.types.add(Node { dialect, encoded: true, pieces }))
    }

    /// A type of a dialect by its text.
    pub(super) fn type_text(&mut self, dialect: &str, text: &str) -> TypeId {
        let dialect = self.dialects.add(dialect.to_owned());
        TypeId(self.types.add(Node { dialect, encoded: false, pieces: assembly(text) }))
    }

    /// The name of an operation.
    pub(super) fn name(&mut self, dialect: &str, name: &str) -> OpNameId {
        let dialect = self.dialects.add(dialect.to_owned());
        let name = self.strings.add(name.as_bytes().to_vec()) as u64;
        OpNameId(self.names.add((dialect, name)))
    }

    /// The number of an operation's properties.
    pub(super) fn properties(&mut self, pieces: Vec<Piece>) -> u64 {
        self.properties.add(pieces) as u64
    }

    /// The file around the operations given.
    pub(super) fn file(mut self, producer: &str, ir: &[Piece]) -> Vec<u8> {
        let dialect_names: Vec<u64> = {
            let Self { dialects, strings, .. } = &mut self;
            dialects.items.iter().map(|name| strings.add(name.as_bytes().to_vec()) as u64).collect()
        };
        let numbers = Numbers {
            attrs: grouped(&self.attrs.items, |node| node.dialect),
            types: grouped(&self.types.items, |node| node.dialect),
            names: grouped(&self.names.items, |name| name.0),
        };
        let encoded_ir = numbers.encode(ir);
        let mut out = Output::new();
        out.bytes(&MAGIC);
        out.varint(LATEST_FORMAT);
        out.bytes(producer.as_bytes());
        out.byte(0);
        out.section(Section::Dialects, &self.dialect_section(&dialect_names, &numbers));
        self.attr_type_sections(&numbers, &mut out);
        out.section(Section::Ir, &encoded_ir);
        let mut no_resources = Output::new();
        no_resources.varint(0);
        out.section(Section::ResourceOffsets, &no_resources.into_bytes());
        out.section(Section::Resources, &[]);
        out.section(Section::Strings, &self.string_section());
        let mut properties = Output::new();
        properties.varint(self.properties.items.len() as u64);
        for pieces in &self.properties.items {
            let bytes = numbers.encode(pieces);
            properties.varint(bytes.len() as u64);
            properties.bytes(&bytes);
        }
        out.section(Section::Properties, &properties.into_bytes());
        out.into_bytes()
    }

    fn dialect_section(&self, dialect_names: &[u64], numbers: &Numbers) -> Vec<u8> {
        let mut out = Output::new();
        out.varint(dialect_names.len() as u64);
        for name in dialect_names {
            out.flagged(*name, false);
        }
        out.varint(self.names.items.len() as u64);
        for group in runs(&numbers.names.order, |at| self.names.items[at].0) {
            out.varint(self.names.items[group[0]].0 as u64);
            out.varint(group.len() as u64);
            for &at in group {
                out.flagged(self.names.items[at].1, true);
            }
        }
        out.into_bytes()
    }

    /// The lengths of all encodings, then the encodings. Large data goes straight to the file.
    fn attr_type_sections(&self, numbers: &Numbers, out: &mut Output) {
        let mut offsets = Output::new();
        offsets.varint(self.attrs.items.len() as u64);
        offsets.varint(self.types.items.len() as u64);
        let mut encodings: Vec<(Vec<u8>, Option<&Blob>)> = Vec::new();
        for (nodes, order) in
            [(&self.attrs.items, &numbers.attrs.order), (&self.types.items, &numbers.types.order)]
        {
            for group in runs(order, |at| nodes[at].dialect) {
                offsets.varint(nodes[group[0]].dialect as u64);
                offsets.varint(group.len() as u64);
                for &at in group {
                    let node = &nodes[at];
                    let bytes = numbers.encode(&node.pieces);
                    let large = match node.pieces.last() {
                        Some(Piece::Large(at)) => self.large.get(*at),
                        _ => None,
                    };
                    let length = bytes.len() + large.map_or(0, |large| large.len());
                    offsets.flagged(length as u64, node.encoded);
                    encodings.push((bytes, large));
                }
            }
        }
        out.section(Section::AttrTypeOffsets, &offsets.into_bytes());
        let total: usize =
            encodings.iter().map(|(bytes, large)| bytes.len() + large.map_or(0, |large| large.len())).sum();
        out.section_header(Section::AttrTypes, total);
        for (bytes, large) in encodings {
            out.bytes(&bytes);
            if let Some(large) = large {
                out.bytes(large);
            }
        }
    }

    fn string_section(&self) -> Vec<u8> {
        let mut out = Output::new();
        out.varint(self.strings.items.len() as u64);
        for text in self.strings.items.iter().rev() {
            out.varint(text.len() as u64 + 1);
        }
        for text in &self.strings.items {
            out.bytes(text);
            out.byte(0);
        }
        out.into_bytes()
    }
}

fn assembly(text: &str) -> Vec<Piece> {
    vec![Piece::Bytes(text.as_bytes().to_vec()), Piece::Byte(0)]
}

/// Things in the order of a file, and where each of them is in it.
struct Numbering {
    /// Positions of creation, in the order of the file.
    order: Vec<usize>,
    /// Numbers in the file, by position of creation.
    number: Vec<u64>,
}

/// The order in which the things of a dialect are together.
fn grouped<T>(items: &[T], dialect: impl Fn(&T) -> usize) -> Numbering {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&at| dialect(&items[at]));
    let mut number = vec![0; items.len()];
    for (position, &at) in order.iter().enumerate() {
        number[at] = position as u64;
    }
    Numbering { order, number }
}

/// Neighbours of the same dialect.
fn runs(order: &[usize], dialect: impl Fn(usize) -> usize) -> impl Iterator<Item = &[usize]> {
    order.chunk_by(move |&a, &b| dialect(a) == dialect(b))
}

struct Numbers {
    attrs: Numbering,
    types: Numbering,
    names: Numbering,
}

impl Numbers {
    /// The bytes of an encoding, large data left out.
    fn encode(&self, pieces: &[Piece]) -> Vec<u8> {
        let mut out = Output::new();
        for piece in pieces {
            match piece {
                Piece::Number(value) | Piece::Text(value) => out.varint(*value),
                Piece::Signed(value) => out.signed(*value),
                Piece::Byte(byte) => out.byte(*byte),
                Piece::Bytes(bytes) => out.bytes(bytes),
                Piece::Large(_) => {}
                Piece::Attr(id) => out.varint(self.attrs.number[id.0]),
                Piece::Optional(None) => out.varint(0),
                Piece::Optional(Some(id)) => out.flagged(self.attrs.number[id.0], true),
                Piece::Type(id) => out.varint(self.types.number[id.0]),
                Piece::FlaggedType(id, flag) => out.flagged(self.types.number[id.0], *flag),
                Piece::Name(id) => out.varint(self.names.number[id.0]),
                Piece::Section(inner) => out.section(Section::Ir, &self.encode(inner)),
            }
        }
        out.into_bytes()
    }
}
