//! The state of a compiled model, by name: what its runs read and update.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use warpforge_ir::signature::ArgumentRole;
use warpforge_runtime::{InputType, State, StateBinding};
use warpforge_tensor::Tensor;
use warpforge_tensor::io::{carrier, safetensors};

use crate::bind::fitting;
use crate::{Error, Inputs, Model, Result, zeros};

/// Values that the runs of a model update in place, where the model computes. Clones are the same state.
#[derive(Debug, Clone)]
pub struct ModelState {
    /// In the order of the model's arguments.
    names: Vec<String>,
    values: Arc<State>,
}

impl ModelState {
    pub(crate) fn new(model: &Model, values: State) -> Self {
        let names = model.signature().state().map(|(_, argument, _)| argument.name.clone()).collect();
        Self { names, values: Arc::new(values) }
    }

    pub(crate) fn values(&self) -> &Arc<State> {
        &self.values
    }

    /// The names of the values: those of the model's arguments, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// A value, brought to the host.
    ///
    /// # Errors
    ///
    /// When there is none of that name, a run failed half-way, or the device fails.
    pub fn read(&self, name: &str) -> Result<Tensor> {
        Ok(self.values.read(self.position(name)?)?)
    }

    /// Gives a value another content.
    ///
    /// # Errors
    ///
    /// When there is none of that name, it is of another type, a run failed half-way, or the device fails.
    pub fn write(&self, name: &str, content: &Tensor) -> Result<()> {
        Ok(self.values.write(self.position(name)?, content)?)
    }

    /// All values by name, brought to the host.
    ///
    /// # Errors
    ///
    /// As [`ModelState::read`].
    pub fn tensors(&self) -> Result<BTreeMap<String, Tensor>> {
        let named = self.names.iter().enumerate();
        named.map(|(at, name)| Ok((name.clone(), self.values.read(at)?))).collect()
    }

    /// Writes all values to a `safetensors` file, which takes its name when it is whole. Element types that such files do not have
    /// are carried by another, as [`carrier`] says.
    ///
    /// # Errors
    ///
    /// When a run failed half-way, or the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_with_notes(path, &BTreeMap::new())
    }

    /// As [`ModelState::save`], with texts by name beside the values, such as how many steps were made.
    ///
    /// # Errors
    ///
    /// As [`ModelState::save`].
    pub fn save_with_notes(&self, path: impl AsRef<Path>, notes: &BTreeMap<String, String>) -> Result<()> {
        let stored: Vec<(&str, Tensor)> = self
            .names()
            .enumerate()
            .map(|(at, name)| Ok((name, carrier::to_carrier(&self.values.read(at)?)?)))
            .collect::<Result<_>>()?;
        let tensors = stored.iter().map(|(name, tensor)| (*name, tensor));
        Ok(safetensors::write_with_notes(path.as_ref(), tensors, notes)?)
    }

    /// Replaces all values by those of a file that [`ModelState::save`] wrote.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or its values are not those of this state; all that do not fit are named.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<()> {
        self.replace(&safetensors::read(path.as_ref())?)
    }

    /// Replaces all values.
    ///
    /// # Errors
    ///
    /// When one is missing, not known or of another type; all of them are named.
    pub fn replace(&self, contents: &BTreeMap<String, Tensor>) -> Result<()> {
        let mut problems = unknown(&self.names, contents);
        let mut values = Vec::new();
        for (name, ty) in self.names.iter().zip(self.values.types()) {
            match contents.get(name).map(|tensor| carried(ty, tensor)) {
                None => problems.push(format!("`{name}` is missing: {ty}")),
                Some(tensor) if InputType::of(&tensor) != *ty => {
                    problems.push(format!("`{name}` is {}, not {ty}", InputType::of(&tensor)));
                }
                Some(tensor) => values.push(tensor),
            }
        }
        if !problems.is_empty() {
            return Err(Error::State(problems));
        }
        Ok(self.values.replace(&values)?)
    }

    fn position(&self, name: &str) -> Result<usize> {
        let known = self.names.iter().position(|known| known == name);
        known.ok_or_else(|| Error::State(vec![format!("`{name}` is not known")]))
    }
}

fn unknown(names: &[String], given: &BTreeMap<String, Tensor>) -> Vec<String> {
    let unknown = given.keys().filter(|name| !names.contains(name));
    unknown.map(|name| format!("`{name}` is not known")).collect()
}

/// A tensor as the type wants it, where another type carries it in files.
fn carried(ty: &InputType, tensor: &Tensor) -> Tensor {
    match carrier::from_carrier(tensor, ty.element) {
        Ok(Some(carried)) => carried,
        _ => tensor.clone(),
    }
}

/// The first content of a model's state, in the order of its arguments: what is given by name, else the weight that is bound, else
/// zeros for what starts so.
///
/// # Errors
///
/// Everything that is missing, not known or of another type.
pub(crate) fn initial(model: &Model, given: &Inputs) -> Result<Vec<Tensor>> {
    let (mut values, mut problems) = (Vec::new(), Vec::new());
    for (position, argument, _) in model.signature().state() {
        let Some(ty) = argument.ty.as_tensor() else { continue };
        let tensor = match given.get(&argument.name) {
            Some(tensor) => fitting(ty, tensor),
            None => match (model.bound_weight(position), argument.role) {
                (Some(weight), _) => Ok(weight.clone()),
                (None, ArgumentRole::State) => {
                    zeros(ty).map_err(|_| format!("is {ty}, whose size is not known"))
                }
                (None, _) => Err(format!("is missing: {ty}")),
            },
        };
        match tensor {
            Ok(tensor) => values.push(tensor),
            Err(problem) => problems.push(format!("`{}` {problem}", argument.name)),
        }
    }
    let is_state = |name: &str| model.signature().state().any(|(_, argument, _)| argument.name == name);
    problems.extend(
        given.iter().filter(|(name, _)| !is_state(name)).map(|(name, _)| format!("`{name}` is not known")),
    );
    if problems.is_empty() { Ok(values) } else { Err(Error::State(problems)) }
}

