//! What `stablehlo.custom_call` calls: the targets that the reference knows, and those of its users.
//!
//! A user's own target is an entry of [`Options::custom_calls`](crate::Options::custom_calls):
//!
//! ```
//! use std::sync::Arc;
//! use warpforge_interp::{CustomCall, Options, Value};
//!
//! let mut options = Options::default();
//! let twice: Arc<dyn CustomCall> =
//!     Arc::new(|_: warpforge_ir::OpRef<'_>, operands: &[Value]| Ok([operands, operands].concat()));
//! options.custom_calls.insert("twice".to_owned(), twice);
//! ```

mod detection;
mod lapack;

use warpforge_ir::{OpKind, OpRef};

use crate::cx::Cx;
use crate::error::{ErrorKind, Result, unsupported};
use crate::ops::{Evaluator, check_call};
use crate::{Options, Value};

/// A custom call that a user of the library provides.
pub trait CustomCall: Send + Sync {
    /// Computes the results of an operation from its operands.
    ///
    /// # Errors
    ///
    /// A text that says why there are none; it stops the evaluation.
    fn call(&self, op: OpRef<'_>, operands: &[Value]) -> std::result::Result<Vec<Value>, String>;
}

impl<F> CustomCall for F
where
    F: Fn(OpRef<'_>, &[Value]) -> std::result::Result<Vec<Value>, String> + Send + Sync,
{
    fn call(&self, op: OpRef<'_>, operands: &[Value]) -> std::result::Result<Vec<Value>, String> {
        self(op, operands)
    }
}

/// The targets that the reference knows, beside the routines of LAPACK.
const KNOWN: &[(&str, Evaluator)] = &[
    ("check.eq", check_call),
    ("check.expect_almost_eq", check_call),
    ("check.expect_close", check_call),
    ("check.expect_eq", check_call),
    // Annotations for partitioners; on one device they change nothing.
    ("Sharding", operands),
    ("SPMDFullToShardShape", operands),
    ("SPMDShardToFullShape", operands),
    ("annotate_device_placement", operands),
    ("torchvision.nms", detection::evaluate),
    ("torchvision.roi_align", detection::evaluate),
    ("torchvision.roi_align_backward", detection::evaluate),
];

fn operands(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    Ok(std::mem::take(&mut cx.operands))
}

/// What evaluates calls of a target.
fn known(target: &str) -> Option<Evaluator> {
    let listed = KNOWN.iter().find(|(name, _)| *name == target).map(|(_, evaluator)| *evaluator);
    listed.or_else(|| lapack::routine(target))
}

/// Evaluates a custom call: the user's, where there is one for its target, else the reference's own.
pub(crate) fn evaluate(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let target = cx.str("call_target_name")?;
    if let Some(own) = cx.machine.options.custom_calls.get(target) {
        return own.call(cx.op, &cx.operands).map_err(|why| ErrorKind::CustomCall(why).into());
    }
    known(target).ok_or_else(|| unsupported(format!("custom call @{target}")))?(cx)
}

/// What is wrong with a custom call whose target is not known.
pub(crate) fn why_unknown(op: OpRef<'_>, options: &Options) -> Option<String> {
    let target = op.attr_str("call_target_name").filter(|_| op.is(OpKind::CustomCall))?;
    let found = options.custom_calls.contains_key(target) || known(target).is_some();
    (!found).then(|| format!("the target @{target} is not known"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Interpreter;
    use warpforge_diag::Source;
    use warpforge_snakeburger::text;
    use warpforge_tensor::Tensor;

    #[test]
    fn a_user_provides_targets() {
        let source = Source::new(
            "a.mlir",
            "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
               %0 = stablehlo.custom_call @mine(%a) : (tensor<2xf32>) -> tensor<2xf32>
               func.return %0 : tensor<2xf32>
             }",
        );
        let module = text::parse(&source, &text::Options::default()).expect("a valid module");
        let run = |options: Options| {
            let input = Tensor::from_slice(&[2], &[1.0f32, 2.0]).expect("fits");
            Interpreter::new(&module, options).run("main", vec![input.into()])
        };
        let call =
            module.function("main").and_then(|main| module.ops_in(main.body()?).next()).expect("the call");
        assert!(why_unknown(call, &Options::default()).is_some_and(|why| why.contains("@mine")));
        assert!(run(Options::default()).is_err_and(|error| error.to_string().contains("@mine")));

        let mut options = Options::default();
        let same: Arc<dyn CustomCall> = Arc::new(|_: OpRef<'_>, operands: &[Value]| Ok(operands.to_vec()));
        options.custom_calls.insert("mine".to_owned(), same);
        assert_eq!(why_unknown(call, &options), None);
        assert!(run(options.clone()).is_ok_and(|values| values.len() == 1));
        let fails: Arc<dyn CustomCall> = Arc::new(|_: OpRef<'_>, _: &[Value]| Err("no luck".to_owned()));
        options.custom_calls.insert("mine".to_owned(), fails);
        assert!(run(options.clone()).is_err_and(|error| error.to_string().contains("no luck")));
        // What a call gives is checked like any other result.
        let none: Arc<dyn CustomCall> = Arc::new(|_: OpRef<'_>, _: &[Value]| Ok(Vec::new()));
        options.custom_calls.insert("mine".to_owned(), none);
        assert!(run(options).is_err());
    }
}
