//! Recurrent layers, step by step along the sequence.

use super::matrix::{DotPairing, dot};
use super::prelude::*;

pub(super) const TABLE: &[Op] = &[
    op("aten.gru.input", |cx, args| recurrent(cx, args, Cell::Gru)),
    op("aten.lstm.input", |cx, args| recurrent(cx, args, Cell::Lstm)),
    op("aten.rnn_relu.input", |cx, args| recurrent(cx, args, Cell::Relu)),
    op("aten.rnn_tanh.input", |cx, args| recurrent(cx, args, Cell::Tanh)),
];

/// Steps of all layers and directions that are written out.
const MOST_STEPS: usize = 1 << 14;

/// What a layer does at each step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Gru,
    Lstm,
    Relu,
    Tanh,
}

impl Cell {
    /// How many products of one size the weights have below each other.
    fn gates(self) -> i64 {
        match self {
            Self::Gru => 3,
            Self::Lstm => 4,
            Self::Relu | Self::Tanh => 1,
        }
    }
}

/// The weights of one layer in one direction.
struct Weights<'a> {
    input: &'a Tensor,
    state: &'a Tensor,
    biases: Option<(&'a Tensor, &'a Tensor)>,
}

/// What is carried from step to step: the state, and the memory of an LSTM.
#[derive(Clone)]
struct State {
    hidden: Tensor,
    memory: Option<Tensor>,
}

fn recurrent(cx: &mut Cx<'_>, args: &Args<'_>, cell: Cell) -> Lowered<Outcome> {
    let x = args.tensor("input")?;
    let starts = if cell == Cell::Lstm { args.tensors("hx")? } else { vec![args.tensor("hx")?] };
    let params = args.tensors("params")?;
    let (layers, two_ways) = (args.int("num_layers")?, args.bool_or("bidirectional", false)?);
    let (biased, batch_first) = (args.bool_or("has_biases", true)?, args.bool_or("batch_first", false)?);
    if args.bool_or("train", false)? && args.float_or("dropout", 0.0)? != 0.0 {
        return refuse("dropout between recurrent layers");
    }
    args.ignore(&["dropout"]);
    if !matches!(x.dtype, ElementType::F32 | ElementType::F64) || x.rank() != 3 {
        return refuse(format!("a recurrent layer on {} of {} dimensions", x.dtype, x.rank()));
    }
    let directions = 1 + usize::from(two_ways);
    let each = if biased { 4 } else { 2 };
    let layers = usize::try_from(layers).unwrap_or(0);
    let shaped = |(at, param): (usize, &Tensor)| param.rank() == if at % each < 2 { 2 } else { 1 };
    if !params.iter().enumerate().all(shaped) {
        return refuse("a recurrent layer whose weights are no matrices");
    }
    if layers.checked_mul(directions * each) != Some(params.len())
        || starts.iter().any(|start| start.rank() != 3)
    {
        return refuse("a recurrent layer with projections");
    }
    let mut sequence = if batch_first { cx.transpose(&x, &[1, 0, 2])? } else { x };
    let length = cx.known(&sequence.dims[..1])?[0];
    let steps = usize::try_from(length).unwrap_or(0);
    if steps == 0 || steps.saturating_mul(layers * directions) > MOST_STEPS {
        return refuse(format!("{layers} recurrent layers over a sequence of {length}"));
    }
    let mut ends: Vec<State> = Vec::new();
    for (layer, params) in params.chunks_exact(directions * each).enumerate() {
        let mut outputs = Vec::new();
        for (direction, params) in params.chunks_exact(each).enumerate() {
            let weights = Weights {
                input: &params[0],
                state: &params[1],
                biases: biased.then(|| (&params[2], &params[3])),
            };
            let start = start_of(cx, &starts, layer * directions + direction)?;
            let (output, end) = one_way(cx, cell, &sequence, &weights, start, direction == 1)?;
            outputs.push(output);
            ends.push(end);
        }
        sequence = cx.concatenate(&outputs, 2)?;
    }
    let output = if batch_first { cx.transpose(&sequence, &[1, 0, 2])? } else { sequence };
    let hidden = stacked(cx, ends.iter().map(|end| &end.hidden))?;
    let mut results = vec![Value::Tensor(output), Value::Tensor(hidden)];
    if cell == Cell::Lstm {
        let memory = stacked(cx, ends.iter().filter_map(|end| end.memory.as_ref()))?;
        results.push(Value::Tensor(memory));
    }
    Ok(results)
}

fn stacked<'t>(cx: &mut Cx<'_>, parts: impl Iterator<Item = &'t Tensor>) -> Lowered<Tensor> {
    let parts: Vec<Tensor> = parts.map(|part| cx.unsqueeze(part, 0)).collect::<Lowered<_>>()?;
    cx.concatenate(&parts, 0)
}

