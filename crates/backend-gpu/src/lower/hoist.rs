//! Constant hoisting: tasks that depend on constants only run once.

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{HoistLimits, Hoisting, Operand};

use super::task::{Lowering, Task};

/// A launch costs more than reading a value again, so everything is kept that fits.
const LIMITS: HoistLimits = HoistLimits { added_bytes: 1 << 30, cheap_bytes: usize::MAX };

/// Moves tasks that depend on constants only to the setup tasks.
pub(super) fn hoist_constants(
    graph: &Graph,
    setup: &mut Vec<Task>,
    tasks: &mut Vec<Task>,
    outputs: &[Operand],
) {
    let known: Vec<_> = setup.iter().map(|task| task.cluster.output).collect();
    let mut hoisting = Hoisting::new(graph, outputs, LIMITS, known);
    let mut every_run = Vec::with_capacity(tasks.len());
    for task in tasks.drain(..) {
        let on_host = matches!(task.lowering, Lowering::Host(_));
        let stays = on_host || task.every_run;
        let list = if !stays && hoisting.takes(&task.cluster) { &mut *setup } else { &mut every_run };
        list.push(task);
    }
    *tasks = every_run;
}
