//! Computing an operation again, to tell the error made in it from the error that its inputs brought.
//!
//! With `R` the reference, `g` and `c` the inputs that the operation had in the golden run and in the candidate, and
//! `G` and `C` what the two runs made of them: `C - G = (C - R(c)) + (R(c) - R(g)) + (R(g) - G)`. The first part is
//! made by executing the operation, the second is inherited, the third is made by importing the model.

use std::collections::BTreeSet;

use warpforge_interp::{Interpreter, Options, Value};
use warpforge_ir::slice::{Slice, slice};
use warpforge_ir::{ValueDef, ValueId};
use warpforge_runtime::mismatch;
use warpforge_tensor::Tensor;
use warpforge_tensor::io::carrier::from_carrier;

use crate::Class;
use crate::folder::{Folder, Key};
use crate::graph::Graph;
use crate::judge::{figures, kind_of};
use crate::report::{Origin, OriginVerdict, Replay, Share, TensorReport};
use crate::tolerance::Rule;

/// More nodes than this are not computed again for one answer: their values should have been saved.
const MAX_NODES: usize = 64;
/// Where no part alone is out of tolerance, one that is this many times the other made the error.
const DOMINATES: f64 = 4.0;

/// Two runs and the model they were made with.
pub(crate) struct Replayer<'a> {
    pub(crate) graph: &'a Graph<'a>,
    pub(crate) golden: &'a Folder,
    pub(crate) candidate: &'a Folder,
}

/// What computes a tensor, and what both runs have of it.
pub(crate) struct Cut {
    /// The value.
    pub(crate) wanted: ValueId,
    /// What computes it from values that both runs have saved.
    pub(crate) slice: Slice,
    /// The nodes that it has.
    nodes: Vec<String>,
    pub(crate) inputs: Inputs,
    pub(crate) golden: Tensor,
    candidate: Tensor,
}

/// The inputs of a replay: of the golden run, and of the candidate.
pub(crate) struct Inputs {
    names: Vec<String>,
    golden: Vec<Tensor>,
    pub(crate) candidate: Vec<Tensor>,
}

impl Inputs {
    fn identical(&self) -> bool {
        self.golden.iter().zip(&self.candidate).all(|(golden, candidate)| golden.identical(candidate))
    }
}

