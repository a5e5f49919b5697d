//! Running functions, blocks and operations.

mod body;
mod liveness;
mod mesh;
mod program;

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Mutex;

use warpforge_ir::table::OpDef;
use warpforge_ir::{BlockId, Func, Module, OpId, OpRef, ValueId};
use warpforge_tensor::Tensor;

pub(crate) use body::Body;
use liveness::{BlockLiveness, OpLiveness};
pub use mesh::ProcessId;
use mesh::{Mesh, Process};

use crate::cx::Cx;
use crate::error::{ErrorKind, Result, invalid, unsupported};
use crate::native::Threads;
use crate::{Options, Value, ops};

/// Stack of a thread that evaluates: nesting is bounded by the limits, not by this.
const STACK_BYTES: usize = 256 << 20;

/// Runs functions of a module.
pub struct Interpreter<'m> {
    module: &'m Module,
    options: Options,
}

impl<'m> Interpreter<'m> {
    /// An interpreter of `module`, which has passed verification.
    #[must_use]
    pub fn new(module: &'m Module, options: Options) -> Self {
        Self { module, options }
    }

    /// Runs a function on its inputs and gives its results.
    ///
    /// # Errors
    ///
    /// When there is no such function, a check fails, a limit is reached, or an operation cannot be evaluated.
    pub fn run(&self, function: &str, inputs: Vec<Value>) -> Result<Vec<Value>> {
        let func = self
            .module
            .function(function)
            .ok_or_else(|| invalid(format!("the module has no function @{function}")))?;
        let (ops, most) = (self.module.inlined_op_count(function), self.options.limits.inlined_ops);
        if ops > most {
            let message = format!("@{function} makes calls that add up to more than {most} operations");
            return Err(ErrorKind::Limit(message).into());
        }
        let shared = Shared::default();
        run_on_thread(|| Machine::new(self.module, &self.options, &shared, None).call(func, inputs))
    }
}

/// Runs `f` on a thread with room for deep nesting.
fn run_on_thread<T: Send>(f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, f)
            .map_err(|error| ErrorKind::Limit(format!("no thread to evaluate on: {error}")))?
            .join()
            .unwrap_or_else(|_| Err(invalid("the evaluator failed unexpectedly; please report the module")))
    })
}

/// What all processes of an evaluation share.
#[derive(Default)]
pub(crate) struct Shared {
    /// Values for `infeed`, in order.
    pub(crate) infeed: Mutex<VecDeque<Vec<Value>>>,
    /// What each probe has seen.
    pub(crate) probes: Mutex<HashMap<String, Vec<Tensor>>>,
}

/// One process: a stack of frames and where it stands among the others.
pub(crate) struct Machine<'m, 's> {
    pub(crate) module: &'m Module,
    pub(crate) options: &'s Options,
    pub(crate) shared: &'s Shared,
    pub(crate) process: Option<Process<'s>>,
    pub(crate) threads: Threads,
    /// State of the generator behind `rng`.
    pub(crate) random_calls: u64,
    frames: Vec<Frame>,
    ranges: HashMap<OpId, (usize, usize)>,
    liveness: HashMap<BlockId, Rc<BlockLiveness>>,
    /// Bytes of all values in the frames; those that share their memory are counted for each.
    bytes: usize,
    steps: u64,
    depth: usize,
}

/// The values of one call; a function's values have neighbouring keys.
struct Frame {
    base: usize,
    values: Vec<Option<Value>>,
}

impl<'m, 's> Machine<'m, 's> {
    pub(crate) fn new(
        module: &'m Module,
        options: &'s Options,
        shared: &'s Shared,
        process: Option<Process<'s>>,
    ) -> Self {
        Self {
            module,
            options,
            shared,
            process,
            threads: Threads::new(options.threads),
            random_calls: 0,
            frames: Vec::new(),
            ranges: HashMap::new(),
            liveness: HashMap::new(),
            bytes: 0,
            steps: 0,
            depth: 0,
        }
    }

