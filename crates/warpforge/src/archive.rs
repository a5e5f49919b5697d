//! A PyTorch archive whose shapes are open: imported anew for each set of input shapes.

use std::sync::Arc;

use warpforge_runtime::{ErrorKind, InputType, Program, Specialise};
use warpforge_snakegrinder::{Archive, ImportOptions};

/// The archive, the program with open shapes that it gave, and the names of the program's inputs and state.
pub(crate) struct OpenShapes {
    pub(crate) archive: Arc<Archive>,
    pub(crate) program: Program,
    pub(crate) inputs: Vec<String>,
    pub(crate) state: Vec<String>,
}

impl Specialise for OpenShapes {
    fn specialise(&self, inputs: &[InputType]) -> Result<Program, warpforge_runtime::Error> {
        let refused = |error| ErrorKind::Source(Box::new(error));
        let dims = |input: &InputType| input.dims.iter().map(|&dim| dim as u64).collect();
        let held = self.program.state().map_or(&[][..], |state| state.types());
        let given = self.inputs.iter().zip(inputs).chain(self.state.iter().zip(held));
        let shapes = given.map(|(name, ty)| (name.clone(), dims(ty))).collect();
        let imported = self.archive.import(&ImportOptions { shapes: Some(shapes) }).map_err(refused)?;
        // The weights are those of the program with open shapes: the same tensors, for every set of shapes.
        Program::new(Arc::new(imported.module), self.program.entry(), self.program.weights().clone())?
            .with_state_of(&self.program)
    }
}
