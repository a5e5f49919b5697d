//! Compiled programs: steps, their memory, and the captured graph.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::graph::OpSpan;
use warpforge_runtime::memory_plan::Allocation;
use warpforge_runtime::profile::{Event as ProfileEvent, Profile};
use warpforge_runtime::state::Update;
use warpforge_runtime::{
    Bound, Counters, ErrorKind, Executable, Fallback, Lifetime, Observer, Outcome, Program, RunOptions,
    Source,
};
use warpforge_tensor::{Blob, Shape, Tensor};

use crate::copy_stream::CopyStream;
use crate::driver::{Event, Graph, Pinned, Staging};
use crate::error::{GpuError, Result, runtime_error};
use crate::lifetimes::lifetimes;
use crate::observed_run;
use crate::program::CompiledProgram;
use crate::ranks::RankGroup;
use crate::salt::SaltSummary;
use crate::state::DeviceStore;
use crate::steps::PlannedStep;

/// A compiled program.
pub(crate) struct GpuExecutable {
    /// Locked while a run uses the memory. Dropped before the communicators, which wait for captured graphs to be
    /// destroyed.
    running: Mutex<Recording>,
    made: CompiledProgram,
    /// Idle copy streams.
    copy_streams: Mutex<Vec<CopyStream>>,
}

/// State between runs.
#[derive(Default)]
struct Recording {
    /// The captured steps.
    graph: Option<Graph>,
    /// Whether steps with a warm-up have run.
    warmed_up: bool,
}

impl GpuExecutable {
    pub(crate) fn new(made: CompiledProgram) -> Self {
        Self { made, running: Mutex::default(), copy_streams: Mutex::default() }
    }

    /// Drops the captured graph.
    pub(crate) fn forget_recording(&self) {
        *self.lock() = Recording::default();
    }

    /// Fails where another rank is gone.
    fn check_ranks(&self) -> Result<()> {
        self.made.ranks.as_ref().map_or(Ok(()), RankGroup::check)
    }

    fn failed(&self, error: &GpuError) -> warpforge_runtime::Error {
        runtime_error(self.made.gpu.driver.vendor, error)
    }

    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uploads inputs to the addresses of the steps.
    fn upload(&self, inputs: &[Tensor]) -> Result<()> {
        let CompiledProgram { gpu, stream, .. } = &self.made;
        gpu.enter()?;
        let mut staging = Staging::new(gpu)?;
        for (tensor, buffer) in inputs.iter().zip(&self.made.inputs) {
            if tensor.bytes().len() > buffer.bytes() {
                return Err(GpuError::Other("an input is larger than its place".to_owned()));
            }
            staging.write(stream, buffer.address(), tensor.bytes())?;
        }
        Ok(())
    }

    /// Runs with a copy stream: only the part between the transfers excludes other runs.
    fn run_on_copy_stream(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let copy_streams = || self.copy_streams.lock().unwrap_or_else(PoisonError::into_inner);
        let free = copy_streams().pop();
        let mut copy_stream = match free {
            Some(copy_stream) => copy_stream,
            None => CopyStream::new(&self.made.gpu)?,
        };
        let blobs = self.transfer_and_run(&mut copy_stream, inputs)?;
        copy_streams().push(copy_stream);
        self.results(inputs, &blobs)
    }

    fn transfer_and_run(&self, copy_stream: &mut CopyStream, inputs: &[Tensor]) -> Result<Vec<Blob>> {
        let CompiledProgram { stream, output_buffers, .. } = &self.made;
        let brought = copy_stream.upload(inputs)?;
        let sizes = self.output_sizes();
        let taken = copy_stream.allocate(&sizes)?;
        let queued = {
            let mut recording = self.lock();
            let lengths = inputs.iter().map(|tensor| tensor.bytes().len());
            let ins = brought.iter().zip(&self.made.inputs).zip(lengths);
            let outs = output_buffers.iter().zip(&taken).zip(sizes.iter().copied());
            let queued = copy_stream
                .copy_inputs(stream, ins.map(|((from, to), bytes)| (from, to, bytes)))
                .and_then(|()| self.start(&mut recording))
                .and_then(|()| {
                    copy_stream.copy_outputs(stream, outs.map(|((from, to), bytes)| (from, to, bytes)))
                });
            if queued.is_err() {
                // Queued work must finish before its buffers are reused.
                let _ = stream.synchronise();
            }
            queued
        };
        queued?;
        copy_stream.download(&taken, &sizes)
    }

