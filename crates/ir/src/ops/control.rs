//! Functions, branches, loops, calls, tuples and tokens.

use crate::attr::Attribute;
use crate::table::Trait::{Deprecated, Isolated, NoBlockArguments, Pure, Terminator, Unspecified};
use crate::table::{Entry, OpKind, op};
use crate::types::{ElementType, Type};
use crate::verify::{Cx, compatible};

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::Module)
        .attrs("sym_name?: str, sym_visibility?: str")
        .regions("body")
        .text("custom")
        .is(&[Isolated, NoBlockArguments])
        .doc("A module of functions."),
    op(OpKind::Func)
        .attrs(
            "sym_name: str, function_type: type, sym_visibility?: str, arg_attrs?: array, res_attrs?: array, no_inline?: unit",
        )
        .regions("body")
        .text("custom")
        .is(&[Isolated])
        .doc("A function; one without a body is declared elsewhere."),
    op(OpKind::FuncReturn)
        .values("operands*: any", "")
        .text("custom")
        .is(&[Terminator])
        .doc("Returns from a function."),
    op(OpKind::Call)
        .values("operands*: any", "results*: any")
        .attrs("callee: symbol, arg_attrs?: array, res_attrs?: array, no_inline?: unit")
        .text("custom")
        .doc("Calls a function of the module."),
    op(OpKind::AfterAll)
        .values("inputs*: token", "result: token")
        .text("$inputs{attrs} : {same}")
        .is(&[Pure])
        .doc("A token that comes after all given ones."),
    op(OpKind::AsyncDone)
        .values("operand: future", "results*: tensor|tuple|buffer")
        .doc("Waits for what `async_start` has started."),
    op(OpKind::AsyncStart)
        .values("operands*: tensor|buffer", "result: future")
        .regions("body")
        .doc("Starts a collective or a slice and goes on before it has finished."),
    op(OpKind::Case)
        .values("index: 0d sint", "results*: tensor|token|tuple|buffer")
        .regions("branches*")
        .is(&[NoBlockArguments])
        .rule(branches).doc("Executes the branch that the index names, the last one when it names none."),
    op(OpKind::Composite)
        .values("inputs*: any", "results*: any")
        .attrs("name: str, composite_attributes: dict = {}, decomposition: symbol, version: i32 = 0")
        .text("$name?( $inputs)?{attrs} : {fn}")
        .rule(composite).doc("A named operation with a function of the module that says what it means."),
    op(OpKind::CreateToken)
        .values("", "output: token")
        .text("{attrs} : {results}")
        .is(&[Pure, Deprecated])
        .doc("A new token."),
    op(OpKind::CustomCall)
        .values("inputs*: any", "results*: any")
        .attrs(
            "call_target_name: str, has_side_effect: bool = false, backend_config?: any, api_version: i32 = 1, called_computations: array = [], operand_layouts?: array, result_layouts?: array, output_operand_aliases: array = []",
        )
        .text("custom")
        .rule(custom_call).doc("Calls what an implementation knows by a name."),
    op(OpKind::GetTupleElement)
        .values("operand: tuple", "result: any")
        .attrs("index: i32")
        .text("$operand[$index]{attrs} : {fn}")
        .is(&[Pure])
        .rule(get_tuple_element).doc("An element of a tuple."),
    op(OpKind::If)
        .values("pred: 0d pred", "results*: tensor|token|tuple|buffer")
        .regions("true_branch, false_branch")
        .is(&[NoBlockArguments])
        .rule(branches).doc("Executes one of two branches."),
    op(OpKind::Return)
        .values("results*: any", "")
        .text("custom")
        .is(&[Terminator, Unspecified])
        .doc("Ends a region with the values it gives."),
    op(OpKind::Tuple)
        .values("val*: any", "result: tuple")
        .text("$val{attrs} : {tuple}")
        .is(&[Pure])
        .rule(tuple).doc("A tuple of values."),
    op(OpKind::While)
        .values("operand*: tensor|token|tuple|buffer", "results*: tensor|token|tuple|buffer")
        .regions("cond, body")
        .text("custom")
        .rule(while_loop).doc("Executes a body as long as a condition holds."),
];

