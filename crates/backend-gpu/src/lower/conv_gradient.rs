//! Gradients of convolutions by the DNN library. In a graph they are convolutions too: that of the data spreads the gradient of the output
//! by the strides, that of the weights has the gradient of the output as its window.

use warpforge_codegen::{ComputePrecision, Options, emit};
use warpforge_fusion::cluster::{Body, BodyOp, BodyStep, Cluster, Contraction, Kind, Operand};
use warpforge_fusion::graph::Conv;
use warpforge_fusion::{Graph, Node, Op, View};
use warpforge_tensor::ElementType;

use super::call::ConvCall;
use super::conv::{is_narrow, padded};
use super::operands::Operands;
use super::task::{LibraryQuery, Lowering, Task};
use crate::dnn::{ConvPass, ConvWindow};

/// One dimension of the forward pass.
#[derive(Debug, Clone, Copy)]
struct Dimension {
    input: i64,
    output: i64,
    window: i64,
    stride: i64,
    dilation: i64,
    before: i64,
}

impl Dimension {
    /// The padding after it that gives the output its size, if there is one.
    fn after(self) -> Option<i64> {
        let reach = self.dilation * (self.window - 1) + 1;
        let after = ((self.output - 1) * self.stride + reach - self.input - self.before).max(0);
        let rest = self.input + self.before + after - reach;
        (self.before >= 0 && rest >= 0 && rest / self.stride + 1 == self.output).then_some(after)
    }
}

/// A gradient that the library has a pass for.
#[derive(Debug, Clone)]
pub(super) struct ConvGradient {
    pass: ConvPass,
    window: ConvWindow,
    /// The type of the operands of the call.
    computed: ElementType,
    contraction: Contraction,
}

/// Channels of 16-bit elements that the library's engines take at once.
const CHANNELS: usize = 8;

impl ConvGradient {
    /// The gradient that a convolution is. None where it is none, or where the library computes it as well as a convolution.
    pub(super) fn of(graph: &Graph, cluster: &Cluster) -> Option<Self> {
        let Kind::Conv(contraction) = &cluster.kind else { return None };
        let node = graph.node(contraction.node);
        let Op::Conv(conv) = &node.op else { return None };
        let [input, weights] = &contraction.operands;
        let element = graph.node(input.value).element;
        let spatial = conv.strides.len();
        if conv.groups != 1
            || !(1..=3).contains(&spatial)
            || !is_narrow(element)
            || graph.node(weights.value).element != element
            || !(node.element == element || node.element == ElementType::F32)
        {
            return None;
        }
        let (inputs, windows) = (&input.view.dims[1..=spatial], &weights.view.dims[..spatial]);
        let outputs = &node.dims[1..=spatial];
        let plain = |values: &[usize]| values.iter().all(|&value| value == 1);
        let pass = match plain(&conv.base_dilation) {
            false if plain(&conv.strides) => ConvPass::DataGradient,
            true if windows.iter().product::<usize>() > outputs.iter().product() => ConvPass::WeightGradient,
            _ => return None,
        };
        let channels =
            [input.view.dims.last(), weights.view.dims.last(), node.dims.first(), node.dims.last()];
        let whole = channels.into_iter().flatten().all(|count| count.is_multiple_of(CHANNELS));
        // Values of 16 bits are exact in tf32.
        let computed = match (element, node.element) {
            (ElementType::F32, _) => element,
            (_, given) if whole && (pass == ConvPass::WeightGradient || given == element) => element,
            (_, ElementType::F32) => ElementType::F32,
            _ => return None,
        };
        let dimension = |at: usize| dimension(pass, conv, at, [inputs[at], windows[at], outputs[at]]);
        let dimensions: Vec<Dimension> = (0..spatial).map(dimension).collect();
        let after = dimensions.iter().map(|dimension| dimension.after()).collect::<Option<Vec<_>>>()?;
        let window = ConvWindow {
            strides: padded(1, dimensions.iter().map(|dimension| dimension.stride)),
            before: padded(0, dimensions.iter().map(|dimension| dimension.before)),
            after: padded(0, after.into_iter()),
            dilations: padded(1, dimensions.iter().map(|dimension| dimension.dilation)),
        };
        Some(Self { pass, window, computed, contraction: contraction.clone() })
    }

