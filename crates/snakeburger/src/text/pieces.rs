//! Short forms that the table's format notation describes.

use std::sync::Arc;

use warpforge_ir::RegionId;
use warpforge_ir::attr::{Attribute, DenseElements, Dict, DotDims, EnumDialect, EnumValue};
use warpforge_ir::table::format::{Piece, Special, TypeForm};
use warpforge_ir::table::{AttrKind, OpDef};
use warpforge_ir::types::{Element, ElementType, FunctionType, Type};

use super::cursor::{Parse, is_word_byte};
use super::ops::Parts;
use super::parser::{Parser, Use};

/// What the pieces read so far have given.
struct Draft<'a> {
    groups: Vec<Vec<Use<'a>>>,
    attrs: Dict,
    regions: Vec<RegionId>,
    operand_types: Option<Vec<Type>>,
    result_types: Option<Vec<Type>>,
    types_at: usize,
    /// The last piece was a list of no operands: the comma after it may be missing.
    after_nothing: bool,
}

impl Draft<'_> {
    fn operand_count(&self) -> usize {
        self.groups.iter().map(Vec::len).sum()
    }

    fn function(&mut self, ty: FunctionType) {
        self.operand_types = Some(ty.inputs);
        self.result_types = Some(ty.results);
    }

    /// One type for all operands and the result.
    fn all_same(&mut self, ty: Type) {
        match ty {
            Type::Function(function) => self.function((*function).clone()),
            ty => {
                self.operand_types = Some(vec![ty.clone(); self.operand_count()]);
                self.result_types = Some(vec![ty]);
            }
        }
    }
}

impl<'a> Parser<'a> {
    pub(super) fn pieces(&mut self, def: &'static OpDef, pieces: &[Piece]) -> Parse<Parts> {
        let mut draft = Draft {
            groups: vec![Vec::new(); def.operands.len()],
            attrs: Dict::new(),
            regions: Vec::new(),
            operand_types: None,
            result_types: None,
            types_at: self.cur.pos(),
            after_nothing: false,
        };
        for piece in pieces {
            self.piece(def, piece, &mut draft)?;
        }
        let uses: Vec<Use<'a>> = draft.groups.concat();
        let operands = match &draft.operand_types {
            Some(types) => self.resolve_typed(&uses, types, draft.types_at)?,
            None => uses.iter().map(|used| self.resolve(*used)).collect::<Parse<Vec<_>>>()?,
        };
        let results = match draft.result_types {
            Some(types) => types,
            // Without types in the text, a constant has that of its value and the others have no results.
            None if def.results.len() == 1 => {
                let value = draft.attrs.get("value").and_then(Attribute::as_elements);
                value.map(|value| vec![Type::Tensor(value.ty().clone())]).unwrap_or_default()
            }
            None => Vec::new(),
        };
        Ok(Parts { operands, results, attrs: draft.attrs, regions: draft.regions })
    }

    fn piece(&mut self, def: &'static OpDef, piece: &Piece, draft: &mut Draft<'a>) -> Parse<()> {
        let after_nothing = std::mem::take(&mut draft.after_nothing);
        match piece {
            Piece::Text(text) => {
                for token in tokens(text) {
                    if !(after_nothing && token == "," && !self.cur.looking_at(",")) {
                        self.cur.expect(token)?;
                    }
                }
            }
            Piece::Operand(index) => {
                let spec = &def.operands[*index];
                let uses = match spec.arity {
                    warpforge_ir::table::Arity::One => vec![self.value_use()?],
                    _ => self.uses()?,
                };
                draft.after_nothing = uses.is_empty();
                draft.groups[*index] = uses;
            }
            Piece::Attr(index) => {
                let attr = &def.attrs[*index];
                let value = self.short_attr(attr.kind)?;
                draft.attrs.set(attr.name, value);
            }
            Piece::Optional(inner) => {
                if self.optional_starts(inner) {
                    for piece in inner {
                        self.piece(def, piece, draft)?;
                    }
                }
            }
            Piece::Attrs => {
                if self.cur.looking_at("{") {
                    let start = self.cur.pos();
                    for (name, value) in self.dictionary()?.entries() {
                        if draft.attrs.set(name.clone(), value.clone()).is_some() {
                            let message = format!("the attribute `{name}` is given twice");
                            return Err(self.cur.error_at(start, message));
                        }
                    }
                }
            }
            Piece::Regions => {
                if self.cur.looking_at("(") {
                    draft.regions = self.list_of("(", ")", |parser| parser.region(&[], false))?;
                }
            }
            Piece::Types(form) => {
                self.cur.skip();
                draft.types_at = self.cur.pos();
                self.types(*form, draft)?;
            }
            Piece::Special(special) => self.special(*special, &mut draft.attrs)?,
        }
        Ok(())
    }

