//! Short forms that the table's format notation describes.

use std::fmt::Write;

use super::printer::{Printer, same_type};
use crate::attr::{Attribute, Bare, EnumValue};
use crate::module::OpRef;
use crate::table::format::{Piece, Special, TypeForm};
use crate::table::{OpDef, OpKind};
use crate::types::{Element, ElementType, Type};

/// Prints the pieces of a format; `false` when the operation does not have what the format needs.
pub(super) fn print<'m>(printer: &mut Printer<'m>, op: OpRef<'m>, def: &OpDef, pieces: &[Piece]) -> bool {
    let Some(sizes) = op.operand_group_sizes() else { return false };
    if op.result_group_sizes().is_none() || !op.regions().is_empty() && !pieces.contains(&Piece::Regions) {
        return false;
    }
    pieces.iter().all(|piece| print_piece(printer, op, def, &sizes, piece).is_some())
}

fn print_piece<'m>(
    printer: &mut Printer<'m>,
    op: OpRef<'m>,
    def: &OpDef,
    sizes: &[usize],
    piece: &Piece,
) -> Option<()> {
    match piece {
        Piece::Text(text) => printer.out.push_str(text),
        Piece::Operand(index) => {
            let start: usize = sizes[..*index].iter().sum();
            printer.values(op.operands().get(start..start + sizes[*index])?);
        }
        Piece::Attr(index) => {
            let attr = &def.attrs[*index];
            print_attr(printer, op.attr(attr.name)?);
        }
        Piece::Optional(inner) => {
            let present = inner.iter().any(|piece| match piece {
                Piece::Attr(index) => {
                    let attr = &def.attrs[*index];
                    let value = op.attrs().get(attr.name);
                    value.is_some() && value != attr.default_value()
                }
                Piece::Operand(index) => sizes[*index] > 0,
                _ => false,
            });
            if present {
                for piece in inner {
                    print_piece(printer, op, def, sizes, piece)?;
                }
            }
        }
        Piece::Attrs => {
            let syntax = def.syntax().ok()?;
            printer.attrs_except(op, "", |name| syntax.writes_attr(def, name));
        }
        Piece::Regions => printer.regions(op),
        Piece::Types(form) => print_types(printer, op, *form)?,
        Piece::Special(special) => print_special(printer, op, *special)?,
    }
    Some(())
}

/// An attribute as formats show it: without a type where the table implies it.
fn print_attr(printer: &mut Printer<'_>, value: &Attribute) {
    let out = &mut printer.out;
    let _ = match value {
        Attribute::Int(..) | Attribute::Float(..) => write!(out, "{}", Bare(value)),
        Attribute::I64s(values) => write!(out, "{}", Bracketed(values)),
        Attribute::Enum(_, value) => write!(out, "{}", value.name()),
        other => write!(out, "{other}"),
    };
}

/// `[1, 2]`.
pub(super) struct Bracketed<'a, T>(pub(super) &'a [T]);

impl<T: std::fmt::Display> std::fmt::Display for Bracketed<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        crate::attr::write_list(f, self.0)
    }
}

fn print_types<'m>(printer: &mut Printer<'m>, op: OpRef<'m>, form: TypeForm) -> Option<()> {
    let operands: Vec<&Type> = op.operand_types().collect();
    match form {
        TypeForm::Function => printer.function_type(op),
        TypeForm::Same if op.result_count() == 1 && same_type(&operands, op.result_type(0)) => {
            printer.types(op.result_types());
        }
        TypeForm::Same => printer.function_type(op),
        TypeForm::Operands => printer.types(operands.into_iter()),
        TypeForm::Operand => {
            let first = *operands.first()?;
            if !same_type(&operands, Some(first)) {
                return None;
            }
            printer.types(std::iter::once(first));
        }
        TypeForm::Results => {
            // The operand's type is not shown where the result's stands for it.
            if matches!(op.kind(), Some(OpKind::InterpreterPrint | OpKind::InterpreterProbe))
                && op.operand_type(0) != op.result_type(0)
            {
                return None;
            }
            printer.types(op.result_types());
        }
        TypeForm::Arrow => printer.arrow_types(op),
        TypeForm::Select => {
            let result = op.result_type(0)?;
            if operands.len() == 3 && operands[1] == result && operands[2] == result {
                printer.types([operands[0], result].into_iter());
            } else {
                printer.function_type(op);
            }
        }
        TypeForm::Complex => {
            let real = real_type(op.result_type(0)?);
            if real.is_some_and(|real| operands.iter().all(|ty| **ty == real)) {
                printer.types(op.result_types());
            } else {
                printer.function_type(op);
            }
        }
        TypeForm::Tuple => {
            let Some(Type::Tuple(elements)) = op.result_type(0) else { return None };
            if !elements.iter().eq(operands) {
                return None;
            }
            printer.types(op.result_types());
        }
    }
    Some(())
}

