//! Loads of a GPU: programs on the engine, whose large operands stay in the GPU's memory.

mod program;

use warpforge::{
    CompileOptions, CompiledModel, Criterion, Device, Inputs, Model, Outputs, Tensor, Tier, Tolerance,
    compare,
};
use warpforge_inventory::live::{GpuSampler, GpuUsage};

use crate::error::StressError;
use crate::load::{Iteration, Load, Work};
use crate::pattern::hex;
use crate::settings::{MOST_MEMORY_SHARE, Settings, part, within};
use program::Program;

/// The size of matrices.
const MATRIX: usize = 2048;
/// Multiplications in a chain.
const CHAIN: usize = 16;
/// Points of the grid along each side.
const GRID: usize = 2048;
/// Steps of the stencil in one run.
const STEPS: usize = 4;
/// The array in memory unless the user says how much.
const ARRAY_BYTES: u64 = 512 << 20;
/// The largest part of a GPU's free memory that a test uses.
const MOST_SHARE: f64 = 0.5;
/// The host makes the array, the tensor of it and what goes to the device.
const HOST_COPIES: u64 = 3;

pub(crate) fn fp32(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    start(settings, vec![Program::gemm_chain("f32", MATRIX, CHAIN)])
}

pub(crate) fn fp64(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    start(settings, vec![Program::gemm_chain("f64", MATRIX, CHAIN)])
}

pub(crate) fn precision(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    let chain = |element| Program::gemm_chain(element, MATRIX, CHAIN);
    start(settings, vec![chain("bf16"), chain("f16")])
}

pub(crate) fn cfd(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    start(settings, vec![Program::diffusion(GRID, STEPS)])
}

pub(crate) fn memory(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    let host = settings.resources.memory(None, MOST_MEMORY_SHARE, u64::MAX)?;
    let free = |gpu: &GpuUsage| gpu.memory_total_bytes?.checked_sub(gpu.memory_used_bytes?);
    let device = GpuSampler::here().sample().iter().filter_map(free).min();
    start(settings, vec![Program::row_sums(rows(settings.bytes, host, device)?)])
}

/// The rows of an array for so many bytes asked for, half of the host's memory, and what is free on the GPU where it
/// says so.
fn rows(asked: Option<u64>, host: u64, device_free: Option<u64>) -> Result<usize, StressError> {
    // Each pass may write a sum as large as the array.
    let device = device_free.map(|free| part(free, MOST_SHARE) / (program::PASSES as u64 + 1));
    let most = device.unwrap_or(u64::MAX).min(host / HOST_COPIES);
    let rule = "a tenth of the GPU's free memory and a sixth of the host's";
    let bytes = within("GPU memory", asked, most, ARRAY_BYTES, rule)?;
    match bytes / program::ROW_BYTES as u64 {
        0 => {
            let (asked, row) =
                (warpforge_diag::bytes(bytes), warpforge_diag::bytes(program::ROW_BYTES as u64));
            Err(StressError::Missing(format!("{asked} are too few: a row has {row}")))
        }
        rows => Ok(rows as usize),
    }
}

/// Compiles programs for the GPU of the settings, or for the first that there is.
fn start(settings: &Settings, programs: Vec<Program>) -> Result<Box<dyn Load>, StressError> {
    let device = match settings.device {
        Some(device) => device,
        None => first_gpu()?,
    };
    let loads = programs.into_iter().map(|program| Engine::new(program, device));
    Ok(Box::new(Programs(loads.collect::<Result<_, _>>()?)))
}

/// The first GPU that a program runs on.
fn first_gpu() -> Result<Device, StressError> {
    let text = "func.func @main(%x: tensor<f32>) -> tensor<f32> { func.return %x : tensor<f32> }";
    let model = Model::from_text("trial.mlir", text)?;
    let mut reasons = Vec::new();
    for device in [Device::Cuda(0), Device::Hip(0)] {
        match model.compile(&CompileOptions { device, ..CompileOptions::default() }) {
            Ok(_) => return Ok(device),
            Err(error) => {
                // What the backend said is below the list of all backends.
                let text = error.to_string();
                reasons.push(text.lines().last().unwrap_or_default().trim().to_owned());
            }
        }
    }
    Err(StressError::Missing(format!("no GPU: {}", reasons.join("; "))))
}

/// Programs that run in turn.
struct Programs(Vec<Engine>);

impl Load for Programs {
    fn iterate(&mut self, iteration: Iteration) -> Result<Work, StressError> {
        let mut work = Work::default();
        for (index, engine) in self.0.iter_mut().enumerate() {
            let falsify = iteration.falsify && index == 0;
            work.add(engine.iterate(Iteration { falsify, ..iteration })?);
        }
        Ok(work)
    }

    fn notes(&self) -> Vec<String> {
        self.0.iter().map(|engine| format!("{} on {}", engine.program.name, engine.device)).collect()
    }
}

/// One program on one device.
struct Engine {
    program: Program,
    device: Device,
    compiled: CompiledModel,
    inputs: Inputs,
    /// What the first results are compared with: values known beforehand, or those of the CPU engine on the host.
    expected: Vec<Tensor>,
    /// The first results, once they were found right.
    first: Option<Vec<Tensor>>,
}

