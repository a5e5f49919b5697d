//! What a run is asked to show of its inside: a trace, a profile, the values of its nodes.

use std::io::{self, Write, sink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use warpforge::io::{carrier, safetensors};
use warpforge::profile::Profile;
use warpforge::trace::{Filter, NodeValues, Several, Trace, TraceOptions};
use warpforge::{CompiledModel, Observer, RunOptions, Tensor};
use warpforge_golden::op_by_op::{Compared, OpByOpComparison};
use warpforge_report::chrome_trace;
use warpforge_runtime::Executable;
use warpforge_tensor::io::output::Output;

use super::roofline;
use crate::exit::Failure;
use crate::output;

/// The options about the inside of a run.
#[derive(Debug, Args)]
pub(crate) struct ObserveArgs {
    /// Write when each operation ran, as a Chrome trace
    #[arg(long, value_name = "TRACE.json")]
    profile: Option<PathBuf>,
    /// Write every value's shape, range, NaN count and hash, a line of JSON each
    #[arg(long, value_name = "FILE.jsonl")]
    trace: Option<PathBuf>,
    /// Write every value itself, named as in the trace: function/operation:result/iteration
    #[arg(long, value_name = "FILE.safetensors")]
    trace_tensors: Option<PathBuf>,
    /// Of --trace-tensors, only values whose operation, node or name fits; * stands for any text
    #[arg(long, value_name = "PATTERN", requires = "trace_tensors")]
    trace_filter: Vec<String>,
    /// Stop at the first operation that makes such a value of operands that have none
    #[arg(long, value_name = "WHAT")]
    break_on: Option<BreakOn>,
    /// Compute every operation again by the reference, on the operands that it had, and fail where
    /// the results are too far apart
    #[arg(long)]
    compare: bool,
}

/// What to stop at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BreakOn {
    /// Not a number
    Nan,
}

/// The file of a trace, which is finished when the run has ended.
#[derive(Clone)]
struct TraceFile(Arc<Mutex<Option<Output>>>);

impl TraceFile {
    fn with<T>(&self, act: impl FnOnce(&mut Option<Output>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Does something with the file, for as long as somebody reads it.
    fn try_with<T>(&self, otherwise: T, act: impl FnOnce(&mut Output) -> io::Result<T>) -> io::Result<T> {
        self.with(|slot| {
            let Some(file) = slot else { return Ok(otherwise) };
            match act(file) {
                Err(error) if file.nobody_reads(&error) => {
                    *slot = None;
                    Ok(otherwise)
                }
                done => done,
            }
        })
    }

    fn finish(&self) -> io::Result<()> {
        self.with(Option::take).map_or(Ok(()), Output::finish)
    }
}

impl Write for TraceFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.try_with(bytes.len(), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.try_with((), Write::flush)
    }
}

/// A trace to a file, or to nowhere when only its effects are wanted.
type FileTrace = Trace<Box<dyn Write + Send>>;

/// What watches one run.
pub(super) struct Watch<'a> {
    args: &'a ObserveArgs,
    trace: Option<Arc<FileTrace>>,
    trace_file: Option<TraceFile>,
    nodes: Option<Arc<NodeValues>>,
    comparison: Option<Arc<OpByOpComparison>>,
}

impl ObserveArgs {
    /// Whether a profile is asked for.
    pub(super) fn profiles(&self) -> bool {
        self.profile.is_some()
    }

    /// Whether anything is to be shown.
    pub(super) fn any(&self) -> bool {
        self.profile.is_some() || self.sees_values()
    }

    /// Whether single values are looked at.
    pub(super) fn sees_values(&self) -> bool {
        self.traces() || self.compare
    }

    /// The files that are written, by their options.
    pub(super) fn files(&self) -> [(&'static str, Option<&Path>); 3] {
        [
            ("--profile", self.profile.as_deref()),
            ("--trace", self.trace.as_deref()),
            ("--trace-tensors", self.trace_tensors.as_deref()),
        ]
    }

    /// Whether operations are compared with the reference.
    pub(super) fn compares(&self) -> bool {
        self.compare || self.break_on.is_some()
    }

    fn traces(&self) -> bool {
        self.trace.is_some() || self.trace_tensors.is_some() || self.break_on.is_some()
    }

    /// Gets ready to watch a run; with `nodes`, the values of the graph's nodes are kept too.
    pub(super) fn watch(
        &self,
        compiled: &CompiledModel,
        executable: &dyn Executable,
        inputs: &[Tensor],
        nodes: bool,
    ) -> Result<Watch<'_>, Failure> {
        let trace_file = match &self.trace {
            Some(path) => {
                let file = output::written(path, Output::create(path))?;
                Some(TraceFile(Arc::new(Mutex::new(Some(file)))))
            }
            None => None,
        };
        let trace = self.traces().then(|| Arc::new(self.start_trace(compiled, trace_file.clone())));
        let program = executable.program();
        let function = program.module().function(program.entry());
        let comparison = match function.filter(|_| self.compare) {
            Some(func) => {
                let arguments = program.arguments(inputs, &[]).map_err(warpforge::Error::from)?;
                Some(Arc::new(OpByOpComparison::new(func, arguments)))
            }
            None => None,
        };
        let nodes = function.filter(|_| nodes).map(|func| Arc::new(NodeValues::new(func)));
        Ok(Watch { args: self, trace, trace_file, nodes, comparison })
    }

