//! Operators that call other graphs.

use super::Outcome;
use crate::graph::schema::{Argument, Graph};
use crate::lower::args::Args;
use crate::lower::cx::Cx;
use crate::lower::graph::Walk;
use crate::lower::refusal::{Lowered, refuse};
use crate::lower::report::Report;
use crate::lower::value::{Number, Value};

/// A call of a higher-order operator.
pub(crate) struct Call<'c, 'a> {
    /// The arguments; they have positions only.
    pub(crate) args: &'c Args<'a>,
    /// Where nodes of the inner graph that cannot be lowered go.
    pub(crate) report: &'c mut Report,
    /// How deep the inner graph is.
    pub(crate) depth: usize,
}

type Lower = fn(&mut Cx<'_>, &mut Call<'_, '_>) -> Lowered<Outcome>;

/// Finds the lowering of a higher-order operator.
pub(crate) fn lookup(target: &str) -> Option<Lower> {
    match target {
        "higher_order.wrap_with_set_grad_enabled" => Some(set_grad_enabled),
        "higher_order.wrap_with_autocast" => Some(autocast),
        _ => None,
    }
}

/// `(enabled, graph, *args)`: gradients are explicit in the graph, so the mode changes nothing.
fn set_grad_enabled(cx: &mut Cx<'_>, call: &mut Call<'_, '_>) -> Lowered<Outcome> {
    inline(cx, call, 1)
}

/// `(device, dtype, enabled, cache_enabled, graph, *args)`.
fn autocast(cx: &mut Cx<'_>, call: &mut Call<'_, '_>) -> Lowered<Outcome> {
    match call.args.at(2) {
        Some(Value::Number(Number::Bool(false))) => inline(cx, call, 4),
        _ => refuse("autocast changes the types of the operations inside; export with `run_decompositions`"),
    }
}

/// Lowers the graph at a position with the arguments after it, in place.
fn inline(cx: &mut Cx<'_>, call: &mut Call<'_, '_>, position: usize) -> Lowered<Outcome> {
    let Some(graph) = graph_at(call.args, position) else { return refuse("the graph it calls is missing") };
    let mut walk = Walk::new(graph);
    if graph.inputs.len() != call.args.len().saturating_sub(position + 1) {
        return refuse("the graph it calls takes another number of arguments");
    }
    for (at, input) in graph.inputs.iter().enumerate() {
        let Some(value) = call.args.at(position + 1 + at) else { continue };
        match input {
            Argument::AsTensor(name) => walk.bind(&name.name, value.clone()),
            Argument::AsSymInt(crate::graph::schema::SymIntArgument::AsName(name)) => {
                walk.bind(name, value.clone());
            }
            _ => {}
        }
    }
    walk.run(cx, call.report, call.depth);
    graph.outputs.iter().map(|output| walk.value(cx, output)).collect()
}

fn graph_at<'a>(args: &Args<'a>, position: usize) -> Option<&'a Graph> {
    match &args.node.inputs.get(position)?.arg {
        Argument::AsGraph(argument) => Some(&argument.graph),
        _ => None,
    }
}