impl Replayer<'_> {
    /// Where the error of a tensor comes from.
    pub(crate) fn origin(&self, key: &Key, rule: &Rule) -> Origin {
        match self.replay(key, rule) {
            Ok(replay) => judged(replay),
            Err(explanation) => unknown(explanation),
        }
    }

    fn replay(&self, key: &Key, rule: &Rule) -> Result<Replay, String> {
        let cut = self.cut(key)?;
        let Cut { slice, nodes, inputs, golden, candidate, .. } = &cut;
        let on_golden = self.run(slice, &inputs.golden)?;
        let on_candidate =
            if inputs.identical() { on_golden.clone() } else { self.run(slice, &inputs.candidate)? };
        Ok(Replay {
            execution: share(&on_candidate, candidate, rule)?,
            inherited: share(&on_golden, &on_candidate, rule)?,
            import: share(golden, &on_golden, rule)?,
            inputs: inputs.names.clone(),
            nodes: nodes.clone(),
        })
    }

    /// What computes a tensor from values that both runs have saved.
    pub(crate) fn cut(&self, key: &Key) -> Result<Cut, String> {
        let wanted = self
            .graph
            .value(key.class, &key.name)
            .ok_or_else(|| format!("the model has no value that is {} `{}`", key.class, key.name))?;
        let both = |folder: &Folder| folder.get(key).map(|item| self.as_value(&item.tensor, wanted));
        let (Some(golden), Some(candidate)) = (both(self.golden), both(self.candidate)) else {
            return Err("only one of the runs has the value".to_owned());
        };
        let wrong = |problem| format!("the saved value {problem}");
        let (golden, candidate) = (golden.map_err(wrong)?, candidate.map_err(wrong)?);
        let known = |value: ValueId| self.saved(&key.step, value).is_some();
        let slice = slice(self.graph.func, &[wanted], &known)
            .ok_or_else(|| "the value is an argument of the model, which nothing computes".to_owned())?;
        let nodes = self.nodes_of(&slice)?;
        let inputs = self.inputs(&key.step, &slice)?;
        Ok(Cut { wanted, slice, nodes, inputs, golden, candidate })
    }

    /// The value as both runs have saved it.
    fn saved(&self, step: &str, value: ValueId) -> Option<(Tensor, Tensor)> {
        let name = self.graph.activation(value)?;
        let in_folder =
            |folder: &Folder| self.as_value(folder.tensor(step, Class::Activations, name)?, value).ok();
        Some((in_folder(self.golden)?, in_folder(self.candidate)?))
    }

    /// A tensor of a file as a value of the model; files have no code for some types and carry them as others.
    pub(crate) fn as_value(&self, tensor: &Tensor, value: ValueId) -> Result<Tensor, String> {
        let ty = self.graph.func.op().module().value_type(value);
        let ty = ty.as_tensor().ok_or_else(|| format!("is {}, not {ty}", kind_of(tensor)))?;
        let carried = ty.element().storage().map(|element| from_carrier(tensor, element));
        let tensor = match carried {
            Some(Ok(Some(carried))) => carried,
            _ => tensor.clone(),
        };
        mismatch(ty, &tensor).map_or(Ok(tensor), Err)
    }

    pub(crate) fn nodes_of(&self, cut: &Slice) -> Result<Vec<String>, String> {
        let positions: BTreeSet<usize> =
            cut.ops.iter().filter_map(|&op| self.graph.nodes.containing(op)).map(|(at, _)| at).collect();
        if positions.len() > MAX_NODES {
            return Err(format!(
                "it would take {} operations to compute it from values that both runs have; save more activations",
                positions.len()
            ));
        }
        let list = self.graph.nodes.list();
        Ok(positions.into_iter().filter_map(|at| list.get(at)).map(|node| node.name.clone()).collect())
    }

    fn inputs(&self, step: &str, cut: &Slice) -> Result<Inputs, String> {
        let module = self.graph.func.op().module();
        let mut inputs = Inputs { names: Vec::new(), golden: Vec::new(), candidate: Vec::new() };
        for &value in &cut.inputs {
            let (name, golden, candidate) = match (self.saved(step, value), module.value_def(value)) {
                (Some((golden, candidate)), _) => {
                    (self.graph.activation(value).unwrap_or_default().to_owned(), golden, candidate)
                }
                (None, ValueDef::Argument(_, index)) => {
                    let (name, golden, candidate) = self.argument(step, index as usize)?;
                    let wrong = |problem| format!("its input `{name}` {problem}");
                    let golden = self.as_value(&golden, value).map_err(wrong)?;
                    let candidate = self.as_value(&candidate, value).map_err(wrong)?;
                    (name, golden, candidate)
                }
                (None, ValueDef::Result(..)) => return Err("a value before it cannot be had".to_owned()),
            };
            inputs.names.push(name);
            inputs.golden.push(golden);
            inputs.candidate.push(candidate);
        }
        Ok(inputs)
    }

    /// An argument of the model in both runs. What the candidate did not save it had from the golden run.
    pub(crate) fn argument(&self, step: &str, index: usize) -> Result<(String, Tensor, Tensor), String> {
        let argument = self.graph.signature.arguments.get(index);
        let argument = argument.ok_or_else(|| format!("the model has no argument {index}"))?;
        let name = &argument.name;
        let class = if argument.role.is_weight() { Class::Weights } else { Class::Inputs };
        // What comes with the model is what a run began with; a later step may have changed it.
        if let Some(weight) = self.graph.weights.get(name).filter(|_| step.is_empty()) {
            return Ok((name.clone(), weight.clone(), weight.clone()));
        }
        let saved = |folder: &Folder| folder.tensor(step, class, name).cloned();
        let golden = saved(self.golden).ok_or_else(|| {
            format!("its input `{name}` is neither among the golden {class} nor in the model")
        })?;
        let candidate = saved(self.candidate).unwrap_or_else(|| golden.clone());
        Ok((name.clone(), golden, candidate))
    }

    pub(crate) fn run(&self, cut: &Slice, inputs: &[Tensor]) -> Result<Tensor, String> {
        let values = inputs.iter().cloned().map(Value::Tensor).collect();
        let results = Interpreter::new(&cut.module, Options::default())
            .run(self.graph.func.name(), values)
            .map_err(|error| format!("the reference cannot compute it: {error}"))?;
        match results.into_iter().next() {
            Some(Value::Tensor(tensor)) => Ok(tensor),
            _ => Err("the value is no tensor".to_owned()),
        }
    }
}

