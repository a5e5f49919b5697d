//! Op-by-op comparison: every operation of a run against the reference, on the operands that the run had.
//!
//! Errors do not grow from operation to operation: each is computed again from what the run itself computed before.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use warpforge_interp::trace::Places;
use warpforge_interp::{Interpreter, Observer, Options, Value};
use warpforge_ir::slice::{slice, uses};
use warpforge_ir::{Func, OpId, OpRef, ValueId};
use warpforge_tensor::Tensor;
use warpforge_tensor::compare::{Criterion, Tolerance, compare_values};

use crate::op_tolerance::{OpTolerance, difference};

/// Differences that are kept with all that is known of them.
const KEPT: usize = 64;

/// What came of a run's operations.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Compared {
    /// Operations that the reference computed again.
    pub operations: usize,
    /// Those whose results are the same to the last bit.
    pub identical: usize,
    /// Those with a result that is too far off.
    pub out_of_tolerance: usize,
    /// The first of those, in order of execution.
    pub differences: Vec<Difference>,
    /// The result that is furthest from the reference's, as a part of its largest value, among those within tolerance.
    pub furthest: Option<Difference>,
    /// Operations that could not be computed again, each with its reason.
    pub not_compared: Vec<String>,
}

/// A result that is not the reference's.
#[derive(Debug, Clone, Serialize)]
pub struct Difference {
    /// The value as traces name it: function/operation:result/iteration.
    pub name: String,
    /// The operation.
    pub op: String,
    /// The node of the graph that it was lowered from.
    pub node: Option<String>,
    /// The line of the program that the graph was traced from.
    pub source: Option<String>,
    /// Its elements, and how many of them are not the reference's.
    pub elements: usize,
    /// See `elements`.
    pub differing: usize,
    /// The largest difference.
    pub max_abs: f64,
    /// The same as a part of the reference's largest value.
    pub of_scale: f64,
    /// The same in representable values.
    pub max_ulp: u64,
    /// What is too far off, where something is.
    pub problem: Option<String>,
}

/// An observer that computes every operation again, alone.
pub struct OpByOpComparison {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The values that operations to come use.
    values: HashMap<ValueId, Tensor>,
    /// The last operation that uses each value of the functions met so far.
    last_use: HashMap<ValueId, OpId>,
    functions: HashSet<OpId>,
    places: Places,
    runs: HashMap<OpId, usize>,
    compared: Compared,
}

