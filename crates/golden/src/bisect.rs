//! Splitting a cluster that errs, until its first node out of tolerance and the smallest subgraph that shows it are found.
//!
//! The nodes of a cluster are run again as smaller clusters, on the engine that the candidate ran on and from the inputs
//! that the candidate had, beside the reference. Where the imported model differs from the golden run instead, each node
//! is computed from the golden values before it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use warpforge_interp::{Interpreter, Observer, Options, Value};
use warpforge_ir::signature::{Argument, ArgumentRole, Output, ResultRole, Signature};
use warpforge_ir::slice::{Slice, slice};
use warpforge_ir::{OpId, OpRef, ValueDef, ValueId};
use warpforge_runtime::{Choice, Program, RunOptions, Weights};
use warpforge_tensor::Tensor;

use crate::folder::{FileEntry, Folder, FolderWriter, Key, Manifest, NodeEntry};
use crate::graph::{Graph, Model};
use crate::replay::{Cut, Replayer, key_of, share};
use crate::report::{Bisection, Operation, OriginVerdict, Share, Source, TensorReport, Validation};
use crate::tolerance::Rule;
use crate::{Class, Error};

/// The file of a subgraph in its folder.
const SUBGRAPH: &str = "subgraph.mlir";

/// A part of a model that errs, with all that is needed to see it again.
pub struct Reduced {
    slice: Slice,
    arguments: Vec<(String, bool, Tensor)>,
    node: NodeEntry,
    tensor: String,
    expected: Tensor,
}

/// Finds the first node that errs inside the first operation whose error arose there, and puts it into the validation. The
/// answer is the smallest subgraph that shows it.
///
/// `engine` is what the candidate ran on; without it, only what differs between the imported model and the golden run is
/// found.
pub fn bisect(
    validation: &mut Validation,
    golden: &Folder,
    candidate: &Folder,
    model: &Model<'_>,
    engine: Option<&Choice>,
) -> Option<Reduced> {
    let graph = Graph::new(model).ok()?;
    let operation = validation.operations.iter().find(|operation| arose(operation))?;
    let report = validation.tensors.iter().find(|report| shows(operation, report))?;
    let replayer = Replayer { graph: &graph, golden, candidate };
    let search = Search { replayer, rule: &report.rule, key: key_of(report), engine };
    let replay = operation.origin.replay.as_ref()?;
    let imported = replay.import.out_of_tolerance > 0 && replay.import.max_abs >= replay.execution.max_abs;
    let found = search.replayer.cut(&search.key).and_then(|cut| match imported {
        true => search.import(&cut),
        false => search.execution(&cut),
    });
    match found {
        Ok((bisection, reduced)) => {
            validation.bisection = Some(bisection);
            Some(reduced)
        }
        Err(reason) => {
            validation.notes.push(format!("`{}` was not split further: {reason}", operation.node));
            None
        }
    }
}

fn arose(operation: &Operation) -> bool {
    matches!(operation.origin.verdict, OriginVerdict::AroseHere | OriginVerdict::Both)
        && operation.origin.replay.is_some()
}

fn shows(operation: &Operation, report: &TensorReport) -> bool {
    (&operation.tensor, operation.class, &operation.step) == (&report.name, report.class, &report.step)
}

type Found = Result<(Bisection, Reduced), String>;

/// The search inside one operation.
struct Search<'a> {
    replayer: Replayer<'a>,
    rule: &'a Rule,
    key: Key,
    engine: Option<&'a Choice>,
}

/// The values that a subgraph may start from.
type Known = HashMap<ValueId, Tensor>;