/// All branches return the same types, which are those of the results.
fn branches(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let returns: Vec<Option<Vec<&Type>>> = cx.regions().iter().map(|region| region.returns.clone()).collect();
    let first = returns.first()?.clone()?;
    for other in &returns[1..] {
        let same = other.as_ref().is_some_and(|other| {
            other.len() == first.len() && first.iter().zip(other).all(|(a, b)| compatible::types(a, b))
        });
        cx.check(same, "C2", || "the branches return different types".to_owned());
    }
    if cx.is_broken() {
        return None;
    }
    if let Some(found) = cx.given_results().map(<[_]>::len).filter(|found| *found != first.len()) {
        cx.fail("C3", format!("there are {found} results where the branches return {}", first.len()));
        return None;
    }
    cx.gives("C3", first.into_iter().cloned().collect())
}

fn while_loop(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operands: Vec<Type> = cx.operands().iter().map(|ty| (*ty).clone()).collect();
    let fits = |types: &[&Type]| {
        types.len() == operands.len() && types.iter().zip(&operands).all(|(a, b)| compatible::types(a, b))
    };
    let (cond, body) = (cx.regions().first()?.clone(), cx.regions().get(1)?.clone());
    let pred = cond.returns.as_deref().is_some_and(|returns| match returns {
        [Type::Tensor(only)] => only.rank() == 0 && only.element().plain() == Some(ElementType::Bool),
        _ => false,
    });
    cx.check(fits(&cond.arguments), "C1", || "the condition does not take the operands".to_owned());
    cx.check(pred, "C1", || "the condition must return one truth value".to_owned());
    cx.check(fits(&body.arguments), "C2", || "the body does not take the operands".to_owned());
    let returns = body.returns.as_deref().is_some_and(fits);
    cx.check(returns, "C2", || "the body does not return the operands' types".to_owned());
    if cx.given_results().is_some_and(|results| results.len() != operands.len()) {
        cx.fail("C3", "there is not one result for each operand");
        return None;
    }
    cx.gives("C3", operands)
}

fn tuple(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let elements: Vec<Type> = cx.operands().iter().map(|ty| (*ty).clone()).collect();
    cx.gives("C1", vec![Type::Tuple(elements.into())])
}

fn get_tuple_element(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let Type::Tuple(elements) = cx.operands().first()? else { return None };
    let index = cx.i64("index")?;
    match usize::try_from(index).ok().and_then(|index| elements.get(index)) {
        Some(element) => cx.gives("C2", vec![element.clone()]),
        None => {
            cx.fail("C1", format!("a tuple of {} has no element {index}", elements.len()));
            None
        }
    }
}

fn custom_call(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operands = cx.attr("operand_layouts").and_then(Attribute::as_array).map(<[_]>::len);
    let results = cx.attr("result_layouts").and_then(Attribute::as_array).map(<[_]>::len);
    cx.check(operands.is_some() == results.is_some(), "layouts", || {
        "layouts of operands and results come together or not at all".to_owned()
    });
    if let Some(count) = operands {
        cx.same_count("layouts", "layouts of operands", count, cx.operands().len());
    }
    None
}

fn composite(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let name = cx.attr("name")?.as_str()?;
    let parts: Vec<&str> = name.split('.').collect();
    let word = |part: &&str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$'))
    };
    let starts = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    let named = parts.len() >= 2 && parts.iter().all(word) && starts;
    cx.check(named, "C1", || format!("`{name}` is no name with a namespace, such as `my_namespace.my_op`"));
    let version = cx.i64("version")?;
    cx.check(version >= 0, "version", || format!("the version {version} is negative"));
    None
}
