//! Short forms that need code of their own.

use std::fmt::Write;

use super::pieces::Bracketed;
use super::printed::push_large;
use super::printer::{Printer, needs_parentheses, same_type};
use crate::attr::{Attribute, Dict, SymbolText};
use crate::module::{BlockId, Func, OpRef};
use crate::table::OpKind;
use crate::types::Type;

/// Prints an operation whose format is `custom`; `false` when its short form cannot express it.
pub(super) fn print<'m>(printer: &mut Printer<'m>, op: OpRef<'m>) -> bool {
    let printed = match op.kind() {
        Some(OpKind::Module) => module(printer, op),
        Some(OpKind::Func) => function(printer, op),
        Some(OpKind::FuncReturn | OpKind::Return) => returns(printer, op),
        Some(OpKind::Call) => call(printer, op),
        Some(OpKind::Constant) => constant(printer, op),
        Some(OpKind::CustomCall) => custom_call(printer, op),
        Some(OpKind::OptimizationBarrier) => barrier(printer, op),
        Some(OpKind::While) => while_loop(printer, op),
        Some(OpKind::Reduce) => reduce(printer, op),
        Some(OpKind::ChloScan) => scan(printer, op),
        _ => None,
    };
    printed.is_some()
}

fn module<'m>(printer: &mut Printer<'m>, op: OpRef<'m>) -> Option<()> {
    printer.out.push_str("module");
    if let Some(name) = op.attr_str("sym_name") {
        let _ = write!(printer.out, " {}", SymbolText(name));
    }
    printer.attrs_except(op, "attributes ", |name| name == "sym_name");
    printer.out.push(' ');
    printer.region(*op.regions().first()?, true);
    Some(())
}

fn function<'m>(printer: &mut Printer<'m>, op: OpRef<'m>) -> Option<()> {
    let func = Func::new(op)?;
    let signature = func.signature()?;
    let body = func.body();
    if body.is_some() && func.arguments().len() != signature.inputs.len() {
        return None;
    }
    printer.out.push_str("func.func ");
    if let Some(visibility) = op.attr_str("sym_visibility") {
        let _ = write!(printer.out, "{visibility} ");
    }
    let _ = write!(printer.out, "{}(", SymbolText(op.attr_str("sym_name")?));
    for (index, ty) in signature.inputs.iter().enumerate() {
        if index > 0 {
            printer.out.push_str(", ");
        }
        if body.is_some() {
            printer.value(func.arguments()[index]);
            printer.out.push_str(": ");
        }
        typed(printer, ty, func.argument_attrs(index));
    }
    printer.out.push(')');
    if !signature.results.is_empty() {
        let has_attrs =
            (0..signature.results.len()).any(|i| func.result_attrs(i).is_some_and(|a| !a.is_empty()));
        let parentheses = needs_parentheses(signature, has_attrs);
        printer.out.push_str(if parentheses { " -> (" } else { " -> " });
        for (index, ty) in signature.results.iter().enumerate() {
            if index > 0 {
                printer.out.push_str(", ");
            }
            typed(printer, ty, func.result_attrs(index));
        }
        if parentheses {
            printer.out.push(')');
        }
    }
    const SHOWN: [&str; 5] = ["sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs"];
    printer.attrs_except(op, "attributes ", |name| SHOWN.contains(&name));
    if body.is_some() {
        printer.out.push(' ');
        printer.region(*op.regions().first()?, false);
    }
    Some(())
}

fn typed(printer: &mut Printer<'_>, ty: &Type, attrs: Option<&Dict>) {
    let _ = write!(printer.out, "{ty}");
    if let Some(attrs) = attrs.filter(|attrs| !attrs.is_empty()) {
        printer.out.push(' ');
        printer.dict(attrs);
    }
}

fn returns<'m>(printer: &mut Printer<'m>, op: OpRef<'m>) -> Option<()> {
    if !op.regions().is_empty() || op.result_count() > 0 {
        return None;
    }
    printer.op_name(op);
    printer.attrs_except(op, "", |_| false);
    if !op.operands().is_empty() {
        printer.out.push(' ');
        printer.values(op.operands());
        printer.out.push_str(" : ");
        printer.types(op.operand_types());
    }
    Some(())
}

fn call<'m>(printer: &mut Printer<'m>, op: OpRef<'m>) -> Option<()> {
    printer.op_name(op);
    let _ = write!(printer.out, " {}(", op.attr("callee")?);
    printer.values(op.operands());
    printer.out.push(')');
    printer.attrs_except(op, "", |name| name == "callee");
    printer.out.push_str(" : ");
    printer.function_type(op);
    Some(())
}

fn constant<'m>(printer: &mut Printer<'m>, op: OpRef<'m>) -> Option<()> {
    printer.out.push_str("stablehlo.constant");
    let value = op.attr_elements("value")?;
    if op.result_tensor(0) != Some(value.ty()) || op.result_count() != 1 {
        printer.generic_rest(op);
        return Some(());
    }
    printer.attrs_except(op, "", |name| name == "value");
    printer.out.push(' ');
    if let Some(Attribute::Elements(value)) = op.attr("value")
        && push_large(&mut printer.out, &mut printer.large, value)
    {
        return Some(());
    }
    super::write_elements(&mut printer.out, value).ok()
}

fn custom_call<'m>(printer: &mut Printer<'m>, op: OpRef<'m>) -> Option<()> {
    let _ = write!(printer.out, "stablehlo.custom_call {}(", SymbolText(op.attr_str("call_target_name")?));
    printer.values(op.operands());
    printer.out.push(')');
    printer.attrs_except(op, "", |name| name == "call_target_name");
    printer.out.push_str(" : ");
    printer.function_type(op);
    Some(())
}