pub(crate) fn share(expected: &Tensor, actual: &Tensor, rule: &Rule) -> Result<Share, String> {
    let figures = figures(expected, actual, rule)
        .ok_or_else(|| format!("the replay gives {}, the run has {}", kind_of(expected), kind_of(actual)))?;
    Ok(Share { max_abs: figures.max_abs, rms: figures.rms, out_of_tolerance: figures.out_of_tolerance })
}

/// What a tensor of a report is called in the folders.
pub(crate) fn key_of(report: &TensorReport) -> Key {
    Key { step: report.step.clone().unwrap_or_default(), class: report.class, name: report.name.clone() }
}

/// An origin that could not be found out.
pub(crate) fn unknown(explanation: String) -> Origin {
    Origin { verdict: OriginVerdict::Unknown, explanation, replay: None }
}

fn judged(replay: Replay) -> Origin {
    let Replay { execution, inherited, import, .. } = &replay;
    let here = execution.out_of_tolerance > 0 || import.out_of_tolerance > 0;
    let verdict = match (here, inherited.out_of_tolerance > 0) {
        (true, false) => OriginVerdict::AroseHere,
        (false, true) => OriginVerdict::Inherited,
        (true, true) => OriginVerdict::Both,
        // Each part is within the tolerance, their sum is not.
        (false, false) => {
            let own = execution.max_abs + import.max_abs;
            if own >= DOMINATES * inherited.max_abs {
                OriginVerdict::AroseHere
            } else if inherited.max_abs >= DOMINATES * own {
                OriginVerdict::Inherited
            } else {
                OriginVerdict::Both
            }
        }
    };
    Origin { verdict, explanation: explanation(verdict, &replay), replay: Some(replay) }
}

fn explanation(verdict: OriginVerdict, replay: &Replay) -> String {
    let part = |share: &Share| match share.out_of_tolerance {
        0 if share.max_abs == 0.0 => "nothing".to_owned(),
        0 => format!("up to {:.2e}", share.max_abs),
        count => format!("up to {:.2e}, {count} out of tolerance", share.max_abs),
    };
    let Replay { execution, inherited, import, .. } = replay;
    let imported = import.out_of_tolerance > 0 && import.max_abs >= execution.max_abs;
    let answer = match (verdict, imported) {
        (OriginVerdict::AroseHere, true) => {
            "the imported operation gives another value than the golden run on the golden inputs"
        }
        (OriginVerdict::AroseHere, false) => {
            "the candidate computes it otherwise than the reference on its own inputs"
        }
        (OriginVerdict::Inherited, _) => {
            "the reference gives the candidate's value from the candidate's inputs"
        }
        (OriginVerdict::Both, _) => "the inputs bring a part of the error, the operation makes the rest",
        (OriginVerdict::Unknown, _) => "unknown",
    };
    format!(
        "{answer} (execution: {}; inherited: {}; import: {})",
        part(execution),
        part(inherited),
        part(import)
    )
}
