//! A module whose shapes are open: refined for each set of input shapes.

use std::sync::Arc;

use warpforge_ir::refine::refine;
use warpforge_ir::{TensorType, Type};
use warpforge_runtime::{ErrorKind, InputType, Program, Specialise};

/// The program with open shapes.
pub(crate) struct Refined(pub(crate) Program);

impl Specialise for Refined {
    fn specialise(&self, inputs: &[InputType]) -> Result<Program, warpforge_runtime::Error> {
        let Self(program) = self;
        let function = program.module().function(program.entry());
        let declared = function.and_then(warpforge_ir::Func::signature);
        let mut types: Vec<Type> = declared.map_or_else(Vec::new, |signature| signature.inputs.clone());
        for ((position, ty), input) in program.inputs().iter().zip(inputs) {
            let dims: Vec<u64> = input.dims.iter().map(|&dim| dim as u64).collect();
            if let Some(slot) = types.get_mut(*position) {
                *slot = TensorType::fixed(&dims, ty.element().clone()).into();
            }
        }
        if let Some(state) = program.state() {
            for binding in program.bindings() {
                let dims: Vec<u64> =
                    state.types()[binding.value].dims.iter().map(|&dim| dim as u64).collect();
                if let Some(Type::Tensor(ty)) = types.get_mut(binding.argument) {
                    *ty = TensorType::fixed(&dims, ty.element().clone());
                }
            }
        }
        let module = refine(program.module(), program.entry(), &types)
            .map_err(|error| ErrorKind::Shapes(error.to_string()))?;
        Program::new(Arc::new(module), program.entry(), program.weights().clone())?.with_state_of(program)
    }
}
