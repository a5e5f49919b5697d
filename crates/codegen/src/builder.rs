//! Builds a kernel.

use sha2::{Digest as _, Sha256};
use warpforge_fusion::cluster::Cost;
use warpforge_fusion::{Graph, NodeId};
use warpforge_tensor::ElementType;

use crate::kernel::{Argument, Kernel, TensorMap, Unsupported};
use crate::options::Options;
use crate::salt::Salt;
use crate::text::Text;
use crate::types::storage_type;

/// A kernel under construction.
pub(crate) struct KernelBuilder<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) options: &'a Options,
    pub(crate) text: Text,
    parameters: Vec<(Argument, String)>,
    /// Device functions that precede the kernel, named with [`NAME`].
    pub(crate) before: String,
}

/// Placeholder for the kernel's name.
pub(crate) const NAME: &str = "@name@";

/// Launch configuration of a kernel.
pub(crate) struct Launch {
    pub(crate) blocks: usize,
    pub(crate) threads: usize,
    /// Minimum resident blocks per multiprocessor; 0 leaves it to the compiler.
    pub(crate) resident: usize,
    /// Bytes of dynamic shared memory.
    pub(crate) shared: usize,
}

impl Launch {
    pub(crate) fn new(blocks: usize, threads: usize) -> Self {
        Self { blocks, threads, resident: 0, shared: 0 }
    }
}

impl<'a> KernelBuilder<'a> {
    pub(crate) fn new(graph: &'a Graph, options: &'a Options) -> Self {
        Self { graph, options, text: Text::default(), parameters: Vec::new(), before: String::new() }
    }

    pub(crate) fn salt(&self) -> Salt {
        self.options.salt
    }

    /// The name of the pointer to a value that is read.
    pub(crate) fn read(&mut self, id: NodeId) -> Result<String, Unsupported> {
        self.pointer(Argument::Value(id), self.graph.node(id).element, true)
    }

    /// The name of the pointer to a value that is written.
    pub(crate) fn write(&mut self, id: NodeId) -> Result<String, Unsupported> {
        if self.graph.node(id).element == ElementType::I4 {
            return Err(Unsupported::new("results of type i4"));
        }
        self.pointer(Argument::Output(id), self.graph.node(id).element, false)
    }

    /// The name of the tensor-map parameter of a value.
    pub(crate) fn map(&mut self, map: TensorMap) -> String {
        let number = self.parameters.len();
        self.parameters.push((Argument::TensorMap(map), format!("WF_TENSOR_MAP(p{number})")));
        format!("p{number}")
    }

    /// The name of the pointer to scratch memory of a type.
    pub(crate) fn scratch(&mut self, number: usize, ty: &str, reads: bool) -> String {
        self.parameter(Argument::Scratch(number), ty, reads)
    }

    fn pointer(
        &mut self,
        argument: Argument,
        element: ElementType,
        reads: bool,
    ) -> Result<String, Unsupported> {
        Ok(self.parameter(argument, storage_type(element)?, reads))
    }

    fn parameter(&mut self, argument: Argument, ty: &str, reads: bool) -> String {
        let known = self.parameters.iter().position(|(known, _)| *known == argument);
        let at = known.unwrap_or_else(|| {
            let constant = if reads { "const " } else { "" };
            let number = self.parameters.len();
            self.parameters.push((argument, format!("{constant}{ty}* WF_RESTRICT p{number}")));
            number
        });
        format!("p{at}")
    }

    /// Finishes the kernel.
    pub(crate) fn finish(
        mut self,
        what: &str,
        title: String,
        launch: &Launch,
        cost: Cost,
    ) -> Result<Kernel, Unsupported> {
        let salt = self.salt();
        if salt != Salt::Off {
            let number = self.parameters.len();
            debug_assert!(number > 0, "a kernel without parameters");
            self.parameters.push((Argument::Salt, "unsigned long long* WF_RESTRICT salt".to_owned()));
        }
        let blocks = u32::try_from(launch.blocks)
            .ok()
            .filter(|&blocks| blocks < 1 << 31)
            .ok_or_else(|| Unsupported::new(format!("{title}: {} blocks", launch.blocks)))?;
        let parameters: Vec<&str> = self.parameters.iter().map(|(_, declared)| declared.as_str()).collect();
        let mut text = Text::default();
        text.line(format!(
            "extern \"C\" WF_KERNEL({}, {}) void {NAME}({})",
            launch.threads,
            launch.resident,
            parameters.join(", ")
        ));
        let source = format!("{}{}{{\n{}}}\n", self.before, text.finish(), indented(&self.text.finish()));
        let digest = Sha256::digest(format!("{source}{blocks} {}", launch.shared));
        let digest: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let name = format!("wf_{what}_{digest}");
        Ok(Kernel {
            source: source.replace(NAME, &name),
            name,
            grid: [blocks, 1, 1],
            block: [launch.threads as u32, 1, 1],
            shared_bytes: launch.shared as u32,
            arguments: self.parameters.iter().map(|&(argument, _)| argument).collect(),
            flops: cost.flops,
            bytes: cost.bytes,
            salt_bytes: u64::from(blocks) * salt.record_bytes() as u64,
            title,
        })
    }
}

fn indented(text: &str) -> String {
    let line = |line: &str| if line.starts_with('#') { format!("{line}\n") } else { format!("  {line}\n") };
    text.lines().map(line).collect()
}
