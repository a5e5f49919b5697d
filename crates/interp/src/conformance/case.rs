//! One chunk of a file: what it asks for and what came of it.

use serde::Serialize;
use warpforge_diag::{Diagnostics, Source};
use warpforge_ir::{Blob, Func, Module, OpKind, OpRef, print, verify};
use warpforge_snakeburger::{bytecode, load_bytecode, text};

use super::Judge;
use crate::{Error, ErrorKind, Interpreter};

/// What is done with a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Run the entry function; its checks must hold.
    Execute,
    /// Read, print, read again: the same module.
    RoundTrip,
    /// The reader or the verifier must refuse it.
    Refuse,
}

/// What came of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// All is as it must be.
    Passed,
    /// Something is not.
    Failed,
    /// It could not be judged; the reason says why.
    Skipped,
}

/// The outcome for one chunk.
#[derive(Debug, Clone, Serialize)]
pub struct Case {
    /// The file.
    pub file: String,
    /// The line of the file that the chunk starts on.
    pub line: usize,
    /// The operation that the chunk is about.
    pub operation: String,
    /// What was done.
    pub mode: Mode,
    /// What came of it.
    pub status: Status,
    /// Why it did not pass.
    pub reason: Option<String>,
}

/// Whether the reference of the StableHLO project itself does not run a file: its float results are judged loosely.
const NOT_RUN_THERE: &str = "RUN-DISABLED";

/// Judges one chunk. `whole` is the text of the file it is from.
#[must_use]
pub fn run_chunk(file: &str, whole: &str, chunk: text::Chunk<'_>, judge: &Judge) -> Case {
    let mut case = Case {
        file: file.to_owned(),
        line: chunk.first_line,
        operation: "-".to_owned(),
        mode: if chunk.text.contains("expected-error") { Mode::Refuse } else { Mode::RoundTrip },
        status: Status::Passed,
        reason: None,
    };
    let source = Source::new(file, chunk.text).with_first_line(chunk.first_line);
    let parsed = read(&source);
    let outcome = match parsed {
        Ok(_) if case.mode == Mode::Refuse => Err("accepted, but must be refused".to_owned()),
        Err(_) if case.mode == Mode::Refuse => Ok(()),
        Err(diagnostics) => Err(diagnostics.to_string()),
        Ok(module) => judged(&mut case, &module, &source, whole.contains(NOT_RUN_THERE), judge),
    };
    case.conclude(outcome)
}

/// Judges a bytecode file.
///
/// An artifact that says it is of a future version of StableHLO must be refused for that; any other must be read.
#[must_use]
pub fn run_artifact(file: &str, bytes: Vec<u8>, judge: &Judge) -> Case {
    let version = bytecode::version(&bytes).ok().flatten();
    let future = version.is_some_and(bytecode::Version::is_future);
    let mut case = Case {
        file: file.to_owned(),
        line: 1,
        operation: "-".to_owned(),
        mode: if future { Mode::Refuse } else { Mode::RoundTrip },
        status: Status::Passed,
        reason: None,
    };
    let source = Source::binary(file);
    let module = load_bytecode(file, &Blob::from(bytes), &text::Options::default()).module;
    let outcome = match module.and_then(|module| verified(module, &source)) {
        Ok(_) if future => Err("accepted, though it is of a future version".to_owned()),
        Err(diagnostics) => {
            let named = version.is_some_and(|version| diagnostics.to_string().contains(&version.to_string()));
            if future && named { Ok(()) } else { Err(diagnostics.to_string()) }
        }
        Ok(module) => judged(&mut case, &module, &source, false, judge),
    };
    case.conclude(outcome)
}

/// Runs a module that has checks; one that has none makes a round trip.
fn judged(
    case: &mut Case,
    module: &Module,
    source: &Source,
    loose: bool,
    judge: &Judge,
) -> Result<(), String> {
    case.operation = subject(module);
    if !has_checks(module) {
        return round_trip(source.name(), module);
    }
    case.mode = Mode::Execute;
    let mut judge = judge.clone();
    if loose {
        judge.options.loose_checks = Some(1e-4);
    }
    execute(module, &judge).map_err(|error| located(&error, source))
}

impl Case {
    fn conclude(mut self, outcome: Result<(), String>) -> Self {
        if let Err(reason) = outcome {
            self.status = Status::Failed;
            self.reason = Some(reason);
        }
        self
    }
}

