//! Merge sort of positions: blocks in shared memory first, then one kernel per merge pass.
//!
//! The sort is stable and deterministic.

use super::element_kernel::UnfusedKernel;
use crate::builder::{KernelBuilder, Launch};
use crate::index::index_type;
use crate::kernel::{Kernel, Unsupported};

/// Positions that a block sorts in shared memory, one per thread.
const BLOCK_LENGTH: usize = 1024;

/// Threads of a merge block.
const THREADS: usize = 256;

/// Lines that are sorted independently.
pub(super) struct SortLines<'c> {
    pub(super) kernel: &'c UnfusedKernel<'c>,
    pub(super) count: usize,
    /// Elements per line.
    pub(super) length: usize,
    /// The title.
    pub(super) what: &'static str,
    /// Two scratch buffers of [`SortLines::scratch_bytes`] each; passes alternate between them.
    pub(super) scratch: [usize; 2],
}

/// Emits lines of source.
type EmitLines<'w> = &'w dyn Fn(&mut KernelBuilder<'_>) -> Result<(), Unsupported>;

impl SortLines<'_> {
    /// Bytes of each scratch buffer; 0 where none is needed.
    pub(super) fn scratch_bytes(&self) -> u64 {
        if self.length > BLOCK_LENGTH { (self.count * self.length * 4) as u64 } else { 0 }
    }

    /// The sort kernels. `compare` emits a comparison of positions `a` and `b` of `line`; `last` emits the use of
    /// position `own` with rank `to`.
    pub(super) fn kernels(
        &self,
        compare: EmitLines<'_>,
        last: EmitLines<'_>,
    ) -> Result<Vec<Kernel>, Unsupported> {
        if self.length >= 1 << 30 {
            return Err(Unsupported::new(format!("an order of {} elements", self.length)));
        }
        let mut kernels = vec![self.parts(compare, last)?];
        let mut run = BLOCK_LENGTH;
        let mut from = 0;
        while run < self.length {
            kernels.push(self.merge(run, from, compare, last)?);
            run *= 2;
            from = 1 - from;
        }
        Ok(kernels)
    }

    fn index(&self) -> &'static str {
        index_type(self.count * self.length)
    }

    /// Emits the comparison function.
    fn comparison(&self, builder: &mut KernelBuilder<'_>, compare: EmitLines<'_>) -> Result<(), Unsupported> {
        builder.text.open("const auto precedes = [&](int a, int b) -> bool");
        compare(builder)?;
        builder.text.close();
        builder.text.line(";");
        Ok(())
    }

    /// The kernel that sorts blocks of lines.
    fn parts(&self, compare: EmitLines<'_>, last: EmitLines<'_>) -> Result<Kernel, Unsupported> {
        let Self { kernel, count, length, .. } = self;
        let (index, parts) = (self.index(), length.div_ceil(BLOCK_LENGTH));
        let threads = length.next_multiple_of(32).min(BLOCK_LENGTH);
        let mut builder = KernelBuilder::new(kernel.request.graph, kernel.request.options);
        builder.salt().begin(&mut builder.text);
        builder.text.line(format!("WF_SHARED int order[2][{BLOCK_LENGTH}];"));
        builder.text.line(format!("const {index} line = WF_BLOCK / {parts};"));
        builder.text.line(format!("const int first = WF_BLOCK % {parts} * {BLOCK_LENGTH};"));
        builder.text.line(format!(
            "const int count = {length} - first < {BLOCK_LENGTH} ? {length} - first : {BLOCK_LENGTH};"
        ));
        self.comparison(&mut builder, compare)?;
        let each = format!("for (int at = WF_THREAD; at < count; at += {threads})");
        builder.text.line(format!("{each} order[0][at] = first + at;"));
        builder.text.line("wf_sync();");
        builder.text.line("int now = 0;");
        builder.text.open("for (int run = 1; run < count; run *= 2)");
        builder.text.open(&each);
        builder
            .text
            .line("order[1 - now][wf_merged(order[now], at, run, count, precedes)] = order[now][at];");
        builder.text.close();
        builder.text.line("wf_sync();");
        builder.text.line("now = 1 - now;");
        builder.text.close();
        builder.text.open(&each);
        builder.text.line("const int own = order[now][at];");
        if parts == 1 {
            builder.text.line("const int to = at;");
            last(&mut builder)?;
        } else {
            let to = builder.scratch(self.scratch[0], "int", false);
            builder.text.line(format!("{to}[line * {length} + first + at] = own;"));
        }
        builder.text.close();
        self.finish(builder, &Launch::new(count * parts, threads), "parts")
    }

    /// The kernel that merges runs of this length.
    fn merge(
        &self,
        run: usize,
        from: usize,
        compare: EmitLines<'_>,
        last: EmitLines<'_>,
    ) -> Result<Kernel, Unsupported> {
        let Self { kernel, count, length, .. } = self;
        let (index, all) = (self.index(), count * length);
        let mut builder = KernelBuilder::new(kernel.request.graph, kernel.request.options);
        builder.salt().begin(&mut builder.text);
        builder.text.line(format!("const {index} n = ({index})WF_BLOCK * {THREADS} + WF_THREAD;"));
        builder.text.open(format!("if (n < {all})"));
        builder.text.line(format!("const {index} line = n / {length};"));
        builder.text.line(format!("const int at = n % {length};"));
        self.comparison(&mut builder, compare)?;
        let source = builder.scratch(self.scratch[from], "int", true);
        builder.text.line(format!("const int own = {source}[n];"));
        builder.text.line(format!(
            "const int to = wf_merged({source} + line * {length}, at, {run}, {length}, precedes);"
        ));
        if run * 2 >= *length {
            last(&mut builder)?;
        } else {
            let target = builder.scratch(self.scratch[1 - from], "int", false);
            builder.text.line(format!("{target}[line * {length} + to] = own;"));
        }
        builder.text.close();
        self.finish(builder, &Launch::new(all.div_ceil(THREADS), THREADS), &format!("runs of {run}"))
    }

    fn finish(
        &self,
        mut builder: KernelBuilder<'_>,
        launch: &Launch,
        how: &str,
    ) -> Result<Kernel, Unsupported> {
        let Self { kernel, count, length, what, .. } = self;
        builder.salt().end(&mut builder.text);
        let title = format!("{what}, {count} lines of {length}: {how}");
        builder.finish(what, title, launch, kernel.request.cluster.cost(kernel.request.graph))
    }
}
