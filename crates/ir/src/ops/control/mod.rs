//! Functions, branches, loops, calls, tuples and tokens.

mod custom;

use crate::table::Trait::{
    Collective, Deprecated, Isolated, NoBlockArguments, Pure, Terminator, Unspecified,
};
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
        .rule(new_token)
        .doc("A token that comes after all given ones."),
    op(OpKind::AsyncDone)
        .values("operand: future", "results*: tensor|axisquant|buffer")
        .rule(async_done)
        .doc("Waits for what `async_start` has started."),
    op(OpKind::AsyncStart)
        .values("operands*: tensor|buffer", "result: future")
        .regions("body")
        .rule(async_start)
        .doc("Starts a collective or a slice and goes on before it has finished."),
    op(OpKind::Case)
        .values("index: i32", "results*: tensor|axisquant|token")
        .regions("branches+")
        .rule(case).doc("Executes the branch that the index names, the last one when it names none."),
    op(OpKind::Composite)
        .values("inputs*: any", "results*: any")
        .attrs("name: str, composite_attributes: dict = {}, decomposition: symbol, version: i32 = 0")
        .regions("composite_regions*")
        .text("$name?( $inputs)?{regions}{attrs} : {fn}")
        .rule(composite).doc("A named operation with a function of the module that says what it means."),
    op(OpKind::CreateToken)
        .values("", "output: token")
        .text("{attrs} : {results}")
        .is(&[Pure, Deprecated])
        .rule(new_token)
        .doc("A new token."),
    op(OpKind::CustomCall)
        .values(
            "inputs*: tensor|axisquant|unranked|token|tuple|buffer|future",
            "results*: tensor|axisquant|unranked|token|tuple|buffer|future",
        )
        .attrs(
            "call_target_name: str, has_side_effect: bool = false, backend_config?: any, api_version: i32 = 1, called_computations: symbols = [], operand_layouts?: array, result_layouts?: array, output_operand_aliases: array = [], result_tilings?: array",
        )
        .text("custom")
        .rule(custom_call).doc("Calls what an implementation knows by a name."),
    op(OpKind::GetTupleElement)
        .values("operand: tuple", "result: tensor|axisquant|token|tuple|buffer")
        .attrs("index: i32")
        .text("$operand[$index]{attrs} : {fn}")
        .is(&[Pure])
        .rule(get_tuple_element).doc("An element of a tuple."),
    op(OpKind::If)
        .values("pred: pred", "results*: tensor|axisquant|token")
        .regions("true_branch, false_branch")
        .rule(conditional).doc("Executes one of two branches."),
    op(OpKind::Return)
        .values("results*: any", "")
        .text("custom")
        .is(&[Terminator, Unspecified])
        .doc("Ends a region with the values it gives."),
    op(OpKind::Tuple)
        .values("val*: tensor|axisquant|token|tuple|buffer", "result: tuple")
        .text("$val{attrs} : {tuple}")
        .is(&[Pure])
        .rule(tuple).doc("A tuple of values."),
    op(OpKind::While)
        .values("operand*: tensor|axisquant|token|buffer", "results*: tensor|axisquant|token|buffer")
        .regions("cond, body")
        .text("custom")
        .rule(while_loop).doc("Executes a body as long as a condition holds."),
];

fn new_token(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    cx.gives("result", vec![Type::Token])
}

/// Whether two lists of types can be those of the same values.
fn all_compatible(a: &[&Type], b: &[&Type]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| compatible::types(a, b))
}