/// The tensor of parts of a complex tensor.
fn real_type(ty: &Type) -> Option<Type> {
    let tensor = ty.as_tensor()?;
    match tensor.element() {
        Element::Plain(ElementType::Complex(part)) => {
            Some(Type::Tensor(tensor.with_element(ElementType::Float(*part))))
        }
        _ => None,
    }
}

fn print_special<'m>(printer: &mut Printer<'m>, op: OpRef<'m>, special: Special) -> Option<()> {
    let out = &mut printer.out;
    match special {
        Special::Slices => {
            let starts = op.attr_i64s("start_indices")?;
            let limits = op.attr_i64s("limit_indices")?;
            let strides = op.attr_i64s("strides")?;
            if starts.len() != limits.len() || starts.len() != strides.len() {
                return None;
            }
            let ranges = starts.iter().zip(limits).zip(strides).map(|((start, limit), stride)| {
                if *stride == 1 { format!("{start}:{limit}") } else { format!("{start}:{limit}:{stride}") }
            });
            let _ = write!(out, "{}", Bracketed(&ranges.collect::<Vec<_>>()));
        }
        Special::DotDims => {
            let dims = op.dot_dims()?;
            if !dims.lhs_batching.is_empty() || !dims.rhs_batching.is_empty() {
                let (lhs, rhs) = (Bracketed(&dims.lhs_batching), Bracketed(&dims.rhs_batching));
                let _ = write!(out, "batching_dims = {lhs} x {rhs}, ");
            }
            let (lhs, rhs) = (Bracketed(&dims.lhs_contracting), Bracketed(&dims.rhs_contracting));
            let _ = write!(out, "contracting_dims = {lhs} x {rhs}");
        }
        Special::Precision => {
            let Some(config) = op.attrs().get("precision_config") else { return Some(()) };
            let names: Option<Vec<&str>> = config.as_array()?.iter().map(precision_name).collect();
            let names = names?;
            if !names.is_empty() {
                let _ = write!(out, ", precision = {}", Bracketed(&names));
            }
        }
        Special::Algorithm => match op.attrs().get("algorithm") {
            None => {}
            Some(Attribute::DotAlgorithm(algorithm)) => {
                let _ = write!(out, ", algorithm = {algorithm}");
            }
            Some(_) => return None,
        },
        Special::Window => print_window(printer, op)?,
        Special::ConvDims => {
            let dims = op.conv_dims()?;
            let _ = write!(out, "{dims}");
        }
        Special::ExponentMantissa => {
            let (exponent, mantissa) = (op.attr_i64("exponent_bits")?, op.attr_i64("mantissa_bits")?);
            let _ = write!(out, "e{exponent}m{mantissa}");
        }
    }
    Some(())
}

fn precision_name(attr: &Attribute) -> Option<&'static str> {
    match attr {
        Attribute::Enum(_, value @ EnumValue::Precision(_)) => Some(value.name()),
        _ => None,
    }
}

fn print_window<'m>(printer: &mut Printer<'m>, op: OpRef<'m>) -> Option<()> {
    let mut fields = Vec::new();
    let list = |name: &str| -> Option<Option<String>> {
        let Some(value) = op.attrs().get(name) else { return Some(None) };
        Some(Some(Bracketed(value.as_i64s()?).to_string()))
    };
    if let Some(strides) = list("window_strides")? {
        fields.push(format!("stride = {strides}"));
    }
    if op.attrs().get("padding").is_some() {
        let rows: Vec<String> =
            op.attr_rows("padding")?.iter().map(|row| Bracketed(row).to_string()).collect();
        fields.push(format!("pad = {}", Bracketed(&rows)));
    }
    if let Some(dilation) = list("lhs_dilation")? {
        fields.push(format!("lhs_dilate = {dilation}"));
    }
    if let Some(dilation) = list("rhs_dilation")? {
        fields.push(format!("rhs_dilate = {dilation}"));
    }
    if let Some(value) = op.attrs().get("window_reversal") {
        fields.push(format!("reverse = {}", Bracketed(value.as_bools()?)));
    }
    let _ = write!(printer.out, "{{{}}}", fields.join(", "));
    Some(())
}
