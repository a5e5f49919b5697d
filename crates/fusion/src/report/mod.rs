//! Clusters for people: as text, as JSON, as a picture.

mod picture;

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;
use warpforge_ir::nodes::Node as TracedNode;

use crate::cluster::{Cluster, Cost, Kind, Softmax, unfused};
use crate::graph::{Graph, Node, NodeId, Op};
use crate::pattern::Pattern;
use crate::pipeline::Plan;

/// What fusion made of a function.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// With a kernel for each operation.
    pub before: Totals,
    /// With a kernel for each cluster.
    pub after: Totals,
    /// The clusters of a run, in their order.
    pub clusters: Vec<Entry>,
    /// Those that depend on constants alone and are computed once; their numbers follow the others'.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub once: Vec<Entry>,
    /// Operations that the device has no kernel for; the reference computes them.
    pub fallbacks: Vec<String>,
}

/// Kernels and what they cost together.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Totals {
    /// Kernels launched.
    pub kernels: usize,
    /// Floating-point operations.
    pub flops: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// What a machine is predicted to take for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_ms: Option<f64>,
}

/// What a machine is predicted to take for a cluster.
#[derive(Debug, Clone, Serialize)]
pub struct Estimate {
    /// Milliseconds.
    pub ms: f64,
    /// What bounds it, for people.
    pub bound: String,
}

/// A cluster.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// Its number, from 0.
    pub number: usize,
    /// What kind of kernel computes it.
    pub kind: &'static str,
    /// What people call parts of it, such as `softmax`.
    pub patterns: Vec<String>,
    /// What the loop between the matmuls of attention is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attention: Option<AttentionEntry>,
    /// Its operations, in order.
    pub operations: Vec<String>,
    /// The nodes of the traced graph that it computes.
    pub nodes: Vec<String>,
    /// The same in a line, with the lines of their source.
    pub provenance: Option<String>,
    /// The clusters whose results it reads.
    pub reads: Vec<usize>,
    /// The type of its result, or of each.
    pub result: String,
    /// Floating-point operations.
    pub flops: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// What a machine is predicted to take for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Estimate>,
}

/// The softmax of attention or of its gradient.
#[derive(Debug, Clone, Serialize)]
pub struct AttentionEntry {
    /// What scores are multiplied by, where that and the mask are all that is done to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// Which keys queries see; empty where they see all.
    pub mask: String,
    /// Whether the weights of queries that see no key are zeros.
    pub safe: bool,
    /// Whether the division of the softmax may be done after the second matmul.
    pub deferrable_division: bool,
}

impl Plan {
    /// The plan for people.
    #[must_use]
    pub fn report(&self) -> Report {
        Report::new(self)
    }

    /// The nodes of the traced graph that a cluster computes, with the lines of their source; nothing where the module names none.
    #[must_use]
    pub fn provenance(&self, cluster: &Cluster) -> Option<String> {
        provenance(&self.traced.among(&self.graph.origins(&cluster.nodes)))
    }
}

impl Report {
    /// The report of a plan.
    fn new(plan: &Plan) -> Self {
        let Plan { graph, once, clusters, patterns, fallbacks, traced, .. } = plan;
        let (kernels, cost) = unfused(graph);
        let after = clusters.cost(graph);
        let all = || clusters.clusters.iter().chain(once).enumerate();
        let givers: HashMap<NodeId, usize> =
            all().flat_map(|(number, one)| one.results().into_iter().map(move |id| (id, number))).collect();
        let numbered = |(number, cluster): (usize, &Cluster)| {
            let giver = |id: NodeId| match graph.node(id).op {
                Op::Result(_) => graph.node(id).inputs[0],
                _ => id,
            };
            let mut reads: Vec<usize> =
                cluster.reads().into_iter().filter_map(|id| givers.get(&giver(id)).copied()).collect();
            reads.dedup();
            let nodes = traced.among(&graph.origins(&cluster.nodes));
            let mut entry = entry(graph, cluster, patterns, number, reads);
            if fallbacks.contains(&cluster.output) {
                entry.kind = "fallback";
            }
            Entry {
                nodes: nodes.iter().map(|node| node.name.clone()).collect(),
                provenance: provenance(&nodes),
                ..entry
            }
        };
        let mut entries: Vec<Entry> = all().map(numbered).collect();
        let once = entries.split_off(clusters.clusters.len());
        Self {
            before: totals(kernels, cost),
            after: totals(clusters.clusters.len(), after),
            clusters: entries,
            once,
            fallbacks: fallbacks.iter().map(|&id| graph.node(id).op.name()).collect(),
        }
    }
}

fn totals(kernels: usize, cost: Cost) -> Totals {
    Totals { kernels, flops: cost.flops, bytes: cost.bytes, predicted_ms: None }
}