    /// Calls a function.
    pub(crate) fn call(&mut self, func: Func<'m>, inputs: Vec<Value>) -> Result<Vec<Value>> {
        let name = func.name();
        let body = func.body().ok_or_else(|| invalid(format!("@{name} is declared but has no body")))?;
        let (base, end) = self.range_of(func.op());
        self.frames.push(Frame { base, values: vec![None; end - base] });
        let results = self.block(body, inputs);
        let frame = self.frames.pop();
        // After a failure values are left.
        let left = frame.iter().flat_map(|frame| frame.values.iter().flatten()).map(Value::byte_count);
        self.bytes -= left.sum::<usize>();
        results
    }

    /// Runs a block with the given arguments and gives the operands of its terminator.
    pub(crate) fn block(&mut self, block: BlockId, inputs: Vec<Value>) -> Result<Vec<Value>> {
        if self.depth >= self.options.limits.depth {
            return Err(ErrorKind::Limit(format!("calls and regions nest deeper than {}", self.depth)).into());
        }
        self.depth += 1;
        let results = self.block_body(block, inputs);
        self.depth -= 1;
        results
    }

    fn block_body(&mut self, block: BlockId, inputs: Vec<Value>) -> Result<Vec<Value>> {
        let module = self.module;
        let arguments = module.arguments(block);
        if arguments.len() != inputs.len() {
            let (expected, found) = (arguments.len(), inputs.len());
            return Err(invalid(format!("the block takes {expected} arguments, {found} are given")));
        }
        let liveness = self.liveness_of(block);
        for ((&argument, input), &used) in arguments.iter().zip(inputs).zip(&liveness.used) {
            if used {
                self.set(argument, input)?;
            }
        }
        for (op, step) in module.ops_in(block).zip(&liveness.steps) {
            if op.def().is_some_and(OpDef::is_terminator) {
                return self.values(op.operands(), step);
            }
            self.op(op, step)?;
        }
        Ok(Vec::new())
    }

    fn liveness_of(&mut self, block: BlockId) -> Rc<BlockLiveness> {
        let module = self.module;
        Rc::clone(self.liveness.entry(block).or_insert_with(|| Rc::new(BlockLiveness::new(module, block))))
    }

    /// Runs one operation and stores its results.
    fn op(&mut self, op: OpRef<'m>, step: &OpLiveness) -> Result<()> {
        self.count_steps(1)?;
        if let Some(observer) = &self.options.observer {
            observer.begins(op);
        }
        let results = self.evaluate(op, step).map_err(|error| error.at(op))?;
        if results.len() != op.result_count() {
            let (expected, found) = (op.result_count(), results.len());
            return Err(invalid(format!("computed {found} results where {expected} are declared")).at(op));
        }
        if let Some(observer) = &self.options.observer {
            observer.results(op, &results).map_err(|text| crate::Error::stopped(op, text))?;
        }
        for (value, result) in op.results().zip(results) {
            self.set(value, result)?;
        }
        for &ended in &step.ended {
            self.take(ended);
        }
        Ok(())
    }

    fn evaluate(&mut self, op: OpRef<'m>, step: &OpLiveness) -> Result<Vec<Value>> {
        let kind = op.kind().ok_or_else(|| unsupported("the operation is not known"))?;
        let evaluator = ops::evaluator(kind).ok_or_else(|| unsupported(kind.name()))?;
        let declared = op.result_types().filter_map(|ty| ty.as_tensor()?.byte_count());
        self.reserve(declared.fold(0, usize::saturating_add))?;
        let operands = self.values(op.operands(), step)?;
        evaluator(&mut Cx { machine: self, op, operands })
    }

