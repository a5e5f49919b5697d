//! Launches of generated kernels.

use std::sync::Arc;

use warpforge_codegen::{Argument, Emitted, Kernel};

use super::{DeviceLayout, ExecutionStep, LoadedKernels};
use crate::driver::{Address, Buffer, Function, Gpu, Stream, tensor_map};
use crate::error::{GpuError, Result};

/// Alignment of scratch buffers.
const ALIGNMENT: u64 = 256;

/// A kernel launch.
pub(crate) struct KernelStep {
    function: Function,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    /// The words of each argument.
    arguments: Vec<Vec<u64>>,
    name: String,
    /// The table of addresses of a group.
    table: Option<Buffer>,
}

impl KernelStep {
    /// The launches of a cluster's kernels; `salt` returns instrumentation addresses.
    pub(crate) fn all(
        emitted: &Emitted,
        kernels: &LoadedKernels,
        layout: &DeviceLayout,
        salt: &mut dyn FnMut(&Kernel) -> Address,
    ) -> Result<Vec<Self>> {
        let scratch = offsets(&emitted.scratch);
        let base = layout.workspace.address();
        emitted
            .kernels
            .iter()
            .map(|kernel| {
                let arguments = kernel.arguments.iter().map(|argument| {
                    Ok(vec![match argument {
                        Argument::Value(id) | Argument::Output(id) => layout.address(*id),
                        Argument::TensorMap(map) => {
                            return tensor_map::encode(map, layout.address(map.value));
                        }
                        Argument::Scratch(at) => {
                            let missing = || {
                                GpuError::Other(format!(
                                    "{} asks for scratch it did not declare",
                                    kernel.name
                                ))
                            };
                            base + scratch.get(*at).copied().ok_or_else(missing)?
                        }
                        Argument::Salt => salt(kernel),
                    }])
                });
                Ok(Self {
                    function: kernels.function(kernel)?,
                    grid: kernel.grid,
                    block: kernel.block,
                    shared_bytes: kernel.shared_bytes,
                    arguments: arguments.collect::<Result<_>>()?,
                    name: kernel.title.clone(),
                    table: None,
                })
            })
            .collect()
    }

    /// The launch of several kernels with one name as one, by the kernel of their group.
    pub(crate) fn group(
        kernel: &Kernel,
        members: &[&Kernel],
        kernels: &LoadedKernels,
        layout: &DeviceLayout,
        gpu: &Arc<Gpu>,
        stream: &Stream,
    ) -> Result<Self> {
        let mut rows: Vec<u8> = Vec::new();
        for argument in members.iter().flat_map(|member| &member.arguments) {
            match argument {
                Argument::Value(id) | Argument::Output(id) => {
                    rows.extend(layout.address(*id).to_ne_bytes());
                }
                Argument::TensorMap(_) | Argument::Scratch(_) | Argument::Salt => {
                    return Err(GpuError::Other(format!("{} cannot be grouped", kernel.name)));
                }
            }
        }
        let table = gpu.allocate(rows.len())?;
        stream.write(table.address(), &rows)?;
        Ok(Self {
            function: kernels.function(kernel)?,
            grid: kernel.grid,
            block: kernel.block,
            shared_bytes: kernel.shared_bytes,
            arguments: vec![vec![table.address()]],
            name: kernel.title.clone(),
            table: Some(table),
        })
    }
}

/// Offsets of a cluster's scratch buffers.
fn offsets(sizes: &[u64]) -> Vec<u64> {
    let mut at = 0;
    sizes
        .iter()
        .map(|size| {
            let begin = at;
            at += size.next_multiple_of(ALIGNMENT);
            begin
        })
        .collect()
}

/// Scratch bytes of a cluster.
pub(crate) fn scratch_bytes(emitted: &Emitted) -> u64 {
    emitted.scratch.iter().map(|size| size.next_multiple_of(ALIGNMENT)).sum()
}

impl ExecutionStep for KernelStep {
    fn start(&self, stream: &Stream) -> Result<()> {
        if self.grid.contains(&0) {
            return Ok(());
        }
        let mut arguments = self.arguments.clone();
        stream.launch(&self.function, self.grid, self.block, self.shared_bytes, &mut arguments)
    }

    fn memory_bytes(&self) -> u64 {
        self.table.as_ref().map_or(0, |table| table.bytes() as u64)
    }

    fn launches(&self) -> u64 {
        1
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}
