//! Arithmetic: loops in registers on each core, GEMM on all of them.

use std::borrow::Cow;

use warpforge_probes::cpu::{PeakKernel, Product, Shape, gemms, peaks};

use super::freivalds::Checker;
use crate::error::StressError;
use crate::load::{Iteration, Load, Work};
use crate::pattern::hex;
use crate::workers::Workers;

/// The matrices are squares of this size: 2.1 Gop a product, a few milliseconds on a core.
const SIZE: usize = 1024;

/// Turns of a loop in registers in one iteration: some milliseconds.
const TURNS: u64 = 200_000;

pub(super) struct Compute {
    workers: Workers,
    loops: Vec<Loop>,
    products: Vec<Checked>,
}

/// A loop in registers, and the bits of its first result.
struct Loop {
    kernel: PeakKernel,
    first: Option<u64>,
}

/// A product, what its check needs, and its first result.
struct Checked {
    product: Product,
    checker: Checker,
    first: Vec<u8>,
}

impl Compute {
    pub(super) fn new(mut workers: Workers) -> Result<Self, StressError> {
        let shape = Shape { m: SIZE, n: SIZE, k: SIZE };
        let mut products = Vec::new();
        for gemm in gemms() {
            let product = gemm.product(shape)?;
            let checker = Checker::new(&product, &mut workers);
            products.push(Checked { product, checker, first: Vec::new() });
        }
        let loops = peaks().into_iter().map(|kernel| Loop { kernel, first: None }).collect();
        Ok(Self { workers, loops, products })
    }
}

impl Load for Compute {
    fn iterate(&mut self, iteration: Iteration) -> Result<Work, StressError> {
        let mut work = Work::default();
        for entry in &mut self.loops {
            work.add(entry.run(&mut self.workers));
        }
        for (index, entry) in self.products.iter_mut().enumerate() {
            let falsify = iteration.falsify && index == 0;
            work.add(entry.run(&mut self.workers, Iteration { falsify, ..iteration })?);
        }
        Ok(work)
    }

    fn notes(&self) -> Vec<String> {
        let loops = self.loops.iter().map(|entry| format!("{} {}", entry.kernel.isa(), entry.kernel.dtype()));
        let products = self.products.iter().map(|entry| entry.product.dtype().to_string());
        vec![
            format!("loops in registers: {}", loops.collect::<Vec<_>>().join(", ")),
            format!("GEMM of {SIZE} by {SIZE} in {}", products.collect::<Vec<_>>().join(", ")),
        ]
    }
}

impl Loop {
    fn run(&mut self, workers: &mut Workers) -> Work {
        let kernel = self.kernel;
        let results = workers.each(|_| (kernel.run(TURNS).to_bits(), kernel.verify()));
        let operations = results.len() as u64 * TURNS * kernel.ops_per_iteration();
        let mut work = Work::of(operations as f64 / 1e9);
        let first = *self.first.get_or_insert(results[0].0);
        let what = format!("{} {} arithmetic", kernel.isa(), kernel.dtype());
        for (rank, (bits, lanes_agree)) in results.into_iter().enumerate() {
            if bits != first {
                let shown = |bits: u64| format!("{:e} ({bits:016x})", f64::from_bits(bits));
                work.mismatch(what.clone(), workers.place(rank), shown(first), shown(bits));
            }
            if !lanes_agree {
                work.mismatch(
                    what.clone(),
                    workers.place(rank),
                    "what scalar code computes",
                    "another value",
                );
            }
        }
        work
    }
}

impl Checked {
    fn run(&mut self, workers: &mut Workers, iteration: Iteration) -> Result<Work, StressError> {
        self.product.run(workers.team())?;
        let mut result = Cow::Borrowed(self.product.result());
        if iteration.falsify {
            // The sign of the last element: there may be no first result yet to compare with bit for bit.
            let last = result.len() - 1;
            result.to_mut()[last] ^= 0x80;
        }
        let Shape { m, n, k } = self.product.shape();
        let mut work = Work::of(2.0 * m as f64 * n as f64 * k as f64 / 1e9);
        self.checker.check(&self.product, &result, workers, iteration.number, &mut work);
        if self.first.is_empty() {
            if work.errors == 0 {
                self.first = result.to_vec();
            }
        } else if let Some(byte) = self.first.iter().zip(result.iter()).position(|(a, b)| a != b) {
            work.mismatch(
                format!("the {} product, bit for bit", self.product.dtype()),
                format!("{} of the result of {} threads", self.checker.place(byte), workers.count()),
                hex(self.checker.element(&self.first, byte)),
                hex(self.checker.element(&result, byte)),
            );
        }
        Ok(work)
    }
}
