//! Lowering of loop bodies to fused loops of the kernels crate.

use warpforge_fusion::cluster::{Body, BodyOp, BodyStep};
use warpforge_fusion::graph::ReduceKind;
use warpforge_fusion::{Graph, View};
use warpforge_ir::attr::{ComparisonDirection, ComparisonType};
use warpforge_kernels::fused_loop::{
    Access, ColumnOutput, ColumnReduction, Direction, Domain, Function, FusedLoop, Input, Inst, Order,
    Output, Register, Sink, Source,
};
use warpforge_kernels::reduce::ReduceOp;
use warpforge_tensor::ElementType;

use super::deferred_division::DividendLoop;
use super::gelu;
use super::interface::{KernelError, Result};

/// How a fused loop reads and writes a tile.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TileBinding {
    /// The load that is the tile, and the type of its elements.
    pub(crate) load: Option<(usize, ElementType)>,
    /// The element type of the result if it is written to the tile.
    pub(crate) result: Option<ElementType>,
    /// Whether the elements of the tile are first divided by a per-row scalar of their type. The scalars are contiguous
    /// and are the last input.
    pub(crate) divided: bool,
}

/// The split of the dimensions of a loop into rows and columns: their order, and how many are rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowColumnSplit<'a> {
    pub(crate) order: &'a [usize],
    pub(crate) rows: usize,
}

impl RowColumnSplit<'_> {
    fn access(&self, view: &View) -> Access {
        let strides = |order: &[usize]| order.iter().map(|&at| view.strides[at]).collect();
        Access {
            offset: view.offset,
            rows: strides(&self.order[..self.rows]),
            columns: strides(&self.order[self.rows..]),
        }
    }

    /// The access of one contiguous scalar per row.
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

/// Lowers a loop body. The result is stored as elements of type `stored`, unless it is written to a tile; the loop's other values follow it.
pub(crate) fn fused_loop(
    graph: &Graph,
    body: &Body,
    split: RowColumnSplit<'_>,
    tile: TileBinding,
    stored: ElementType,
) -> Result<FusedLoop> {
    let LoweredBody { inputs, mut insts, registers } = lower_body(graph, body, split, tile)?;
    let mut value = *registers.last().ok_or_else(|| KernelError::Unsupported("an empty loop".to_owned()))?;
    let given = body.steps.last().map(|step| step.element);
    let wanted = tile.result.unwrap_or(stored);
    if Some(wanted) != given {
        insts.push(Inst::Convert(value, wanted));
        value = Register(insts.len() - 1);
    }
    let sink = if tile.result.is_some() { Sink::Tile } else { Sink::Memory(split.access(&body.output)) };
    // Beside the elements of rows, a loop gives numbers of rows.
    let place = if body.has_reductions() { split.numbers(&body.dims) } else { split.access(&body.output) };
    let others = body
        .also
        .iter()
        .map(|also| Output { value: registers[also.step], sink: Sink::Memory(place.clone()) });
    let outputs: Vec<Output> = [Output { value, sink }].into_iter().chain(others).collect();
    Ok(FusedLoop::new(&split.domain(&body.dims), &inputs, &insts, &outputs)?)
}

/// Lowers a loop whose dividend is written to the tile that it reads, and whose divisor, one per row, to the second
/// output.
pub(crate) fn dividend(
    graph: &Graph,
    division: &DividendLoop,
    split: RowColumnSplit<'_>,
    tile: (usize, ElementType),
) -> Result<FusedLoop> {
    let body = &division.body;
    let tile = TileBinding { load: Some(tile), ..TileBinding::default() };
    let LoweredBody { inputs, insts, registers } = lower_body(graph, body, split, tile)?;
    let outputs = [
        Output { value: registers[division.dividend], sink: Sink::Tile },
        Output { value: registers[division.divisor], sink: Sink::Memory(split.numbers(&body.dims)) },
    ];
    Ok(FusedLoop::new(&split.domain(&body.dims), &inputs, &insts, &outputs)?)
}

/// Lowers a loop that ends in its only reduction to a column reduction.
pub(crate) fn column_reduction(
    graph: &Graph,
    body: &Body,
    split: RowColumnSplit<'_>,
) -> Result<ColumnReduction> {
    let Some((BodyStep { op: BodyOp::Reduce(reduction), inputs: reduced, .. }, before)) =
        body.steps.split_last()
    else {
        return Err(KernelError::Unsupported("a loop that does not end in a reduction".to_owned()));
    };
    let before = Body { steps: before.to_vec(), ..body.clone() };
    let LoweredBody { inputs, insts, registers } = lower_body(graph, &before, split, TileBinding::default())?;
    let value = reduced.first().and_then(|&at| registers.get(at).copied());
    let value = value.ok_or_else(|| KernelError::Unsupported("a reduction without an operand".to_owned()))?;
    let access = Access { rows: Vec::new(), ..split.access(&body.output) };
    let output = ColumnOutput { reduction: reduce_op(*reduction), value, access };
    Ok(ColumnReduction::new(&split.domain(&body.dims), &inputs, &insts, &[output])?)
}

