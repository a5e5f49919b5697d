//! Observers that note every value: what it looks like, and on request all of it.

mod filter;
mod nodes;
mod places;

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use warpforge_diag::Source;
use warpforge_ir::{OpId, OpKind, OpRef, ValueId};
use warpforge_tensor::Tensor;
use warpforge_tensor::summary::{Summary, summarise};

pub use filter::Filter;
pub use nodes::NodeValues;
pub use places::{Place, Places};

use crate::{Observer, Value};

/// One value of a trace.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// The function that the operation is in.
    pub function: String,
    /// The position of the operation in its function, counted in the order of the text.
    pub op_index: usize,
    /// The line of the module's text, where there is one.
    pub line: Option<usize>,
    /// The operation.
    pub op: String,
    /// The node of the graph that the operation was lowered from, where the module says so.
    pub node: Option<String>,
    /// The line of the program that the graph was traced from, `file:line`.
    pub source: Option<String>,
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
#[derive(Debug, Clone, Default)]
pub struct TraceOptions {
    /// Stop at the first operation that makes a NaN of operands that have none. A constant makes nothing.
    pub break_on_nan: bool,
    /// Keep the whole tensors whose name ([`Entry::name`]), operation or node fits.
    pub keep: Option<Filter>,
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
    places: Places,
    /// Values that have a NaN.
    tainted: HashSet<ValueId>,
    kept: Vec<(String, Tensor)>,
}

impl<W: Write + Send> Trace<W> {
    /// A trace to `out`; lines are those of `source`.
    pub fn new(out: W, source: Option<Source>, options: TraceOptions) -> Self {
        let state = State {
            out,
            runs: HashMap::new(),
            places: Places::default(),
            tainted: HashSet::new(),
            kept: Vec::new(),
        };
        Self { options, source, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes out what is buffered, and gives the tensors that were kept so far, by name, in the order of execution.
    ///
    /// # Errors
    ///
    /// When the trace cannot be written.
    pub fn finish(&self) -> std::io::Result<Vec<(String, Tensor)>> {
        let mut state = self.state();
        state.out.flush()?;
        Ok(std::mem::take(&mut state.kept))
    }
}

impl<W: Write + Send> Observer for Trace<W> {
    fn results(&self, op: OpRef<'_>, results: &[Value]) -> Result<(), String> {
        let state = &mut *self.state();
        let runs = state.runs.entry(op.id()).or_default();
        let iteration = *runs;
        *runs += 1;
        let place = state.places.of(op, self.source.as_ref());
        let inherits = op.operands().iter().any(|operand| state.tainted.contains(operand));
        for ((result, value), id) in results.iter().enumerate().zip(op.results()) {
            let Value::Tensor(tensor) = value else { continue };
            let entry = Entry {
                function: place.function.clone(),
                op_index: place.op_index,
                line: place.line,
                op: op.name().to_owned(),
                node: place.node.clone(),
                source: place.source.clone(),
                result,
                iteration,
                element_type: tensor.element_type().to_string(),
                shape: tensor.dims().to_vec(),
                summary: summarise(tensor),
            };
            let text = serde_json::to_string(&entry).map_err(|error| error.to_string())?;
            writeln!(state.out, "{text}").map_err(|error| format!("the trace cannot be written: {error}"))?;
            let name = entry.name();
            let names = [name.as_str(), op.name(), entry.node.as_deref().unwrap_or_default()];
            if self.options.keep.as_ref().is_some_and(|filter| filter.keeps(&names)) {
                state.kept.push((name, tensor.clone()));
            }
            if entry.summary.nan == 0 {
                state.tainted.remove(&id);
                continue;
            }
            state.tainted.insert(id);
            if self.options.break_on_nan && !inherits && !op.is(OpKind::Constant) {
                return Err(first_nan(&entry));
            }
        }
        Ok(())
    }
}

/// The message about the operation that made the first NaN; where it is comes with the error.
fn first_nan(entry: &Entry) -> String {
    let Summary { nan, count, .. } = entry.summary;
    format!("the first NaN: {nan} of {count} elements of {}", entry.name())
}

/// Several observers of one run, in order; the first that stops it wins.
pub struct Several(pub Vec<Arc<dyn Observer>>);

impl Observer for Several {
    fn begins(&self, op: OpRef<'_>) {
        self.0.iter().for_each(|observer| observer.begins(op));
    }

    fn results(&self, op: OpRef<'_>, results: &[Value]) -> Result<(), String> {
        self.0.iter().try_for_each(|observer| observer.results(op, results))
    }
}

#[cfg(test)]
mod tests;