    /// Whether an optional group is here: its first words are, and a value where it starts with one.
    fn optional_starts(&mut self, inner: &[Piece]) -> bool {
        let before = self.cur.pos();
        let mut here = true;
        for piece in inner {
            match piece {
                Piece::Text(text) => here = tokens(text).all(|token| self.cur.eat(token)),
                Piece::Operand(_) => here = self.cur.looking_at("%"),
                _ => break,
            }
            if !here || matches!(piece, Piece::Operand(_)) {
                break;
            }
        }
        self.cur.set_pos(before);
        here
    }

    /// An attribute as formats show it.
    fn short_attr(&mut self, kind: AttrKind) -> Parse<Attribute> {
        match kind {
            AttrKind::I64 => self.cur.i64().map(Attribute::i64),
            AttrKind::I32 => {
                let start = self.cur.pos();
                let value = i32::try_from(self.cur.i64()?);
                value.map(Attribute::i32).map_err(|_| self.cur.error_at(start, "the number is too large"))
            }
            AttrKind::U64 => self.cur.digits().map(Attribute::u64),
            AttrKind::U32 => {
                let start = self.cur.pos();
                let value = u32::try_from(self.cur.digits()?);
                value.map(Attribute::u32).map_err(|_| self.cur.error_at(start, "the number is too large"))
            }
            AttrKind::I64s if self.cur.looking_at("[") => self.cur.i64_list().map(Attribute::i64s),
            AttrKind::Bool => self.truth().map(Attribute::Bool),
            // Not followed by a type of its own: what follows is the operation's.
            AttrKind::Str if self.cur.peek() == Some(b'"') => {
                self.cur.string().map(|text| Attribute::Str(text.into()))
            }
            AttrKind::F64 => {
                let value = self.float_literal()?;
                Ok(Attribute::Float(value, Type::scalar(ElementType::F64)))
            }
            AttrKind::Enum(mnemonic) if !self.cur.looking_at("#") => {
                self.cur.skip();
                let start = self.cur.pos();
                let word = self.cur.word().ok_or_else(|| self.cur.expected(&format!("a {mnemonic}")))?;
                let value = EnumValue::parse(mnemonic, word);
                let value =
                    value.ok_or_else(|| self.cur.error_at(start, format!("`{word}` is no {mnemonic}")))?;
                Ok(Attribute::Enum(EnumDialect::StableHlo, value))
            }
            _ => self.attribute(),
        }
    }