/// A lowered loop body.
struct LoweredBody {
    inputs: Vec<Input>,
    insts: Vec<Inst>,
    /// The register of the value of each step of the body.
    registers: Vec<Register>,
}

fn lower_body(
    graph: &Graph,
    body: &Body,
    split: RowColumnSplit<'_>,
    tile: TileBinding,
) -> Result<LoweredBody> {
    let mut inputs = Vec::new();
    for (at, load) in body.loads.iter().enumerate() {
        let element = graph.node(load.value).element;
        inputs.push(match tile.load {
            Some((number, element)) if number == at => Input { element, source: Source::Tile },
            _ => Input { element, source: Source::Memory(split.access(&load.view)) },
        });
    }
    let divisors = inputs.len();
    if let (Some((_, element)), true) = (tile.load, tile.divided) {
        inputs.push(Input { element, source: Source::Memory(split.numbers(&body.dims)) });
    }
    let mut insts: Vec<Inst> = Vec::new();
    let mut registers: Vec<Register> = Vec::new();
    for step in &body.steps {
        let operands: Vec<Register> = step.inputs.iter().map(|&input| registers[input]).collect();
        let made = match &step.op {
            BodyOp::Load(at) => Inst::Load(*at),
            BodyOp::Constant(tensor) => Inst::Constant(step.element, tensor.get(0)),
            BodyOp::Iota(view) => {
                let access = split.access(view);
                let wide = |strides: Vec<isize>| strides.into_iter().map(|stride| stride as i64).collect();
                Inst::Iota {
                    element: step.element,
                    offset: access.offset as i64,
                    rows: wide(access.rows),
                    columns: wide(access.columns),
                }
            }
            BodyOp::Elementwise(function) => elementwise(&mut insts, *function, &operands, step.element)?,
            BodyOp::Compare(direction, order) => compare(*direction, *order, &operands)?,
            BodyOp::Reduce(reduction) => Inst::Reduce(reduce_op(*reduction), operand(&operands, 0)?),
        };
        insts.push(made);
        let mut register = Register(insts.len() - 1);
        if matches!((&step.op, tile.load), (BodyOp::Load(at), Some((tile, _))) if *at == tile) && tile.divided
        {
            insts.push(Inst::Load(divisors));
            insts.push(Inst::Binary(Function::Divide, register, Register(insts.len() - 1)));
            register = Register(insts.len() - 1);
        }
        // A tile holds sums in a wider type than the value has; memory may hold the value in a narrower one.
        if let BodyOp::Load(at) = &step.op
            && inputs.get(*at).is_some_and(|input| input.element != step.element)
        {
            insts.push(Inst::Convert(register, step.element));
            register = Register(insts.len() - 1);
        }
        registers.push(register);
    }
    Ok(LoweredBody { inputs, insts, registers })
}

fn operand(operands: &[Register], at: usize) -> Result<Register> {
    let missing = || KernelError::Unsupported("a step without an operand".to_owned());
    operands.get(at).copied().ok_or_else(missing)
}

/// The last instruction of an elementwise function that gives `element`; those before it are appended.
pub(super) fn elementwise(
    insts: &mut Vec<Inst>,
    function: Function,
    operands: &[Register],
    element: ElementType,
) -> Result<Inst> {
    let input = |at: usize| operand(operands, at);
    Ok(match (function, function.arity()) {
        (Function::Convert, _) => Inst::Convert(input(0)?, element),
        (Function::Select, _) => Inst::Select(input(0)?, input(1)?, input(2)?),
        (Function::GeluTanh, _) => gelu::forward(insts, input(0)?),
        (Function::GeluTanhGradient, _) => gelu::gradient(insts, input(0)?, input(1)?),
        (_, 1) => Inst::Unary(function, input(0)?),
        (_, 2) => Inst::Binary(function, input(0)?, input(1)?),
        _ => {
            return Err(KernelError::Unsupported(format!("there is no kernel for {}", function.name())));
        }
    })
}

/// The instruction of a comparison.
pub(super) fn compare(
    direction: ComparisonDirection,
    order: ComparisonType,
    operands: &[Register],
) -> Result<Inst> {
    let (a, b) = (operand(operands, 0)?, operand(operands, 1)?);
    Ok(Inst::Compare(direction_of(direction), order_of(order), a, b))
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

/// The reduction of the kernels for one of the graph.
pub(super) fn reduce_op(reduction: ReduceKind) -> ReduceOp {
    match reduction {
        ReduceKind::Add => ReduceOp::Sum,
        ReduceKind::Multiply => ReduceOp::Product,
        ReduceKind::Max => ReduceOp::Maximum,
        ReduceKind::Min => ReduceOp::Minimum,
        ReduceKind::And => ReduceOp::And,
        ReduceKind::Or => ReduceOp::Or,
    }
}