    /// Bytes of each output buffer.
    fn output_sizes(&self) -> Vec<usize> {
        self.made.plan.outputs.iter().map(|&id| self.made.nodes.node(id).bytes()).collect()
    }

    /// Starts all steps: as a captured graph if possible, otherwise one by one.
    fn start(&self, recording: &mut Recording) -> Result<()> {
        let CompiledProgram { gpu, stream, steps, .. } = &self.made;
        self.check_ranks()?;
        gpu.enter()?;
        if steps.is_empty() {
            return Ok(());
        }
        let all = || steps.iter().try_for_each(|planned| planned.step.start(stream));
        let needs_warmup = !recording.warmed_up && steps.iter().any(|planned| planned.step.has_warmup());
        recording.warmed_up = true;
        if needs_warmup || !steps.iter().all(|planned| planned.step.is_capturable()) {
            return all();
        }
        if recording.graph.is_none() {
            let record = || stream.record(all);
            recording.graph = Some(match &self.made.dnn {
                Some(dnn) => dnn.exclusively(record)?,
                None => record()?,
            });
        }
        recording.graph.as_ref().map_or(Ok(()), |graph| graph.launch(stream))
    }

    /// Downloads outputs from the addresses of the steps.
    fn download(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let CompiledProgram { gpu, stream, output_buffers, .. } = &self.made;
        let pinned = self.output_sizes().into_iter().map(|bytes| Pinned::new(gpu, bytes));
        let mut pinned = pinned.collect::<Result<Vec<_>>>()?;
        let mut pairs = output_buffers.iter().zip(&mut pinned);
        let started = pairs.try_for_each(|(from, to)| stream.start_read(from.address(), to.bytes_mut()));
        let ended = stream.synchronise();
        started.and(ended)?;
        self.results(inputs, &pinned.into_iter().map(Blob::new).collect::<Vec<_>>())
    }

    /// The results of a run, from downloaded outputs.
    fn results(&self, inputs: &[Tensor], blobs: &[Blob]) -> Result<Vec<Tensor>> {
        // What was aborted has ended like any other.
        self.check_ranks()?;
        let CompiledProgram { nodes, plan, .. } = &self.made;
        let other = |error: warpforge_tensor::Error| GpuError::Other(error.to_string());
        let tensor = |output: &Operand| {
            let node = nodes.node(output.value);
            let shape = |dims: &[usize]| Shape::new(dims).map_err(other);
            let tensor = match plan.output(output.value) {
                Some(Allocation::Output(at)) => {
                    Tensor::from_blob(node.element, shape(&node.dims)?, blobs[at].clone()).map_err(other)?
                }
                Some(Allocation::Argument(at)) => match self.made.sources[at] {
                    Source::Input(at) => inputs[at].clone(),
                    Source::State(_) => return Err(GpuError::Other("an output lies in state".to_owned())),
                },
                Some(Allocation::Constant(_)) => {
                    let constant = nodes.constant(output.value);
                    constant.cloned().ok_or_else(|| GpuError::Other("a constant is missing".to_owned()))?
                }
                _ => return Err(GpuError::Other("an output has no place".to_owned())),
            };
            tensor.reshaped(shape(&output.view.dims)?).map_err(other)
        };
        self.made.outputs.iter().map(tensor).collect()
    }