impl Engine {
    fn new(program: Program, device: Device) -> Result<Self, StressError> {
        let mut model = Model::from_text(&format!("{}.mlir", program.name), program.text.clone())?;
        model.bind_weights(&program.weights()?)?;
        // What would run on the host is no load of the device.
        let options = CompileOptions { device, no_fallback: true, ..CompileOptions::default() };
        let compiled = model.compile(&options)?;
        let inputs = program.inputs()?;
        let expected = match program.known()? {
            Some(known) => known,
            None => {
                let tier = (device == Device::Cpu).then_some(Tier::Correctness);
                let options = CompileOptions { device: Device::Cpu, tier, ..CompileOptions::default() };
                results(&model.compile(&options)?.run(inputs.clone())?)
            }
        };
        // Kernels are tuned in the first run and captured into a graph in the second: neither is the rate of the device.
        for _ in 0..2 {
            compiled.run(inputs.clone())?;
        }
        Ok(Self { program, device, compiled, inputs, expected, first: None })
    }

    fn iterate(&mut self, iteration: Iteration) -> Result<Work, StressError> {
        let mut results = results(&self.compiled.run(self.inputs.clone())?);
        if iteration.falsify
            && let Some(byte) = results[0].bytes_mut().last_mut()
        {
            // The sign: there may be no first result yet to compare with bit for bit.
            *byte ^= 0x80;
        }
        let mut work = Work::of(self.program.amount);
        match &self.first {
            Some(first) => self.compare_bits(first, &results, &mut work),
            None => {
                self.compare_values(&results, &mut work)?;
                if work.errors == 0 {
                    self.first = Some(results);
                }
            }
        }
        Ok(work)
    }

    fn compare_bits(&self, first: &[Tensor], results: &[Tensor], work: &mut Work) {
        for (index, (first, found)) in first.iter().zip(results).enumerate() {
            if first.bytes() == found.bytes() {
                continue;
            }
            let width = first.element_type().byte_width();
            let elements = first.bytes().chunks_exact(width).zip(found.bytes().chunks_exact(width));
            for (at, (expected, found)) in elements.enumerate().filter(|(_, (a, b))| a != b) {
                let place = format!("{}, result {index}, element {:?}", self.device, first.shape().index(at));
                work.mismatch(
                    format!("{}, bit for bit", self.program.name),
                    place,
                    hex(expected),
                    hex(found),
                );
            }
        }
    }

    /// Compares with what is expected, within the program's tolerance.
    fn compare_values(&self, results: &[Tensor], work: &mut Work) -> Result<(), StressError> {
        let criterion = Criterion::new(self.program.tolerance);
        for (index, (found, expected)) in results.iter().zip(&self.expected).enumerate() {
            let report = compare(found, expected, criterion).map_err(warpforge::Error::from)?;
            if let Some(first) = report.first {
                work.errors += report.mismatches as u64 - 1;
                let place = format!("{}, result {index}, element {:?}", self.device, first.index);
                let what =
                    format!("{}, with the host's result ({:?})", self.program.name, self.program.tolerance);
                work.mismatch(what, place, first.expected, first.actual);
            }
        }
        Ok(())
    }
}

/// The results of a run, in order.
fn results(outputs: &Outputs) -> Vec<Tensor> {
    outputs.iter().map(|(_, tensor)| tensor.clone()).collect()
}

/// The tolerance of a chain of multiplications in an element type, as a part of the largest value.
fn chain_tolerance(element: &str) -> Tolerance {
    let rtol = match element {
        "f64" => 1e-11,
        "f32" => 1e-4,
        "f16" => 0.01,
        _ => 0.05,
    };
    Tolerance::Scaled { rtol }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_array_keeps_to_its_shares() {
        let row = program::ROW_BYTES as u64;
        assert_eq!(rows(None, u64::MAX, None).unwrap() as u64, ARRAY_BYTES / row);
        assert_eq!(rows(None, u64::MAX, Some(100 * row)).unwrap(), 10);
        assert_eq!(rows(Some(4 * row), 12 * row, None).unwrap(), 4);
        assert!(rows(Some(5 * row), 12 * row, None).unwrap_err().to_string().contains("at most"));
        assert!(rows(Some(11 * row), u64::MAX, Some(100 * row)).is_err());
        assert!(rows(Some(5), u64::MAX, None).unwrap_err().to_string().contains("too few"));
    }

    /// The programs of this module on the CPU engine, small.
    #[test]
    fn programs_agree_with_the_reference_and_with_themselves() {
        for program in [
            Program::gemm_chain("f32", 48, 3),
            Program::gemm_chain("f64", 48, 3),
            Program::gemm_chain("bf16", 48, 3),
            Program::gemm_chain("f16", 48, 3),
            Program::diffusion(24, 2),
            Program::row_sums(4),
        ] {
            let mut engine = Engine::new(program.clone(), Device::Cpu).unwrap();
            for number in 1..=4 {
                let work = engine.iterate(Iteration { number, falsify: number == 3 }).unwrap();
                assert_eq!(work.errors > 0, number == 3, "{}: {:?}", program.name, work.mismatches);
                assert!(work.amount > 0.0);
            }
            let mut engine = Engine::new(program.clone(), Device::Cpu).unwrap();
            let work = engine.iterate(Iteration { number: 1, falsify: true }).unwrap();
            assert!(work.errors > 0, "{}: a wrong first result was taken for right", program.name);
            assert!(engine.first.is_none());
        }
    }
}
