//! What is done to the blocks of a product.

use std::cell::RefCell;

use warpforge_fusion::cluster::{Body, BodyOp, BodyStep, Epilogue, Load};
use warpforge_fusion::{Graph, NodeId, View};
use warpforge_kernels::block::Block;
use warpforge_kernels::program::{Program, Scratch};
use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use super::attention::Quotient;
use super::steps::{Cut, Tile, dividend, program};
use super::{Memory, Result};

/// Whether a loop does nothing to sums of f32 but round them to bf16, as dense as they come.
pub(super) fn only_rounds(epilogue: &Epilogue) -> bool {
    let [load, convert] = epilogue.body.steps.as_slice() else { return false };
    matches!(load.op, BodyOp::Load(at) if at == epilogue.tile)
        && matches!(load.element, ElementType::F32 | ElementType::BF16)
        && matches!(convert.op, BodyOp::Elementwise(Function::Convert))
        && convert.element == ElementType::BF16
        && epilogue.body.output.is_dense()
}

/// What a worker needs for a block, kept from block to block.
struct Room {
    scratch: Scratch,
    inputs: Vec<*const u8>,
    outputs: Vec<*mut u8>,
}

thread_local! {
    static ROOM: RefCell<Room> =
        const { RefCell::new(Room { scratch: Scratch::new(), inputs: Vec::new(), outputs: Vec::new() }) };
}

/// A loop over blocks.
pub(super) struct Blocks {
    program: Program,
    inputs: Vec<NodeId>,
    output: NodeId,
}

impl Blocks {
    /// The epilogue of a product whose sums are of a type.
    pub(super) fn new(graph: &Graph, epilogue: &Epilogue, sum: ElementType, output: NodeId) -> Result<Self> {
        let tile = Tile { load: Some((epilogue.tile, sum)), ..Tile::default() };
        Self::of(graph, epilogue, tile, output)
    }

    /// The same for sums that are first divided by a number of their row.
    pub(super) fn divided(
        graph: &Graph,
        epilogue: &Epilogue,
        sum: ElementType,
        output: NodeId,
    ) -> Result<Self> {
        let tile = Tile { load: Some((epilogue.tile, sum)), divided: true, ..Tile::default() };
        Self::of(graph, epilogue, tile, output)
    }

    /// A loop that gives its result back into the tile.
    pub(super) fn in_place(
        graph: &Graph,
        epilogue: &Epilogue,
        sum: ElementType,
        output: NodeId,
    ) -> Result<Self> {
        let tile = Tile { load: Some((epilogue.tile, sum)), result: Some(sum), ..Tile::default() };
        Self::of(graph, epilogue, tile, output)
    }

    /// A loop that gives its dividend back into the tile, and its divisors to whoever divides later.
    pub(super) fn dividend(
        graph: &Graph,
        epilogue: &Epilogue,
        quotient: &Quotient,
        sum: ElementType,
        output: NodeId,
    ) -> Result<Self> {
        let order: Vec<usize> = (0..epilogue.body.dims.len()).collect();
        let cut = Cut { order: &order, rows: epilogue.rows };
        let program = dividend(graph, quotient, cut, (epilogue.tile, sum))?;
        Ok(Self { program, inputs: inputs(epilogue), output })
    }

    fn of(graph: &Graph, epilogue: &Epilogue, tile: Tile, output: NodeId) -> Result<Self> {
        let order: Vec<usize> = (0..epilogue.body.dims.len()).collect();
        let (cut, stored) = (Cut { order: &order, rows: epilogue.rows }, graph.node(output).element);
        let program = program(graph, &epilogue.body, cut, tile, stored)?;
        Ok(Self { program, inputs: inputs(epilogue), output })
    }

    /// Does it to a block.
    ///
    /// # Safety
    ///
    /// As for [`super::Kernel::run`]; the block is the calling worker's own.
    pub(super) unsafe fn run(&self, memory: &Memory<'_>, block: &Block) {
        // SAFETY: as the caller promises.
        unsafe { self.run_with(memory, block, None) }
    }

    /// Does it to a block with the divisors of its rows, which it takes or gives.
    ///
    /// # Safety
    ///
    /// As for [`Blocks::run`]; there are as many divisors as rows.
    pub(super) unsafe fn run_with(&self, memory: &Memory<'_>, block: &Block, divisors: Option<*mut u8>) {
        ROOM.with_borrow_mut(|Room { scratch, inputs, outputs }| {
            // The tile's own address is never looked at.
            inputs.clear();
            inputs.extend(self.inputs.iter().map(|&id| memory.read(id)));
            inputs.extend(divisors.map(<*mut u8>::cast_const));
            outputs.clear();
            outputs.push(memory.write(self.output));
            outputs.extend(divisors);
            // SAFETY: as the caller promises.
            unsafe {
                self.program.run_block(
                    scratch,
                    inputs,
                    outputs,
                    block.rows.clone(),
                    block.columns.clone(),
                    block.data,
                    block.stride,
                );
            }
        });
    }
}

fn inputs(epilogue: &Epilogue) -> Vec<NodeId> {
    epilogue.body.loads.iter().map(|load| load.value).collect()
}

/// An epilogue that only stores the result, as another type than the sums have.
pub(super) fn store(graph: &Graph, node: NodeId, columns: usize) -> Epilogue {
    let of = graph.node(node);
    let dims = vec![of.len() / columns.max(1), columns];
    let view = View::dense(&dims);
    let load = Load { value: node, view: view.clone() };
    let step = BodyStep { op: BodyOp::Load(0), inputs: Vec::new(), element: of.element };
    let body = Body { reduced: vec![false; 2], dims, loads: vec![load], steps: vec![step], output: view };
    Epilogue { body, tile: 0, rows: 1 }
}
