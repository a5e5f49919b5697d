//! What a run is asked to show of its inside: a trace, a profile, the values of its nodes.

use std::fs::File;
use std::io::{BufWriter, Write, sink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};
use warpforge::io::{carrier, safetensors};
use warpforge::profile::Profile;
use warpforge::trace::{Filter, NodeValues, Several, Trace, TraceOptions};
use warpforge::{CompiledModel, Observer, RunOptions, Tensor};
use warpforge_golden::beside::{Beside, Compared};
use warpforge_inventory::export;
use warpforge_report::chrome_trace;
use warpforge_runtime::Executable;

use super::roofline;
use crate::exit::Failure;

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

/// A trace to a file, or to nowhere when only its effects are wanted.
type FileTrace = Trace<Box<dyn Write + Send>>;

/// What watches one run.
pub(super) struct Watch<'a> {
    args: &'a ObserveArgs,
    trace: Option<Arc<FileTrace>>,
    nodes: Option<Arc<NodeValues>>,
    beside: Option<Arc<Beside>>,
}

impl ObserveArgs {
    /// Whether anything is to be shown.
    pub(super) fn any(&self) -> bool {
        self.profile.is_some() || self.sees_values()
    }

    /// Whether single values are looked at.
    pub(super) fn sees_values(&self) -> bool {
        self.traces() || self.compare
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
        let trace = if self.traces() { Some(Arc::new(self.start_trace(compiled)?)) } else { None };
        let program = executable.program();
        let function = program.module().function(program.entry());
        let beside = match function.filter(|_| self.compare) {
            Some(func) => {
                let arguments = program.arguments(inputs).map_err(warpforge::Error::from)?;
                Some(Arc::new(Beside::new(func, arguments)))
            }
            None => None,
        };
        let nodes = function.filter(|_| nodes).map(|func| Arc::new(NodeValues::new(func)));
        Ok(Watch { args: self, trace, nodes, beside })
    }

    fn start_trace(&self, compiled: &CompiledModel) -> Result<FileTrace, Failure> {
        let out: Box<dyn Write + Send> = match &self.trace {
            Some(path) => {
                let file = File::create(path).with_context(|| path.display().to_string());
                Box::new(BufWriter::new(file.map_err(Failure::not_possible)?))
            }
            None => Box::new(sink()),
        };
        let keep = self.trace_tensors.as_ref().map(|_| Filter::new(self.trace_filter.iter().cloned()));
        let options = TraceOptions { break_on_nan: self.break_on == Some(BreakOn::Nan), keep };
        Ok(Trace::new(out, Some(compiled.model().source().clone()), options))
    }

    /// Refuses inputs that are already what the run is to stop at.
    pub(super) fn check_inputs(&self, compiled: &CompiledModel, inputs: &[Tensor]) -> Result<(), Failure> {
        let is_nan = |tensor: &Tensor| tensor.iter().filter(|value| value.is_nan()).count();
        for (slot, tensor) in compiled.model().inputs().iter().zip(inputs) {
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
        if let Some(beside) = &self.beside {
            observers.push(Arc::clone(beside) as Arc<dyn Observer>);
        }
        let observer = (!observers.is_empty()).then(|| Arc::new(Several(observers)) as Arc<dyn Observer>);
        RunOptions { profile: self.args.profile.is_some(), observer }
    }

    /// The values of the graph's nodes, in order.
    pub(super) fn node_values(&self) -> Vec<(String, Tensor)> {
        self.nodes.as_ref().map(|nodes| nodes.take()).unwrap_or_default()
    }

    /// What came of the operations beside the reference.
    pub(super) fn compared(&self) -> Option<Compared> {
        self.beside.as_ref().map(|beside| beside.take())
    }

    /// Writes the files of the trace, whether the run ended or was stopped.
    pub(super) fn write_trace(&self) -> Result<(), Failure> {
        let Some(trace) = &self.trace else { return Ok(()) };
        let shown = |path: &Option<PathBuf>| path.as_deref().unwrap_or(Path::new("-")).display().to_string();
        let kept = trace.finish().with_context(|| shown(&self.args.trace)).map_err(Failure::not_possible)?;
        let Some(path) = &self.args.trace_tensors else { return Ok(()) };
        let stored: Result<Vec<(String, Tensor)>, _> =
            kept.into_iter().map(|(name, tensor)| Ok((name, carrier::to_carrier(&tensor)?))).collect();
        stored
            .and_then(|stored| {
                safetensors::write(path, stored.iter().map(|(name, tensor)| (name.as_str(), tensor)))
            })
            .with_context(|| path.display().to_string())
            .map_err(Failure::not_possible)
    }

    /// Writes the profile.
    pub(super) fn write_profile(
        &self,
        mut profile: Profile,
        model: &str,
        executable: &dyn Executable,
    ) -> Result<(), Failure> {
        let Some(path) = &self.args.profile else { return Ok(()) };
        roofline::compare(&mut profile, executable.threads());
        if profile.dropped > 0 {
            eprintln!(
                "warpt: the profile has the first {} events, not {} more",
                profile.events.len(),
                profile.dropped
            );
        }
        export::write_atomically(path, chrome_trace(&profile, model).as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))
            .map_err(Failure::not_possible)
    }
}
