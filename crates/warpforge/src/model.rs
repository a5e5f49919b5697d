//! A model: a module, what its arguments and results are, and its weights.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use warpforge_diag::{Diagnostics, Source};
use warpforge_fusion::pipeline::Plan;
use warpforge_ir::signature::{ArgumentRole, Signature};
use warpforge_ir::{Func, Module, TensorType, verify};
use warpforge_runtime::{
    CompileOptions, CustomCalls, Program, Session, Specialise, Weights, choose, planner,
};
use warpforge_snakeburger::{Loaded, load, text};
use warpforge_snakegrinder::{Archive, ImportOptions, ModuleValue};
use warpforge_tensor::Tensor;

use crate::archive::OpenShapes;
use crate::backends::backends;
use crate::bind;
use crate::compiled::CompiledModel;
use crate::format::{Contents, shown};
use crate::refined::Refined;
use crate::state::{self, ModelState};
use crate::{Error, Format, Inputs, RankGroup, Recipe, Result, entry, parallel, processes};

/// Locations say which node of a model an operation came from.
const OPTIONS: text::Options = text::Options { keep_locations: true };

/// An argument that a run is to give.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slot<'a> {
    /// Its name in the model's signature.
    pub name: &'a str,
    /// What it is to the model.
    pub role: ArgumentRole,
    /// Its type; dimensions may be unknown.
    pub ty: &'a TensorType,
}

/// A model that can be compiled.
#[derive(Debug, Clone)]
pub struct Model {
    module: Arc<Module>,
    source: Source,
    format: Format,
    entry: String,
    signature: Signature,
    weights: Weights,
    /// What the module was imported from, to be imported anew where shapes are open.
    archive: Option<Arc<Archive>>,
    /// Custom calls that runs make.
    calls: CustomCalls,
}

