//! Operations that stand alone: joining, padding, taking rows, windows, the reference.

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::{Graph, Id, Op};
use warpforge_kernels::movement::{Concat, Edge, Layout, Pad};

use super::reference::Reference;
use super::{Kernel, KernelError, Memory, Result};

/// The kernel of a node that stands alone.
pub(super) fn kernel(graph: &Graph, operands: &[Operand], output: Id) -> Result<Box<dyn Kernel>> {
    let node = graph.node(output);
    let values: Vec<Id> = operands.iter().map(|operand| operand.value).collect();
    let size = node.element.byte_width();
    Ok(match &node.op {
        Op::Concat(axis) => {
            let inputs: Vec<(&[usize], Layout)> =
                operands.iter().map(|operand| Ok((operand.view.dims.as_slice(), layout(operand)?))).collect::<Result<_>>()?;
            Box::new(Joined { concat: Concat::new(size, &inputs, *axis)?, values, output })
        }
        Op::Pad { low, high, interior } => {
            let edges: Vec<Edge> = low
                .iter()
                .zip(high)
                .zip(interior)
                .map(|((&low, &high), &interior)| Edge { low: low as i64, high: high as i64, interior })
                .collect();
            let [source, _] = operands else { return Err(KernelError::Other("a pad has two operands".to_owned())) };
            let pad = Pad::new(size, &source.view.dims, &layout(source)?, &edges)?;
            Box::new(Padded { pad, source: values[0], value: values[1], output })
        }
        Op::Reference(part) => Box::new(Reference::new(graph, part, &values, output)),
        op => return Err(KernelError::Other(format!("there is no kernel for {}", op.name()))),
    })
}

fn layout(operand: &Operand) -> Result<Layout> {
    let offset = usize::try_from(operand.view.offset);
    let offset = offset.map_err(|_| KernelError::Other("a view begins before its value".to_owned()))?;
    Ok(Layout { offset, strides: operand.view.strides.clone() })
}

struct Joined {
    concat: Concat,
    values: Vec<Id>,
    output: Id,
}

impl Kernel for Joined {
    unsafe fn run(&self, memory: &Memory<'_>) -> Result<()> {
        let sources: Vec<*const u8> = self.values.iter().map(|&id| memory.read(id)).collect();
        // SAFETY: as the caller promises; the layouts were made from the sizes of the values.
        unsafe { self.concat.run(memory.pool, &sources, memory.write(self.output)) };
        Ok(())
    }

    fn name(&self) -> String {
        "concatenate".to_owned()
    }
}

struct Padded {
    pad: Pad,
    source: Id,
    value: Id,
    output: Id,
}

impl Kernel for Padded {
    unsafe fn run(&self, memory: &Memory<'_>) -> Result<()> {
        let (source, value) = (memory.read(self.source), memory.read(self.value));
        // SAFETY: as the caller promises; the layouts were made from the sizes of the values.
        unsafe { self.pad.run(memory.pool, source, value, memory.write(self.output)) };
        Ok(())
    }

    fn name(&self) -> String {
        "pad".to_owned()
    }
}