    /// Runs step by step and shows each value. A profile comes from a separate run, because observation takes time.
    fn observed(
        &self,
        inputs: &[Tensor],
        marks: &[OpSpan],
        observer: &Arc<dyn Observer>,
        profile: bool,
    ) -> warpforge_runtime::Result<Outcome> {
        let failed = |error: GpuError| self.failed(&error);
        let _running = self.lock();
        self.upload(inputs).map_err(failed)?;
        observed_run::run(&self.made, marks, inputs, observer)?;
        let profile = if profile { self.profiled().map_err(failed)? } else { Profile::default() };
        let outputs = self.download(inputs).map_err(failed)?;
        Ok(Outcome { outputs, profile, clusters: Vec::new() })
    }

    /// Runs step by step with an event after each.
    fn profiled(&self) -> Result<Profile> {
        let CompiledProgram { gpu, stream, steps, salt_buffers, .. } = &self.made;
        let mut events = vec![Event::new(gpu)?];
        events[0].record(stream)?;
        salt_buffers.clear(stream)?;
        for planned in steps {
            planned.step.start(stream)?;
            let event = Event::new(gpu)?;
            event.record(stream)?;
            events.push(event);
        }
        stream.synchronise()?;
        let mut profile = Profile::default();
        let seen = salt_buffers.read(stream)?;
        for (planned, pair) in steps.iter().zip(events.windows(2)) {
            let mut profile_event =
                planned.profile_event(pair[0].since(&events[0])?, pair[1].since(&pair[0])?);
            let own = planned.salted.and_then(|number| seen.get(number));
            profile_event.details.extend(own.into_iter().flat_map(SaltSummary::details));
            profile.push(profile_event);
        }
        seen.into_iter().filter_map(|seen| seen.event).for_each(|event| profile.push(event));
        Ok(profile)
    }
}

impl Executable for GpuExecutable {
    fn program(&self) -> &Program {
        &self.made.program
    }

    fn run(&self, inputs: &[Tensor], options: &RunOptions) -> warpforge_runtime::Result<Outcome> {
        self.made.program.check_inputs(inputs)?;
        let observed = match (&options.observer, &self.made.marks) {
            (None, _) => None,
            (Some(observer), Some(marks)) => Some((observer, marks)),
            (Some(_), None) => {
                let backend = self.made.gpu.driver.vendor.name();
                let what = "observe values outside the correctness tier, or where processes meet".to_owned();
                return Err(ErrorKind::NotOffered { backend, what }.into());
            }
        };
        let update = self.made.program.state().map(|state| state.begin()).transpose()?;
        let end = |outcome| {
            if let Some(update) = update {
                update.end();
            }
            outcome
        };
        if let Some((observer, marks)) = observed {
            return self.observed(inputs, marks, observer, options.profile).map(end);
        }
        // Instrumented kernels are always profiled.
        let run = || -> Result<Outcome> {
            let profiled = options.profile || self.made.salt_buffers.any();
            if !profiled && !options.clusters {
                return Ok(Outcome { outputs: self.run_on_copy_stream(inputs)?, ..Outcome::default() });
            }
            let _running = self.lock();
            self.upload(inputs)?;
            let clusters = if options.clusters { observed_run::clusters(&self.made)? } else { Vec::new() };
            // Reading values takes time, so the profile is of a run of its own.
            let profile = if profiled { self.profiled()? } else { Profile::default() };
            Ok(Outcome { outputs: self.download(inputs)?, profile, clusters })
        };
        run().map(end).map_err(|error| {
            if matches!(error, GpuError::Ranks(_)) {
                // The abort of what is captured waits for this.
                self.forget_recording();
            }
            self.failed(&error)
        })
    }

