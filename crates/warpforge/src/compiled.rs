//! A compiled model: named inputs in, named outputs out.

use std::sync::Arc;

use warpforge_diag::Diagnostic;
use warpforge_ir::signature::Output;
use warpforge_runtime::profile::Profile;
use warpforge_runtime::{ErrorKind, Executable, InputType, RunOptions, Session, Target};
use warpforge_tensor::Tensor;

use crate::bind::{Wanted, in_order};
use crate::{Error, Inputs, Model, ModelState, Outputs, Result, Slot};

/// A model compiled for a device and a tier.
pub struct CompiledModel {
    model: Model,
    session: Session,
    state: Option<ModelState>,
}

impl CompiledModel {
    pub(crate) fn new(model: Model, session: Session, state: Option<ModelState>) -> Result<Self> {
        let compiled = Self { model, session, state };
        if let Some(types) = compiled.fixed_inputs() {
            compiled.session.prepare(&types)?;
        }
        Ok(compiled)
    }

    /// The types of the inputs, when all are known.
    fn fixed_inputs(&self) -> Option<Vec<InputType>> {
        let fixed = |slot: &Slot<'_>| {
            Some(InputType { element: slot.ty.element().storage()?, dims: slot.ty.shape_usize()? })
        };
        self.inputs().iter().map(fixed).collect()
    }

    /// The state that runs update; `None` where the model was compiled without.
    #[must_use]
    pub fn state(&self) -> Option<&ModelState> {
        self.state.as_ref()
    }

    /// The arguments that a run is to give: all that no weight and no state is bound to.
    #[must_use]
    pub fn inputs(&self) -> Vec<Slot<'_>> {
        let mut slots = self.model.inputs();
        if let Some(state) = &self.state {
            slots.retain(|slot| state.names().all(|name| name != slot.name));
        }
        slots
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The device, the tier and the precision.
    #[must_use]
    pub fn target(&self) -> &Target {
        self.session.target()
    }

    /// The backend's name.
    #[must_use]
    pub fn backend(&self) -> &'static str {
        self.session.backend().name()
    }

    /// How many programs are compiled and kept: one for each set of input shapes.
    #[must_use]
    pub fn programs(&self) -> usize {
        self.session.compiled()
    }

    /// Runs on inputs by name: those of the model's signature, or `arg0`, `arg1`, … in order.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, everything wrong named at once, or the run fails.
    pub fn run(&self, inputs: impl Into<Inputs>) -> Result<Outputs> {
        self.run_with(inputs, &RunOptions::default())
    }

    /// Runs with a profile or an observer.
    ///
    /// # Errors
    ///
    /// As [`CompiledModel::run`].
    pub fn run_with(&self, inputs: impl Into<Inputs>, options: &RunOptions) -> Result<Outputs> {
        let inputs = self.in_order(&inputs.into())?;
        self.run_in_order(&inputs, options)
    }

    /// The tensors of named inputs in the order of [`CompiledModel::inputs`].
    ///
    /// # Errors
    ///
    /// When they do not fit, everything wrong named at once.
    pub fn in_order(&self, inputs: &Inputs) -> Result<Vec<Tensor>> {
        let slots = self.inputs();
        let mut user_inputs = 0;
        let wanted: Vec<Wanted<'_>> = slots
            .iter()
            .map(|slot| {
                // Positions count the inputs proper, so that they stay the same when weights are bound.
                let alias = if slot.role.is_weight() { String::new() } else { format!("arg{user_inputs}") };
                user_inputs += usize::from(!slot.role.is_weight());
                Wanted { name: slot.name, alias, ty: slot.ty }
            })
            .collect();
        in_order(&wanted, inputs).map_err(Error::Inputs)
    }

    /// The program for inputs of these shapes, compiled now unless it was before.
    ///
    /// # Errors
    ///
    /// When the model does not allow them, or the backend cannot compile it.
    pub fn prepare(&self, inputs: &[Tensor]) -> Result<Arc<dyn Executable>> {
        let types: Vec<InputType> = inputs.iter().map(InputType::of).collect();
        Ok(self.session.prepare(&types)?)
    }

    /// Runs on tensors in the order of [`CompiledModel::inputs`].
    ///
    /// # Errors
    ///
    /// When they do not fit, or the run fails.
    pub fn run_in_order(&self, inputs: &[Tensor], options: &RunOptions) -> Result<Outputs> {
        let outcome = self.session.run(inputs, options).map_err(|error| self.placed(error))?;
        Ok(Outputs::new(self.names(outcome.outputs), outcome.profile, outcome.clusters))
    }

    /// Tensors in the order of [`CompiledModel::results`] with their names.
    #[must_use]
    pub fn named(&self, outputs: Vec<Tensor>) -> Outputs {
        Outputs::new(self.names(outputs), Profile::default(), Vec::new())
    }

    /// The results that a run gives: all that are not the new content of state.
    pub fn results(&self) -> impl Iterator<Item = &Output> {
        let signature = self.model.signature();
        let held = |at: usize| signature.state().any(|(_, _, result)| result == at);
        let results = signature.results.iter().enumerate();
        results.filter(move |(at, _)| self.state.is_none() || !held(*at)).map(|(_, result)| result)
    }

    fn names(&self, outputs: Vec<Tensor>) -> Vec<(String, Tensor)> {
        self.results().map(|result| result.name.clone()).zip(outputs).collect()
    }

    /// An error with the place of the operation that it happened at.
    fn placed(&self, error: warpforge_runtime::Error) -> Error {
        match error.into_kind() {
            ErrorKind::Evaluation(source) => {
                let mut diagnostic = Diagnostic::error(source.span(), source.to_string());
                if let Some(node) = source.location().and_then(|location| location.name.as_ref()) {
                    diagnostic = diagnostic.with_note(format!("in node `{node}`"));
                }
                if let Some(line) = source.location().and_then(|location| location.source.as_ref()) {
                    diagnostic = diagnostic.with_note(format!("from {line}"));
                }
                Error::Stopped { place: diagnostic.render(self.model.source()), source }
            }
            kind => Error::Runtime(kind.into()),
        }
    }
}
