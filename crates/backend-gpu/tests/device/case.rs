//! A program, its inputs, and the comparison of a GPU with the reference.

use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::Failed;
use warpforge_backend_gpu::Gpus;
use warpforge_diag::Source;
use warpforge_interp::Value;
use warpforge_ir::{Func, OpRef};
use warpforge_runtime::{
    Backend, Device, Executable, Fallback, Observer, Precision, Program, Reference, RunOptions, Target, Tier,
    Weights,
};
use warpforge_snakeburger::text;
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

/// A program and its tolerance.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    text: String,
    /// Relative to the largest value of a result.
    within: f64,
    precision: Precision,
    /// Whether some of it may fall back to the reference.
    on_host: bool,
    /// Substrings of step names that must occur in the production tier.
    steps: Vec<&'static str>,
    /// Whether its values can be observed in the correctness tier.
    shown: bool,
}

impl Case {
    pub(crate) fn new(name: impl Into<String>, text: impl Into<String>, within: f64) -> Self {
        let (name, text) = (name.into(), text.into());
        Self {
            name,
            text,
            within,
            precision: Precision::Model,
            on_host: false,
            steps: Vec::new(),
            shown: true,
        }
    }

    /// The same in a compute precision.
    pub(crate) fn in_precision(mut self, name: &str) -> Self {
        self.name += &format!("_{name}");
        self.precision = name.parse().expect("a precision");
        self
    }

    /// The same, where some operations may fall back to the reference.
    pub(crate) fn on_host(mut self) -> Self {
        self.on_host = true;
        self
    }

    /// The same, with a step of this name in the production tier.
    pub(crate) fn with_step(mut self, step: &'static str) -> Self {
        self.steps.push(step);
        self
    }

    /// The same, where no tier can observe values.
    pub(crate) fn unseen(mut self) -> Self {
        self.shown = false;
        self
    }

    /// The same, with a step that the engine takes if it is measured to be the faster one: looked for where nothing is
    /// measured.
    pub(crate) fn with_measured_step(self, step: &'static str) -> Self {
        if std::env::var("WARPFORGE_TUNING").as_deref() == Ok("off") { self.with_step(step) } else { self }
    }

    fn program(&self) -> Result<Program, Failed> {
        let source = Source::new(self.name.clone(), self.text.clone());
        let module = text::parse(&source, &text::Options::default()).map_err(|error| format!("{error:?}"))?;
        Ok(Program::new(Arc::new(module), "main", Weights::default())?)
    }

    /// The results of the reference.
    pub(crate) fn expected(&self) -> Result<Vec<Tensor>, Failed> {
        let program = self.program()?;
        Ok(reference(&program)?.run(&inputs(&program), &RunOptions::default())?.outputs)
    }

    /// Compiles the program for the first GPU.
    pub(crate) fn compile(&self, gpus: &Gpus, tier: Tier) -> Result<Box<dyn Executable>, Failed> {
        let precision = self.precision;
        let target = Target::new(Device::Cuda(0), tier, precision);
        Ok(gpus.compile(&self.program()?, &target)?)
    }

    /// Runs the program on the first GPU three times: step by step, during capture, and as a captured graph.
    pub(crate) fn agrees(&self, gpus: &Gpus, tier: Tier) -> Result<(), Failed> {
        let expected = self.expected()?;
        let executable = self.compile(gpus, tier)?;
        let fallbacks = executable.fallbacks();
        if !self.on_host && !fallbacks.is_empty() {
            return Err(Fallback::summary(&fallbacks).unwrap_or_default().into());
        }
        let inputs = inputs(executable.program());
        for profile in [true, false, false] {
            let outcome = executable.run(&inputs, &RunOptions { profile, ..RunOptions::default() })?;
            if profile && tier == Tier::Production {
                let names: Vec<&str> =
                    outcome.profile.events.iter().map(|event| event.name.as_str()).collect();
                for step in &self.steps {
                    if !names.iter().any(|name| name.contains(step)) {
                        return Err(format!("no step is `{step}`: {}", names.join("; ")).into());
                    }
                }
            }
            self.compare(&expected, &outcome.outputs)?;
        }
        match (tier, self.shown) {
            (Tier::Correctness, true) => self.agrees_inside(executable.as_ref()),
            (Tier::Correctness, false) => refuses_to_show(executable.as_ref()),
            _ => Ok(()),
        }
    }

