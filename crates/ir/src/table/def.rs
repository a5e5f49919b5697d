//! What an entry of the table says, ready to use.

use std::sync::OnceLock;

use super::format::Syntax;
use super::{OpKind, TypeClass};
use crate::attr::Attribute;
use crate::verify::Rule;

/// Which file an operation's rule is in, here and in the evaluator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// One element at a time.
    Elementwise,
    /// Shapes: moving, repeating, cutting and joining.
    Shape,
    /// Dots and convolutions.
    Contraction,
    /// Gather and scatter.
    Indexing,
    /// Reductions, windows, sorting.
    Reduction,
    /// Functions, branches, loops, tuples, calls.
    Control,
    /// What several processes do together.
    Collective,
    /// Matrices, transforms, normalisation.
    Linalg,
    /// Random numbers.
    Random,
    /// Quantization.
    Quantized,
    /// The CHLO dialect.
    Chlo,
    /// The `check` and `interpreter` dialects of tests.
    Testing,
}

/// How many values a position stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// One.
    One,
    /// None or one.
    Optional,
    /// Any number.
    Many,
}

/// An operand or a result.
#[derive(Clone, Debug)]
pub struct ValueSpec {
    /// Its name in the specification.
    pub name: &'static str,
    /// How many values it stands for.
    pub arity: Arity,
    /// The types it may have.
    pub class: TypeClass,
}

/// A region.
#[derive(Clone, Debug)]
pub struct RegionDef {
    /// Its name in the specification.
    pub name: &'static str,
    /// Whether there may be any number of them.
    pub many: bool,
    /// Whether there must be at least one.
    pub required: bool,
}

/// What form an attribute has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttrKind {
    /// A 64-bit integer.
    I64,
    /// A 32-bit integer.
    I32,
    /// An unsigned 64-bit integer.
    U64,
    /// An unsigned 32-bit integer.
    U32,
    /// A truth value.
    Bool,
    /// Present or not.
    Unit,
    /// A 32-bit float.
    F32,
    /// A double.
    F64,
    /// A string.
    Str,
    /// A reference to a symbol.
    Symbol,
    /// A list of references to symbols.
    Symbols,
    /// A list of 64-bit integers.
    I64s,
    /// A list of truth values.
    Bools,
    /// A list of 32-bit integers.
    I32s,
    /// A matrix of 64-bit integers.
    Rows,
    /// Groups of processes: a matrix of 64-bit integers, or the axes of a mesh.
    Groups,
    /// A constant tensor.
    Elements,
    /// A value of the enumeration of this name.
    Enum(&'static str),
    /// A list of values of the enumeration of this name.
    Enums(&'static str),
    /// Dimension numbers of a dot.
    Dot,
    /// Dimension numbers of a convolution.
    Conv,
    /// Dimension numbers of a gather.
    Gather,
    /// Dimension numbers of a scatter.
    Scatter,
    /// Dimension numbers of a ragged dot.
    RaggedDot,
    /// The algorithm of a dot.
    Algorithm,
    /// A channel.
    Channel,
    /// The accuracy of a result.
    Accuracy,
    /// A type.
    Type,
    /// A list.
    Array,
    /// A dictionary.
    Dict,
    /// Anything.
    Any,
}

impl AttrKind {
    /// How many inputs of the specification an attribute of this form stands for.
    fn inputs(self) -> usize {
        match self {
            AttrKind::Dot => 4,
            AttrKind::Conv => 9,
            AttrKind::Gather | AttrKind::Scatter => 6,
            AttrKind::Algorithm => 7,
            AttrKind::RaggedDot => 6,
            _ => 1,
        }
    }
}

/// Whether an attribute must be there.
#[derive(Clone, Debug, PartialEq)]
pub enum Presence {
    /// It must.
    Required,
    /// It may be left out.
    Optional,
    /// It may be left out and then has this value.
    Default(Attribute),
}

/// An attribute.
#[derive(Clone, Debug)]
pub struct AttrDef {
    /// Its name.
    pub name: &'static str,
    /// Its form.
    pub kind: AttrKind,
    /// Whether it must be there.
    pub presence: Presence,
}

impl AttrDef {
    /// The value it has when left out.
    pub fn default_value(&self) -> Option<&Attribute> {
        match &self.presence {
            Presence::Default(value) => Some(value),
            _ => None,
        }
    }
}

/// A property of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trait {
    /// Results depend on operands and attributes alone, and nothing else happens.
    Pure,
    /// Each element of the result depends on the same element of the operands.
    Elementwise,
    /// The operands may be swapped.
    Commutative,
    /// Ends a block.
    Terminator,
    /// Regions do not see values from outside.
    Isolated,
    /// Kept for old files only.
    Deprecated,
    /// In the dialect but not in the specification.
    Unspecified,
    /// All groups of operands that vary have the same number of values.
    EqualGroups,
    /// An attribute `operandSegmentSizes` says how many operands each group has.
    SegmentSizes,
    /// Takes part in communication among processes.
    Collective,
    /// Operands and results have compatible shapes and elements.
    SameTypes,
    /// The regions take no more than they are given: blocks without arguments.
    NoBlockArguments,
}

