//! Products with quantized weights. Where the activations have few rows, a kernel multiplies the codes; otherwise the weights are widened in each
//! run, so that memory holds the codes alone.

use warpforge_codegen::{CODE_ZERO, CODES_OF_WORD, emit, packed_codes, with_packed_codes};
use warpforge_fusion::cluster::{Body, BodyOp, BodyStep, Cluster, Contraction, Kind, Operand};
use warpforge_fusion::precision::quantize::{QuantizedWeights, WeightGroups};
use warpforge_fusion::{Graph, Node, NodeId, Op, View};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatType, Scalar, Tensor};

use super::Lowerer;
use super::task::{Lowering, Task};

impl Lowerer<'_> {
    /// Lowers a product with quantized weights.
    pub(super) fn add_quantized(
        &mut self,
        cluster: &Cluster,
        contraction: &Contraction,
        weights: QuantizedWeights,
    ) -> Result<(), String> {
        let (weights, by_codes) = match weights.groups {
            Some(_) => {
                let codes = self.packed(weights.codes)?;
                (QuantizedWeights { codes, ..weights }, with_packed_codes(cluster, codes))
            }
            None => (weights, cluster.clone()),
        };
        let rows = &contraction.operands[0];
        let graph = &self.operands.graph;
        if multiplies_codes(graph, &weights)
            && let Ok(emitted) = emit(graph, &by_codes, self.context.options)
        {
            // Scales and offsets are read as well.
            let factors = weights.groups.iter().flat_map(|groups| [groups.scales, groups.offsets]);
            let reads = by_codes.reads().into_iter().chain(factors);
            let operand = |value| Operand { value, view: View::dense(&[]) };
            let kind = Kind::Unfused(reads.map(operand).collect());
            self.tasks.push(Task::new(Cluster { kind, ..cluster.clone() }, Lowering::Emitted(emitted)));
            return Ok(());
        }
        let element = graph.node(rows.value).element;
        let widened = self.widened(&weights, &contraction.operands[1].view.dims, element)?;
        let view = View::dense(&contraction.operands[1].view.dims);
        let widened = Operand { value: widened, view };
        let operands = [rows.clone(), widened];
        let wide = Contraction { operands, weights: None, ..contraction.clone() };
        self.add(Cluster { kind: Kind::Dot(wide), ..cluster.clone() })
    }

    /// Codes of 4 bits as words.
    fn packed(&mut self, codes: NodeId) -> Result<NodeId, String> {
        if let Some(&known) = self.packed.get(&codes) {
            return Ok(known);
        }
        let packed = self.operands.graph.constant(codes).and_then(packed_codes);
        let packed = packed.ok_or("codes of 4 bits that are no constant of whole words")?;
        let id = self.operands.constant(packed)?;
        self.packed.insert(codes, id);
        Ok(id)
    }

    /// Weights as they stand for, in the type of the activations. Products that follow each other share them.
    fn widened(
        &mut self,
        weights: &QuantizedWeights,
        dims: &[usize],
        element: ElementType,
    ) -> Result<NodeId, String> {
        if let Some(&known) = self.widened.get(&(weights.codes, element)) {
            return Ok(known);
        }
        let graph = &self.operands.graph;
        let body = match &weights.groups {
            Some(groups) => grouped(graph, weights.codes, groups, element)?,
            None => converted(graph, weights.codes, dims, element),
        };
        let factors = weights.groups.iter().flat_map(|groups| [groups.scales, groups.offsets]);
        let inputs = std::iter::once(weights.codes).chain(factors).collect();
        let op = Op::Elementwise(Function::Convert);
        let node = Node { op, inputs, element, dims: dims.to_vec(), origin: None };
        let task = self.operands.computed(self.context.options, node, body)?;
        let id = task.cluster.output;
        // Models that compute in f32 have room for such weights, as far as other values of constants have.
        self.tasks.push(Task { every_run: element != ElementType::F32, ..task });
        self.widened.insert((weights.codes, element), id);
        Ok(id)
    }
}