fn entry(graph: &Graph, cluster: &Cluster, named: &[Pattern], number: usize, reads: Vec<usize>) -> Entry {
    let cost = cluster.cost(graph);
    let kind = match &cluster.kind {
        Kind::Loop(body) if body.has_reductions() => "row loop",
        Kind::Loop(_) => "loop",
        Kind::Dot(_) => "matmul",
        Kind::Conv(_) => "convolution",
        Kind::Attention(_) => "attention",
        Kind::AttentionGradient(_) => "attention gradient",
        Kind::Unfused(_) | Kind::Library(..) => "unfused",
    };
    let (softmax, deferrable_division) = match &cluster.kind {
        Kind::Attention(attention) => (attention.softmax.as_ref(), attention.division.is_some()),
        Kind::AttentionGradient(gradient) => (gradient.softmax.as_ref(), false),
        _ => (None, false),
    };
    let in_cluster = named.iter().filter(|pattern| cluster.nodes.contains(&pattern.result));
    let others = in_cluster
        .filter(|pattern| softmax.is_none() || pattern.name != "softmax")
        .map(|pattern| pattern.name.to_owned());
    let given = cluster.results().into_iter().flat_map(|id| graph.results(id));
    let said = |id: &&NodeId| !matches!(graph.node(**id).op, Op::Constant(_));
    Entry {
        number,
        kind,
        patterns: softmax.map(Softmax::to_string).into_iter().chain(others).collect(),
        attention: softmax.map(|softmax| attention_entry(softmax, deferrable_division)),
        operations: cluster.nodes.iter().filter(said).map(|&id| graph.node(id).op.name()).collect(),
        nodes: Vec::new(),
        provenance: None,
        reads,
        result: given.map(|id| ty(graph.node(id))).collect::<Vec<_>>().join(", "),
        flops: cost.flops,
        bytes: cost.bytes,
        predicted: None,
    }
}

fn attention_entry(softmax: &Softmax, deferrable_division: bool) -> AttentionEntry {
    let Softmax { scale, mask, safe, .. } = softmax;
    AttentionEntry { scale: *scale, mask: mask.to_string(), safe: *safe, deferrable_division }
}

fn ty(node: &Node) -> String {
    let dims: Vec<String> = node.dims.iter().map(|dim| format!("{dim}x")).collect();
    format!("tensor<{}{}>", dims.concat(), node.element)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.clusters {
            write!(f, "{entry}")?;
        }
        if !self.once.is_empty() {
            writeln!(f, "computed once, from constants:")?;
        }
        for entry in &self.once {
            write!(f, "{entry}")?;
        }
        for (when, totals) in [("before:", self.before), ("after: ", self.after)] {
            let Totals { kernels, flops, bytes, predicted_ms } = totals;
            write!(f, "{when} {kernels} kernels, {flops} FLOP, {bytes} bytes moved")?;
            match predicted_ms {
                Some(ms) => writeln!(f, ", predicted {ms:.4} ms")?,
                None => writeln!(f)?,
            }
        }
        if !self.fallbacks.is_empty() {
            writeln!(f, "on the reference interpreter: {}", counted(&self.fallbacks))?;
        }
        Ok(())
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reads: Vec<String> = self.reads.iter().map(|read| format!("#{read}")).collect();
        let from = if reads.is_empty() { String::new() } else { format!(" from {}", reads.join(" ")) };
        writeln!(f, "#{} {} -> {}{from}", self.number, self.kind, self.result)?;
        if !self.patterns.is_empty() {
            let scale = self.attention.as_ref().and_then(|attention| attention.scale);
            let scale = scale.filter(|&scale| scale != 1.0).map(|scale| scale as f32);
            let scaled = scale.map_or(String::new(), |scale| format!(", scores times {scale}"));
            writeln!(f, "    {}{scaled}", counted(&self.patterns))?;
        }
        writeln!(f, "    {}", counted(&self.operations))?;
        if let Some(provenance) = &self.provenance {
            writeln!(f, "    computes {provenance}")?;
        }
        write!(f, "    {} FLOP, {} bytes", self.flops, self.bytes)?;
        match &self.predicted {
            Some(Estimate { ms, bound }) => writeln!(f, "; predicted {ms:.4} ms, bound by {bound}")?,
            None => writeln!(f)?,
        }
        Ok(())
    }
}

/// Nodes in a line, with the lines of their source: `mm, add (net.py:4, net.py:5)`.
fn provenance(nodes: &[&TracedNode]) -> Option<String> {
    let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let mut lines: Vec<String> =
        nodes.iter().filter_map(|node| node.source.as_ref()).map(ToString::to_string).collect();
    lines.dedup();
    let lines = if lines.is_empty() { String::new() } else { format!(" ({})", lines.join(", ")) };
    (!names.is_empty()).then(|| format!("{}{lines}", names.join(", ")))
}

/// Names in their first order, each with how often it occurs.
fn counted<N: AsRef<str>>(names: &[N]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for name in names.iter().map(AsRef::as_ref) {
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let said = |(name, count): &(&str, usize)| match count {
        1 => (*name).to_owned(),
        _ => format!("{name} x{count}"),
    };
    counts.iter().map(said).collect::<Vec<_>>().join(", ")
}