/// An operation of the table.
#[derive(Debug)]
pub struct OpDef {
    /// Which one.
    pub kind: OpKind,
    /// Which file its rule is in.
    pub family: Family,
    /// Operands, in order.
    pub operands: Vec<ValueSpec>,
    /// Results, in order.
    pub results: Vec<ValueSpec>,
    /// Attributes.
    pub attrs: Vec<AttrDef>,
    /// Regions, in order.
    pub regions: Vec<RegionDef>,
    /// Properties.
    pub traits: &'static [Trait],
    /// What it does, in a sentence.
    pub doc: &'static str,
    /// The text form in the notation of the `format` module; empty when only the generic form exists.
    pub format: &'static str,
    /// Constraints and inference.
    pub rule: Option<Rule>,
    pub(super) syntax: OnceLock<Result<Syntax, String>>,
}

impl OpDef {
    /// The full name.
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// Whether it has a property.
    pub fn is(&self, property: Trait) -> bool {
        self.traits.contains(&property)
    }

    /// Whether it ends a block.
    pub fn is_terminator(&self) -> bool {
        self.is(Trait::Terminator)
    }

    /// Whether it is kept for old files only.
    pub fn is_deprecated(&self) -> bool {
        self.is(Trait::Deprecated)
    }

    /// The declaration of an attribute.
    pub fn attr(&self, name: &str) -> Option<&AttrDef> {
        self.attrs.iter().find(|attr| attr.name == name)
    }

    /// The section of the StableHLO specification, when it has one of its own.
    pub fn section(&self) -> Option<&'static str> {
        let specified =
            self.kind.dialect() == "stablehlo" && !self.is_deprecated() && !self.is(Trait::Unspecified);
        specified.then(|| self.kind.mnemonic())
    }

    /// The label that the specification gives to an operand or an attribute, by its place among the inputs: `I1`, `I2`, …
    ///
    /// The specification lists dimension numbers and algorithms by their parts. `None` where it has no section.
    pub fn input_label(&self, name: &str) -> Option<String> {
        self.section()?;
        let operands = self.operands.iter().map(|spec| (spec.name, 1));
        let attrs = self.attrs.iter().map(|attr| (attr.name, attr.kind.inputs()));
        let mut place = 1;
        for (known, inputs) in operands.chain(attrs) {
            if known == name {
                return Some(format!("I{place}"));
            }
            place += inputs;
        }
        None
    }

    /// The text form, read; an error when the notation is wrong.
    pub fn syntax(&self) -> Result<&Syntax, &str> {
        self.syntax.get_or_init(|| Syntax::parse(self)).as_ref().map_err(String::as_str)
    }

    /// Splits a number of operands into the groups of [`OpDef::operands`]; `None` when it cannot be.
    ///
    /// `segments` is the value of `operandSegmentSizes` where the operation has one.
    pub fn operand_groups(&self, count: usize, segments: Option<&[usize]>) -> Option<Vec<usize>> {
        split_groups(&self.operands, count, self.is(Trait::EqualGroups), segments)
    }

    /// Splits a number of results into the groups of [`OpDef::results`]; `None` when it cannot be.
    pub fn result_groups(&self, count: usize, segments: Option<&[usize]>) -> Option<Vec<usize>> {
        split_groups(&self.results, count, self.is(Trait::EqualGroups), segments)
    }
}

fn split_groups(
    specs: &[ValueSpec],
    count: usize,
    equal: bool,
    segments: Option<&[usize]>,
) -> Option<Vec<usize>> {
    let varying = specs.iter().filter(|spec| spec.arity != Arity::One).count();
    if let Some(sizes) = segments.filter(|_| varying > 1) {
        let total = sizes.iter().try_fold(0usize, |sum, size| sum.checked_add(*size))?;
        return (sizes.len() == specs.len() && total == count).then(|| sizes.to_vec());
    }
    let fixed = specs.len() - varying;
    let rest = count.checked_sub(fixed)?;
    let each = match varying {
        0 => 0,
        1 => rest,
        _ if equal && rest % varying == 0 => rest / varying,
        _ => return None,
    };
    if varying == 0 && rest != 0 {
        return None;
    }
    let sizes: Vec<usize> =
        specs.iter().map(|spec| if spec.arity == Arity::One { 1 } else { each }).collect();
    let fits = specs.iter().zip(&sizes).all(|(spec, size)| spec.arity != Arity::Optional || *size <= 1);
    fits.then_some(sizes)
}
