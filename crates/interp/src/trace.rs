//! An observer that notes every value: what it looks like, and on request all of it.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Mutex;

use serde::Serialize;
use warpforge_diag::Source;
use warpforge_ir::{Func, OpId, OpRef};
use warpforge_tensor::Tensor;
use warpforge_tensor::summary::{Summary, summarise};

use crate::{Observer, Value};

/// One value of a trace.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// The function that the operation is in.
    pub function: String,
    /// The position of the operation in its function, counted in the order of the text.
    pub op_index: usize,
    /// The line of the source, where there is one.
    pub line: Option<usize>,
    /// The operation.
    pub op: String,
    /// Which of its results.
    pub result: usize,
    /// How often the operation has run before.
    pub iteration: usize,
    /// The element type.
    pub element_type: String,
    /// The shape.
    pub shape: Vec<usize>,
    /// What the values look like.
    #[serde(flatten)]
    pub summary: Summary,
}

impl Entry {
    /// A name for the whole tensor: function, operation, result and iteration.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}:{}/{}", self.function, self.op_index, self.result, self.iteration)
    }
}

/// What a trace does besides noting values.
#[derive(Debug, Clone, Copy, Default)]
pub struct TraceOptions {
    /// Stop at the first NaN that an operation computes.
    pub break_on_nan: bool,
    /// Keep whole tensors.
    pub keep_tensors: bool,
}

/// Writes one line of JSON for every value.
pub struct Trace<W: Write + Send> {
    options: TraceOptions,
    source: Option<Source>,
    state: Mutex<State<W>>,
}

struct State<W> {
    out: W,
    runs: HashMap<OpId, usize>,
    places: HashMap<OpId, (String, usize)>,
    kept: Vec<(String, Tensor)>,
}

impl<W: Write + Send> Trace<W> {
    /// A trace to `out`; lines are those of `source`.
    pub fn new(out: W, source: Option<Source>, options: TraceOptions) -> Self {
        let state = State { out, runs: HashMap::new(), places: HashMap::new(), kept: Vec::new() };
        Self { options, source, state: Mutex::new(state) }
    }

    /// The tensors that were kept, by name, in the order of execution.
    pub fn into_tensors(self) -> Vec<(String, Tensor)> {
        self.state.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).kept
    }
}

/// The function of an operation and its position there.
fn place(op: OpRef<'_>) -> (String, usize) {
    let mut outer = op;
    while let Some(parent) = outer.parent_op() {
        outer = parent;
        if Func::new(outer).is_some() {
            break;
        }
    }
    let mut index = 0;
    let mut pending = vec![outer];
    while let Some(next) = pending.pop() {
        if next.id() == op.id() {
            break;
        }
        index += usize::from(next.id() != outer.id());
        for &region in next.regions().iter().rev() {
            for &block in op.module().blocks(region).iter().rev() {
                pending.extend(op.module().ops_in(block).rev());
            }
        }
    }
    (Func::new(outer).map_or_else(String::new, |func| func.name().to_owned()), index)
}

impl<W: Write + Send> Observer for Trace<W> {
    fn results(&self, op: OpRef<'_>, results: &[Value]) -> Result<(), String> {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let runs = state.runs.entry(op.id()).or_default();
        let iteration = *runs;
        *runs += 1;
        let (function, op_index) = state.places.entry(op.id()).or_insert_with(|| place(op)).clone();
        let line = self.source.as_ref().filter(|_| !op.span().is_none());
        let line = line.map(|source| source.position(op.span().start).line);
        for (result, value) in results.iter().enumerate() {
            let Value::Tensor(tensor) = value else { continue };
            let entry = Entry {
                function: function.clone(),
                op_index,
                line,
                op: op.name().to_owned(),
                result,
                iteration,
                element_type: tensor.element_type().to_string(),
                shape: tensor.dims().to_vec(),
                summary: summarise(tensor),
            };
            let text = serde_json::to_string(&entry).map_err(|error| error.to_string())?;
            writeln!(state.out, "{text}").map_err(|error| format!("the trace cannot be written: {error}"))?;
            if self.options.keep_tensors {
                state.kept.push((entry.name(), tensor.clone()));
            }
            if self.options.break_on_nan && entry.summary.nan > 0 {
                return Err(format!("{} NaN in result {result} of {}", entry.summary.nan, entry.name()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interpreter, Options};
    use std::sync::Arc;
    use warpforge_snakeburger::text;

    const PROGRAM: &str = "func.func @main() -> tensor<2xf32> {
  %a = stablehlo.constant dense<[1.0, -1.0]> : tensor<2xf32>
  %b = stablehlo.sqrt %a : tensor<2xf32>
  %c = stablehlo.add %b, %b : tensor<2xf32>
  func.return %c : tensor<2xf32>
}
";

    /// A shared place to write to.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("not poisoned").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn traced(options: TraceOptions) -> (Vec<String>, crate::Result<Vec<Value>>) {
        let source = Source::new("a.mlir", PROGRAM);
        let module = text::parse(&source, &text::Options::default()).expect("a valid module");
        let lines = Lines::default();
        let trace = Trace::new(lines.clone(), Some(source), options);
        let options = Options { observer: Some(Arc::new(trace)), ..Options::default() };
        let outcome = Interpreter::new(&module, options).run("main", Vec::new());
        let written = lines.0.lock().expect("not poisoned").clone();
        let written = String::from_utf8(written).expect("text");
        (written.lines().map(str::to_owned).collect(), outcome)
    }

    #[test]
    fn every_value_is_noted_with_its_line() {
        let (lines, outcome) = traced(TraceOptions::default());
        assert!(outcome.is_ok());
        assert_eq!(lines.len(), 3);
        assert!(lines[1].contains("\"line\":3") && lines[1].contains("\"nan\":1"), "{}", lines[1]);
        assert!(
            lines[2].contains("\"op_index\":2") && lines[2].contains("\"function\":\"main\""),
            "{}",
            lines[2]
        );
    }

    #[test]
    fn the_first_nan_stops_the_run() {
        let (lines, outcome) = traced(TraceOptions { break_on_nan: true, ..TraceOptions::default() });
        assert_eq!(lines.len(), 2);
        assert!(outcome.is_err_and(|error| error.op() == Some("stablehlo.sqrt")));
    }
}