impl Model {
    /// Reads a model from a file: StableHLO text or bytecode, or a `.pt2` archive, whatever the name ends in; `-` is
    /// standard input. The weights in an archive are bound.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is not valid, or has no function to run.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::load_entry(path, None)
    }

    /// Reads a model whose entry function is the named one.
    ///
    /// # Errors
    ///
    /// As [`Model::load`].
    pub fn load_entry(path: impl AsRef<Path>, entry: Option<&str>) -> Result<Self> {
        let path = path.as_ref();
        let name = shown(path);
        match Contents::read(path, &OPTIONS) {
            Ok(Contents::Archive) => Self::import(path, entry),
            Ok(Contents::Modules { format, modules }) => Self::only(modules, &name, format, entry),
            Err(reason) => Err(Error::Io { path: name, reason }),
        }
    }

    fn import(path: &Path, entry: Option<&str>) -> Result<Self> {
        let name = path.display().to_string();
        let refused = |reason| Error::Import { path: name.clone(), reason };
        let archive = warpforge_snakegrinder::open(path).map_err(refused)?;
        let imported = archive.import(&ImportOptions::default()).map_err(refused)?;
        let mut model = Self::new(imported.module, Source::binary(name.as_str()), Format::Pt2, entry)?;
        model.bind_weights(&imported.weights)?;
        model.archive = Some(Arc::new(archive));
        Ok(model)
    }

    /// Reads a model from StableHLO text; `name` stands for the file in messages.
    ///
    /// # Errors
    ///
    /// When the text is not valid, or has no function to run.
    pub fn from_text(name: &str, text: impl Into<String>) -> Result<Self> {
        Self::only(load(name, text.into().into_bytes(), &OPTIONS), name, Format::Text, None)
    }

    /// The model of a file that has one module.
    fn only(modules: Vec<Loaded>, name: &str, format: Format, entry: Option<&str>) -> Result<Self> {
        let count = modules.len();
        let mut modules = modules.into_iter();
        let (Some(loaded), None) = (modules.next(), modules.next()) else {
            let reason = match count {
                0 => "the file has no module".to_owned(),
                _ => format!("{count} modules separated by `// -----`; one is needed"),
            };
            return Err(Error::Format { path: name.to_owned(), reason });
        };
        Self::new(loaded.module.map_err(Error::Invalid)?, loaded.source, format, entry)
    }

    fn new(mut module: Module, source: Source, format: Format, entry: Option<&str>) -> Result<Self> {
        let mut diagnostics = Diagnostics::new(source.clone());
        diagnostics.extend(verify(&module));
        if diagnostics.has_errors() {
            return Err(Error::Invalid(diagnostics));
        }
        let path = || source.name().to_owned();
        let wrong = |reason| Error::Entry { path: path(), reason };
        let chosen = entry::choose(&module, entry).map_err(wrong)?.name().to_owned();
        let entry = processes::spread(&mut module, &chosen).unwrap_or(chosen);
        let signature = module.function(&entry).map(Signature::of).unwrap_or_default();
        let module = Arc::new(module);
        // Says what is wrong with the entry now rather than when it is compiled.
        Program::new(Arc::clone(&module), &entry, Weights::default())?;
        let (weights, calls) = (Weights::default(), CustomCalls::default());
        Ok(Self { module, source, format, entry, signature, weights, archive: None, calls })
    }

    /// The module.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The source that positions in the module refer to.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The form of the file that it was read from.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The name of the function that is run.
    #[must_use]
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// What the arguments and results are.
    #[must_use]
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The function that is run.
    #[must_use]
    pub fn function(&self) -> Option<Func<'_>> {
        self.module.function(&self.entry)
    }

    /// What the modules of the Python model returned, by the nodes of the graph that gave it; only an archive says so.
    ///
    /// # Errors
    ///
    /// When the archive's list of them cannot be read.
    pub fn module_values(&self) -> Result<Vec<ModuleValue>> {
        let Some(archive) = &self.archive else { return Ok(Vec::new()) };
        let path = || self.source.name().to_owned();
        archive.module_values().map_err(|reason| Error::Import { path: path(), reason })
    }

    /// The weights that are bound, by name, in the order of the arguments.
    pub fn weights(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        let arguments = self.signature.arguments.iter().enumerate();
        arguments.filter_map(|(at, argument)| Some((argument.name.as_str(), self.weights.get(at)?)))
    }

    /// The arguments that a run is to give: all that no weight is bound to.
    #[must_use]
    pub fn inputs(&self) -> Vec<Slot<'_>> {
        let arguments = self.signature.arguments.iter().enumerate();
        arguments
            .filter(|(at, _)| self.weights.get(*at).is_none())
            .filter_map(|(_, argument)| {
                Some(Slot { name: &argument.name, role: argument.role, ty: argument.ty.as_tensor()? })
            })
            .collect()
    }

    /// Binds weights to the arguments that are parameters, buffers and constants, for a module that takes them as
    /// arguments.
    ///
    /// # Errors
    ///
    /// When one is missing, not known or of another type; all of them are named.
    pub fn bind_weights(&mut self, weights: &BTreeMap<String, Tensor>) -> Result<()> {
        self.weights = Weights::new(bind::weights(&self.signature, weights).map_err(Error::Weights)?);
        Ok(())
    }

    /// Gives weights that are bound up: a run takes them as inputs.
    pub fn release_weights(&mut self, released: impl Fn(&str) -> bool) {
        let arguments = self.signature.arguments.iter().enumerate();
        let kept = arguments
            .map(|(at, argument)| self.weights.get(at).filter(|_| !released(&argument.name)).cloned());
        self.weights = Weights::new(kept.collect());
    }

    /// What a device would run: the graph of the model and its clusters, as its backend plans them. The device need not be on
    /// this machine.
    ///
    /// # Errors
    ///
    /// When no backend is for such a device, or the model has values that are no tensors of known sizes: only the reference
    /// interpreter runs it.
    pub fn plan(&self, options: &CompileOptions) -> Result<Plan> {
        let program = Program::new(Arc::clone(&self.module), &self.entry, self.weights.clone())?;
        let choice = planner(backends(), options)?;
        Ok(choice.backend.plan(&program, &choice.target)?)
    }

    /// The weight that is bound to an argument.
    pub(crate) fn bound_weight(&self, argument: usize) -> Option<&Tensor> {
        self.weights.get(argument)
    }

    /// Declares that a result is the new value of an argument: the argument is state.
    ///
    /// # Errors
    ///
    /// When there are no such argument and result, their types differ, or one of them is aliased already.
    pub fn alias(&mut self, argument: &str, result: &str) -> Result<()> {
        Ok(self.signature.alias(argument, result)?)
    }

    /// The model as a training step: what it does, and then an update of its parameters from the gradients that it gives.
    ///
    /// # Errors
    ///
    /// When it gives no gradients of parameters, or they do not fit.
    pub fn train(&self, recipe: &Recipe) -> Result<Self> {
        let path = || self.source.name().to_owned();
        let module = warpforge_train::step(&self.module, &self.entry, recipe)
            .map_err(|reason| Error::Train { path: path(), reason })?;
        // The optimizer's arguments come after the model's.
        self.rewritten(module)
    }

    /// As [`Model::train`], for one of several ranks that train the same model on parts of each batch: gradients are averaged over
    /// all ranks, in buckets of about so many bytes, while others are still computed. Where the group is one of devices, the step is
    /// compiled for this rank's.
    ///
    /// # Errors
    ///
    /// As [`Model::train`].
    pub fn train_in_group(&self, recipe: &Recipe, group: &RankGroup, bucket_bytes: usize) -> Result<Self> {
        let path = || self.source.name().to_owned();
        let module = warpforge_train::parallel_step(&self.module, &self.entry, recipe, bucket_bytes)
            .map_err(|reason| Error::Train { path: path(), reason })?;
        let mut model = self.rewritten(module)?;
        model.calls = parallel::calls(group);
        Ok(model)
    }

    /// The model with another module, whose arguments begin with the same ones.
    ///
    /// # Errors
    ///
    /// When the module is not valid, or has no such function to run.
    pub fn rewritten(&self, module: Module) -> Result<Self> {
        let mut model = Self::new(module, self.source.clone(), self.format, Some(&self.entry))?;
        model.weights = self.weights.clone();
        Ok(model)
    }

    /// Compiles for a device and a tier. A model whose shapes are all known is compiled now, another when it first
    /// meets its inputs' shapes. State is an input and an output as any other.
    ///
    /// # Errors
    ///
    /// When there is no such device or tier here, or the model has something that the backend cannot run.
    pub fn compile(&self, options: &CompileOptions) -> Result<CompiledModel> {
        let program = Program::new(Arc::clone(&self.module), &self.entry, self.weights.clone())?;
        let program = program.with_calls(self.calls.clone());
        let session = Session::new(self.source_of(program), choose(backends(), options)?);
        CompiledModel::new(self.clone(), session, None)
    }

    /// Compiles for a device and a tier, with the model's state kept where it computes. State starts with what is given by
    /// name, else with the weight that is bound, else with zeros where its role is `state`.
    ///
    /// # Errors
    ///
    /// As [`Model::compile`], and when a value of the state is missing, not known or of another type; all of them are named.
    pub fn compile_with_state(
        &self,
        options: &CompileOptions,
        given: impl Into<Inputs>,
    ) -> Result<CompiledModel> {
        let values = state::initial(self, &given.into())?;
        let choice = choose(backends(), options)?;
        let held = ModelState::new(self, choice.backend.state(&values, &choice.target)?);
        let bindings = state::bindings(self);
        let is_state = |at: usize| bindings.iter().any(|binding| binding.argument == at);
        let weights = (0..self.signature.arguments.len())
            .map(|at| self.weights.get(at).filter(|_| !is_state(at)).cloned())
            .collect();
        let program = Program::new(Arc::clone(&self.module), &self.entry, Weights::new(weights))?;
        let program =
            program.with_calls(self.calls.clone()).with_state(Arc::clone(held.values()), bindings)?;
        CompiledModel::new(self.clone(), Session::new(self.source_of(program), choice), Some(held))
    }

    /// What makes the program for given shapes.
    fn source_of(&self, program: Program) -> Box<dyn Specialise> {
        let open = self.inputs().iter().any(|slot| slot.ty.shape_usize().is_none());
        match &self.archive {
            _ if !open => Box::new(program),
            None => Box::new(Refined(program)),
            Some(archive) => {
                let name = |position: usize| self.signature.arguments[position].name.clone();
                let inputs = program.inputs().iter().map(|(position, _)| name(*position)).collect();
                let state = program.bindings().iter().map(|binding| name(binding.argument)).collect();
                Box::new(OpenShapes { archive: Arc::clone(archive), program, inputs, state })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_model_is_refused_with_its_place() {
        let error = |text: &str| Model::from_text("m.mlir", text).unwrap_err().to_string();
        assert!(error("func.func @main(").starts_with("m.mlir:1:"));
        let wrong = "func.func @main(%a: tensor<2xf32>) -> tensor<3xf32> {\n  \
                     %0 = stablehlo.reshape %a : (tensor<2xf32>) -> tensor<3xf32>\n  \
                     func.return %0 : tensor<3xf32>\n}";
        assert!(error(wrong).starts_with("m.mlir:2:"), "{}", error(wrong));
        let one = "func.func @main() {\n  func.return\n}\n";
        assert!(error(&format!("{one}// -----\n{one}")).contains("2 modules"));
        assert!(Model::load("nowhere.mlir").unwrap_err().to_string().starts_with("nowhere.mlir: "));
    }

    #[test]
    fn open_shapes_are_refined_for_the_inputs() {
        let text = "func.func @main(%x: tensor<?xf32>) -> tensor<?x2xf32> {\n  \
                    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>\n  \
                    %two = stablehlo.constant dense<2> : tensor<1xi32>\n  \
                    %r = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>\n  \
                    %s = stablehlo.concatenate %r, %two, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>\n  \
                    %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x2xf32>\n  \
                    func.return %0 : tensor<?x2xf32>\n}";
        let compiled = Model::from_text("m.mlir", text).unwrap().compile(&CompileOptions::default()).unwrap();
        for size in [1usize, 3] {
            let input = Tensor::from_slice(&[size], &vec![5.0f32; size]).unwrap();
            let outputs = compiled.run([("arg0", input)]).unwrap();
            assert_eq!(outputs["out0"].dims(), [size, 2]);
        }
        assert_eq!(compiled.programs(), 2);
    }

    #[test]
    fn weights_are_bound_by_name() {
        let text = "func.func @main(%w: tensor<1xf32> {warpforge.name = \"w\", warpforge.role = \"parameter\"}, \
                    %x: tensor<1xf32> {warpforge.name = \"x\"}) -> tensor<1xf32> {\n  \
                    %0 = stablehlo.multiply %w, %x : tensor<1xf32>\n  func.return %0 : tensor<1xf32>\n}";
        let mut model = Model::from_text("m.mlir", text).unwrap();
        assert_eq!(model.inputs().iter().map(|slot| slot.name).collect::<Vec<_>>(), ["w", "x"]);
        let one = |value: f32| Tensor::from_slice(&[1], &[value]).unwrap();
        assert!(model.bind_weights(&BTreeMap::from([("v".to_owned(), one(3.0))])).is_err());
        model.bind_weights(&BTreeMap::from([("w".to_owned(), one(3.0))])).unwrap();
        assert_eq!(model.inputs().iter().map(|slot| slot.name).collect::<Vec<_>>(), ["x"]);
        let compiled = model.compile(&CompileOptions::default()).unwrap();
        for input in ["x", "arg0"] {
            let outputs = compiled.run([(input, one(2.0))]).unwrap();
            assert_eq!(outputs["out0"].as_slice::<f32>().unwrap(), [6.0]);
        }
    }
}
