//! The compile pipeline: a valid module becomes a plan or an error, whatever its calls and shapes.

use warpforge_diag::{Severity, Source};
use warpforge_fusion::Precision;
use warpforge_fusion::pipeline::{self, Device};
use warpforge_ir::{Func, verify};
use warpforge_snakeburger::text;

/// The most operations, after inlining, of a function that is planned.
const MOST_OPERATIONS: u64 = 1 << 12;
/// From here on the pipeline refuses a function.
const REFUSED: u64 = 1 << 20;

/// A device that keeps every operation, or one that fuses and rounds.
struct Seen {
    precision: Precision,
    op_by_op: bool,
}

impl Device for Seen {
    fn precision(&self) -> Precision {
        self.precision
    }

    fn is_op_by_op(&self) -> bool {
        self.op_by_op
    }
}

/// Plans every function of a valid module, and renders what was planned.
pub fn plan(data: &[u8]) {
    let Ok(whole) = std::str::from_utf8(data) else { return };
    let source = Source::new("input", whole);
    let Ok(module) = text::parse(&source, &text::Options::default()) else { return };
    if verify(&module).iter().any(|found| found.severity == Severity::Error) {
        return;
    }
    // What is large and within the limit only takes its time; what is beyond it must be refused at once.
    let worth_it = |func: &Func<'_>| {
        let operations = module.inlined_op_count(func.name());
        func.body().is_some() && (operations <= MOST_OPERATIONS || operations > REFUSED)
    };
    for func in module.functions().filter(worth_it) {
        for device in [
            Seen { precision: Precision::Model, op_by_op: false },
            Seen { precision: Precision::Bf16, op_by_op: false },
            Seen { precision: Precision::Model, op_by_op: true },
        ] {
            if let Ok(plan) = pipeline::plan(func, &|_| None, &device) {
                let _ = plan.report().to_string();
            }
        }
    }
}
