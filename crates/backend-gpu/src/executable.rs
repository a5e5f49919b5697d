//! Compiled programs: steps in order, the memory they run in, and the graph that they are recorded into.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use warpforge_fusion::Graph as Nodes;
use warpforge_fusion::cluster::Operand;
use warpforge_fusion::graph::OpSpan;
use warpforge_runtime::memory_plan::{Allocation, MemoryPlan};
use warpforge_runtime::profile::{Event as Happening, Profile};
use warpforge_runtime::{
    Bound, Counters, ErrorKind, Executable, Fallback, Observer, Outcome, Program, RunOptions,
};
use warpforge_tensor::{Blob, Shape, Tensor};

use crate::backend::failed;
use crate::collectives::Meeting;
use crate::driver::{Buffer, Event, Gpu, Graph, Pinned, Staging, Stream};
use crate::error::{GpuError, Result};
use crate::lane::Lane;
use crate::networks::Networks;
use crate::salt::{Saltings, Seen};
use crate::steps::{Layout, Planned};
use crate::watch;

/// What a program is made of.
pub(crate) struct Made {
    pub(crate) program: Program,
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) stream: Stream,
    pub(crate) networks: Option<Networks>,
    pub(crate) nodes: Nodes,
    /// Where the program's operations are among the nodes, where each has its own.
    pub(crate) marks: Option<Vec<OpSpan>>,
    pub(crate) plan: MemoryPlan,
    pub(crate) outputs: Vec<Operand>,
    pub(crate) layout: Layout,
    /// Memory that steps know the addresses of.
    pub(crate) memory: Vec<Arc<Buffer>>,
    pub(crate) inputs: Vec<Buffer>,
    pub(crate) given: Vec<Buffer>,
    pub(crate) steps: Vec<Planned>,
    pub(crate) saltings: Saltings,
    /// Where it meets other processes, in order.
    pub(crate) meetings: Vec<Meeting>,
}

/// A compiled program.
pub(crate) struct Compiled {
    /// Held while a run uses the memory. Dropped before what connects processes: that waits for recordings to go.
    running: Mutex<Recording>,
    made: Made,
    /// Ways to the device and back that no run is on.
    lanes: Mutex<Vec<Lane>>,
}

/// What runs leave for the next.
#[derive(Default)]
struct Recording {
    /// The steps, once they are recorded.
    graph: Option<Graph>,
    /// Whether steps that settle in their first run have had it.
    settled: bool,
}

impl Compiled {
    pub(crate) fn new(made: Made) -> Self {
        Self { made, running: Mutex::default(), lanes: Mutex::default() }
    }

    /// Drops what is recorded.
    pub(crate) fn forget_recording(&self) {
        *self.lock() = Recording::default();
    }

