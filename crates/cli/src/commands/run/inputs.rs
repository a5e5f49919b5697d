//! Where the inputs and weights of a run come from.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::anyhow;
use clap::Args;
use warpforge::io::{npy, safetensors};
use warpforge::{
    ArgumentRole, CompiledModel, Dim, Error, Inputs, Model, Slot, Tensor, TensorType, seeded, zeros,
};

use crate::exit::Failure;
use crate::{term, values};

/// The options that give inputs and weights.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Inputs by name: those of the model's signature, or arg0, arg1, … in order. With --state, may be given several times: one
    /// for each step, in turn
    #[arg(long, value_name = "IN.safetensors")]
    inputs: Vec<PathBuf>,
    /// One input; may be given several times
    #[arg(long, value_name = "NAME=FILE.npy")]
    input: Vec<String>,
    /// Make the inputs that are not given from this number; weights and state are never made up
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>)]
    seed: Option<u64>,
    /// With --seed, the shape of an input whose dimensions are not all known: 2x3. Several, separated by commas, are a
    /// sweep
    #[arg(long, value_name = "NAME=DIMS", requires = "seed")]
    shape: Vec<Shapes>,
    /// Parameters, buffers and constants by name, for a module that takes them as arguments; or a GGUF file, whose
    /// parameters also replace those of an archive. May be given several times: the last file that has a weight gives it
    #[arg(long, value_name = "W.safetensors|W.gguf")]
    weights: Vec<PathBuf>,
}

/// An input's name and the shapes it is to have, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Shapes {
    name: String,
    choices: Vec<Vec<u64>>,
}

/// An input's name and the sizes it is to have.
#[derive(Debug, Clone)]
pub(super) struct NamedShape {
    name: String,
    dims: Vec<u64>,
}

impl fmt::Display for NamedShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.dims.iter().map(ToString::to_string).collect();
        write!(f, "{}={}", self.name, dims.join("x"))
    }
}

impl FromStr for Shapes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected NAME=DIMS, such as x=2x3".to_owned();
        let (name, dims) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
        let sizes = |dims: &str| {
            dims.split('x').filter(|dim| !dim.is_empty()).map(str::parse).collect::<Result<_, _>>()
        };
        let choices = dims.split(',').map(sizes).collect::<Result<_, _>>();
        Ok(Self { name: name.to_owned(), choices: choices.map_err(|_| wrong())? })
    }
}

impl InputArgs {
    /// The number that inputs are made from.
    pub(crate) fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// The shapes of `--shape`: one of each input, in every combination.
    pub(super) fn shapes(&self) -> Vec<Vec<NamedShape>> {
        self.shape.iter().fold(vec![Vec::new()], |before, Shapes { name, choices }| {
            let with = |shapes: &Vec<NamedShape>, dims: &Vec<u64>| {
                let own = NamedShape { name: name.clone(), dims: dims.clone() };
                shapes.iter().cloned().chain([own]).collect()
            };
            before.iter().flat_map(|shapes| choices.iter().map(move |dims| with(shapes, dims))).collect()
        })
    }

    /// Binds the weights of `--weights`.
    pub(crate) fn bind_weights(&self, model: &mut Model) -> Result<(), Failure> {
        if self.weights.is_empty() {
            return Ok(());
        }
        model.bind_weight_files(&self.weights).map_err(|error| match error {
            Error::Weights(_) => {
                let files: Vec<String> = self.weights.iter().map(|path| path.display().to_string()).collect();
                Failure::bad_input(anyhow!("{}: {error}", files.join(", ")))
            }
            error => error.into(),
        })
    }

    /// Refuses the inputs of several steps.
    pub(crate) fn one_step(&self) -> Result<(), Failure> {
        if self.inputs.len() > 1 {
            return Err(Failure::bad_input(anyhow!("--inputs: several files are for the steps of --state")));
        }
        Ok(())
    }