fn barrier<'m>(printer: &mut Printer<'m>, op: OpRef<'m>) -> Option<()> {
    if op.operands().is_empty() || !op.operand_types().eq(op.result_types()) {
        return None;
    }
    printer.out.push_str("stablehlo.optimization_barrier");
    printer.attrs_except(op, "", |_| false);
    printer.out.push(' ');
    printer.values(op.operands());
    printer.out.push_str(" : ");
    printer.types(op.operand_types());
    Some(())
}

fn while_loop<'m>(printer: &mut Printer<'m>, op: OpRef<'m>) -> Option<()> {
    let (cond, body) = (op.region_block(0)?, op.region_block(1)?);
    let module = op.module();
    let arguments = module.arguments(cond);
    let same = |block: BlockId| {
        let types = module.arguments(block).iter().map(|&v| module.value_type(v));
        types.eq(op.operand_types()) && module.blocks(module.block_parent(block)).len() == 1
    };
    if !same(cond) || !same(body) || op.regions().len() != 2 || !op.operand_types().eq(op.result_types()) {
        return None;
    }
    printer.out.push_str("stablehlo.while(");
    for (index, (&argument, &operand)) in arguments.iter().zip(op.operands()).enumerate() {
        if index > 0 {
            printer.out.push_str(", ");
        }
        printer.value(argument);
        printer.out.push_str(" = ");
        printer.value(operand);
    }
    printer.out.push(')');
    if !op.operands().is_empty() {
        printer.out.push_str(" : ");
        printer.types(op.operand_types());
    }
    printer.attrs_except(op, "attributes ", |_| false);
    printer.newline();
    printer.out.push_str("cond ");
    printer.region(op.regions()[0], false);
    printer.out.push_str(" do ");
    printer.region(op.regions()[1], false);
    Some(())
}

fn reduce<'m>(printer: &mut Printer<'m>, op: OpRef<'m>) -> Option<()> {
    let block = op.region_block(0)?;
    let count = op.operands().len() / 2;
    let arguments = op.module().arguments(block);
    let one_block = op.module().blocks(*op.regions().first()?).len() == 1;
    if count == 0 || op.operands().len() != 2 * count || arguments.len() != 2 * count || !one_block {
        return None;
    }
    printer.out.push_str("stablehlo.reduce");
    for index in 0..count {
        printer.out.push_str(if index > 0 { ", (" } else { "(" });
        printer.value(op.operands()[index]);
        printer.out.push_str(" init: ");
        printer.value(op.operands()[count + index]);
        printer.out.push(')');
    }
    let applied = applied_op(op, block);
    if let Some(name) = applied {
        let _ = write!(printer.out, " applies {name}");
    }
    let _ = write!(printer.out, " across dimensions = {}", Bracketed(op.attr_i64s("dimensions")?));
    printer.attrs_except(op, "", |name| name == "dimensions");
    printer.out.push_str(" : ");
    printer.function_type(op);
    if applied.is_none() {
        printer.newline();
        printer.out.push_str(" reducer");
        for index in 0..count {
            printer.out.push('(');
            printer.typed_values(&[arguments[index], arguments[count + index]]);
            printer.out.push_str(") ");
        }
        printer.out.push(' ');
        printer.region(op.regions()[0], false);
    }
    Some(())
}

/// The operation that a reduction's body consists of, when that is all it does.
fn applied_op<'m>(op: OpRef<'m>, block: BlockId) -> Option<&'m str> {
    let module = op.module();
    let arguments = module.arguments(block);
    let &[inner, last] = module.block_ops(block) else { return None };
    let (inner, last) = (module.op(inner), module.op(last));
    let &[left, right] = arguments else { return None };
    let plain = inner.operands() == [left, right] && inner.result_count() == 1 && inner.attrs().is_empty();
    let returns = last.is(OpKind::Return) && last.attrs().is_empty() && last.operands() == [inner.result(0)?];
    // The short form gives all of them the tensor of one element of the operand.
    let input = op.operand_tensor(0)?;
    let element = Type::Tensor(input.with_dims([]));
    let types: Vec<&Type> = arguments.iter().map(|&v| module.value_type(v)).collect();
    let typed = same_type(&types, Some(&element)) && inner.result_type(0) == Some(&element);
    let known = inner.kind()?.dialect() == "stablehlo" && inner.regions().is_empty();
    (plain && returns && typed && known).then(|| inner.name())
}

fn scan<'m>(printer: &mut Printer<'m>, op: OpRef<'m>) -> Option<()> {
    let sizes = op.operand_group_sizes()?;
    op.result_group_sizes()?;
    let (inputs, inits) = op.operands().split_at(*sizes.first()?);
    // The short form takes as many carried results as there are initial values.
    if op.result_group_sizes()?.get(1) != sizes.get(1) {
        return None;
    }
    printer.out.push_str("chlo.scan(");
    printer.values(inputs);
    printer.out.push_str(") inits (");
    printer.values(inits);
    let _ = write!(printer.out, ") dimension={} ", op.attr_i64("dimension")?);
    const SHOWN: [&str; 3] = ["dimension", "operandSegmentSizes", "resultSegmentSizes"];
    printer.attrs_except(op, "attributes ", |name| SHOWN.contains(&name));
    printer.out.push(' ');
    printer.region(*op.regions().first()?, true);
    printer.out.push_str(" : ");
    printer.function_type(op);
    Some(())
}