    /// Refuses what would not fit the memory that the program may use.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<()> {
        let limit = self.options.limits.memory_bytes;
        if self.bytes.saturating_add(bytes) > limit {
            let needed = self.bytes.saturating_add(bytes);
            return Err(
                ErrorKind::Limit(format!("{needed} bytes of memory where {limit} may be used")).into()
            );
        }
        Ok(())
    }

    /// Counts steps against the limit.
    pub(crate) fn count_steps(&mut self, count: usize) -> Result<()> {
        self.steps = self.steps.saturating_add(count as u64);
        if self.steps > self.options.limits.steps {
            return Err(
                ErrorKind::Limit(format!("more than {} operations", self.options.limits.steps)).into()
            );
        }
        Ok(())
    }

    /// The value of a key in the current call.
    pub(crate) fn get(&self, value: ValueId) -> Result<&Value> {
        self.frames
            .last()
            .and_then(|frame| frame.values.get(value.index().checked_sub(frame.base)?))
            .and_then(Option::as_ref)
            .ok_or_else(|| not_computed(value))
    }

    /// The values of an operation's operands, given away where this is their last use.
    fn values(&mut self, keys: &[ValueId], step: &OpLiveness) -> Result<Vec<Value>> {
        let value = |(&key, &last): (&ValueId, &bool)| match last {
            true => self.take(key).ok_or_else(|| not_computed(key)),
            false => self.get(key).cloned(),
        };
        keys.iter().zip(&step.last).map(value).collect()
    }

    fn slot(&mut self, key: ValueId) -> Option<&mut Option<Value>> {
        let frame = self.frames.last_mut()?;
        frame.values.get_mut(key.index().checked_sub(frame.base)?)
    }

    fn take(&mut self, key: ValueId) -> Option<Value> {
        let value = self.slot(key)?.take()?;
        self.bytes -= value.byte_count();
        Some(value)
    }

    fn set(&mut self, key: ValueId, value: Value) -> Result<()> {
        let bytes = value.byte_count();
        self.reserve(bytes)?;
        let slot =
            self.slot(key).ok_or_else(|| invalid(format!("{key:?} is not a value of this function")))?;
        let old = slot.replace(value).map_or(0, |old| old.byte_count());
        self.bytes = self.bytes + bytes - old;
        Ok(())
    }

    /// The smallest range of keys that covers all values inside an operation.
    fn range_of(&mut self, op: OpRef<'m>) -> (usize, usize) {
        if let Some(&range) = self.ranges.get(&op.id()) {
            return range;
        }
        let (mut low, mut high) = (usize::MAX, 0);
        let mut pending = vec![op];
        while let Some(op) = pending.pop() {
            let mut note = |value: ValueId| {
                low = low.min(value.index());
                high = high.max(value.index() + 1);
            };
            op.results().for_each(&mut note);
            for &region in op.regions() {
                for &block in self.module.blocks(region) {
                    self.module.arguments(block).iter().copied().for_each(&mut note);
                    pending.extend(self.module.ops_in(block));
                }
            }
        }
        let range = (low.min(high), high);
        self.ranges.insert(op.id(), range);
        range
    }
}

fn not_computed(value: ValueId) -> crate::Error {
    invalid(format!("{value:?} is used before it is computed"))
}

/// Runs functions as the processes of a grid, each on its own thread: `programs[replica][partition]` with its inputs.
pub(crate) fn run_grid<'m>(
    module: &'m Module,
    options: &Options,
    shared: &Shared,
    programs: Vec<Vec<(Func<'m>, Vec<Value>)>>,
) -> Result<Vec<Vec<Value>>> {
    let partitions = programs.first().map_or(0, Vec::len);
    let count = programs.len() * partitions;
    if count > options.limits.processes {
        return Err(ErrorKind::Limit(format!("{count} processes")).into());
    }
    let mesh = Mesh::new(programs.len(), partitions);
    let mesh = &mesh;
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (replica, row) in programs.into_iter().enumerate() {
            for (partition, (func, inputs)) in row.into_iter().enumerate() {
                let process = Process::new(mesh, ProcessId { replica, partition });
                let run = move || {
                    let result = Machine::new(module, options, shared, Some(process)).call(func, inputs);
                    mesh.leave(result.is_err());
                    result
                };
                let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run);
                threads.push(thread.map_err(|error| {
                    mesh.leave(true);
                    ErrorKind::Limit(format!("no thread for a process: {error}"))
                })?);
            }
        }
        let mut results = Vec::new();
        let mut failure = None;
        for thread in threads {
            match thread.join().unwrap_or_else(|_| Err(invalid("a process failed unexpectedly"))) {
                Ok(values) => results.push(values),
                // The first failure that is not the echo of another one is the one to report.
                Err(error) => {
                    let echo = matches!(error.kind(), ErrorKind::PeerFailed);
                    if failure.is_none() || !echo {
                        failure = Some(error);
                    }
                }
            }
        }
        failure.map_or(Ok(results), Err)
    })
}
