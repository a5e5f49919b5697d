//! FlashAttention in one kernel: scores of one tile of keys at a time on tensor cores, with an online softmax.

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{Attention, Cluster, Softmax};
use warpforge_tensor::ElementType;

use crate::builder::{KernelBuilder, Launch};
use crate::gemm::geometry::Geometry;
use crate::gemm::tile::{Loaded, PADDING, Tile};
use crate::gemm::{EpilogueLoop, Store, store_pair};
use crate::index::{index_type, sum};
use crate::kernel::{Emitted, Request, Unsupported};
use crate::options::Options;
use crate::types::{attention_type, tensor_core_bytes};

/// Largest head size, of two-byte elements and of wider ones, whose fragments take twice the registers.
const MAX_HEAD: [usize; 2] = [256, 128];

/// An attention kernel.
pub(super) struct Flash<'a> {
    graph: &'a Graph,
    cluster: &'a Cluster,
    attention: &'a Attention,
    options: &'a Options,
    softmax: &'a Softmax,
    scores: Geometry,
    values: Geometry,
    /// The element type of the tensor-core operands.
    ty: &'static str,
    shape: Shape,
}

/// The tiling.
#[derive(Debug, Clone, Copy)]
struct Shape {
    warps: usize,
    /// Fragments of sixteen rows per warp.
    pieces: usize,
    /// Keys per tile.
    keys: usize,
    /// Head sizes of queries and keys, and of values, rounded up to multiples of sixteen.
    head: usize,
    width: usize,
    /// Bytes of an element.
    bytes: usize,
}

impl Shape {
    fn new(head: usize, width: usize, bytes: usize) -> Self {
        let (head, width) = (head.next_multiple_of(16), width.next_multiple_of(16));
        let (warps, pieces, keys) = match (bytes, head.max(width)) {
            (2, 0..=64) => (4, 2, 64),
            (2, 65..=128) => (8, 1, 64),
            (2, _) => (8, 1, 32),
            (_, 0..=64) => (4, 1, 32),
            (_, _) => (4, 1, 16),
        };
        Self { warps, pieces, keys, head, width, bytes }
    }

    fn rows(&self) -> usize {
        self.warps * self.pieces * 16
    }

    fn shared(&self) -> usize {
        let keys = 2 * self.keys * (self.head + PADDING + self.width + PADDING);
        self.bytes * (keys + self.rows() * (self.head + PADDING))
    }
}

/// Plans the kernel, where attention is a softmax between GEMMs that tensor cores support.
pub(super) fn plan<'a>(
    request: Request<'a>,
    attention: &'a Attention,
) -> Result<Option<Flash<'a>>, Unsupported> {
    let Request { graph, cluster, options } = request;
    let Some(softmax) = &attention.softmax else { return Ok(None) };
    let scores = Geometry::new(graph, &attention.scores)?;
    let values = Geometry::new(graph, &attention.values)?;
    let elements = [scores.lhs.element, scores.rhs.element, values.rhs.element];
    let Some(ty) = attention_type(options, &elements) else { return Ok(None) };
    let bytes = tensor_core_bytes(ty);
    let most = MAX_HEAD[usize::from(bytes > 2)];
    let fits = scores.k <= most
        && values.n <= most
        && scores.k > 0
        && values.k == scores.n
        && values.m == scores.m
        && values.batches() == scores.batches();
    let shape = Shape::new(scores.k, values.n, bytes);
    Ok(fits.then_some(Flash { graph, cluster, attention, options, softmax, scores, values, ty, shape }))
}