impl OpByOpComparison {
    /// An observer of a run of this function on these arguments.
    #[must_use]
    pub fn new(func: Func<'_>, arguments: impl IntoIterator<Item = Tensor>) -> Self {
        let values = func.arguments().iter().copied().zip(arguments).collect();
        Self { state: Mutex::new(State { values, ..State::default() }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was found so far.
    #[must_use]
    pub fn take(&self) -> Compared {
        std::mem::take(&mut self.state().compared)
    }
}

impl Observer for OpByOpComparison {
    fn begins(&self, op: OpRef<'_>) {
        let state = &mut *self.state();
        let Some(callee) = op.callee() else { return };
        let given = op.operands().iter().map(|operand| state.values.get(operand).cloned());
        let bound: Vec<_> = callee.arguments().iter().copied().zip(given).collect();
        state.values.extend(bound.into_iter().filter_map(|(argument, tensor)| Some((argument, tensor?))));
    }

    fn results(&self, op: OpRef<'_>, results: &[Value]) -> Result<(), String> {
        // What is in the region of an operation belongs to the operation.
        let Some(func) = op.parent_op().and_then(Func::new) else { return Ok(()) };
        let state = &mut *self.state();
        state.look_through(func);
        let tensors: Vec<Option<&Tensor>> = results.iter().map(|value| value.as_tensor().ok()).collect();
        if op.callee().is_none() && !tensors.is_empty() {
            state.compare(func, op, &tensors);
        }
        let given = op.results().zip(tensors).filter_map(|(value, tensor)| Some((value, tensor?.clone())));
        state.values.extend(given);
        let State { values, last_use, .. } = state;
        for value in uses(op).into_iter().chain(op.results()) {
            if last_use.get(&value).is_none_or(|&last| last == op.id()) {
                values.remove(&value);
            }
        }
        Ok(())
    }
}

impl State {
    /// Notes who uses the values of a function last.
    fn look_through(&mut self, func: Func<'_>) {
        if !self.functions.insert(func.op().id()) {
            return;
        }
        let Some(body) = func.body() else { return };
        for op in func.op().module().ops_in(body) {
            self.last_use.extend(uses(op).into_iter().map(|value| (value, op.id())));
        }
    }

    fn compare(&mut self, func: Func<'_>, op: OpRef<'_>, results: &[Option<&Tensor>]) {
        let run = self.runs.entry(op.id()).or_default();
        let iteration = *run;
        *run += 1;
        let (operands, expected) = match self.again(func, op) {
            Ok(computed) => computed,
            Err(reason) => {
                self.compared.not_compared.push(format!("{}: {reason}", op.name()));
                return;
            }
        };
        self.compared.operations += 1;
        let tolerance = OpTolerance::of(op);
        let operands: Vec<&Tensor> = operands.iter().collect();
        let (mut identical, mut problem) = (true, false);
        for (at, (expected, found)) in expected.iter().zip(results).enumerate() {
            let (Ok(expected), Some(found)) = (expected.as_tensor(), found) else { continue };
            if expected.identical(found) {
                continue;
            }
            identical = false;
            let far = difference(tolerance, &operands, expected, found);
            problem |= far.is_some();
            let place = self.places.of(op, None);
            let measured = compare_values(found, expected, Criterion::new(Tolerance::Exact)).ok();
            let (max_abs, of_scale) = measured.as_ref().map_or((f64::INFINITY, f64::INFINITY), |report| {
                let of_scale = if report.scale > 0.0 { report.max_scaled } else { report.max_absolute };
                (report.max_absolute, of_scale)
            });
            let found = Difference {
                name: format!("{}/{}:{at}/{iteration}", place.function, place.op_index),
                op: op.name().to_owned(),
                node: place.node.clone(),
                source: place.source.clone(),
                elements: expected.len(),
                differing: measured.as_ref().map_or(expected.len(), |report| report.mismatches),
                max_abs,
                of_scale,
                max_ulp: measured.as_ref().map_or(u64::MAX, |report| report.max_ulp),
                problem: far,
            };
            self.compared.note(found);
        }
        self.compared.identical += usize::from(identical);
        self.compared.out_of_tolerance += usize::from(problem);
    }

    /// The operands that an operation had, and what the reference makes of them.
    fn again(&self, func: Func<'_>, op: OpRef<'_>) -> Result<(Vec<Tensor>, Vec<Value>), String> {
        let wanted: Vec<ValueId> = op.results().collect();
        let cut = slice(func, &wanted, &|_| true).ok_or("it cannot be cut out of its function")?;
        let operands: Option<Vec<Tensor>> =
            cut.inputs.iter().map(|value| self.values.get(value).cloned()).collect();
        let operands = operands.ok_or("an operand was not seen, or is no tensor")?;
        let values = operands.iter().cloned().map(Value::Tensor).collect();
        let computed = Interpreter::new(&cut.module, Options::default()).run(func.name(), values);
        Ok((operands, computed.map_err(|error| error.to_string())?))
    }
}

impl Compared {
    fn note(&mut self, found: Difference) {
        if found.problem.is_some() {
            if self.differences.len() < KEPT {
                self.differences.push(found);
            }
        } else if self.furthest.as_ref().is_none_or(|known| found.of_scale > known.of_scale) {
            self.furthest = Some(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use warpforge_diag::Source;
    use warpforge_snakeburger::text;

    const PROGRAM: &str = "func.func private @square(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<2xf32> loc(\"square\"(\"net.py\":3:0))
  return %0 : tensor<2xf32>
}
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @square(%a) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = stablehlo.negate %0 : tensor<2xf32>
  %2 = call @square(%1) : (tensor<2xf32>) -> tensor<2xf32>
  %3 = stablehlo.sqrt %2 : tensor<2xf32> loc(\"root\"(\"net.py\":4:0))
  return %3 : tensor<2xf32>
}
";

    /// A run that shows another value for one operation than it has.
    struct Wrong {
        comparison: OpByOpComparison,
        op: &'static str,
        by: f32,
    }

    impl Observer for Wrong {
        fn begins(&self, op: OpRef<'_>) {
            self.comparison.begins(op);
        }

        fn results(&self, op: OpRef<'_>, results: &[Value]) -> Result<(), String> {
            if op.name() != self.op {
                return self.comparison.results(op, results);
            }
            let tensor = results[0].as_tensor().unwrap().as_slice::<f32>().unwrap();
            let moved: Vec<f32> = tensor.iter().map(|value| value * self.by).collect();
            self.comparison.results(op, &[Value::Tensor(Tensor::from_slice(&[2], &moved).unwrap())])
        }
    }

    fn compared(op: &'static str, by: f32) -> Compared {
        let source = Source::new("m.mlir", PROGRAM);
        let module = text::parse(&source, &text::Options { keep_locations: true }).unwrap();
        let input = Tensor::from_slice(&[2], &[1.5f32, -2.0]).unwrap();
        let comparison = OpByOpComparison::new(module.function("main").unwrap(), [input.clone()]);
        let wrong = Arc::new(Wrong { comparison, op, by });
        let options = Options { observer: Some(wrong.clone()), ..Options::default() };
        Interpreter::new(&module, options).run("main", vec![Value::Tensor(input)]).unwrap();
        assert_eq!(wrong.comparison.state().values.len(), 2, "only what functions return is left");
        wrong.comparison.take()
    }

    #[test]
    fn a_run_of_the_reference_is_the_references() {
        let found = compared("", 1.0);
        assert_eq!((found.operations, found.identical, found.out_of_tolerance), (4, 4, 0));
        assert!(found.differences.is_empty() && found.furthest.is_none() && found.not_compared.is_empty());
    }

    #[test]
    fn an_operation_that_differs_is_named() {
        let found = compared("stablehlo.sqrt", 1.25);
        assert_eq!((found.operations, found.identical, found.out_of_tolerance), (4, 3, 1), "{found:?}");
        let first = &found.differences[0];
        assert_eq!((first.name.as_str(), first.op.as_str()), ("main/3:0/0", "stablehlo.sqrt"));
        assert_eq!((first.node.as_deref(), first.source.as_deref()), (Some("root"), Some("net.py:4")));
        assert_eq!((first.differing, first.elements, first.max_abs), (2, 2, 1.0));
        let close = compared("stablehlo.sqrt", 1.0 + f32::EPSILON);
        assert_eq!((close.out_of_tolerance, close.operations - close.identical), (0, 1), "{close:?}");
        assert!(close.furthest.unwrap().of_scale < 3e-7);
    }
}
