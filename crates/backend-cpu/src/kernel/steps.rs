//! Loops of clusters as programs of the kernels crate.

use warpforge_fusion::cluster::{Body, BodyOp, BodyStep};
use warpforge_fusion::graph::ReduceKind;
use warpforge_fusion::{Graph, View};
use warpforge_ir::OpKind;
use warpforge_ir::attr::{ComparisonDirection, ComparisonType};
use warpforge_kernels::fold;
use warpforge_kernels::program::{
    Access, BinaryOp, ColumnFold, ColumnOutput, Direction, Domain, Input, Order, Output, Program, Register,
    Sink, Source, Step, UnaryOp,
};
use warpforge_tensor::ElementType;

use super::attention::Quotient;
use super::{KernelError, Result};

/// What a program takes from and gives to a tile.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tile {
    /// The load that is the tile, and the type of its elements.
    pub(crate) load: Option<(usize, ElementType)>,
    /// Whether the result goes into the tile, as elements of this type.
    pub(crate) result: Option<ElementType>,
    /// Whether the tile's elements are to be divided by a number of their row, of their type: those numbers lie side by
    /// side and are the last input.
    pub(crate) divided: bool,
}

/// How a loop's dimensions are cut into rows and columns: their order, and how many are rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut<'a> {
    pub(crate) order: &'a [usize],
    pub(crate) rows: usize,
}

impl Cut<'_> {
    fn access(&self, view: &View) -> Access {
        let strides = |order: &[usize]| order.iter().map(|&at| view.strides[at]).collect();
        Access {
            offset: view.offset,
            rows: strides(&self.order[..self.rows]),
            columns: strides(&self.order[self.rows..]),
        }
    }

    /// Numbers that lie side by side, one for each row.
    fn numbers(&self, dims: &[usize]) -> Access {
        let sizes: Vec<usize> = self.order[..self.rows].iter().map(|&at| dims[at]).collect();
        Access {
            offset: 0,
            rows: View::dense(&sizes).strides,
            columns: vec![0; self.order.len() - self.rows],
        }
    }

    fn domain(&self, dims: &[usize]) -> Domain {
        let sizes = |order: &[usize]| order.iter().map(|&at| dims[at]).collect();
        Domain { rows: sizes(&self.order[..self.rows]), columns: sizes(&self.order[self.rows..]) }
    }
}

/// A loop as one pass over rows. Its result lies in memory as elements of type `stored`, unless it goes into a tile.
pub(crate) fn program(
    graph: &Graph,
    body: &Body,
    cut: Cut<'_>,
    tile: Tile,
    stored: ElementType,
) -> Result<Program> {
    let Parts { inputs, mut steps, registers } = parts(graph, body, cut, tile)?;
    let mut value = *registers.last().ok_or_else(|| KernelError::Unsupported("an empty loop".to_owned()))?;
    let given = body.steps.last().map(|step| step.element);
    let wanted = tile.result.unwrap_or(stored);
    if Some(wanted) != given {
        steps.push(Step::Convert(value, wanted));
        value = Register(steps.len() - 1);
    }
    let sink = if tile.result.is_some() { Sink::Tile } else { Sink::Memory(cut.access(&body.output)) };
    Ok(Program::new(&cut.domain(&body.dims), &inputs, &steps, &[Output { value, sink }])?)
}

/// A loop whose dividend goes into the tile of which it is made, and whose divisor, one for each row, into the second
/// output.
pub(crate) fn dividend(
    graph: &Graph,
    quotient: &Quotient,
    cut: Cut<'_>,
    tile: (usize, ElementType),
) -> Result<Program> {
    let body = &quotient.body;
    let tile = Tile { load: Some(tile), ..Tile::default() };
    let Parts { inputs, steps, registers } = parts(graph, body, cut, tile)?;
    let outputs = [
        Output { value: registers[quotient.dividend], sink: Sink::Tile },
        Output { value: registers[quotient.divisor], sink: Sink::Memory(cut.numbers(&body.dims)) },
    ];
    Ok(Program::new(&cut.domain(&body.dims), &inputs, &steps, &outputs)?)
}