impl Flash<'_> {
    pub(super) fn emit(&self) -> Result<Emitted, Unsupported> {
        let Shape { warps, pieces, keys, head, width, .. } = self.shape;
        let (rows, ty) = (self.shape.rows(), self.ty);
        let (m, n) = (self.scores.m, self.scores.n);
        let (threads, tiles, steps) = (warps * 32, m.div_ceil(rows), n.div_ceil(keys));
        let mut builder = KernelBuilder::new(self.graph, self.options);
        let store = Store::new(&self.attention.values, self.cluster.output, self.values.n);
        let body_loop = EpilogueLoop::new(&self.attention.weights.body, self.attention.weights.rows);
        let far = self
            .scores
            .max_index
            .max(self.values.max_index)
            .max(store.max_index(&builder))
            .max(body_loop.max_index());
        let index = index_type(far);
        let pointers = [
            builder.read(self.scores.lhs.value)?,
            builder.read(self.scores.rhs.value)?,
            builder.read(self.values.rhs.value)?,
        ];
        builder.salt().begin(&mut builder.text);
        let text = &mut builder.text;
        text.line("WF_DYNAMIC_SHARED(room);");
        text.line(format!("{ty}* const queries = ({ty}*)room;"));
        text.line(format!("{ty}* const keys = queries + {};", rows * (head + PADDING)));
        text.line(format!("{ty}* const values = keys + {};", 2 * keys * (head + PADDING)));
        text.line("const int warp = WF_THREAD / 32, lane = WF_THREAD % 32;");
        let [first_key, last_key] = self.softmax.mask.weighted_keys();
        match last_key {
            // The last rows attend to the most keys: they are scheduled first.
            Some(_) => text.line(format!("const int first = ({} - WF_BLOCK % {tiles}) * {rows};", tiles - 1)),
            None => text.line(format!("const int first = WF_BLOCK % {tiles} * {rows};")),
        }
        match last_key {
            Some(last) => {
                text.line(format!("const int seen = (first + {} + ({last})) / {keys} + 1;", rows - 1));
                text.line(format!("const int steps = seen < 1 ? 1 : seen < {steps} ? seen : {steps};"));
            }
            None => text.line(format!("const int steps = {steps};")),
        }
        if let Some(key) = first_key {
            text.line(format!("const int hidden = (first + ({key})) / {keys};"));
            text.line("const int from = hidden < 0 ? 0 : hidden < steps ? hidden : steps - 1;");
        }
        let [from, first_tile, first_stage] = match first_key {
            Some(_) => ["from".to_owned(), format!("from * {keys}"), "from % 2".to_owned()],
            None => ["0"; 3].map(str::to_owned),
        };
        text.line(format!("const {index} batch = WF_BLOCK / {tiles};"));
        let operands =
            [(&self.scores, 0, "pq", "x"), (&self.scores, 1, "pk", "y"), (&self.values, 1, "pv", "z")];
        for (geometry, side, name, prefix) in operands {
            geometry.batch.split(text, "batch", prefix, index);
            let offset = if side == 0 { geometry.lhs.offset } else { geometry.rhs.offset };
            let place = sum(&[offset.to_string(), geometry.batch.linear_index(side, prefix)]);
            text.line(format!("const {index} {name} = {place};"));
        }
        let (q, k, v) = (&self.scores.lhs, &self.scores.rhs, &self.values.rhs);
        let tiles_of = [
            Tile {
                side: q,
                batch: &self.scores.batch,
                view: 0,
                along: q.row,
                across: q.column,
                size: self.scores.k,
            },
            Tile {
                side: k,
                batch: &self.scores.batch,
                view: 1,
                along: k.column,
                across: k.row,
                size: self.scores.k,
            },
            Tile {
                side: v,
                batch: &self.values.batch,
                view: 1,
                along: v.row,
                across: v.column,
                size: self.values.n,
            },
        ];
        let load = |builder: &mut KernelBuilder<'_>, which: usize, from: &str, stage: &str| {
            let (name, place, padded, count, limit) = match which {
                0 => ("queries", "pq", head, rows, m),
                1 => ("keys", "pk", head, keys, n),
                _ => ("values", "pv", width, keys, n),
            };
            let to = if which == 0 {
                name.to_owned()
            } else {
                format!("({name} + ({stage}) * {})", keys * (padded + PADDING))
            };
            let tile = Loaded {
                pointer: &pointers[which],
                place,
                to: &to,
                from,
                across_from: "0",
                padded,
                count,
                limit,
                threads,
                ty,
            };
            tiles_of[which].emit(builder, &tile);
        };
        load(&mut builder, 0, "first", "0");
        load(&mut builder, 1, &first_tile, &first_stage);
        load(&mut builder, 2, &first_tile, &first_stage);
        let text = &mut builder.text;
        text.line("wf_copies_end();");
        text.line(format!("float o[{pieces}][{}][4] = {{}};", width / 8));
        text.line(format!("float top[{pieces}][2], total[{pieces}][2] = {{}};"));
        text.unrolled("p", pieces);
        text.line("top[p][0] = top[p][1] = wf_float(0xff800000u);");
        text.close();
        text.line("wf_copies_wait<0>();");
        text.line("wf_sync();");
        text.line(format!("wf_fragment<{ty}> q[{pieces}][{}];", head / 16));
        text.unrolled("p", pieces);
        text.unrolled("d", head / 16);
        let line = head + PADDING;
        text.line(format!(
            "wf_load_left(q[p][d], queries + (warp * {pieces} + p) * 16 * {line} + d * 16, {line});"
        ));
        text.close();
        text.close();
        text.open(format!("for (int j = {from}; j < steps; ++j)"));
        text.open(format!("if (j > {from})"));
        text.line("wf_copies_wait<0>();");
        text.line("wf_sync();");
        text.close();
        text.open("if (j + 1 < steps)");
        load(&mut builder, 1, &format!("(j + 1) * {keys}"), "(j + 1) % 2");
        load(&mut builder, 2, &format!("(j + 1) * {keys}"), "(j + 1) % 2");
        builder.text.line("wf_copies_end();");
        builder.text.close();
        self.scores(&mut builder);
        self.steps(&mut builder, &body_loop, index)?;
        self.online(&mut builder);
        self.weighted(&mut builder);
        builder.text.close();
        self.finish(&mut builder, &store, index)?;
        builder.salt().end(&mut builder.text);
        let mut launch = Launch::new(self.scores.batches() * tiles, threads);
        launch.shared = self.shape.shared();
        let title =
            format!("attention {}x{m}x{n}, {} to {}", self.scores.batches(), self.scores.k, self.values.n);
        let kernel = builder.finish("attention", title, &launch, self.cluster.cost(self.graph))?;
        Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
    }

    /// The scores of a tile of keys.
    fn scores(&self, builder: &mut KernelBuilder<'_>) {
        let Shape { pieces, keys, head, .. } = self.shape;
        let (text, ty) = (&mut builder.text, self.ty);
        text.line(format!("float s[{pieces}][{}][4] = {{}};", keys / 8));
        text.line(format!("const {ty}* const tile = keys + j % 2 * {};", keys * (head + PADDING)));
        text.unrolled("d", head / 16);
        text.unrolled("c", keys / 16);
        text.line(format!("wf_fragment<{ty}> b;"));
        let line = head + PADDING;
        text.line(format!("wf_load_right<false>(b, tile + c * 16 * {line} + d * 16, {line});"));
        text.unrolled("p", pieces);
        text.line("wf_multiply(s[p][2 * c], s[p][2 * c + 1], q[p][d], b);");
        text.close();
        text.close();
        text.close();
    }

    /// The elementwise steps before the softmax; minus infinity for keys out of range.
    fn steps(
        &self,
        builder: &mut KernelBuilder<'_>,
        body_loop: &EpilogueLoop<'_>,
        index: &str,
    ) -> Result<(), Unsupported> {
        let Shape { pieces, keys, .. } = self.shape;
        let (m, n) = (self.scores.m, self.scores.n);
        let plain = self.softmax.score_steps.len() == 1;
        let whole = n.is_multiple_of(keys);
        if plain && whole && self.graph.node(self.attention.scores.node).element == ElementType::F32 {
            return Ok(());
        }
        builder.text.unrolled("p", pieces);
        builder.text.unrolled("h", 2);
        builder.text.line(format!("const int own = first + (warp * {pieces} + p) * 16 + lane / 4 + h * 8;"));
        let row = if m.is_multiple_of(self.shape.rows()) {
            "own".to_owned()
        } else {
            format!("(own < {m} ? own : {})", m - 1)
        };
        builder.text.line(format!("const {index} row = batch * {m} + {row};"));
        body_loop.row(builder, "row", index);
        builder.text.unrolled("c", keys / 8);
        builder.text.unrolled("e", 2);
        builder.text.line(format!("const int key = j * {keys} + c * 8 + lane % 4 * 2 + e;"));
        let column = if whole { "key".to_owned() } else { format!("(key < {n} ? key : {})", n - 1) };
        builder.text.line(format!("const int column = {column};"));
        let weights = &self.attention.weights;
        let element = self.graph.node(self.attention.scores.node).element;
        let tile = [(weights.tile, crate::types::rounded(element, "s[p][c][h * 2 + e]".to_owned())?)];
        let value = body_loop.steps(
            builder,
            "column",
            index,
            &tile,
            &self.softmax.score_steps,
            self.softmax.scores,
        )?;
        let value = if whole { value } else { format!("key < {n} ? {value} : wf_float(0xff800000u)") };
        builder.text.line(format!("s[p][c][h * 2 + e] = {value};"));
        for _ in 0..4 {
            builder.text.close();
        }
        Ok(())
    }

    /// The online softmax update for this tile.
    fn online(&self, builder: &mut KernelBuilder<'_>) {
        let Shape { pieces, keys, width, .. } = self.shape;
        let text = &mut builder.text;
        text.unrolled("p", pieces);
        text.unrolled("h", 2);
        text.line("float now = top[p][h];");
        text.unrolled("c", keys / 8);
        text.line("now = fmaxf(now, fmaxf(s[p][c][h * 2], s[p][c][h * 2 + 1]));");
        text.close();
        text.line("now = fmaxf(now, wf_shuffle(now, 1));");
        text.line("now = fmaxf(now, wf_shuffle(now, 2));");
        text.line("const float base = now == wf_float(0xff800000u) ? 0.0f : now * 1.44269504f;");
        text.line("const float scale = wf_exp2(top[p][h] * 1.44269504f - base);");
        text.line("top[p][h] = now;");
        text.line("float sum = 0.0f;");
        text.unrolled("c", keys / 8);
        text.unrolled("e", 2);
        text.line("const float part = wf_exp2(s[p][c][h * 2 + e] * 1.44269504f - base);");
        text.line("s[p][c][h * 2 + e] = part;");
        text.line("sum += part;");
        text.close();
        text.close();
        text.line("total[p][h] = total[p][h] * scale + sum;");
        text.unrolled("c", width / 8);
        text.line("o[p][c][h * 2] *= scale;");
        text.line("o[p][c][h * 2 + 1] *= scale;");
        text.close();
        text.close();
        text.close();
    }

    /// Accumulates the values of a tile of keys, weighted.
    fn weighted(&self, builder: &mut KernelBuilder<'_>) {
        let Shape { pieces, keys, width, .. } = self.shape;
        let (text, ty) = (&mut builder.text, self.ty);
        text.line(format!("const {ty}* const shown = values + j % 2 * {};", keys * (width + PADDING)));
        text.unrolled("k", keys / 16);
        text.line(format!("wf_fragment<{ty}> a[{pieces}];"));
        text.unrolled("p", pieces);
        text.line("wf_left_of(a[p], s[p][2 * k], s[p][2 * k + 1]);");
        text.close();
        text.unrolled("c", width / 16);
        text.line(format!("wf_fragment<{ty}> b;"));
        let line = width + PADDING;
        text.line(format!("wf_load_right<true>(b, shown + k * 16 * {line} + c * 16, {line});"));
        text.unrolled("p", pieces);
        text.line("wf_multiply(o[p][2 * c], o[p][2 * c + 1], a[p], b);");
        text.close();
        text.close();
        text.close();
    }

    /// Reduces the sums over the warp and stores the rows.
    fn finish(
        &self,
        builder: &mut KernelBuilder<'_>,
        store: &Store<'_>,
        index: &str,
    ) -> Result<(), Unsupported> {
        let Shape { pieces, width, .. } = self.shape;
        let m = self.scores.m;
        builder.text.unrolled("p", pieces);
        builder.text.unrolled("h", 2);
        builder.text.line("float all = total[p][h];");
        builder.text.line("all += wf_shuffle(all, 1);");
        builder.text.line("all += wf_shuffle(all, 2);");
        let share = if self.softmax.safe { "all == 0.0f ? 0.0f : 1.0f / all" } else { "1.0f / all" };
        builder.text.line(format!("const float share = {share};"));
        builder.text.line(format!("const int own = first + (warp * {pieces} + p) * 16 + lane / 4 + h * 8;"));
        builder.text.open(format!("if (own < {m})"));
        builder.text.line(format!("const {index} row = batch * {m} + own;"));
        store.row(builder, "row", index);
        builder.text.unrolled("c", width / 8);
        builder.text.line("const int pair = c * 8 + lane % 4 * 2;");
        store_pair(builder, store, self.values.n, "o[p][c][h * 2 + e] * share", index)?;
        for _ in 0..4 {
            builder.text.close();
        }
        Ok(())
    }
}