    fn bind(&self, inputs: &[Tensor]) -> warpforge_runtime::Result<Option<Box<dyn Bound + '_>>> {
        self.made.program.check_inputs(inputs)?;
        // In the order of a run: the state, then the memory.
        let update = self.made.program.state().map(|state| state.begin()).transpose()?;
        let recording = self.lock();
        let events = || -> Result<[Event; 2]> {
            self.upload(inputs)?;
            Ok([Event::new(&self.made.gpu)?, Event::new(&self.made.gpu)?])
        };
        let events = events().map_err(|error| self.failed(&error))?;
        let inputs = inputs.to_vec();
        Ok(Some(Box::new(BoundRun { compiled: self, recording, events, inputs, update, failed: false })))
    }

    fn counters(&self) -> Option<Counters> {
        let steps = &self.made.steps;
        Some(Counters {
            kernel_launches: steps.iter().map(|planned| planned.step.launches()).sum(),
            bytes_moved: steps.iter().map(|planned| planned.bytes).sum(),
        })
    }

    fn threads(&self) -> usize {
        1
    }

    fn peak_memory_bytes(&self) -> Option<u64> {
        // Twice: a run has input and output buffers of its own.
        let own = self.made.inputs.iter().chain(&self.made.output_buffers).map(|buffer| 2 * buffer.bytes());
        let shared = self.made.memory.iter().map(|buffer| buffer.bytes());
        let state = self.made.program.state().and_then(|state| DeviceStore::of(state, &self.made.gpu).ok());
        let all: usize = own.chain(shared).sum::<usize>()
            + self.made.layout.workspace.bytes()
            + state.map_or(0, DeviceStore::bytes);
        let steps = self.made.steps.iter().map(|planned| planned.step.memory_bytes());
        Some(all as u64 + steps.sum::<u64>())
    }

    fn lifetimes(&self) -> Vec<Lifetime> {
        lifetimes(&self.made)
    }

    fn fallbacks(&self) -> Vec<Fallback> {
        self.made.steps.iter().flat_map(|planned| planned.step.fallbacks()).collect()
    }
}

/// A program with its inputs on the device.
struct BoundRun<'c> {
    compiled: &'c GpuExecutable,
    recording: MutexGuard<'c, Recording>,
    events: [Event; 2],
    inputs: Vec<Tensor>,
    /// The state, which only these runs update.
    update: Option<Update<'c>>,
    /// Whether a run failed and left the state partly updated.
    failed: bool,
}

impl Drop for BoundRun<'_> {
    fn drop(&mut self) {
        if let Some(update) = self.update.take().filter(|_| !self.failed) {
            update.end();
        }
    }
}

impl Bound for BoundRun<'_> {
    fn run(&mut self) -> warpforge_runtime::Result<Duration> {
        let stream = &self.compiled.made.stream;
        let [begin, end] = &self.events;
        let mut run = || {
            begin.record(stream)?;
            self.compiled.start(&mut self.recording)?;
            end.record(stream)?;
            stream.synchronise()?;
            self.compiled.check_ranks()?;
            end.since(begin)
        };
        let elapsed = run();
        self.failed |= elapsed.is_err();
        elapsed.map_err(|error: GpuError| self.compiled.failed(&error))
    }

    fn outputs(&mut self) -> warpforge_runtime::Result<Vec<Tensor>> {
        self.compiled.download(&self.inputs).map_err(|error| self.compiled.failed(&error))
    }
}

impl PlannedStep {
    fn profile_event(&self, start: Duration, duration: Duration) -> ProfileEvent {
        let seconds = duration.as_secs_f64().max(1e-9);
        let mut details = vec![
            ("flop", self.flops.to_string()),
            ("bytes", self.bytes.to_string()),
            ("gflop_per_s", format!("{:.2}", self.flops as f64 / seconds / 1e9)),
            ("gb_per_s", format!("{:.2}", self.bytes as f64 / seconds / 1e9)),
            ("on", if self.step.is_reference() { "reference" } else { "device" }.to_owned()),
        ];
        details.extend(self.provenance.iter().cloned());
        ProfileEvent { name: self.step.name(), category: "kernel", track: 0, start, duration, details }
    }
}
