//! Functions, branches, loops, calls, tuples and tokens.

use crate::table::Trait::{Deprecated, Isolated, NoBlockArguments, Pure, Terminator, Unspecified};
use crate::table::{Entry, OpKind, op};

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
        .doc("Executes the branch that the index names, the last one when it names none."),
    op(OpKind::Composite)
        .values("inputs*: any", "results*: any")
        .attrs("name: str, composite_attributes: dict = {}, decomposition: symbol, version: i32 = 0")
        .text("$name?( $inputs)?{attrs} : {fn}")
        .doc("A named operation with a function of the module that says what it means."),
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
        .doc("Calls what an implementation knows by a name."),
    op(OpKind::GetTupleElement)
        .values("operand: tuple", "result: any")
        .attrs("index: i32")
        .text("$operand[$index]{attrs} : {fn}")
        .is(&[Pure])
        .doc("An element of a tuple."),
    op(OpKind::If)
        .values("pred: 0d pred", "results*: tensor|token|tuple|buffer")
        .regions("true_branch, false_branch")
        .is(&[NoBlockArguments])
        .doc("Executes one of two branches."),
    op(OpKind::Return)
        .values("results*: any", "")
        .text("custom")
        .is(&[Terminator, Unspecified])
        .doc("Ends a region with the values it gives."),
    op(OpKind::Tuple)
        .values("val*: any", "result: tuple")
        .text("$val{attrs} : {tuple}")
        .is(&[Pure])
        .doc("A tuple of values."),
    op(OpKind::While)
        .values("operand*: tensor|token|tuple|buffer", "results*: tensor|token|tuple|buffer")
        .regions("cond, body")
        .text("custom")
        .doc("Executes a body as long as a condition holds."),
];