impl Search<'_> {
    /// The first node that the engine computes otherwise than the reference.
    fn execution(&self, cut: &Cut) -> Found {
        let engine = self.engine.ok_or("the candidate's manifest does not say which engine it ran on")?;
        let given: Known =
            cut.slice.inputs.iter().copied().zip(cut.inputs.candidate.iter().cloned()).collect();
        let mut values = self.reference_values(cut, &given)?;
        values.extend(given.clone());
        let differs = |wanted: ValueId, known: &HashSet<ValueId>| {
            self.differs_on(engine, wanted, known, &values).filter(|(_, share)| share.out_of_tolerance > 0)
        };
        let inputs: HashSet<ValueId> = given.into_keys().collect();
        let nodes = self.nodes_with_values(cut, &values);
        let first_of =
            |at: usize| nodes[at].1.iter().copied().find(|&value| differs(value, &inputs).is_some());
        let last = nodes.len().checked_sub(1).ok_or("its operations name no nodes")?;
        let mut wanted = first_of(last).ok_or_else(|| {
            let target = &engine.target;
            format!("alone, {} at tier {} computes it as the reference does", target.device, target.tier)
        })?;
        // The first `passing` nodes pass, the first `failing + 1` do not.
        let (mut passing, mut failing) = (0, last);
        while passing < failing {
            let middle = passing.midpoint(failing);
            match first_of(middle) {
                Some(value) => (wanted, failing) = (value, middle),
                None => passing = middle + 1,
            }
        }
        let own = nodes[failing].0;
        let mut known = inputs;
        let others: Vec<&(usize, Vec<ValueId>)> = nodes.iter().filter(|(at, _)| *at != own).collect();
        let all: HashSet<ValueId> = known
            .iter()
            .copied()
            .chain(others.iter().flat_map(|(_, values)| values.iter().copied()))
            .collect();
        if differs(wanted, &all).is_some() {
            known = all;
        } else {
            // One node alone does not show it: as many as possible are taken out, one after the other.
            for (_, values) in others {
                let fewer: HashSet<ValueId> = known.iter().chain(values).copied().collect();
                if differs(wanted, &fewer).is_some() {
                    known = fewer;
                }
            }
        }
        let (slice, share) = differs(wanted, &known).ok_or("the engine does not repeat what it did")?;
        self.answer(own, wanted, slice, &values, values[&wanted].clone(), (Source::Execution, share))
    }

    /// The first node of the imported model that gives another value than the golden run, on the golden values before it.
    fn import(&self, cut: &Cut) -> Found {
        let Replayer { graph, golden, .. } = &self.replayer;
        let saved = |value: ValueId| {
            let tensor = golden.tensor(&self.key.step, Class::Activations, graph.activation(value)?)?;
            self.replayer.as_value(tensor, value).ok()
        };
        let wanted_last = [(cut.wanted, cut.golden.clone())];
        for (at, values) in self.nodes_with_values(cut, &HashMap::new()) {
            let golden_values = values.iter().filter_map(|&value| Some((value, saved(value)?)));
            let own = wanted_last.iter().filter(|(value, _)| values.contains(value)).cloned();
            for (wanted, expected) in golden_values.chain(own).collect::<Vec<_>>() {
                let part = slice(graph.func, &[wanted], &|value| saved(value).is_some());
                let Some(part) = part else { continue };
                let mut known = Known::new();
                for &value in &part.inputs {
                    known.insert(value, saved(value).map_or_else(|| self.argument(value), Ok)?);
                }
                let given = part.inputs.iter().map(|value| known[value].clone()).collect::<Vec<_>>();
                let on_reference = self.replayer.run(&part, &given)?;
                let share = share(&expected, &on_reference, self.rule)?;
                if share.out_of_tolerance > 0 {
                    return self.answer(at, wanted, part, &known, expected, (Source::Import, share));
                }
            }
        }
        Err("each of its nodes gives the golden value from the golden values before it".to_owned())
    }

    fn answer(
        &self,
        node: usize,
        wanted: ValueId,
        slice: Slice,
        values: &Known,
        expected: Tensor,
        (source, share): (Source, Share),
    ) -> Found {
        let graph = self.replayer.graph;
        let named = &graph.nodes.list()[node];
        let mut arguments: Vec<(String, bool, Tensor)> = Vec::new();
        for value in &slice.inputs {
            let (name, is_weight) = self.name(*value)?;
            let taken = arguments.iter().any(|(known, ..)| *known == name);
            let name = if taken { format!("{name}.{}", arguments.len()) } else { name };
            arguments.push((name, is_weight, values[value].clone()));
        }
        let tensor = graph.activation(wanted).map_or_else(|| self.key.name.clone(), str::to_owned);
        let source_line = named.source.as_ref().map(ToString::to_string);
        let bisection = Bisection {
            node: named.name.clone(),
            source: source_line.clone(),
            of: source,
            difference: share,
            subgraph: self.replayer.nodes_of(&slice)?,
            inputs: arguments.iter().map(|(name, ..)| name.clone()).collect(),
            written: None,
        };
        let entry = NodeEntry {
            name: named.name.clone(),
            source: source_line,
            tensors: vec![tensor.clone()],
            ..NodeEntry::default()
        };
        Ok((bisection, Reduced { slice, arguments, node: entry, tensor, expected }))
    }

    /// What a value goes by outside, and whether it is a weight.
    fn name(&self, value: ValueId) -> Result<(String, bool), String> {
        let graph = self.replayer.graph;
        match graph.func.op().module().value_def(value) {
            ValueDef::Argument(_, index) => {
                let argument = graph.signature.arguments.get(index as usize);
                let argument = argument.ok_or_else(|| format!("the model has no argument {index}"))?;
                Ok((argument.name.clone(), argument.role.is_weight()))
            }
            ValueDef::Result(..) => {
                let name = graph.activation(value).ok_or("a value before it has no name")?;
                Ok((name.to_owned(), false))
            }
        }
    }

    /// An argument of the model in the golden run.
    fn argument(&self, value: ValueId) -> Result<Tensor, String> {
        match self.replayer.graph.func.op().module().value_def(value) {
            ValueDef::Argument(_, index) => {
                let (_, golden, _) = self.replayer.argument(&self.key.step, index as usize)?;
                self.replayer.as_value(&golden, value)
            }
            ValueDef::Result(..) => Err("a value before it cannot be had".to_owned()),
        }
    }

    /// The nodes of a cut by position, with their values that are wanted or among these; in execution order.
    fn nodes_with_values(&self, cut: &Cut, values: &Known) -> Vec<(usize, Vec<ValueId>)> {
        let nodes = &self.replayer.graph.nodes;
        let positions: BTreeSet<usize> =
            cut.slice.ops.iter().filter_map(|&op| nodes.containing(op)).map(|(at, _)| at).collect();
        let of = |at: usize| {
            let own = nodes.list()[at].values.iter().copied();
            (at, own.filter(|value| values.is_empty() || values.contains_key(value)).collect::<Vec<_>>())
        };
        positions.into_iter().map(of).filter(|(_, values)| !values.is_empty()).collect()
    }

    /// Every value of a cut, as the reference computes it.
    fn reference_values(&self, cut: &Cut, given: &Known) -> Result<Known, String> {
        let copies = &cut.slice.module;
        let name = self.replayer.graph.func.name();
        let body = copies.function(name).and_then(warpforge_ir::Func::body);
        let own = body.into_iter().flat_map(|body| copies.ops_in(body)).map(OpRef::id);
        let kept = Arc::new(Kept {
            originals: own.zip(cut.slice.ops.iter().copied()).collect(),
            values: Mutex::default(),
        });
        let options =
            Options { observer: Some(Arc::clone(&kept) as Arc<dyn Observer>), ..Options::default() };
        let inputs = cut.slice.inputs.iter().map(|value| Value::Tensor(given[value].clone())).collect();
        Interpreter::new(copies, options)
            .run(name, inputs)
            .map_err(|error| format!("the reference cannot compute it: {error}"))?;
        let module = self.replayer.graph.func.op().module();
        let kept = std::mem::take(&mut *kept.values.lock().unwrap_or_else(PoisonError::into_inner));
        let value = |((op, at), tensor): ((OpId, usize), Tensor)| Some((module.op(op).result(at)?, tensor));
        Ok(kept.into_iter().filter_map(value).collect())
    }

    /// A value that the engine computes from known ones against the reference's, with what computes it.
    fn differs_on(
        &self,
        engine: &Choice,
        wanted: ValueId,
        known: &HashSet<ValueId>,
        values: &Known,
    ) -> Option<(Slice, Share)> {
        let part = slice(self.replayer.graph.func, &[wanted], &|value| known.contains(&value))?;
        let given = part.inputs.iter().map(|value| values.get(value).cloned()).collect::<Option<Vec<_>>>()?;
        let is_weight = |value: &ValueId| self.name(*value).is_ok_and(|(_, is_weight)| is_weight);
        let (mut weights, mut inputs) = (Vec::new(), Vec::new());
        for (value, tensor) in part.inputs.iter().zip(given) {
            let bound = is_weight(value).then(|| tensor.clone());
            if bound.is_none() {
                inputs.push(tensor);
            }
            weights.push(bound);
        }
        let module = Arc::new(part.module.clone());
        let program = Program::new(module, self.replayer.graph.func.name(), Weights::new(weights)).ok()?;
        let outcome =
            engine.compile(&program).and_then(|made| made.run(&inputs, &RunOptions::default())).ok()?;
        let share = share(values.get(&wanted)?, outcome.outputs.first()?, self.rule).ok()?;
        Some((part, share))
    }
}