/// Reads and verifies a module.
fn read(source: &Source) -> Result<Module, Diagnostics> {
    let module = text::parse(source, &text::Options::default())?;
    verified(module, source)
}

/// The module, or the rules that it breaks.
fn verified(module: Module, source: &Source) -> Result<Module, Diagnostics> {
    let mut diagnostics = Diagnostics::new(source.clone());
    for broken in verify(&module) {
        diagnostics.push(broken);
    }
    if diagnostics.has_errors() { Err(diagnostics) } else { Ok(module) }
}

/// Every operation of the module, regions included.
fn for_each_op<'m>(module: &'m Module, visit: &mut dyn FnMut(OpRef<'m>)) {
    let mut pending = vec![module.root()];
    while let Some(op) = pending.pop() {
        visit(op);
        for &region in op.regions() {
            // Reversed, so that operations are visited in the order of the text.
            for &block in module.blocks(region).iter().rev() {
                pending.extend(module.ops_in(block).rev());
            }
        }
    }
}

pub(super) fn is_check(op: OpRef<'_>) -> bool {
    let target = op.attr_str("call_target_name").filter(|_| op.is(OpKind::CustomCall));
    target.is_some_and(|target| target.starts_with("check."))
        || op.name().starts_with("check.")
        || op.is(OpKind::InterpreterRunParallel)
}

fn has_checks(module: &Module) -> bool {
    let mut found = false;
    for_each_op(module, &mut |op| found |= is_check(op));
    found
}

/// The operation that a module is about: the first in it that is not scaffolding.
fn subject(module: &Module) -> String {
    let scaffolding = [
        OpKind::Constant,
        OpKind::Return,
        OpKind::FuncReturn,
        OpKind::Func,
        OpKind::Module,
        OpKind::Call,
        OpKind::UniformQuantize,
        OpKind::UniformDequantize,
        OpKind::BroadcastInDim,
        OpKind::Transpose,
        OpKind::Reshape,
    ];
    let mut names = Vec::new();
    for_each_op(module, &mut |op| {
        if !is_check(op) && op.kind().is_some_and(|kind| kind.dialect() != "interpreter") {
            names.push((op.name().to_owned(), op.kind().is_some_and(|kind| scaffolding.contains(&kind))));
        }
    });
    let plain = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
    let real = names.iter().find(|(_, scaffold)| !scaffold);
    let moved = names.iter().find(|(name, _)| !name.starts_with("func.") && !name.starts_with("builtin."));
    real.or(moved).map_or_else(|| "-".to_owned(), |(name, _)| plain(name))
}

/// The entry: `@main`, else the only function, else every function in turn that takes nothing.
fn execute(module: &Module, judge: &Judge) -> Result<(), Error> {
    let run = |name: &str| {
        let engine = judge.engine.as_deref();
        let judged = engine
            .zip(module.function(name))
            .and_then(|(engine, func)| super::engine::judged(func, engine, &judge.options));
        judged.unwrap_or_else(|| {
            Interpreter::new(module, judge.options.clone()).run(name, Vec::new()).map(drop)
        })
    };
    if module.function("main").is_some() {
        return run("main");
    }
    let runnable: Vec<&str> = module
        .functions()
        .filter(|func| func.arguments().is_empty() && func.is_public())
        .map(Func::name)
        .collect();
    if runnable.is_empty() {
        return Err(ErrorKind::Invalid("no function can be run without inputs".to_owned()).into());
    }
    runnable.into_iter().try_for_each(run)
}

/// The message of an error with the line of the file that it is about.
fn located(error: &Error, source: &Source) -> String {
    if error.span().is_none() {
        return error.to_string();
    }
    if source.is_binary() {
        return format!("byte {}: {error}", error.span().start);
    }
    format!("line {}: {error}", source.position(error.span().start).line)
}

fn round_trip(file: &str, module: &Module) -> Result<(), String> {
    let printed = print::print(module);
    let again = read(&Source::new(file, printed.as_str()));
    let again = again.map_err(|diagnostics| format!("what was printed cannot be read: {diagnostics}"))?;
    let second = print::print(&again);
    if second == printed {
        return Ok(());
    }
    let differing = printed.lines().zip(second.lines()).find(|(a, b)| a != b);
    Err(match differing {
        Some((first, second)) => format!("printed differently the second time:\n  {first}\n  {second}"),
        None => "printed longer or shorter the second time".to_owned(),
    })
}