    fn start_trace(&self, compiled: &CompiledModel, file: Option<TraceFile>) -> FileTrace {
        let out: Box<dyn Write + Send> =
            file.map_or_else(|| Box::new(sink()) as _, |file| Box::new(file) as _);
        let keep = self.trace_tensors.as_ref().map(|_| Filter::new(self.trace_filter.iter().cloned()));
        let options = TraceOptions { break_on_nan: self.break_on == Some(BreakOn::Nan), keep };
        Trace::new(out, Some(compiled.model().source().clone()), options)
    }

    /// Refuses inputs that are already what the run is to stop at.
    pub(super) fn check_inputs(&self, compiled: &CompiledModel, inputs: &[Tensor]) -> Result<(), Failure> {
        let is_nan = |tensor: &Tensor| tensor.iter().filter(|value| value.is_nan()).count();
        for (slot, tensor) in compiled.inputs().iter().zip(inputs) {
            let count = if self.break_on == Some(BreakOn::Nan) { is_nan(tensor) } else { 0 };
            if count > 0 {
                let text = format!("input `{}` has {count} NaN of {} elements", slot.name, tensor.len());
                return Err(Failure::check_failed(anyhow!(text)));
            }
        }
        Ok(())
    }
}

impl Watch<'_> {
    /// How to run so that this sees it.
    pub(super) fn run_options(&self) -> RunOptions {
        let mut observers: Vec<Arc<dyn Observer>> = Vec::new();
        if let Some(trace) = &self.trace {
            observers.push(Arc::clone(trace) as Arc<dyn Observer>);
        }
        if let Some(nodes) = &self.nodes {
            observers.push(Arc::clone(nodes) as Arc<dyn Observer>);
        }
        if let Some(comparison) = &self.comparison {
            observers.push(Arc::clone(comparison) as Arc<dyn Observer>);
        }
        let observer = (!observers.is_empty()).then(|| Arc::new(Several(observers)) as Arc<dyn Observer>);
        RunOptions { profile: self.args.profile.is_some(), observer, ..RunOptions::default() }
    }

    /// The values of the graph's nodes, in order.
    pub(super) fn node_values(&self) -> Vec<(String, Tensor)> {
        self.nodes.as_ref().map(|nodes| nodes.take()).unwrap_or_default()
    }

    /// What came of the op-by-op comparison.
    pub(super) fn compared(&self) -> Option<Compared> {
        self.comparison.as_ref().map(|comparison| comparison.take())
    }

    /// Writes the files of the trace, whether the run ended or was stopped.
    pub(super) fn write_trace(&self) -> Result<(), Failure> {
        let Some(trace) = &self.trace else { return Ok(()) };
        let kept = trace
            .finish()
            .and_then(|kept| self.trace_file.as_ref().map_or(Ok(()), TraceFile::finish).map(|()| kept));
        let kept = output::written(self.args.trace.as_deref().unwrap_or(Path::new("-")), kept)?;
        let Some(path) = &self.args.trace_tensors else { return Ok(()) };
        let stored: Result<Vec<(String, Tensor)>, _> =
            kept.into_iter().map(|(name, tensor)| Ok((name, carrier::to_carrier(&tensor)?))).collect();
        stored
            .and_then(|stored| {
                safetensors::write(path, stored.iter().map(|(name, tensor)| (name.as_str(), tensor)))
            })
            .map_err(|error| Failure::not_possible(anyhow!("cannot write {error}")))
    }

    /// Writes the profile.
    pub(super) fn write_profile(
        &self,
        mut profile: Profile,
        model: &str,
        executable: &dyn Executable,
        machine: Option<&roofline::Roofline>,
    ) -> Result<(), Failure> {
        let Some(path) = &self.args.profile else { return Ok(()) };
        roofline::compare(&mut profile, executable.threads(), machine);
        if profile.dropped > 0 {
            crate::term::tell!(
                "warpt: the profile has the first {} events, not {} more",
                profile.events.len(),
                profile.dropped
            );
        }
        output::write(path, chrome_trace(&profile, model).as_bytes())
    }
}
