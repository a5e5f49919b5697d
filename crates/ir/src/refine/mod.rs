//! Refinement: what the shapes inside a function are once those of its inputs are known.
//!
//! The function is read from the top with the types given. Where operands determine results, results get those types;
//! integers that shapes are computed from are followed by value; operations that take a shape as an operand become their
//! static forms once that operand is known; functions that are called are refined for each set of types they are called
//! with. What shapes were computed from is left out when nothing else uses it.
//!
//! A module whose inputs are known completely comes out without unknown dimensions, unless they depend on data.
//!
//! ```
//! use warpforge_ir::refine::refine;
//! # use warpforge_ir::build::{BuildError, Builder};
//! # use warpforge_ir::{Dim, ElementType, Module, OpKind, TensorType, Type};
//! # let mut module = Module::new();
//! # let dynamic = Type::Tensor(TensorType::new(vec![Dim::Dynamic], ElementType::F32));
//! # Builder::new(&mut module)
//! #     .function("main", &[dynamic], |b, v| Ok::<_, BuildError>(vec![b.unary(OpKind::Tanh, v[0])?]))?;
//! // func.func @main(%arg0: tensor<?xf32>) -> tensor<?xf32> { … tanh … }
//! let refined = refine(&module, "main", &[Type::tensor(&[3], ElementType::F32)]).expect("it fits");
//! let main = refined.function("main").expect("the entry stays");
//! assert_eq!(main.result_types()[0].to_string(), "tensor<3xf32>");
//! # Ok::<(), BuildError>(())
//! ```

mod assertion;
mod dynamic;
mod error;
mod function;
mod known;
mod op;
mod region;
mod result;
#[cfg(test)]
mod tests;

pub use error::RefineError;

use crate::module::{Func, Module};
use crate::types::{TensorType, Type};

/// The module with what `function` is for inputs of these types, and the functions that it needs.
///
/// # Errors
///
/// When there is no such function, the types do not fit its arguments, or sizes contradict each other further down.
pub fn refine(module: &Module, function: &str, inputs: &[Type]) -> Result<Module, RefineError> {
    let entry = module.function(function).filter(|func| func.body().is_some());
    let entry = entry.ok_or_else(|| RefineError::NoFunction(function.to_owned()))?;
    function::Refiner::new(module).entry(entry, inputs)
}

/// Whether all dimensions of all tensors in a function are known, those of the functions it calls left aside.
#[must_use]
pub fn is_static(func: Func<'_>) -> bool {
    let module = func.op().module();
    let known = |ty: &Type| ty.as_tensor().is_none_or(TensorType::is_static);
    let mut pending = vec![func.op()];
    while let Some(op) = pending.pop() {
        if !op.result_types().all(known) {
            return false;
        }
        for &block in op.regions().iter().flat_map(|&region| module.blocks(region)) {
            if !module.arguments(block).iter().all(|&argument| known(module.value_type(argument))) {
                return false;
            }
            pending.extend(module.ops_in(block));
        }
    }
    true
}