    /// Adds the tasks of a gradient: its operands in the order of the library, the call, and the result in the order of the graph.
    ///
    /// # Errors
    ///
    /// When there is no kernel for a copy.
    pub(super) fn add(
        self,
        operands: &mut Operands,
        tasks: &mut Vec<Task>,
        options: &Options,
        cluster: &Cluster,
    ) -> Result<(), String> {
        let Self { pass, window, computed, contraction } = self;
        let own = operands.graph.node(contraction.operands[0].value).element;
        let exact = own == ElementType::F32 && options.compute_precision == ComputePrecision::Model;
        let [input, weights] = &contraction.operands;
        let spatial = weights.view.dims.len() - 2;
        let Node { element: written, dims: given, .. } = operands.graph.node(contraction.node).clone();
        let outward: Vec<usize> = std::iter::once(spatial).chain(0..spatial).chain([spatial + 1]).collect();
        let swapped: Vec<usize> = std::iter::once(spatial + 1).chain(1..=spatial).chain([0]).collect();
        let mut dense = |view: View, of: &Operand| -> Result<Operand, String> {
            let operand = Operand { value: of.value, view };
            let whole = operand.view == View::dense(&operands.graph.node(of.value).dims);
            if whole && own == computed {
                Ok(operand)
            } else {
                operands.dense(tasks, options, &operand, computed)
            }
        };
        let query = LibraryQuery::Extra(cluster.output);
        let (call, result) = match pass {
            ConvPass::WeightGradient => {
                let input = dense(permuted(&input.view, &swapped), input)?;
                let output = dense(permuted(&weights.view, &outward), weights)?;
                let dims: Vec<usize> = swapped.iter().map(|&at| given[at]).collect();
                let gradient = operands.written_by_library(written, &dims, input.value)?;
                let call = ConvCall {
                    pass,
                    input: input.value,
                    input_dims: input.view.dims,
                    weights: gradient,
                    weights_dims: dims,
                    output_dims: output.view.dims,
                    output: output.value,
                    window,
                    chain: Vec::new(),
                    exact,
                };
                (call, gradient)
            }
            ConvPass::DataGradient | ConvPass::Forward => {
                let output = dense(input.view.clone(), input)?;
                let weights = dense(permuted(&reversed(&weights.view, spatial), &outward), weights)?;
                let call = ConvCall {
                    pass,
                    input: cluster.output,
                    input_dims: given.clone(),
                    weights: weights.value,
                    weights_dims: weights.view.dims,
                    output_dims: output.view.dims,
                    output: output.value,
                    window,
                    chain: Vec::new(),
                    exact,
                };
                (call, cluster.output)
            }
        };
        let nodes = if result == cluster.output { cluster.nodes.clone() } else { vec![result] };
        let called = Cluster { kind: call.as_unfused(), output: result, nodes };
        tasks.push(Task { query, ..Task::new(called, Lowering::Convolution(Box::new(call))) });
        if result == cluster.output {
            return Ok(());
        }
        let view = permuted(&View::dense(&operands.graph.node(result).dims), &swapped);
        let body = Body {
            reduced: vec![false; given.len()],
            loads: vec![Operand { value: result, view }],
            steps: vec![BodyStep { op: BodyOp::Load(0), inputs: Vec::new(), element: written }],
            output: View::dense(&given),
            dims: given,
            also: Vec::new(),
        };
        let cluster =
            Cluster { kind: Kind::Loop(body), output: cluster.output, nodes: cluster.nodes.clone() };
        let emitted = emit(&operands.graph, &cluster, options).map_err(|error| error.to_string())?;
        tasks.push(Task::new(cluster, Lowering::Emitted(emitted)));
        Ok(())
    }
}

/// A dimension of the forward pass whose gradient a convolution is.
fn dimension(pass: ConvPass, conv: &Conv, at: usize, sizes: [usize; 3]) -> Dimension {
    let [input, window, output] = sizes.map(|size| size as i64);
    let low = conv.padding[at].0 as i64;
    match pass {
        ConvPass::WeightGradient => Dimension {
            input,
            output: window,
            window: output,
            stride: conv.window_dilation[at] as i64,
            dilation: conv.strides[at] as i64,
            before: low,
        },
        ConvPass::DataGradient | ConvPass::Forward => {
            let dilation = conv.window_dilation[at] as i64;
            let stride = conv.base_dilation[at] as i64;
            let before = dilation * (window - 1) - low;
            Dimension { input: output, output: input, window, stride, dilation, before }
        }
    }
}

/// Dimension `i` of the result is dimension `order[i]`.
fn permuted(view: &View, order: &[usize]) -> View {
    View {
        offset: view.offset,
        dims: order.iter().map(|&at| view.dims[at]).collect(),
        strides: order.iter().map(|&at| view.strides[at]).collect(),
    }
}

/// The view with the order of its first dimensions reversed.
fn reversed(view: &View, dimensions: usize) -> View {
    let mut view = view.clone();
    for at in 0..dimensions {
        view.offset += (view.dims[at] as isize - 1) * view.strides[at];
        view.strides[at] = -view.strides[at];
    }
    view
}