/// One index along the first dimension.
fn row(cx: &mut Cx<'_>, x: &Tensor, index: usize) -> Lowered<Tensor> {
    let part = cx.slice(x, 0, &Size::Int(index as i64), &Size::Int(index as i64 + 1), 1)?;
    let dims = part.dims[1..].to_vec();
    cx.reshape(&part, &dims)
}

fn start_of(cx: &mut Cx<'_>, starts: &[Tensor], index: usize) -> Lowered<State> {
    let mut rows = starts.iter().map(|start| row(cx, start, index)).collect::<Lowered<Vec<_>>>()?.into_iter();
    match (rows.next(), rows.next()) {
        (Some(hidden), memory) => Ok(State { hidden, memory }),
        (None, _) => refuse("the state that a recurrent layer begins with is missing"),
    }
}

/// `x @ weight.T + bias`.
fn projected(cx: &mut Cx<'_>, x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Lowered<Tensor> {
    let product = dot(cx, x, weight, &DotPairing::summing(&[x.rank() - 1], &[1]))?;
    let Some(bias) = bias else { return Ok(product) };
    let bias = cx.expand_to(bias, &product.dims)?;
    cx.add(&product, &bias)
}

/// One layer in one direction: its outputs and what it ends with.
fn one_way(
    cx: &mut Cx<'_>,
    cell: Cell,
    sequence: &Tensor,
    weights: &Weights<'_>,
    start: State,
    backwards: bool,
) -> Lowered<(Tensor, State)> {
    let inputs = projected(cx, sequence, weights.input, weights.biases.map(|(input, _)| input))?;
    let steps = cx.known(&sequence.dims[..1])?[0] as usize;
    let mut outputs = Vec::with_capacity(steps);
    let mut state = start;
    for step in 0..steps {
        let input = row(cx, &inputs, if backwards { steps - 1 - step } else { step })?;
        let own = projected(cx, &state.hidden, weights.state, weights.biases.map(|(_, state)| state))?;
        state = next(cx, cell, &input, &own, state)?;
        outputs.push(cx.unsqueeze(&state.hidden, 0)?);
    }
    if backwards {
        outputs.reverse();
    }
    Ok((cx.concatenate(&outputs, 0)?, state))
}

/// The part of the products that belongs to one gate.
fn gate(cx: &mut Cx<'_>, cell: Cell, x: &Tensor, index: i64) -> Lowered<Tensor> {
    let size = cx.known(&x.dims[1..])?[0] / cell.gates();
    cx.slice(x, 1, &Size::Int(index * size), &Size::Int((index + 1) * size), 1)
}

fn next(cx: &mut Cx<'_>, cell: Cell, input: &Tensor, own: &Tensor, state: State) -> Lowered<State> {
    match cell {
        Cell::Tanh | Cell::Relu => {
            let sum = cx.add(input, own)?;
            let hidden = match cell {
                Cell::Tanh => cx.unary(OpKind::Tanh, &sum)?,
                _ => cx.with_number(OpKind::Maximum, &sum, 0.0)?,
            };
            Ok(State { hidden, memory: None })
        }
        Cell::Gru => {
            let mut parts = |index| -> Lowered<(Tensor, Tensor)> {
                Ok((gate(cx, cell, input, index)?, gate(cx, cell, own, index)?))
            };
            let (reset, update, new) = (parts(0)?, parts(1)?, parts(2)?);
            let mut opened = |(a, b): (Tensor, Tensor)| {
                let sum = cx.add(&a, &b)?;
                cx.unary(OpKind::Logistic, &sum)
            };
            let (reset, update) = (opened(reset)?, opened(update)?);
            let kept = cx.mul(&new.1, &reset)?;
            let sum = cx.add(&new.0, &kept)?;
            let new = cx.unary(OpKind::Tanh, &sum)?;
            let difference = cx.sub(&state.hidden, &new)?;
            let part = cx.mul(&difference, &update)?;
            Ok(State { hidden: cx.add(&part, &new)?, memory: None })
        }
        Cell::Lstm => {
            let Some(memory) = state.memory else { return refuse("an LSTM needs a memory to begin with") };
            let sum = cx.add(input, own)?;
            let mut opened = |index, kind| {
                let part = gate(cx, cell, &sum, index)?;
                cx.unary(kind, &part)
            };
            let (take, keep) = (opened(0, OpKind::Logistic)?, opened(1, OpKind::Logistic)?);
            let (new, show) = (opened(2, OpKind::Tanh)?, opened(3, OpKind::Logistic)?);
            let (kept, taken) = (cx.mul(&keep, &memory)?, cx.mul(&take, &new)?);
            let memory = cx.add(&kept, &taken)?;
            let shown = cx.unary(OpKind::Tanh, &memory)?;
            Ok(State { hidden: cx.mul(&show, &shown)?, memory: Some(memory) })
        }
    }
}
