//! Non-maximum suppression: boxes are sorted by their scores, each is compared with all better ones, and one block decides in
//! order which are kept.

use warpforge_tensor::{ElementType, Scalar};

use crate::builder::{KernelBuilder, Launch};
use crate::kernel::{Emitted, Kernel, Unsupported};
use crate::types::literal;
use crate::unfused::element_kernel::{THREADS, UnfusedKernel};
use crate::unfused::merge_sort::SortLines;

/// Bits of a word of the table of overlaps.
const WORD: usize = 64;

/// The most bytes of that table.
const MOST_TABLE_BYTES: usize = 256 << 20;

/// Scratch buffers: two of the sort, the boxes in order of their scores, the table: for each box the boxes after it that overlap it.
const SORT_BUFFERS: [usize; 2] = [0, 1];
const ORDER: usize = 2;
const TABLE: usize = 3;

pub(super) fn emit(kernel: &UnfusedKernel<'_>, threshold: f64) -> Result<Emitted, Unsupported> {
    let &[count, _] = kernel.dims(0)? else { return Err(kernel.unsupported()) };
    let words = count.div_ceil(WORD);
    let table = count.saturating_mul(words).saturating_mul(8);
    if table > MOST_TABLE_BYTES {
        return Err(Unsupported::new(format!("suppression among {count} boxes")));
    }
    let lines = SortLines { kernel, count: 1, length: count, what: "nms", scratch: SORT_BUFFERS };
    let compare = |builder: &mut KernelBuilder<'_>| {
        let scores = kernel.read(builder, 1)?;
        // NaN is first.
        builder.text.line(format!("const auto one = {scores}[a], other = {scores}[b];"));
        builder.text.line("return one > other || (one != one && other == other);");
        Ok(())
    };
    let last = |builder: &mut KernelBuilder<'_>| {
        let order = builder.scratch(ORDER, "int", false);
        builder.text.line(format!("{order}[to] = own;"));
        Ok(())
    };
    let mut kernels = lines.kernels(&compare, &last)?;
    kernels.push(overlaps(kernel, count, words, threshold)?);
    kernels.push(choice(kernel, count, words)?);
    let way = lines.scratch_bytes();
    Ok(Emitted { kernels, scratch: vec![way, way, count as u64 * 4, table as u64] })
}

/// The kernel that fills the table, a word each thread.
fn overlaps(
    kernel: &UnfusedKernel<'_>,
    count: usize,
    words: usize,
    threshold: f64,
) -> Result<Kernel, Unsupported> {
    let ty = kernel.full_float()?;
    let mut builder = KernelBuilder::new(kernel.request.graph, kernel.request.options);
    builder.salt().begin(&mut builder.text);
    let boxes = kernel.read(&mut builder, 0)?;
    let order = builder.scratch(ORDER, "int", true);
    let table = builder.scratch(TABLE, "unsigned long long", false);
    let text = &mut builder.text;
    // The boxes of a word are read by all threads of a block.
    text.line(format!("WF_SHARED {ty} others[{WORD}][4];"));
    text.line(format!("const int word = WF_BLOCK % {words}, first = word * {WORD};"));
    text.line(format!("const int at = WF_BLOCK / {words} * {THREADS} + WF_THREAD;"));
    text.line(format!("const int many = {count} - first < {WORD} ? {count} - first : {WORD};"));
    text.line(format!(
        "for (int i = WF_THREAD; i < many * 4; i += {THREADS}) others[i / 4][i % 4] = {boxes}[(long long){order}[first + i / 4] * 4 + i % 4];"
    ));
    text.line("wf_sync();");
    text.open(format!("if (at < {count})"));
    text.line("unsigned long long bits = 0;");
    text.open(format!("if (first + {WORD} > at + 1)"));
    text.line(format!("{ty} own[4];"));
    text.line(format!("for (int i = 0; i < 4; ++i) own[i] = {boxes}[(long long){order}[at] * 4 + i];"));
    let threshold = literal(ElementType::F64, Scalar::Float(threshold))?;
    text.line(format!(
        "for (int i = 0; i < many; ++i) if (first + i > at && wf_overlap(own, others[i], {threshold})) bits |= 1ull << i;"
    ));
    text.close();
    text.line(format!("{table}[(long long)at * {words} + word] = bits;"));
    text.close();
    builder.salt().end(&mut builder.text);
    let title = format!("nms of {count} boxes: overlaps");
    let launch = Launch::new(words * count.div_ceil(THREADS), THREADS);
    builder.finish("nms", title, &launch, kernel.request.cluster.cost(kernel.request.graph))
}

/// The kernel that decides which boxes are kept, a word of them at a time.
fn choice(kernel: &UnfusedKernel<'_>, count: usize, words: usize) -> Result<Kernel, Unsupported> {
    let mut builder = KernelBuilder::new(kernel.request.graph, kernel.request.options);
    builder.salt().begin(&mut builder.text);
    let order = builder.scratch(ORDER, "int", true);
    let table = builder.scratch(TABLE, "unsigned long long", true);
    let to = builder.write(kernel.output())?;
    let salt = builder.salt();
    let text = &mut builder.text;
    text.line(format!("WF_SHARED unsigned long long gone[{words}];"));
    text.line(format!("WF_SHARED unsigned long long own[{WORD}];"));
    text.line("WF_SHARED unsigned long long kept;");
    text.line(format!("for (int i = WF_THREAD; i < {words}; i += {THREADS}) gone[i] = 0;"));
    text.line("int before = 0;");
    text.open(format!("for (int word = 0; word < {words}; ++word)"));
    text.line(format!("const int first = word * {WORD};"));
    text.line(format!("const int many = {count} - first < {WORD} ? {count} - first : {WORD};"));
    text.line(format!(
        "if (WF_THREAD < many) own[WF_THREAD] = {table}[(long long)(first + WF_THREAD) * {words} + word];"
    ));
    text.line("wf_sync();");
    text.open("if (WF_THREAD == 0)");
    text.line("unsigned long long left_out = gone[word], stays = 0;");
    text.open("for (int i = 0; i < many; ++i)");
    text.line("if (left_out >> i & 1) continue;");
    text.line("stays |= 1ull << i;");
    text.line("left_out |= own[i];");
    text.close();
    text.line("kept = stays;");
    text.close();
    text.line("wf_sync();");
    text.line("const unsigned long long stays = kept;");
    text.open(format!("for (int later = word + 1 + WF_THREAD; later < {words}; later += {THREADS})"));
    text.line("unsigned long long bits = gone[later];");
    text.line(format!(
        "for (int i = 0; i < many; ++i) if (stays >> i & 1) bits |= {table}[(long long)(first + i) * {words} + later];"
    ));
    text.line("gone[later] = bits;");
    text.close();
    text.open("if (WF_THREAD < many && (stays >> WF_THREAD & 1))");
    text.line("const int rank = wf_popcount(stays & ((1ull << WF_THREAD) - 1));");
    text.line(format!("const long long place = {order}[first + WF_THREAD];"));
    salt.wrote(text, "place", 8);
    text.line(format!("{to}[before + rank] = place;"));
    text.close();
    text.line("before += wf_popcount(stays);");
    text.line("wf_sync();");
    text.close();
    text.open(format!("for (int i = before + WF_THREAD; i < {count}; i += {THREADS})"));
    salt.wrote(text, "-1ll", 8);
    text.line(format!("{to}[i] = -1;"));
    text.close();
    builder.salt().end(&mut builder.text);
    let title = format!("nms of {count} boxes: choice");
    builder.finish("nms", title, &Launch::new(1, THREADS), kernel.request.cluster.cost(kernel.request.graph))
}