    /// What the state of a model starts with, where no file has it: what is given by name and, with `--seed`, zeros for
    /// the rest of those that are no weights. A seed makes no state: a second moment below zero has no meaning.
    pub(crate) fn initial_state(&self, model: &Model) -> Result<Inputs, Failure> {
        let given = self.given(0)?;
        let mut initial = Inputs::new();
        let mut zero = Vec::new();
        for (_, argument, _) in model.signature().state() {
            let name = argument.name.as_str();
            let is_made = !argument.role.is_weight() && self.seed.is_some();
            match (given.get(name), argument.ty.as_tensor()) {
                (Some(tensor), _) => initial.insert(name, tensor.clone()),
                (None, Some(ty)) if is_made => {
                    initial.insert(name, zeros(ty)?);
                    // What is declared as state starts so by its own word.
                    zero.extend((argument.role != ArgumentRole::State).then_some(name));
                }
                _ => {}
            }
        }
        tell_of_zeros(&zero);
        Ok(initial)
    }

    /// The inputs in the order of the model's, those that are made in these shapes.
    pub(super) fn tensors(
        &self,
        compiled: &CompiledModel,
        shapes: &[NamedShape],
    ) -> Result<Vec<Tensor>, Failure> {
        self.tensors_of_step(compiled, 0, shapes)
    }

    /// The inputs of a step. Those that are made from a seed are the same for every step.
    pub(super) fn tensors_of_step(
        &self,
        compiled: &CompiledModel,
        step: usize,
        shapes: &[NamedShape],
    ) -> Result<Vec<Tensor>, Failure> {
        let given = self.given(step)?;
        let is_state =
            |name: &str| compiled.state().is_some_and(|state| state.names().any(|known| known == name));
        let mut inputs: Inputs = given
            .iter()
            .filter(|(name, _)| !is_state(name))
            .map(|(name, tensor)| (name, tensor.clone()))
            .collect();
        self.check_shapes(compiled, &inputs)?;
        if let Some(seed) = self.seed {
            refuse_to_invent_weights(&compiled.inputs(), &inputs)?;
            let mut zero = Vec::new();
            for (stream, slot) in (0..).zip(compiled.inputs()) {
                if inputs.get(slot.name).is_some() || named_by_position(compiled, &inputs, slot.name) {
                    continue;
                }
                let ty = shaped(&slot, shapes)?;
                let is_state = slot.role == ArgumentRole::State || has_new_value(compiled.model(), slot.name);
                zero.extend(is_state.then_some(slot.name));
                let tensor = if is_state { zeros(&ty)? } else { seeded(&ty, seed, stream)? };
                inputs.insert(slot.name, tensor);
            }
            if step == 0 {
                tell_of_zeros(&zero);
            }
        } else if inputs.is_empty() && self.inputs.is_empty() && !compiled.inputs().is_empty() {
            return Err(Failure::bad_input(anyhow!("{}", wanted(&compiled.inputs()))));
        }
        Ok(compiled.in_order(&inputs)?)
    }

    /// Refuses the shape of an input that is not there, or that is given.
    fn check_shapes(&self, compiled: &CompiledModel, given: &Inputs) -> Result<(), Failure> {
        let slots = compiled.inputs();
        let names: Vec<&str> = slots.iter().map(|slot| slot.name).collect();
        for Shapes { name, .. } in &self.shape {
            if !names.contains(&name.as_str()) {
                return Err(crate::commands::no_such_input("--shape", name, &names));
            }
            if given.get(name).is_some() || named_by_position(compiled, given, name) {
                let text = format!("--shape {name}: the input is given, and has the shape that it has");
                return Err(Failure::bad_input(anyhow!(text)));
            }
        }
        Ok(())
    }

    /// The inputs of `--inputs` and `--input` for a step; of one name, the latter's.
    fn given(&self, step: usize) -> Result<Inputs, Failure> {
        let mut inputs = Inputs::new();
        let file = step.checked_rem(self.inputs.len()).and_then(|at| self.inputs.get(at));
        if let Some(path) = file {
            if path.extension().is_some_and(|ending| ending == "npy") {
                let path = path.display();
                return Err(Failure::bad_input(anyhow!(
                    "--inputs {path}: an npy file has no names: give it as --input NAME={path}"
                )));
            }
            let read = safetensors::read(path).map_err(|error| Failure::unreadable(path, &error))?;
            inputs = read.into();
        }
        for text in &self.input {
            let (name, file) = text
                .split_once('=')
                .filter(|(name, file)| !name.is_empty() && !file.is_empty())
                .ok_or_else(|| Failure::bad_input(anyhow!("--input {text}: expected NAME=FILE.npy")))?;
            let path = Path::new(file);
            let tensor = npy::read(path).map_err(|error| Failure::unreadable(path, &error))?;
            inputs.insert(name, tensor);
        }
        Ok(inputs)
    }
}

