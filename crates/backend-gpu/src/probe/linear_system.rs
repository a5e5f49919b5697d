//! Dense linear systems by the vendor's solver, in f64 or with factors of low precision.

use std::time::Duration;

use super::Probe;
use crate::driver::{Buffer, Staging};
use crate::error::{GpuError, Result};
use crate::solver::{Cusolver, LowPrecision, LuPlan, RefinedPlan};

/// Bytes of the columns that are made and sent together.
const PANEL_BYTES: usize = 64 << 20;

/// The element type that the factors are computed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactorType {
    /// f64: LU and a solution with its factors.
    F64,
    /// f32, refined to the accuracy of f64.
    F32,
    /// f32 multiplied as tf32, refined to the accuracy of f64.
    Tf32,
    /// f16, refined to the accuracy of f64.
    F16,
    /// bf16, refined to the accuracy of f64.
    Bf16,
}

impl FactorType {
    /// Those whose solutions are refined.
    pub const REFINED: [Self; 4] = [Self::F16, Self::Bf16, Self::Tf32, Self::F32];

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
        }
    }

    /// Least bytes of device memory for an element of the matrix: matrix and factors.
    #[must_use]
    pub const fn bytes_per_element(self) -> usize {
        match self {
            Self::F64 => 16,
            _ => 12,
        }
    }

    fn low(self) -> Option<LowPrecision> {
        match self {
            Self::F64 => None,
            Self::F32 => Some(LowPrecision::F32),
            Self::Tf32 => Some(LowPrecision::Tf32),
            Self::F16 => Some(LowPrecision::F16),
            Self::Bf16 => Some(LowPrecision::Bf16),
        }
    }
}

/// A solution with the time it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// The unknowns.
    pub x: Vec<f64>,
    /// The factorization and the solution, by events of the device.
    pub time: Duration,
    /// Steps of the refinement, where there is one.
    pub steps: Option<usize>,
}

/// A system `A x = b` on the device. A is kept there, so it can be solved again and again.
pub struct LinearSystem<'p> {
    probe: &'p Probe,
    order: usize,
    /// A, column by column.
    matrix: Buffer,
    rhs: Buffer,
    solution: Buffer,
    plan: Plan,
    version: String,
}

enum Plan {
    Lu(Box<LuPlan>),
    Refined(Box<RefinedPlan>),
}

impl<'p> LinearSystem<'p> {
    /// Allocates the memory for a system of this order.
    ///
    /// # Errors
    ///
    /// When cuSOLVER is not installed, or the device has too little memory.
    pub fn new(probe: &'p Probe, order: usize, factors: FactorType) -> Result<Self> {
        Self::with(probe, Cusolver::of(&probe.gpu, &probe.stream)?, order, factors)
    }

    fn with(probe: &'p Probe, library: Cusolver, order: usize, factors: FactorType) -> Result<Self> {
        let bytes = order.checked_mul(order).and_then(|count| count.checked_mul(size_of::<f64>()));
        let bytes = bytes.ok_or_else(|| GpuError::Other(format!("a matrix of {order} rows is too large")))?;
        let version = library.version();
        let matrix = probe.gpu.allocate(bytes)?;
        let [rhs, solution] = [probe.gpu.allocate(order * 8)?, probe.gpu.allocate(order * 8)?];
        let plan = match factors.low() {
            None => Plan::Lu(Box::new(LuPlan::new(library, order)?)),
            Some(precision) => Plan::Refined(Box::new(RefinedPlan::new(library, order, precision)?)),
        };
        Ok(Self { probe, order, matrix, rhs, solution, plan, version })
    }

