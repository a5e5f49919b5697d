//! The views and the title of a loop.

use warpforge_fusion::View;
use warpforge_fusion::cluster::{Body, BodyOp};

/// All views of a body: loads, output, iotas.
pub(crate) fn views(body: &Body) -> Vec<&View> {
    let iotas = body.steps.iter().filter_map(|step| match &step.op {
        BodyOp::Iota(view) => Some(view),
        _ => None,
    });
    body.loads.iter().map(|load| &load.view).chain([&body.output]).chain(iotas).collect()
}

/// The title of a loop.
pub(super) fn title(body: &Body) -> String {
    let steps = body.steps.iter().filter(|step| !matches!(step.op, BodyOp::Load(_) | BodyOp::Constant(_)));
    let dims: Vec<String> = body.dims.iter().map(ToString::to_string).collect();
    let kind = if body.has_reductions() { "rows" } else { "elements" };
    match steps.count() {
        0 => format!("copy over {}", dims.join("x")),
        steps => format!("{kind} of {steps} over {}", dims.join("x")),
    }
}