/// Keeps every value of a function's body, by the operations of the original.
struct Kept {
    originals: HashMap<OpId, OpId>,
    values: Mutex<HashMap<(OpId, usize), Tensor>>,
}

impl Observer for Kept {
    fn results(&self, op: OpRef<'_>, results: &[Value]) -> Result<(), String> {
        let Some(&original) = self.originals.get(&op.id()) else { return Ok(()) };
        let tensors =
            results.iter().enumerate().filter_map(|(at, value)| Some((at, value.as_tensor().ok()?)));
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.extend(tensors.map(|(at, tensor)| ((original, at), tensor.clone())));
        Ok(())
    }
}

impl Reduced {
    /// Writes a golden folder of the subgraph: the module, its inputs and weights, and what it should give.
    ///
    /// # Errors
    ///
    /// When the folder is in use for something else, or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let mut writer = FolderWriter::create(path)?;
        let of = |weights: bool| {
            let wanted = self.arguments.iter().filter(move |(_, is_weight, _)| *is_weight == weights);
            wanted.map(|(name, _, tensor)| (name.as_str(), tensor))
        };
        writer.tensors(Class::Inputs, of(false))?;
        if self.arguments.iter().any(|(_, is_weight, _)| *is_weight) {
            writer.tensors(Class::Weights, of(true))?;
        }
        let expected = [(self.tensor.as_str(), &self.expected)];
        writer.tensors(Class::Activations, expected)?;
        writer.tensors(Class::Outputs, expected)?;
        writer.text(SUBGRAPH, &warpforge_ir::print::print(&self.module()))?;
        writer.finish(Manifest {
            archive: Some(FileEntry { file: SUBGRAPH.to_owned(), sha256: None }),
            nodes: vec![self.node.clone()],
            ..Manifest::default()
        })
    }

    /// The module of the subgraph with the names of its arguments and of its result.
    fn module(&self) -> warpforge_ir::Module {
        let mut module = self.slice.module.clone();
        let Some(func) = module.functions().next() else { return module };
        let Some(types) = func.signature().cloned() else { return module };
        let arguments = self.arguments.iter().zip(&types.inputs).map(|((name, is_weight, _), ty)| {
            let role = if *is_weight { ArgumentRole::Parameter } else { ArgumentRole::Input };
            Argument::new(name.as_str(), role, ty.clone())
        });
        let results = types.results.iter().map(|ty| Output {
            name: self.tensor.clone(),
            role: ResultRole::Output,
            of: None,
            ty: ty.clone(),
        });
        let signature = Signature { arguments: arguments.collect(), results: results.collect() };
        let op = func.op().id();
        module.set_attr(op, "arg_attrs", signature.argument_attrs());
        module.set_attr(op, "res_attrs", signature.result_attrs());
        module
    }
}