/// A loop that ends in its only reduction, as a fold of its rows into one.
pub(crate) fn column_fold(graph: &Graph, body: &Body, cut: Cut<'_>) -> Result<ColumnFold> {
    let Some((BodyStep { op: BodyOp::Reduce(fold), inputs: reduced, .. }, before)) = body.steps.split_last()
    else {
        return Err(KernelError::Unsupported("a loop that does not end in a reduction".to_owned()));
    };
    let before = Body { steps: before.to_vec(), ..body.clone() };
    let Parts { inputs, steps, registers } = parts(graph, &before, cut, Tile::default())?;
    let value = reduced.first().and_then(|&at| registers.get(at).copied());
    let value = value.ok_or_else(|| KernelError::Unsupported("a reduction of nothing".to_owned()))?;
    let access = Access { rows: Vec::new(), ..cut.access(&body.output) };
    let output = ColumnOutput { fold: fold_of(*fold), value, access };
    Ok(ColumnFold::new(&cut.domain(&body.dims), &inputs, &steps, &[output])?)
}

/// What loops are made of.
struct Parts {
    inputs: Vec<Input>,
    steps: Vec<Step>,
    /// For each step of the body, where its value is.
    registers: Vec<Register>,
}

fn parts(graph: &Graph, body: &Body, cut: Cut<'_>, tile: Tile) -> Result<Parts> {
    let mut inputs = Vec::new();
    for (at, load) in body.loads.iter().enumerate() {
        let element = graph.node(load.value).element;
        inputs.push(match tile.load {
            Some((number, element)) if number == at => Input { element, source: Source::Tile },
            _ => Input { element, source: Source::Memory(cut.access(&load.view)) },
        });
    }
    let divisors = inputs.len();
    if let (Some((_, element)), true) = (tile.load, tile.divided) {
        inputs.push(Input { element, source: Source::Memory(cut.numbers(&body.dims)) });
    }
    let mut steps: Vec<Step> = Vec::new();
    let mut registers: Vec<Register> = Vec::new();
    for step in &body.steps {
        let input = |at: usize| {
            let step = step
                .inputs
                .get(at)
                .ok_or_else(|| KernelError::Unsupported("a step lacks an operand".to_owned()))?;
            Ok::<Register, KernelError>(registers[*step])
        };
        let made = match &step.op {
            BodyOp::Load(at) => Step::Load(*at),
            BodyOp::Constant(tensor) => Step::Constant(step.element, tensor.get(0)),
            BodyOp::Iota(view) => {
                let access = cut.access(view);
                let wide = |strides: Vec<isize>| strides.into_iter().map(|stride| stride as i64).collect();
                Step::Iota {
                    element: step.element,
                    offset: access.offset as i64,
                    rows: wide(access.rows),
                    columns: wide(access.columns),
                }
            }
            BodyOp::Elementwise(OpKind::Convert) => Step::Convert(input(0)?, step.element),
            BodyOp::Elementwise(OpKind::Select) => Step::Select(input(0)?, input(1)?, input(2)?),
            BodyOp::Elementwise(kind) => match (unary(*kind), binary(*kind)) {
                (Some(op), _) => Step::Unary(op, input(0)?),
                (_, Some(op)) => Step::Binary(op, input(0)?, input(1)?),
                _ => return Err(KernelError::Unsupported(format!("there is no kernel for {}", kind.name()))),
            },
            BodyOp::Compare(direction, order) => {
                Step::Compare(direction_of(*direction), order_of(*order), input(0)?, input(1)?)
            }
            BodyOp::Reduce(fold) => Step::Reduce(fold_of(*fold), input(0)?),
        };
        steps.push(made);
        let mut register = Register(steps.len() - 1);
        if matches!((&step.op, tile.load), (BodyOp::Load(at), Some((tile, _))) if *at == tile) && tile.divided
        {
            steps.push(Step::Load(divisors));
            steps.push(Step::Binary(BinaryOp::Divide, register, Register(steps.len() - 1)));
            register = Register(steps.len() - 1);
        }
        // A tile holds sums in a wider type than the value has, memory may hold the value in a narrower one.
        if let BodyOp::Load(at) = &step.op
            && inputs.get(*at).is_some_and(|input| input.element != step.element)
        {
            steps.push(Step::Convert(register, step.element));
            register = Register(steps.len() - 1);
        }
        registers.push(register);
    }
    Ok(Parts { inputs, steps, registers })
}