/// How a model's arguments and results are bound to its state.
pub(crate) fn bindings(model: &Model) -> Vec<StateBinding> {
    let state = model.signature().state().enumerate();
    state.map(|(value, (argument, _, result))| StateBinding { argument, result, value }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CompileOptions;

    const MOMENTUM: &str = "func.func @main(
        %w: tensor<2xf32> {warpforge.name = \"w\", warpforge.role = \"parameter\", tf.aliasing_output = 0 : i32},
        %m: tensor<2xf32> {warpforge.name = \"m\", warpforge.role = \"state\", tf.aliasing_output = 1 : i32},
        %g: tensor<2xf32> {warpforge.name = \"g\"}) -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = stablehlo.add %m, %g : tensor<2xf32>
      %1 = stablehlo.subtract %w, %0 : tensor<2xf32>
      func.return %1, %0 : tensor<2xf32>, tensor<2xf32>
    }";

    fn vector(values: [f32; 2]) -> Tensor {
        Tensor::from_slice(&[2], &values).unwrap()
    }

    #[test]
    fn state_starts_with_what_is_given_bound_or_zero() {
        let mut model = Model::from_text("m.mlir", MOMENTUM).unwrap();
        let options = CompileOptions::default();
        let missing = model.compile_with_state(&options, Inputs::new()).err().unwrap().to_string();
        assert!(missing.contains("`w` is missing: tensor<2xf32>") && !missing.contains("`m`"), "{missing}");
        model.bind_weights(&[("w".to_owned(), vector([1.0, 2.0]))].into()).unwrap();
        let unknown =
            model.compile_with_state(&options, [("x", vector([0.0; 2]))]).err().unwrap().to_string();
        assert!(unknown.contains("`x` is not known"), "{unknown}");
        let compiled = model.compile_with_state(&options, Inputs::new()).unwrap();
        let outputs = compiled.run([("g", vector([1.0, 10.0]))]).unwrap();
        assert!(outputs.is_empty());
        let state = compiled.state().unwrap();
        assert_eq!(state.names().collect::<Vec<_>>(), ["w", "m"]);
        assert_eq!(state.read("w").unwrap().as_slice::<f32>().unwrap(), [0.0, -8.0]);
        assert_eq!(model.weights().next().unwrap().1.as_slice::<f32>().unwrap(), [1.0, 2.0]);
        assert!(state.read("g").is_err());
        // Compiled without state, the model takes and gives it.
        let plain = model.compile(&options).unwrap();
        assert_eq!(plain.run([("g", vector([0.0; 2])), ("m", vector([1.0; 2]))]).unwrap().len(), 2);
    }

    #[test]
    fn programs_for_several_shapes_share_the_state() {
        let text = "func.func @main(
            %sum: tensor<f32> {warpforge.name = \"sum\", warpforge.role = \"state\", tf.aliasing_output = 0 : i32},
            %x: tensor<?xf32> {warpforge.name = \"x\"}) -> tensor<f32> {
          %0 = stablehlo.reduce(%x init: %sum) applies stablehlo.add across dimensions = [0]
            : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
          func.return %0 : tensor<f32>
        }";
        let model = Model::from_text("m.mlir", text).unwrap();
        let compiled = model.compile_with_state(&CompileOptions::default(), Inputs::new()).unwrap();
        for size in [1usize, 4, 2] {
            compiled.run([("x", Tensor::from_slice(&[size], &vec![1.0f32; size]).unwrap())]).unwrap();
        }
        assert_eq!(compiled.programs(), 3);
        assert_eq!(compiled.state().unwrap().read("sum").unwrap().as_slice::<f32>().unwrap(), [7.0]);
    }

    #[test]
    fn a_saved_state_goes_on_bit_for_bit() {
        let mut model = Model::from_text("m.mlir", MOMENTUM).unwrap();
        model.bind_weights(&[("w".to_owned(), vector([0.3, -0.7]))].into()).unwrap();
        let compile = || model.compile_with_state(&CompileOptions::default(), Inputs::new()).unwrap();
        let run = |compiled: &crate::CompiledModel, steps: usize| {
            for _ in 0..steps {
                compiled.run([("g", vector([0.1, 0.2]))]).unwrap();
            }
        };
        let (whole, first, second) = (compile(), compile(), compile());
        run(&whole, 10);
        run(&first, 5);
        let file = tempfile::NamedTempFile::new().unwrap();
        first.state().unwrap().save(file.path()).unwrap();
        second.state().unwrap().load(file.path()).unwrap();
        run(&second, 5);
        let (expected, found) =
            (whole.state().unwrap().tensors().unwrap(), second.state().unwrap().tensors().unwrap());
        assert!(expected.iter().all(|(name, tensor)| tensor.identical(&found[name])));
        let wrong = BTreeMap::from([("w".to_owned(), Tensor::from_slice(&[1], &[1.0f32]).unwrap())]);
        let error = second.state().unwrap().replace(&wrong).unwrap_err().to_string();
        assert!(
            error.contains("`w` is tensor<1xf32>, not tensor<2xf32>") && error.contains("`m` is missing")
        );
    }
}