    fn types(&mut self, form: TypeForm, draft: &mut Draft<'a>) -> Parse<()> {
        match form {
            TypeForm::Function => {
                let function = self.function_type()?;
                draft.function(function);
            }
            TypeForm::Same => {
                let ty = self.ty()?;
                draft.all_same(ty);
            }
            TypeForm::Operands => draft.operand_types = Some(self.type_list()?),
            TypeForm::Operand => {
                let ty = self.ty()?;
                draft.operand_types = Some(vec![ty; draft.operand_count()]);
            }
            TypeForm::Results => draft.result_types = Some(self.type_list()?),
            TypeForm::Arrow => {
                let types = if self.cur.looking_at("(") {
                    self.list_of("(", ")", Self::ty)?
                } else {
                    vec![self.ty()?]
                };
                draft.result_types = Some(types);
            }
            TypeForm::Select => match self.type_list()?.as_slice() {
                [pred, ty] => {
                    draft.operand_types = Some(vec![pred.clone(), ty.clone(), ty.clone()]);
                    draft.result_types = Some(vec![ty.clone()]);
                }
                [Type::Function(function)] => draft.function((**function).clone()),
                _ => {
                    let message = "expected a function type, or the types of the condition and of the result";
                    return Err(self.cur.error_at(draft.types_at, message));
                }
            },
            TypeForm::Complex => {
                let ty = self.ty()?;
                let part = match ty.as_tensor().map(|tensor| (tensor, tensor.element())) {
                    Some((tensor, Element::Plain(ElementType::Complex(part)))) => {
                        Some(Type::Tensor(tensor.with_element(ElementType::Float(*part))))
                    }
                    _ => None,
                };
                match (part, ty) {
                    (Some(part), ty) => {
                        draft.operand_types = Some(vec![part.clone(), part]);
                        draft.result_types = Some(vec![ty]);
                    }
                    (None, Type::Function(function)) => draft.function((*function).clone()),
                    _ => {
                        return Err(self
                            .cur
                            .error_at(draft.types_at, "expected a tensor of complex numbers"));
                    }
                }
            }
            TypeForm::Tuple => {
                let ty = self.ty()?;
                let Type::Tuple(elements) = &ty else {
                    return Err(self.cur.error_at(draft.types_at, "expected a tuple type"));
                };
                draft.operand_types = Some(elements.to_vec());
                draft.result_types = Some(vec![ty]);
            }
        }
        Ok(())
    }

    fn special(&mut self, special: Special, attrs: &mut Dict) -> Parse<()> {
        match special {
            Special::Slices => self.slices(attrs),
            Special::DotDims => {
                let mut dims = DotDims::default();
                if self.cur.eat("batching_dims") {
                    (dims.lhs_batching, dims.rhs_batching) = self.dims_pair()?;
                    self.cur.eat(",");
                }
                if self.cur.eat("contracting_dims") {
                    (dims.lhs_contracting, dims.rhs_contracting) = self.dims_pair()?;
                }
                attrs.set("dot_dimension_numbers", Attribute::Dot(Arc::new(dims)));
                Ok(())
            }
            Special::Precision => {
                if self.tokens_ahead(&[",", "precision", "="]) {
                    let items = self.list_of("[", "]", |p| p.short_attr(AttrKind::Enum("precision")))?;
                    attrs.set("precision_config", Attribute::Array(items.into()));
                }
                Ok(())
            }
            Special::Algorithm => {
                if self.tokens_ahead(&[",", "algorithm", "="]) {
                    if self.cur.looking_at("#") {
                        let value = self.attribute()?;
                        attrs.set("algorithm", value);
                    } else {
                        let algorithm = self.dot_algorithm()?;
                        attrs.set("algorithm", Attribute::DotAlgorithm(Arc::new(algorithm)));
                    }
                }
                Ok(())
            }
            Special::Window => self.window(attrs),
            Special::ConvDims => {
                let dims = self.conv_dims()?;
                attrs.set("dimension_numbers", Attribute::Conv(Arc::new(dims)));
                Ok(())
            }
            Special::ExponentMantissa => {
                self.cur.skip();
                let start = self.cur.pos();
                let word = self.cur.word().unwrap_or("");
                let bits = word.strip_prefix('e').and_then(|rest| rest.split_once('m'));
                let bits = bits.and_then(|(e, m)| Some((e.parse::<i32>().ok()?, m.parse::<i32>().ok()?)));
                let (exponent, mantissa) =
                    bits.ok_or_else(|| self.cur.error_at(start, "expected a format such as `e5m10`"))?;
                attrs.set("exponent_bits", Attribute::i32(exponent));
                attrs.set("mantissa_bits", Attribute::i32(mantissa));
                Ok(())
            }
        }
    }

