//! How functions end.

use warpforge_ir::{Func, Module, OpId, OpKind};

/// Makes a `func.return` of the `stablehlo.return` that a function ends with, where it does the same.
pub(crate) fn settle(module: &mut Module, op: OpId) {
    if let Some(end) = foreign(module, op) {
        module.set_kind(end, OpKind::FuncReturn);
    }
}

fn foreign(module: &Module, op: OpId) -> Option<OpId> {
    let function = Func::new(module.op(op))?;
    let last = module.terminator(function.body()?)?;
    let fits = last.is(OpKind::Return) && last.operand_types().eq(function.result_types());
    fits.then(|| last.id())
}