    fn failed(&self, error: &GpuError) -> warpforge_runtime::Error {
        failed(self.made.gpu.driver.vendor, error)
    }

    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings inputs to where steps read them.
    fn upload(&self, inputs: &[Tensor]) -> Result<()> {
        let Made { gpu, stream, .. } = &self.made;
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

    /// Runs on a lane of its own: only what is between the transfers waits for other runs.
    fn run_on_lane(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let lanes = || self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let free = lanes().pop();
        let mut lane = match free {
            Some(lane) => lane,
            None => Lane::new(&self.made.gpu)?,
        };
        let blobs = self.transfer_and_run(&mut lane, inputs)?;
        lanes().push(lane);
        self.results(inputs, &blobs)
    }

    fn transfer_and_run(&self, lane: &mut Lane, inputs: &[Tensor]) -> Result<Vec<Blob>> {
        let Made { stream, given, .. } = &self.made;
        let brought = lane.bring(inputs)?;
        let sizes = self.output_sizes();
        let taken = lane.room(&sizes)?;
        let queued = {
            let mut recording = self.lock();
            let lengths = inputs.iter().map(|tensor| tensor.bytes().len());
            let ins = brought.iter().zip(&self.made.inputs).zip(lengths);
            let outs = given.iter().zip(&taken).zip(sizes.iter().copied());
            let queued = lane
                .hand_in(stream, ins.map(|((from, to), bytes)| (from, to, bytes)))
                .and_then(|()| self.start(&mut recording))
                .and_then(|()| lane.take_out(stream, outs.map(|((from, to), bytes)| (from, to, bytes))));
            if queued.is_err() {
                // What was queued before must not find its memory with others.
                let _ = stream.synchronise();
            }
            queued
        };
        queued?;
        lane.bring_back(&taken, &sizes)
    }

    /// Bytes of each value that a run gives away.
    fn output_sizes(&self) -> Vec<usize> {
        self.made.plan.outputs.iter().map(|&id| self.made.nodes.node(id).bytes()).collect()
    }

    /// Starts all steps: recorded ones at once, others one after the other.
    fn start(&self, recording: &mut Recording) -> Result<()> {
        let Made { gpu, stream, steps, .. } = &self.made;
        gpu.enter()?;
        if steps.is_empty() {
            return Ok(());
        }
        let all = || steps.iter().try_for_each(|planned| planned.step.start(stream));
        let unsettled = !recording.settled && steps.iter().any(|planned| planned.step.settles());
        recording.settled = true;
        if unsettled || !steps.iter().all(|planned| planned.step.recordable()) {
            return all();
        }
        if recording.graph.is_none() {
            let record = || stream.record(all);
            recording.graph = Some(match &self.made.networks {
                Some(networks) => networks.alone(record)?,
                None => record()?,
            });
        }
        recording.graph.as_ref().map_or(Ok(()), |graph| graph.launch(stream))
    }

    /// Brings outputs from where steps wrote them.
    fn download(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let Made { gpu, stream, given, .. } = &self.made;
        let pinned = self.output_sizes().into_iter().map(|bytes| Pinned::new(gpu, bytes));
        let mut pinned = pinned.collect::<Result<Vec<_>>>()?;
        let mut pairs = given.iter().zip(&mut pinned);
        let started = pairs.try_for_each(|(from, to)| stream.start_read(from.address(), to.bytes_mut()));
        let ended = stream.synchronise();
        started.and(ended)?;
        self.results(inputs, &pinned.into_iter().map(Blob::new).collect::<Vec<_>>())
    }

    /// The results of a run, whose own values were brought to the host.
    fn results(&self, inputs: &[Tensor], blobs: &[Blob]) -> Result<Vec<Tensor>> {
        let Made { nodes, plan, .. } = &self.made;
        let other = |error: warpforge_tensor::Error| GpuError::Other(error.to_string());
        let tensor = |output: &Operand| {
            let node = nodes.node(output.value);
            let shape = |dims: &[usize]| Shape::new(dims).map_err(other);
            let tensor = match plan.allocations.get(&output.value) {
                Some(&Allocation::Output(at)) => {
                    Tensor::from_blob(node.element, shape(&node.dims)?, blobs[at].clone()).map_err(other)?
                }
                Some(&Allocation::Argument(at)) => inputs[at].clone(),
                Some(&Allocation::Constant(_)) => {
                    let constant = nodes.constant(output.value);
                    constant.cloned().ok_or_else(|| GpuError::Other("a constant is missing".to_owned()))?
                }
                _ => return Err(GpuError::Other("an output has no place".to_owned())),
            };
            tensor.reshaped(shape(&output.view.dims)?).map_err(other)
        };
        self.made.outputs.iter().map(tensor).collect()
    }

    /// Runs step by step, each value shown as soon as it is there. A profile is of a run of its own: showing takes time.
    fn watched(
        &self,
        inputs: &[Tensor],
        marks: &[OpSpan],
        observer: &Arc<dyn Observer>,
        profile: bool,
    ) -> warpforge_runtime::Result<Outcome> {
        let failed = |error: GpuError| self.failed(&error);
        let _running = self.lock();
        self.upload(inputs).map_err(failed)?;
        watch::run(&self.made, marks, inputs, observer)?;
        let profile = if profile { self.profiled().map_err(failed)? } else { Profile::default() };
        Ok(Outcome { outputs: self.download(inputs).map_err(failed)?, profile })
    }

    /// Runs step by step with a moment after each.
    fn profiled(&self) -> Result<Profile> {
        let Made { gpu, stream, steps, saltings, .. } = &self.made;
        let mut moments = vec![Event::new(gpu)?];
        moments[0].record(stream)?;
        saltings.clear(stream)?;
        for planned in steps {
            planned.step.start(stream)?;
            let moment = Event::new(gpu)?;
            moment.record(stream)?;
            moments.push(moment);
        }
        stream.synchronise()?;
        let mut profile = Profile::default();
        let seen = saltings.read(stream)?;
        for (planned, pair) in steps.iter().zip(moments.windows(2)) {
            let mut happening = planned.happening(pair[0].since(&moments[0])?, pair[1].since(&pair[0])?);
            let own = planned.salted.and_then(|number| seen.get(number));
            happening.details.extend(own.into_iter().flat_map(Seen::details));
            profile.push(happening);
        }
        seen.into_iter().filter_map(|seen| seen.event).for_each(|event| profile.push(event));
        Ok(profile)
    }
}

impl Executable for Compiled {
    fn program(&self) -> &Program {
        &self.made.program
    }