/// Whether kernels multiply the codes themselves: floats of 8 bits that are no numbers have no place in tensor cores' wider types.
fn multiplies_codes(graph: &Graph, weights: &QuantizedWeights) -> bool {
    let node = graph.node(weights.codes);
    let is_number = |code: &u8| code & 0x7f != 0x7f;
    node.element != ElementType::Float(FloatType::F8E4M3Fn)
        || graph.constant(weights.codes).is_some_and(|codes| codes.bytes().iter().all(is_number))
}

/// A loop that converts codes.
fn converted(graph: &Graph, codes: NodeId, dims: &[usize], element: ElementType) -> Body {
    let view = View::dense(dims);
    let own = graph.node(codes).element;
    let mut steps = Steps::default();
    let code = steps.push(BodyOp::Load(0), &[], own);
    steps.push(BodyOp::Elementwise(Function::Convert), &[code], element);
    body(vec![Operand { value: codes, view: view.clone() }], steps, view)
}

/// A loop that unpacks words of codes, and scales and moves them.
fn grouped(
    graph: &Graph,
    words: NodeId,
    groups: &WeightGroups,
    element: ElementType,
) -> Result<Body, String> {
    let &[columns, count] = graph.node(groups.scales).dims.as_slice() else {
        return Err("groups of weights that are no matrix".to_owned());
    };
    let of_group = groups.size / CODES_OF_WORD;
    let dims = [columns, count, of_group, CODES_OF_WORD];
    let view = |strides: [usize; 4]| View {
        offset: 0,
        dims: dims.to_vec(),
        strides: strides.map(usize::cast_signed).to_vec(),
    };
    let load = |value, strides| Operand { value, view: view(strides) };
    let factors = [groups.scales, groups.offsets].map(|value| load(value, [count, 1, 0, 0]));
    let loads = [load(words, [count * of_group, of_group, 1, 0])].into_iter().chain(factors).collect();
    let wide = ElementType::F32;
    let number = |element, value| Tensor::scalar(element, value).map_err(|error| error.to_string());
    let mut steps = Steps::default();
    let word = steps.push(BodyOp::Load(0), &[], ElementType::U32);
    let shift = steps.push(BodyOp::Iota(view([0, 0, 0, 4])), &[], ElementType::U32);
    let shifted = steps.map(Function::ShiftRightLogical, &[word, shift], ElementType::U32);
    let mask = number(ElementType::U32, Scalar::Int(0xf))?;
    let mask = steps.push(BodyOp::Constant(mask), &[], ElementType::U32);
    let code = steps.map(Function::And, &[shifted, mask], ElementType::U32);
    let code = steps.map(Function::Convert, &[code], wide);
    let zero = number(wide, Scalar::Float(CODE_ZERO.into()))?;
    let zero = steps.push(BodyOp::Constant(zero), &[], wide);
    let mut value = steps.map(Function::Subtract, &[code, zero], wide);
    for (at, function) in [(1, Function::Multiply), (2, Function::Add)] {
        let factor = steps.push(BodyOp::Load(at), &[], ElementType::BF16);
        let factor = steps.map(Function::Convert, &[factor], wide);
        value = steps.map(function, &[value, factor], wide);
    }
    if element != wide {
        steps.map(Function::Convert, &[value], element);
    }
    Ok(body(loads, steps, View::dense(&dims)))
}

/// Steps of a loop while it is written.
#[derive(Default)]
struct Steps(Vec<BodyStep>);

impl Steps {
    fn push(&mut self, op: BodyOp, inputs: &[usize], element: ElementType) -> usize {
        self.0.push(BodyStep { op, inputs: inputs.to_vec(), element });
        self.0.len() - 1
    }

    fn map(&mut self, function: Function, inputs: &[usize], element: ElementType) -> usize {
        self.push(BodyOp::Elementwise(function), inputs, element)
    }
}

fn body(loads: Vec<Operand>, steps: Steps, output: View) -> Body {
    let dims = output.dims.clone();
    Body { reduced: vec![false; dims.len()], loads, steps: steps.0, output, dims, also: Vec::new() }
}