fn unary(kind: OpKind) -> Option<UnaryOp> {
    Some(match kind {
        OpKind::Abs => UnaryOp::Abs,
        OpKind::Negate => UnaryOp::Negate,
        OpKind::Sign => UnaryOp::Sign,
        OpKind::Not => UnaryOp::Not,
        OpKind::Popcnt => UnaryOp::Popcnt,
        OpKind::CountLeadingZeros => UnaryOp::CountLeadingZeros,
        OpKind::IsFinite => UnaryOp::IsFinite,
        OpKind::Ceil => UnaryOp::Ceil,
        OpKind::Floor => UnaryOp::Floor,
        OpKind::RoundNearestAfz => UnaryOp::RoundNearestAfz,
        OpKind::RoundNearestEven => UnaryOp::RoundNearestEven,
        OpKind::Sqrt => UnaryOp::Sqrt,
        OpKind::Rsqrt => UnaryOp::Rsqrt,
        OpKind::Cbrt => UnaryOp::Cbrt,
        OpKind::Exponential => UnaryOp::Exp,
        OpKind::ExponentialMinusOne => UnaryOp::Expm1,
        OpKind::Log => UnaryOp::Log,
        OpKind::LogPlusOne => UnaryOp::Log1p,
        OpKind::Logistic => UnaryOp::Logistic,
        OpKind::Tanh => UnaryOp::Tanh,
        OpKind::Sine => UnaryOp::Sin,
        OpKind::Cosine => UnaryOp::Cos,
        OpKind::Tan => UnaryOp::Tan,
        OpKind::ChloErf => UnaryOp::Erf,
        OpKind::ChloErfc => UnaryOp::Erfc,
        _ => return None,
    })
}

fn binary(kind: OpKind) -> Option<BinaryOp> {
    Some(match kind {
        OpKind::Add => BinaryOp::Add,
        OpKind::Subtract => BinaryOp::Subtract,
        OpKind::Multiply => BinaryOp::Multiply,
        OpKind::Divide => BinaryOp::Divide,
        OpKind::Remainder => BinaryOp::Remainder,
        OpKind::Maximum => BinaryOp::Maximum,
        OpKind::Minimum => BinaryOp::Minimum,
        OpKind::Power => BinaryOp::Power,
        OpKind::Atan2 => BinaryOp::Atan2,
        OpKind::And => BinaryOp::And,
        OpKind::Or => BinaryOp::Or,
        OpKind::Xor => BinaryOp::Xor,
        OpKind::ShiftLeft => BinaryOp::ShiftLeft,
        OpKind::ShiftRightLogical => BinaryOp::ShiftRightLogical,
        OpKind::ShiftRightArithmetic => BinaryOp::ShiftRightArithmetic,
        _ => return None,
    })
}

fn direction_of(direction: ComparisonDirection) -> Direction {
    match direction {
        ComparisonDirection::Eq => Direction::Eq,
        ComparisonDirection::Ne => Direction::Ne,
        ComparisonDirection::Ge => Direction::Ge,
        ComparisonDirection::Gt => Direction::Gt,
        ComparisonDirection::Le => Direction::Le,
        ComparisonDirection::Lt => Direction::Lt,
    }
}

fn order_of(order: ComparisonType) -> Order {
    match order {
        ComparisonType::TotalOrder => Order::Total,
        _ => Order::Partial,
    }
}

/// A fold of the graph as one of the kernels.
pub(super) fn fold_of(fold: ReduceKind) -> fold::Fold {
    match fold {
        ReduceKind::Add => fold::Fold::Sum,
        ReduceKind::Multiply => fold::Fold::Product,
        ReduceKind::Max => fold::Fold::Maximum,
        ReduceKind::Min => fold::Fold::Minimum,
        ReduceKind::And => fold::Fold::And,
        ReduceKind::Or => fold::Fold::Or,
    }
}