/// Branches take nothing and return the same types, which are those of the results.
fn branches(cx: &mut Cx<'_>, labels: [&'static str; 3]) -> Option<Vec<Type>> {
    let rank = cx.tensor(0)?.rank();
    cx.same_count("I1", "the rank of what selects the branch", rank, 0);
    let regions = cx.regions().to_vec();
    let first = regions.first()?;
    for other in &regions {
        cx.same_count(labels[0], "arguments of a branch", other.arguments.len(), 0);
        let same = other.returns.is_some() && all_compatible(first.returned(), other.returned());
        cx.check(same, labels[1], || "the branches return different types".to_owned());
    }
    if cx.is_broken() {
        return None;
    }
    let count = first.returned().len();
    if let Some(found) = cx.given_results().map(<[_]>::len).filter(|found| *found != count) {
        cx.fail(labels[2], format!("there are {found} results where the branches return {count}"));
        return None;
    }
    let returned =
        |index: usize| regions.iter().filter_map(move |region| region.returned().get(index).copied());
    let types = (0..count).map(|index| compatible::least_specific(returned(index))).collect::<Option<_>>()?;
    cx.gives(labels[2], types)
}

fn conditional(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    branches(cx, ["C1", "C2", "C3"])
}

fn case(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    cx.check(!cx.regions().is_empty(), "C1", || "there must be at least one branch".to_owned());
    branches(cx, ["C2", "C3", "C4"])
}

fn while_loop(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operands = cx.operands().to_vec();
    let (cond, body) = (cx.region(0), cx.region(1));
    cx.check(all_compatible(&cond.arguments, &operands), "C1", || {
        "the condition does not take the operands".to_owned()
    });
    let pred = matches!(cond.returned(), [Type::Tensor(only)]
        if only.rank() == 0 && only.element().plain() == Some(ElementType::Bool));
    cx.check(pred, "C1", || "the condition must return one truth value".to_owned());
    cx.check(all_compatible(&body.arguments, &operands), "C2", || {
        "the body does not take the operands".to_owned()
    });
    cx.check(all_compatible(body.returned(), &operands), "C2", || {
        "the body does not return the operands' types".to_owned()
    });
    cx.gives("C3", operands.into_iter().cloned().collect())
}

/// The body of `async_start` is one operation that communicates or cuts out a part, and its return.
fn async_start(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let body = cx.region(0);
    cx.check(body.arguments == cx.operands(), "body", || "the body does not take the operands".to_owned());
    let ops: Vec<_> = body.ops().collect();
    let [only, _] = ops.as_slice() else {
        cx.fail("body", format!("the body has {} operations, not one and its return", ops.len()));
        return None;
    };
    let fits = only.def().is_some_and(|def| {
        def.is(Collective)
            || matches!(def.kind, OpKind::Slice | OpKind::DynamicSlice | OpKind::DynamicUpdateSlice)
    });
    cx.check(fits, "body", || format!("`{}` cannot be started on its own", only.name()));
    let returned = body.returned().iter().map(|ty| (*ty).clone()).collect::<Vec<_>>();
    cx.gives("result", vec![Type::Future(returned.into())])
}

fn async_done(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let Type::Future(types) = cx.operands().first()? else { return None };
    cx.gives("results", types.to_vec())
}

fn tuple(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let elements: Vec<Type> = cx.operands().iter().map(|ty| (*ty).clone()).collect();
    let tuple = Type::Tuple(elements.into());
    let given = cx.given_results().and_then(|results| results.first().copied());
    cx.check(given.is_none_or(|given| *given == tuple), "C1", || format!("the result is not {tuple}"));
    if cx.is_broken() { None } else { Some(vec![tuple]) }
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
    custom::layouts(cx);
    custom::aliases(cx);
    custom::buffers(cx);
    custom::configuration(cx);
    None
}

fn composite(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let name = cx.attr("name")?.as_str()?;
    cx.check(is_namespaced(name), "C1", || {
        format!("`{name}` is no name with a namespace, such as `my_namespace.my_op`")
    });
    let version = cx.i64("version")?;
    cx.check(version >= 0, "I5", || format!("the version {version} is negative"));
    None
}

/// Words with dots between them, the first of which starts with a letter.
fn is_namespaced(name: &str) -> bool {
    let mut parts = name.split('.');
    let first = parts.next().is_some_and(|part| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    });
    let rest: Vec<&str> = parts.collect();
    let word = |part: &&str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$'))
    };
    first && !rest.is_empty() && rest.iter().all(word)
}