    /// The version of cuSOLVER.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Sends A. `columns` is called with the first of some columns and with their elements to be written, column by
    /// column.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn fill(&mut self, mut columns: impl FnMut(usize, &mut [f64])) -> Result<()> {
        let Self { probe, order, matrix, .. } = self;
        probe.gpu.enter()?;
        let column_bytes = *order * size_of::<f64>();
        let together = (PANEL_BYTES / column_bytes.max(1)).clamp(1, (*order).max(1));
        let mut staging = Staging::new(&probe.gpu)?;
        let mut panel = vec![0.0; together * *order];
        for first in (0..*order).step_by(together) {
            let elements = &mut panel[..together.min(*order - first) * *order];
            columns(first, elements);
            let to = matrix.address() + (first * column_bytes) as u64;
            staging.write(&probe.stream, to, bytemuck::cast_slice(elements))?;
        }
        probe.stream.synchronise()
    }

    /// Solves for a right-hand side.
    ///
    /// # Errors
    ///
    /// When the device fails, the matrix is singular, or a refinement does not converge.
    ///
    /// # Panics
    ///
    /// When the right-hand side has another order.
    pub fn solve(&mut self, b: &[f64]) -> Result<Solution> {
        let Self { probe, order, matrix, rhs, solution, plan, .. } = self;
        assert_eq!(b.len(), *order, "a right-hand side of another order");
        let stream = &probe.stream;
        probe.gpu.enter()?;
        stream.write(rhs.address(), bytemuck::cast_slice(b))?;
        let mut x = vec![0.0; *order];
        let (time, steps, from) = match plan {
            Plan::Lu(plan) => {
                stream.copy(plan.matrix(), matrix.address(), *order * *order * size_of::<f64>())?;
                stream.synchronise()?;
                let time = probe.timed(|| plan.run(rhs.address()))?;
                plan.check(stream)?;
                (time, None, rhs.address())
            }
            Plan::Refined(plan) => {
                let mut steps = 0;
                let time = probe.timed(|| {
                    steps = plan.run(matrix.address(), rhs.address(), solution.address())?;
                    Ok(())
                })?;
                plan.check(stream)?;
                (time, Some(steps), solution.address())
            }
        };
        stream.read(from, bytemuck::cast_slice_mut(&mut x))?;
        Ok(Solution { x, time, steps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{self, Trouble};
    use crate::vendor::Vendor;

    const ORDER: usize = 3;

    fn probe() -> Probe {
        Probe::with(fake::gpu(Vendor::Cuda).unwrap()).unwrap()
    }

    fn system(probe: &Probe, factors: FactorType) -> LinearSystem<'_> {
        let library = fake::cusolver(&probe.gpu, &probe.stream).unwrap();
        let mut system = LinearSystem::with(probe, library, ORDER, factors).unwrap();
        // A diagonal matrix, which is all that the fake can solve.
        system
            .fill(|first, elements| {
                for (at, column) in elements.chunks_mut(ORDER).enumerate() {
                    column.fill(0.0);
                    column[first + at] = (first + at + 1) as f64;
                }
            })
            .unwrap();
        fake::calls();
        system
    }

    #[test]
    fn f64_factors_a_copy_and_solves_with_it_again_and_again() {
        let probe = probe();
        let mut system = system(&probe, FactorType::F64);
        for _ in 0..2 {
            let found = system.solve(&[1.0, 4.0, 9.0]).unwrap();
            assert_eq!((found.x, found.steps), (vec![1.0, 2.0, 3.0], None));
            assert_eq!(found.time, Duration::from_millis(1));
            assert_eq!(
                fake::calls(),
                [
                    "copy in 24 on 1",
                    "copy within 72 on 1",
                    "getrf 3 x 3 of 1, computed in 1",
                    "getrs 3 for 1",
                    "copy out 4 on 1",
                    "copy out 4 on 1",
                    "copy out 24 on 1"
                ]
            );
        }
        assert_eq!(system.version(), "12.0.9");
    }

    #[test]
    fn low_precisions_are_refined_and_leave_the_matrix() {
        for (factors, code) in [
            (FactorType::F16, 1205),
            (FactorType::Bf16, 1206),
            (FactorType::Tf32, 1207),
            (FactorType::F32, 1204),
        ] {
            let probe = probe();
            let library = fake::cusolver(&probe.gpu, &probe.stream).unwrap();
            fake::calls();
            drop(LinearSystem::with(&probe, library, ORDER, factors).unwrap());
            let calls = fake::calls();
            let settings: Vec<&str> =
                calls.iter().map(String::as_str).filter(|call| call.starts_with("refinement")).collect();
            let precisions = format!("refinement of 1203 by {code}");
            assert_eq!(
                settings,
                [
                    &precisions[..],
                    "refinement by 1104",
                    "refinement of 100 steps",
                    "refinement without fallback"
                ]
            );
            let mut system = system(&probe, factors);
            for _ in 0..2 {
                let found = system.solve(&[1.0, 4.0, 9.0]).unwrap();
                assert_eq!((found.x, found.steps), (vec![1.0, 2.0, 3.0], Some(7)));
                let calls = fake::calls();
                assert!(calls.iter().all(|call| !call.starts_with("copy within")), "{calls:?}");
            }
        }
    }

    #[test]
    fn failures_are_told_by_what_happened() {
        let solved = |factors, trouble| {
            let probe = probe();
            let mut system = system(&probe, factors);
            fake::trouble(trouble);
            let solved = system.solve(&[1.0; ORDER]);
            fake::trouble(Trouble::default());
            solved.unwrap_err().to_string()
        };
        let error = solved(FactorType::F64, Trouble { solver_info: 2, ..Trouble::default() });
        assert_eq!(error, "the matrix is singular: pivot 2 is zero");
        let error = solved(FactorType::F64, Trouble { solver_info: -4, ..Trouble::default() });
        assert!(error.contains("argument 4 is wrong"), "{error}");
        for (code, expected) in [
            (-100, "did not converge within 100 steps"),
            (-2, "too large for the factors' type"),
            (-3, "the factorization failed"),
        ] {
            let error = solved(FactorType::F16, Trouble { refinement: code, ..Trouble::default() });
            assert!(error.contains(expected), "{error}");
        }
        let error = solved(FactorType::F16, Trouble { solver: 22, ..Trouble::default() });
        assert!(error.contains("out of the range of the factors' type"), "{error}");
    }

    #[test]
    fn amds_gpus_have_none_and_too_large_is_an_error() {
        let gpu = Probe::with(fake::gpu(Vendor::Hip).unwrap()).unwrap();
        let error = LinearSystem::new(&gpu, ORDER, FactorType::F64).err().unwrap();
        assert!(error.to_string().contains("NVIDIA"), "{error}");
        let probe = probe();
        for (order, expected) in [(1 << 20, "out of device memory"), (usize::MAX, "too large")] {
            let library = fake::cusolver(&probe.gpu, &probe.stream).unwrap();
            let error = LinearSystem::with(&probe, library, order, FactorType::F64).err().unwrap();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
