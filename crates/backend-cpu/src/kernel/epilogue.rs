//! Epilogues: fused loops over the output blocks of GEMMs and convolutions.

use std::cell::RefCell;

use warpforge_fusion::cluster::{Body, BodyOp, BodyStep, Epilogue, Load};
use warpforge_fusion::{Graph, NodeId, View};
use warpforge_kernels::fused_loop::{FusedLoop, Scratch};
use warpforge_kernels::output_block::OutputBlock;
use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use super::deferred_division::DividendLoop;
use super::interface::{Result, ValueBuffers};
use super::loop_lowering::{RowColumnSplit, TileBinding, dividend, fused_loop};

/// Whether a loop only rounds f32 sums to bf16, with a dense result.
pub(super) fn only_rounds(epilogue: &Epilogue) -> bool {
    let [load, convert] = epilogue.body.steps.as_slice() else { return false };
    matches!(load.op, BodyOp::Load(at) if at == epilogue.tile)
        && matches!(load.element, ElementType::F32 | ElementType::BF16)
        && matches!(convert.op, BodyOp::Elementwise(Function::Convert))
        && convert.element == ElementType::BF16
        && epilogue.body.output.is_dense()
}

/// Scratch memory of a worker, kept from block to block.
struct WorkerScratch {
    scratch: Scratch,
    inputs: Vec<*const u8>,
    outputs: Vec<*mut u8>,
}

thread_local! {
    static SCRATCH: RefCell<WorkerScratch> =
        const { RefCell::new(WorkerScratch { scratch: Scratch::new(), inputs: Vec::new(), outputs: Vec::new() }) };
}

/// A fused loop over output blocks.
pub(super) struct EpilogueLoop {
    fused_loop: FusedLoop,
    inputs: Vec<NodeId>,
    output: NodeId,
}

impl EpilogueLoop {
    /// The epilogue of a GEMM whose accumulators have the type `sum`.
    pub(super) fn new(graph: &Graph, epilogue: &Epilogue, sum: ElementType, output: NodeId) -> Result<Self> {
        let tile = TileBinding { load: Some((epilogue.tile, sum)), ..TileBinding::default() };
        Self::of(graph, epilogue, tile, output)
    }

    /// An epilogue that first divides the sums by a per-row scalar.
    pub(super) fn divided(
        graph: &Graph,
        epilogue: &Epilogue,
        sum: ElementType,
        output: NodeId,
    ) -> Result<Self> {
        let tile = TileBinding { load: Some((epilogue.tile, sum)), divided: true, ..TileBinding::default() };
        Self::of(graph, epilogue, tile, output)
    }

    /// A loop that writes its result back into the tile.
    pub(super) fn in_place(
        graph: &Graph,
        epilogue: &Epilogue,
        sum: ElementType,
        output: NodeId,
    ) -> Result<Self> {
        let tile =
            TileBinding { load: Some((epilogue.tile, sum)), result: Some(sum), ..TileBinding::default() };
        Self::of(graph, epilogue, tile, output)
    }

    /// A loop that writes its dividend into the tile and its divisors to a second output, for a deferred division.
    pub(super) fn dividend(
        graph: &Graph,
        epilogue: &Epilogue,
        division: &DividendLoop,
        sum: ElementType,
        output: NodeId,
    ) -> Result<Self> {
        let order: Vec<usize> = (0..epilogue.body.dims.len()).collect();
        let split = RowColumnSplit { order: &order, rows: epilogue.rows };
        let fused_loop = dividend(graph, division, split, (epilogue.tile, sum))?;
        Ok(Self { fused_loop, inputs: inputs(epilogue), output })
    }

    fn of(graph: &Graph, epilogue: &Epilogue, tile: TileBinding, output: NodeId) -> Result<Self> {
        let order: Vec<usize> = (0..epilogue.body.dims.len()).collect();
        let (split, stored) =
            (RowColumnSplit { order: &order, rows: epilogue.rows }, graph.node(output).element);
        let fused_loop = fused_loop(graph, &epilogue.body, split, tile, stored)?;
        Ok(Self { fused_loop, inputs: inputs(epilogue), output })
    }

    /// Runs the loop on a block.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::run`](super::interface::Kernel::run); the block belongs to the calling worker.
    pub(super) unsafe fn run(&self, buffers: &ValueBuffers<'_>, block: &OutputBlock) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.run_with(buffers, block, None) }
    }

    /// Runs the loop on a block with the divisors of its rows, which it reads or writes.
    ///
    /// # Safety
    ///
    /// As for [`EpilogueLoop::run`]; there is one divisor per row.
    pub(super) unsafe fn run_with(
        &self,
        buffers: &ValueBuffers<'_>,
        block: &OutputBlock,
        divisors: Option<*mut u8>,
    ) {
        SCRATCH.with_borrow_mut(|WorkerScratch { scratch, inputs, outputs }| {
            // The input that is the tile has an unused address.
            inputs.clear();
            inputs.extend(self.inputs.iter().map(|&id| buffers.read(id)));
            inputs.extend(divisors.map(<*mut u8>::cast_const));
            outputs.clear();
            outputs.push(buffers.write(self.output));
            outputs.extend(divisors);
            // SAFETY: guaranteed by the caller.
            unsafe {
                self.fused_loop.run_block(
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

/// An epilogue that only converts the sums to the type of the result.
pub(super) fn store(graph: &Graph, node: NodeId, columns: usize) -> Epilogue {
    let of = graph.node(node);
    let dims = vec![of.len() / columns.max(1), columns];
    let view = View::dense(&dims);
    let load = Load { value: node, view: view.clone() };
    let step = BodyStep { op: BodyOp::Load(0), inputs: Vec::new(), element: of.element };
    let body = Body {
        reduced: vec![false; 2],
        dims,
        loads: vec![load],
        steps: vec![step],
        output: view,
        also: Vec::new(),
    };
    Epilogue { body, tile: 0, rows: 1, form: None }
}