    /// Takes tokens if all of them are next.
    fn tokens_ahead(&mut self, expected: &[&str]) -> bool {
        let before = self.cur.pos();
        let found = expected.iter().all(|token| self.cur.eat(token));
        if !found {
            self.cur.set_pos(before);
        }
        found
    }

    fn dims_pair(&mut self) -> Parse<(Vec<i64>, Vec<i64>)> {
        self.cur.expect("=")?;
        let lhs = self.cur.i64_list()?;
        self.cur.expect("x")?;
        Ok((lhs, self.cur.i64_list()?))
    }

    /// `[start:limit:stride, …]`.
    fn slices(&mut self, attrs: &mut Dict) -> Parse<()> {
        let ranges = self.cur.list("[", "]", |cur| {
            let start = cur.i64()?;
            cur.expect(":")?;
            let limit = cur.i64()?;
            let stride = if cur.eat(":") { cur.i64()? } else { 1 };
            Ok((start, limit, stride))
        })?;
        let pick = |field: fn(&(i64, i64, i64)) -> i64| Attribute::I64s(ranges.iter().map(field).collect());
        attrs.set("start_indices", pick(|range| range.0));
        attrs.set("limit_indices", pick(|range| range.1));
        attrs.set("strides", pick(|range| range.2));
        Ok(())
    }

    /// `{stride = […], pad = [[…]], …}`.
    fn window(&mut self, attrs: &mut Dict) -> Parse<()> {
        self.cur.expect("{")?;
        if self.cur.eat("}") {
            return Ok(());
        }
        loop {
            self.cur.skip();
            let start = self.cur.pos();
            let field = self.cur.word().ok_or_else(|| self.cur.expected("the name of a field"))?;
            self.cur.expect("=")?;
            let (name, value) = match field {
                "stride" => ("window_strides", self.cur.i64_list().map(Attribute::i64s)?),
                "lhs_dilate" => ("lhs_dilation", self.cur.i64_list().map(Attribute::i64s)?),
                "rhs_dilate" => ("rhs_dilation", self.cur.i64_list().map(Attribute::i64s)?),
                "reverse" => {
                    ("window_reversal", Attribute::Bools(self.list_of("[", "]", Self::reversal)?.into()))
                }
                "pad" => ("padding", self.padding()?),
                _ => return Err(self.cur.error_at(start, format!("unknown field `{field}`"))),
            };
            if attrs.set(name, value).is_some() {
                return Err(self.cur.error_at(start, format!("the field `{field}` is given twice")));
            }
            if self.cur.eat("}") {
                return Ok(());
            }
            self.cur.expect(",")?;
        }
    }

    fn reversal(&mut self) -> Parse<bool> {
        match self.cur.peek() {
            Some(b'0'..=b'9') => Ok(self.cur.digits()? != 0),
            _ => self.truth(),
        }
    }

    fn padding(&mut self) -> Parse<Attribute> {
        self.cur.skip();
        let start = self.cur.pos();
        let rows = self.cur.list("[", "]", |cur| {
            let row_at = cur.pos();
            let row = cur.i64_list()?;
            if row.len() == 2 { Ok(row) } else { Err(cur.error_at(row_at, "expected two amounts")) }
        })?;
        let elements = DenseElements::i64s(&[rows.len() as u64, 2], &rows.concat());
        elements.map(Attribute::from).map_err(|error| self.cur.error_at(start, error.to_string()))
    }
}

/// The words and marks of a piece of text.
fn tokens(text: &'static str) -> impl Iterator<Item = &'static str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = *rest.as_bytes().first()?;
        let length = if is_word_byte(first) {
            rest.bytes().position(|b| !is_word_byte(b)).unwrap_or(rest.len())
        } else if rest.starts_with("->") {
            2
        } else {
            1
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        Some(token)
    })
}