    /// Runs the program once more and compares the results of each operation.
    fn agrees_inside(&self, executable: &dyn Executable) -> Result<(), Failed> {
        let program = executable.program();
        let (on_device, on_host) = (Arc::new(Values::default()), Arc::new(Values::default()));
        let run = |executable: &dyn Executable, values: &Arc<Values>| {
            let options = RunOptions { observer: Some(values.clone()), ..RunOptions::default() };
            executable.run(&inputs(program), &options).map(drop)
        };
        run(executable, &on_device)?;
        run(reference(program)?.as_ref(), &on_host)?;
        let (found, expected) = (on_device.take(), on_host.take());
        let names = |values: &[(String, Vec<Tensor>)]| -> Vec<String> {
            values.iter().map(|(name, _)| name.clone()).collect()
        };
        if names(&found) != names(&expected) {
            return Err(format!("seen {:?}, {:?} expected", names(&found), names(&expected)).into());
        }
        // The reference rounds a sum after every term, kernels at its end: in narrow types that shows before results do.
        let inside = Case { within: 4.0 * self.within, ..self.clone() };
        for ((name, found), (_, expected)) in found.iter().zip(&expected) {
            inside
                .compare(expected, found)
                .map_err(|error| format!("{name}: {}", error.message().unwrap_or_default()))?;
        }
        Ok(())
    }

    fn compare(&self, expected: &[Tensor], found: &[Tensor]) -> Result<(), Failed> {
        if expected.len() != found.len() {
            return Err(format!("{} results, {} expected", found.len(), expected.len()).into());
        }
        for (at, (expected, found)) in expected.iter().zip(found).enumerate() {
            let scale = expected.iter().map(|value| value.to_f64().abs()).fold(0.0, f64::max);
            for (place, (one, other)) in expected.iter().zip(found.iter()).enumerate() {
                let (one, other) = (one.to_f64(), other.to_f64());
                let same = one == other || (one.is_nan() && other.is_nan());
                if !same
                    && ((one - other).abs() > self.within * scale.max(1.0) || one.is_nan() != other.is_nan())
                {
                    return Err(format!("result {at}, element {place}: {other}, {one} expected").into());
                }
            }
        }
        Ok(())
    }
}

/// A program that cannot be observed must refuse.
fn refuses_to_show(executable: &dyn Executable) -> Result<(), Failed> {
    let options = RunOptions { observer: Some(Arc::new(Values::default())), ..RunOptions::default() };
    match executable.run(&inputs(executable.program()), &options) {
        Err(error) if error.to_string().contains("observe values") => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Err("runs as if its values were seen".into()),
    }
}

/// The program on the reference.
fn reference(program: &Program) -> Result<Box<dyn Executable>, Failed> {
    Ok(Reference.compile(program, &Target::reference())?)
}

/// The results of each operation, in order.
#[derive(Default)]
struct Values(Mutex<Vec<(String, Vec<Tensor>)>>);

impl Values {
    fn take(&self) -> Vec<(String, Vec<Tensor>)> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Values {
    fn results(&self, op: OpRef<'_>, results: &[Value]) -> Result<(), String> {
        // What is inside an operation is a kernel's own business.
        if op.parent_op().and_then(Func::new).is_some() {
            let tensors = results.iter().filter_map(|value| value.as_tensor().ok().cloned()).collect();
            let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push((op.name().to_owned(), tensors));
        }
        Ok(())
    }
}

/// Deterministic values: floats from -1 to 1, integers from -7 to 7.
pub(crate) fn inputs(program: &Program) -> Vec<Tensor> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1u32 << 23) - 1.0
    };
    let mut tensor = |ty: &warpforge_ir::TensorType| {
        let (element, dims) = (ty.element().storage().unwrap(), ty.shape_usize().unwrap());
        let shape = Shape::new(dims).unwrap();
        let values: Vec<Scalar> = (0..shape.num_elements())
            .map(|_| match element {
                ElementType::Float(_) => Scalar::Float(next()),
                ElementType::Bool => Scalar::Bool(next() > 0.0),
                _ => Scalar::Int((next() * 8.0) as i128),
            })
            .collect();
        Tensor::from_scalars(element, shape, values).unwrap()
    };
    program.inputs().iter().map(|(_, ty)| tensor(ty)).collect()
}