/// Whether an argument is state: a result is its new value.
fn has_new_value(model: &Model, name: &str) -> bool {
    model.signature().state().any(|(_, argument, _)| argument.name == name)
}

/// Says which state starts at zero.
fn tell_of_zeros(names: &[&str]) {
    if !names.is_empty() {
        let way = "--seed makes no state: give it with --state, --inputs or --input";
        term::remark(&format!("warpt: state that is not given starts at zero ({}); {way}", first_of(names)));
    }
}

/// The first names of a list.
fn first_of(names: &[&str]) -> String {
    /// Names that are shown.
    const SHOWN: usize = 5;
    let more = if names.len() > SHOWN { ", …" } else { "" };
    names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ") + more
}

/// The type of an input with the sizes of `--shape`.
fn shaped(slot: &Slot<'_>, shapes: &[NamedShape]) -> Result<TensorType, Failure> {
    let Some(shape) = shapes.iter().find(|shape| shape.name == slot.name) else {
        if slot.ty.is_static() {
            return Ok(slot.ty.clone());
        }
        let (name, ty) = (slot.name, slot.ty);
        let text = format!("input `{name}` is {ty}: say how large with --shape {name}=DIMS, such as 2x3");
        return Err(Failure::bad_input(anyhow!(text)));
    };
    let dims: Vec<Dim> = shape.dims.iter().map(|&dim| Dim::Static(dim)).collect();
    let fits = dims.len() == slot.ty.rank() && dims.iter().zip(slot.ty.dims()).all(|(a, b)| a.compatible(*b));
    if !fits {
        let text = format!("--shape {}: {:?} is not a shape of {}", slot.name, shape.dims, slot.ty);
        return Err(Failure::bad_input(anyhow!(text)));
    }
    Ok(slot.ty.with_dims(dims))
}

/// The shapes that the inputs of a model are to have: those that were chosen, and else the model's own.
pub(super) fn wanted_shapes(model: &Model, shapes: &[NamedShape]) -> String {
    let size = |dim: &Dim| match dim {
        Dim::Static(size) => size.to_string(),
        _ => "?".to_owned(),
    };
    let slots = model.inputs();
    let inputs = slots.iter().filter(|slot| !slot.role.is_weight()).map(|slot| {
        shapes.iter().find(|shape| shape.name == slot.name).map_or_else(
            || format!("{}={}", slot.name, slot.ty.dims().iter().map(size).collect::<Vec<_>>().join("x")),
            ToString::to_string,
        )
    });
    inputs.collect::<Vec<_>>().join(" ")
}

/// Weights are read, never made up: a run with others gives numbers that mean nothing.
fn refuse_to_invent_weights(slots: &[Slot<'_>], given: &Inputs) -> Result<(), Failure> {
    let lacking = slots.iter().filter(|slot| slot.role.is_weight() && given.get(slot.name).is_none());
    let lacking: Vec<&str> = lacking.map(|slot| slot.name).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    Err(Failure::bad_input(anyhow!(
        "the model takes {} weights as arguments ({}): give them with --weights W.safetensors; --seed makes \
         inputs, never weights",
        lacking.len(),
        first_of(&lacking)
    )))
}

/// Whether an input is given as `arg0`, `arg1`, ….
fn named_by_position(compiled: &CompiledModel, inputs: &Inputs, name: &str) -> bool {
    let slots = compiled.inputs();
    let position = slots.iter().filter(|slot| !slot.role.is_weight()).position(|slot| slot.name == name);
    position.is_some_and(|position| inputs.get(&format!("arg{position}")).is_some())
}

/// What inputs a model wants and how to give them.
fn wanted(slots: &[Slot<'_>]) -> String {
    let mut text = "the model wants inputs:".to_owned();
    for slot in slots {
        text += &format!("\n  {}: {}", slot.name, slot.ty);
    }
    text + "\ngive them with --inputs IN.safetensors or --input NAME=FILE.npy, or make them with --seed N"
}