    fn run(&self, inputs: &[Tensor], options: &RunOptions) -> warpforge_runtime::Result<Outcome> {
        // Checks the inputs, all of them.
        self.made.program.arguments(inputs)?;
        let watched = match (&options.observer, &self.made.marks) {
            (None, _) => None,
            (Some(observer), Some(marks)) => Some((observer, marks)),
            (Some(_), None) => {
                let backend = self.made.gpu.driver.vendor.name();
                let what = "observe values outside the correctness tier, or where processes meet".to_owned();
                return Err(ErrorKind::NotOffered { backend, what }.into());
            }
        };
        if let Some((observer, marks)) = watched {
            return self.watched(inputs, marks, observer, options.profile);
        }
        // Instrumented kernels say what they saw, whether they are asked or not.
        let run = || -> Result<Outcome> {
            if !options.profile && !self.made.saltings.any() {
                return Ok(Outcome { outputs: self.run_on_lane(inputs)?, profile: Profile::default() });
            }
            let _running = self.lock();
            self.upload(inputs)?;
            let profile = self.profiled()?;
            Ok(Outcome { outputs: self.download(inputs)?, profile })
        };
        run().map_err(|error| self.failed(&error))
    }

    fn bind(&self, inputs: &[Tensor]) -> warpforge_runtime::Result<Option<Box<dyn Bound + '_>>> {
        self.made.program.arguments(inputs)?;
        let recording = self.lock();
        let moments = || -> Result<[Event; 2]> {
            self.upload(inputs)?;
            Ok([Event::new(&self.made.gpu)?, Event::new(&self.made.gpu)?])
        };
        let moments = moments().map_err(|error| self.failed(&error))?;
        Ok(Some(Box::new(Held { compiled: self, recording, moments, inputs: inputs.to_vec() })))
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
        // Twice: a run brings its inputs and takes its outputs along in memory of its own.
        let own = self.made.inputs.iter().chain(&self.made.given).map(|buffer| 2 * buffer.bytes());
        let shared = self.made.memory.iter().map(|buffer| buffer.bytes());
        let all: usize = own.chain(shared).sum::<usize>() + self.made.layout.workspace.bytes();
        let steps = self.made.steps.iter().map(|planned| planned.step.memory_bytes());
        Some(all as u64 + steps.max().unwrap_or(0))
    }

    fn fallbacks(&self) -> Vec<Fallback> {
        self.made.steps.iter().flat_map(|planned| planned.step.fallbacks()).collect()
    }
}

/// A program with its inputs on the device.
struct Held<'c> {
    compiled: &'c Compiled,
    recording: MutexGuard<'c, Recording>,
    moments: [Event; 2],
    inputs: Vec<Tensor>,
}

impl Bound for Held<'_> {
    fn run(&mut self) -> warpforge_runtime::Result<Duration> {
        let stream = &self.compiled.made.stream;
        let [begin, end] = &self.moments;
        let mut run = || {
            begin.record(stream)?;
            self.compiled.start(&mut self.recording)?;
            end.record(stream)?;
            stream.synchronise()?;
            end.since(begin)
        };
        run().map_err(|error: GpuError| self.compiled.failed(&error))
    }

    fn outputs(&mut self) -> warpforge_runtime::Result<Vec<Tensor>> {
        self.compiled.download(&self.inputs).map_err(|error| self.compiled.failed(&error))
    }
}

impl Planned {
    fn happening(&self, start: Duration, duration: Duration) -> Happening {
        let seconds = duration.as_secs_f64().max(1e-9);
        let details = vec![
            ("flop", self.flops.to_string()),
            ("bytes", self.bytes.to_string()),
            ("gflop_per_s", format!("{:.2}", self.flops as f64 / seconds / 1e9)),
            ("gb_per_s", format!("{:.2}", self.bytes as f64 / seconds / 1e9)),
            ("on", if self.step.is_reference() { "reference" } else { "device" }.to_owned()),
        ];
        Happening { name: self.step.name(), category: "kernel", track: 0, start, duration, details }
    }
}
