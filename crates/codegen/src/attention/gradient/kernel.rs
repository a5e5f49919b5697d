//! Emits the two kernels. They differ in which tiles stay with a block and which are streamed.

use warpforge_fusion::cluster::{Epilogue, Gradient};

use super::plan::{AttentionGradientPlan, ROWS, Shape, WARPS};
use crate::builder::{KernelBuilder, Launch};
use crate::gemm::tile::{Loaded, PADDING, Tile};
use crate::gemm::{EpilogueLoop, Store, store_pair};
use crate::index::{index_type, sum};
use crate::kernel::{Kernel, Unsupported};
use crate::text::Text;
use crate::types::rounded;

/// Threads per block.
const THREADS: usize = WARPS * 32;

/// Minus infinity.
const NEG_INF: &str = "wf_float(0xff800000u)";

/// log2(e).
const LOG2_E: &str = "1.44269504f";

/// The tensors that both kernels read.
#[derive(Clone, Copy)]
enum Operand {
    Queries,
    Keys,
    /// The gradient of the output.
    OutputGradient,
    Values,
}

/// One of the kernels.
pub(super) struct GradientKernel<'p> {
    plan: &'p AttentionGradientPlan<'p>,
    /// Whether keys and values stay with the block and queries are streamed, or the reverse.
    by_keys: bool,
    index: &'static str,
    weights: EpilogueLoop<'p>,
    by_scores: EpilogueLoop<'p>,
}

impl<'p> GradientKernel<'p> {
    pub(super) fn new(plan: &'p AttentionGradientPlan<'p>, by_keys: bool) -> Self {
        let body_loop = |epilogue: &'p Epilogue| EpilogueLoop::new(&epilogue.body, epilogue.rows);
        let (weights, by_scores) = (body_loop(&plan.attention.weights), body_loop(&plan.attention.by_scores));
        let stored = plan.attention.gradients().map(|gradient| {
            let body_loop =
                gradient.product.epilogue.as_ref().map_or(0, |epilogue| body_loop(epilogue).max_index());
            body_loop.max(plan.graph.node(gradient.output).len())
        });
        let read =
            [plan.scores.max_index, plan.by_weights.max_index, weights.max_index(), by_scores.max_index()];
        let far = read.into_iter().chain(stored).max().unwrap_or(0);
        Self { plan, by_keys, index: index_type(far), weights, by_scores }
    }

    /// Numbers of resident and of streamed rows.
    fn limits(&self) -> (usize, usize) {
        let (m, n) = (self.plan.scores.m, self.plan.scores.n);
        if self.by_keys { (n, m) } else { (m, n) }
    }

    pub(super) fn emit(&self) -> Result<Kernel, Unsupported> {
        let AttentionGradientPlan { graph, options, attention, scores, by_weights, shape, .. } = self.plan;
        let mut builder = KernelBuilder::new(graph, options);
        builder.salt().begin(&mut builder.text);
        self.begin(&mut builder)?;
        if self.by_keys {
            builder.text.line(format!("float by_key[{}][4] = {{}};", shape.head / 8));
            builder.text.line(format!("float by_value[{}][4] = {{}};", shape.width / 8));
            self.pass(&mut builder, |builder| {
                self.both_gemms(builder);
                self.score_gradients(builder)?;
                self.accumulate(&mut builder.text, "by_value", "s", "aside", shape.width);
                self.accumulate(&mut builder.text, "by_key", "t", "passing", shape.head);
                Ok(())
            })?;
            self.store(&mut builder, &attention.by_keys, "by_key", scores.k)?;
            self.store(&mut builder, &attention.by_values, "by_value", by_weights.k)?;
        } else {
            self.rows(&mut builder)?;
            builder.text.line(format!("float by_query[{}][4] = {{}};", shape.head / 8));
            self.pass(&mut builder, |builder| {
                self.both_gemms(builder);
                self.score_gradients(builder)?;
                self.accumulate(&mut builder.text, "by_query", "t", "passing", shape.head);
                Ok(())
            })?;
            self.store(&mut builder, &attention.by_queries, "by_query", scores.k)?;
        }
        builder.salt().end(&mut builder.text);
        let mut launch = Launch::new(scores.batches() * self.limits().0.div_ceil(ROWS), THREADS);
        launch.shared = shape.shared();
        let (m, n, head, width) = (scores.m, scores.n, scores.k, by_weights.k);
        let of = if self.by_keys { "keys and values" } else { "queries" };
        let title = format!("attention gradient {}x{m}x{n}, {head} to {width}: {of}", scores.batches());
        builder.finish("attention_gradient", title, &launch, self.plan.cost(self.by_keys))
    }

    /// Declares the block's indices and loads its resident tiles.
    fn begin(&self, builder: &mut KernelBuilder<'_>) -> Result<(), Unsupported> {
        let AttentionGradientPlan { scores, by_weights, ty, shape, softmax, .. } = self.plan;
        let Shape { passing, head, width, .. } = *shape;
        let (own, other) = self.limits();
        let (tiles, steps) = (own.div_ceil(ROWS), other.div_ceil(passing));
        let text = &mut builder.text;
        text.line("WF_DYNAMIC_SHARED(room);");
        text.line(format!("{ty}* const own = ({ty}*)room;"));
        text.line(format!("{ty}* const beside = own + {};", ROWS * (head + PADDING)));
        text.line(format!("{ty}* const passing = beside + {};", ROWS * (width + PADDING)));
        text.line(format!("{ty}* const aside = passing + {};", 2 * passing * (head + PADDING)));
        if self.by_keys {
            text.line(format!("float* const known = (float*)(aside + {});", 2 * passing * (width + PADDING)));
        }
        text.line("const int warp = WF_THREAD / 32, lane = WF_THREAD % 32;");
        let [first_key, last_key] = softmax.mask.weighted_keys();
        let first = match last_key {
            // The last queries attend to the most keys: they are scheduled first.
            Some(_) if !self.by_keys => format!("({} - WF_BLOCK % {tiles})", tiles - 1),
            _ => format!("WF_BLOCK % {tiles}"),
        };
        text.line(format!("const int first = {first} * {ROWS};"));
        // The streamed rows that the mask lets the block meet.
        let (low, high) = if self.by_keys {
            let until = first_key.map(|key| format!("first + {} - ({key})", ROWS - 1));
            (last_key.map(|key| format!("first - ({key})")), until)
        } else {
            let until = last_key.map(|key| format!("first + {} + ({key})", ROWS - 1));
            (first_key.map(|key| format!("first + ({key})")), until)
        };
        let from = low.map_or("0".to_owned(), |low| {
            text.line(format!("const int skipped = ({low}) / {passing};"));
            format!("skipped < 0 ? 0 : skipped < {0} ? skipped : {0}", steps - 1)
        });
        let to = high.map_or(steps.to_string(), |high| {
            text.line(format!("const int seen = ({high}) / {passing} + 1;"));
            format!("seen < 1 ? 1 : seen < {steps} ? seen : {steps}")
        });
        text.line(format!("const int from = {from}, to = {to};"));
        text.line(format!("const {} batch = WF_BLOCK / {tiles};", self.index));
        for (geometry, names, prefix) in [(scores, ["pq", "pk"], "x"), (by_weights, ["pg", "pv"], "y")] {
            geometry.batch.split(text, "batch", prefix, self.index);
            for (side, name) in names.into_iter().enumerate() {
                let offset = if side == 0 { geometry.lhs.offset } else { geometry.rhs.offset };
                let place = sum(&[offset.to_string(), geometry.batch.linear_index(side, prefix)]);
                text.line(format!("const {} {name} = {place};", self.index));
            }
        }
        let mine = if self.by_keys {
            [Operand::Keys, Operand::Values]
        } else {
            [Operand::Queries, Operand::OutputGradient]
        };
        self.load(builder, mine[0], "own", "first", ROWS)?;
        self.load(builder, mine[1], "beside", "first", ROWS)
    }

    /// Emits the load of a tile.
    fn load(
        &self,
        builder: &mut KernelBuilder<'_>,
        which: Operand,
        to: &str,
        from: &str,
        count: usize,
    ) -> Result<(), Unsupported> {
        let AttentionGradientPlan { scores, by_weights, ty, shape, .. } = self.plan;
        let (geometry, name, padded) = match which {
            Operand::Queries => (scores, "pq", shape.head),
            Operand::Keys => (scores, "pk", shape.head),
            Operand::OutputGradient => (by_weights, "pg", shape.width),
            Operand::Values => (by_weights, "pv", shape.width),
        };
        let transposed = matches!(which, Operand::Keys | Operand::Values);
        let side = if transposed { &geometry.rhs } else { &geometry.lhs };
        let (along, across) = if transposed { (side.column, side.row) } else { (side.row, side.column) };
        let view = usize::from(transposed);
        let tile = Tile { side, batch: &geometry.batch, view, along, across, size: geometry.k };
        let pointer = builder.read(side.value)?;
        let loaded = Loaded {
            pointer: &pointer,
            place: name,
            to,
            from,
            across_from: "0",
            padded,
            count,
            limit: if transposed { scores.n } else { scores.m },
            threads: THREADS,
            ty,
        };
        tile.emit(builder, &loaded);
        Ok(())
    }

    /// Emits the loads of the streamed tiles of a step, and of their row statistics.
    fn load_passing(&self, builder: &mut KernelBuilder<'_>, step: &str) -> Result<(), Unsupported> {
        let Shape { passing, head, width, .. } = self.plan.shape;
        let others = if self.by_keys {
            [Operand::Queries, Operand::OutputGradient]
        } else {
            [Operand::Keys, Operand::Values]
        };
        let from = format!("{step} * {passing}");
        let to =
            |name: &str, padded: usize| format!("({name} + {step} % 2 * {})", passing * (padded + PADDING));
        self.load(builder, others[0], &to("passing", head), &from, passing)?;
        self.load(builder, others[1], &to("aside", width), &from, passing)?;
        if self.by_keys {
            let (m, pointers) = (self.plan.scores.m, self.row_statistics(builder));
            let text = &mut builder.text;
            text.open(format!("for (int at = WF_THREAD; at < {passing}; at += {THREADS})"));
            text.line(format!("const int row = {from} + at;"));
            text.line(format!("float* const to_known = known + {step} % 2 * {} + at;", 2 * passing));
            // Queries out of range have weight zero.
            text.line(format!(
                "to_known[0] = row < {m} ? {}[batch * {m} + row] : wf_float(0x7f800000u);",
                pointers[0]
            ));
            text.line(format!(
                "to_known[{passing}] = row < {m} ? {}[batch * {m} + row] : 0.0f;",
                pointers[1]
            ));
            text.close();
        }
        builder.text.line("wf_copies_end();");
        Ok(())
    }

    /// The scratch pointers of the two row statistics.
    fn row_statistics(&self, builder: &mut KernelBuilder<'_>) -> [String; 2] {
        [0, 1].map(|number| builder.scratch(number, "float", self.by_keys))
    }

    /// A double-buffered loop over all streamed tiles.
    fn pass(
        &self,
        builder: &mut KernelBuilder<'_>,
        inside: impl FnOnce(&mut KernelBuilder<'_>) -> Result<(), Unsupported>,
    ) -> Result<(), Unsupported> {
        self.load_passing(builder, "from")?;
        builder.text.open("for (int j = from; j < to; ++j)");
        builder.text.line("wf_copies_wait<0>();");
        builder.text.line("wf_sync();");
        builder.text.open("if (j + 1 < to)");
        self.load_passing(builder, "(j + 1)")?;
        builder.text.close();
        inside(builder)?;
        builder.text.close();
        Ok(())
    }

    /// Computes the scores of a tile into `s` and the gradients of its weights into `t`. Rows are the block's
    /// resident rows.
    fn both_gemms(&self, builder: &mut KernelBuilder<'_>) {
        let Shape { head, width, .. } = self.plan.shape;
        self.gemm(&mut builder.text, "s", ["own", "passing"], head);
        self.gemm(&mut builder.text, "t", ["beside", "aside"], width);
    }

    fn gemm(&self, text: &mut Text, sums: &str, [own, tile]: [&str; 2], padded: usize) {
        let (passing, ty) = (self.plan.shape.passing, self.plan.ty);
        let line = padded + PADDING;
        text.line(format!("float {sums}[{}][4] = {{}};", passing / 8));
        text.unrolled("d", padded / 16);
        text.line(format!("wf_fragment<{ty}> a, b;"));
        text.line(format!("wf_load_left(a, {own} + warp * 16 * {line} + d * 16, {line});"));
        text.unrolled("c", passing / 16);
        text.line(format!(
            "wf_load_right<false>(b, {tile} + j % 2 * {} + c * 16 * {line} + d * 16, {line});",
            passing * line
        ));
        text.line(format!("wf_multiply({sums}[2 * c], {sums}[2 * c + 1], a, b);"));
        text.close();
        text.close();
    }

    /// Accumulates a gradient from a streamed tile.
    fn accumulate(&self, text: &mut Text, gradient: &str, by: &str, tile: &str, padded: usize) {
        let (passing, ty) = (self.plan.shape.passing, self.plan.ty);
        let line = padded + PADDING;
        text.unrolled("k", passing / 16);
        text.line(format!("wf_fragment<{ty}> a, b;"));
        text.line(format!("wf_left_of(a, {by}[2 * k], {by}[2 * k + 1]);"));
        text.unrolled("c", padded / 16);
        text.line(format!(
            "wf_load_right<true>(b, {tile} + j % 2 * {} + k * 16 * {line} + c * 16, {line});",
            passing * line
        ));
        text.line(format!("wf_multiply({gradient}[2 * c], {gradient}[2 * c + 1], a, b);"));
        text.close();
        text.close();
    }

    /// Opens loops `h`, `c` and `e` over the tile elements of a thread, with their row and column among all scores.
    fn open_elements(&self, text: &mut Text) {
        let (m, n, passing) = (self.plan.scores.m, self.plan.scores.n, self.plan.shape.passing);
        let (row, column) = if self.by_keys { ("other", "mine") } else { ("mine", "other") };
        text.unrolled("h", 2);
        text.line("const int mine = first + warp * 16 + lane / 4 + h * 8;");
        text.unrolled("c", passing / 8);
        text.unrolled("e", 2);
        text.line(format!("const int other = j * {passing} + c * 8 + lane % 4 * 2 + e;"));
        text.line(format!("const {} row = batch * {m} + ({row} < {m} ? {row} : {});", self.index, m - 1));
        text.line(format!("const int column = {column} < {n} ? {column} : {};", n - 1));
    }

    fn close_elements(&self, text: &mut Text) {
        (0..3).for_each(|_| text.close());
    }

    /// Whether all streamed tiles are full.
    fn whole(&self) -> bool {
        self.limits().1.is_multiple_of(self.plan.shape.passing)
    }

    /// A value that is replaced where the streamed row is out of range.
    fn exists(&self, value: String, otherwise: &str) -> String {
        if self.whole() { value } else { format!("other < {} ? {value} : {otherwise}", self.limits().1) }
    }

    /// Computes the input of the softmax into `s`.
    fn score(&self, builder: &mut KernelBuilder<'_>) -> Result<(), Unsupported> {
        let (softmax, weights) = (&self.plan.softmax, &self.plan.attention.weights);
        let element = self.plan.graph.node(self.plan.attention.scores.node).element;
        builder.text.open("");
        self.weights.row(builder, "row", self.index);
        let tile = [(weights.tile, rounded(element, "s[c][h * 2 + e]".to_owned())?)];
        let value =
            self.weights.steps(builder, "column", self.index, &tile, &softmax.score_steps, softmax.scores)?;
        builder.text.line(format!("s[c][h * 2 + e] = {};", self.exists(value, NEG_INF)));
        builder.text.close();
        Ok(())
    }

    /// The gradient of the weights, rounded as the model does.
    fn by_weight(&self) -> Result<(usize, String), Unsupported> {
        let element = self.plan.graph.node(self.plan.attention.by_weights.node).element;
        Ok((self.plan.attention.by_scores.tile, rounded(element, "t[c][h * 2 + e]".to_owned())?))
    }

    /// Computes the row statistics for the second pass and the other kernel: `top`, the log-sum-exp, and `share`, the
    /// sum of weights times their factor in the gradient.
    fn rows(&self, builder: &mut KernelBuilder<'_>) -> Result<(), Unsupported> {
        let softmax_gradient = &self.plan.softmax_gradient;
        builder
            .text
            .line(format!("float top[2] = {{{NEG_INF}, {NEG_INF}}}, total[2] = {{}}, share[2] = {{}};"));
        self.pass(builder, |builder| {
            self.both_gemms(builder);
            self.open_elements(&mut builder.text);
            self.score(builder)?;
            builder.text.open("");
            self.by_scores.row(builder, "row", self.index);
            let tile = [self.by_weight()?];
            let steps = &softmax_gradient.factor_steps;
            let factor =
                self.by_scores.steps(builder, "column", self.index, &tile, steps, softmax_gradient.factor)?;
            builder.text.line(format!("t[c][h * 2 + e] = {factor};"));
            builder.text.close();
            self.close_elements(&mut builder.text);
            self.online(&mut builder.text);
            Ok(())
        })?;
        let (m, pointers) = (self.plan.scores.m, self.row_statistics(builder));
        let text = &mut builder.text;
        text.unrolled("h", 2);
        text.unrolled("x", 2);
        text.line("total[h] += wf_shuffle(total[h], 1 << x);");
        text.line("share[h] += wf_shuffle(share[h], 1 << x);");
        text.close();
        // A row without visible keys has zero weights, or NaN where the softmax is not guarded.
        let (nothing, none) = if self.plan.softmax.safe {
            ("0x7f800000u", "0.0f")
        } else {
            ("0x7fc00000u", "wf_float(0x7fc00000u)")
        };
        text.line("const bool empty = total[h] == 0.0f;");
        text.line(format!("top[h] = empty ? wf_float({nothing}) : (top[h] + wf_log(total[h])) * {LOG2_E};"));
        text.line(format!("share[h] = empty ? {none} : share[h] / total[h];"));
        text.line("const int mine = first + warp * 16 + lane / 4 + h * 8;");
        text.open(format!("if (lane % 4 == 0 && mine < {m})"));
        text.line(format!("{}[batch * {m} + mine] = top[h];", pointers[0]));
        text.line(format!("{}[batch * {m} + mine] = share[h];", pointers[1]));
        text.close();
        text.close();
        // The tiles of the last step are read up to this point.
        text.line("wf_sync();");
        Ok(())
    }

    /// The online update of the row statistics for a tile.
    fn online(&self, text: &mut Text) {
        let passing = self.plan.shape.passing;
        text.unrolled("h", 2);
        text.line("float now = top[h];");
        text.unrolled("c", passing / 8);
        text.line("now = fmaxf(now, fmaxf(s[c][h * 2], s[c][h * 2 + 1]));");
        text.close();
        text.line("now = fmaxf(now, wf_shuffle(now, 1));");
        text.line("now = fmaxf(now, wf_shuffle(now, 2));");
        text.line(format!("const float base = now == {NEG_INF} ? 0.0f : now * {LOG2_E};"));
        text.line(format!("const float scale = wf_exp2(top[h] * {LOG2_E} - base);"));
        text.line("top[h] = now;");
        text.line("total[h] *= scale;");
        text.line("share[h] *= scale;");
        text.unrolled("c", passing / 8);
        text.unrolled("e", 2);
        text.line(format!("const float part = wf_exp2(s[c][h * 2 + e] * {LOG2_E} - base);"));
        text.line("total[h] += part;");
        text.line("share[h] += part * t[c][h * 2 + e];");
        text.close();
        text.close();
        text.close();
    }

    /// Computes the weights into `s` and the gradients of the scores into `t`.
    fn score_gradients(&self, builder: &mut KernelBuilder<'_>) -> Result<(), Unsupported> {
        let (softmax_gradient, body) = (&self.plan.softmax_gradient, &self.plan.attention.by_scores.body);
        let passing = self.plan.shape.passing;
        self.open_elements(&mut builder.text);
        self.score(builder)?;
        let (top, share) = if self.by_keys {
            let at = format!("known[j % 2 * {} + c * 8 + lane % 4 * 2 + e", 2 * passing);
            (format!("{at}]"), format!("{at} + {passing}]"))
        } else {
            ("top[h]".to_owned(), "share[h]".to_owned())
        };
        builder.text.line(format!("s[c][h * 2 + e] = wf_exp2(s[c][h * 2 + e] * {LOG2_E} - {top});"));
        builder.text.open("");
        self.by_scores.row(builder, "row", self.index);
        builder.text.line(format!("const float s{} = {share};", softmax_gradient.sum));
        let given = [self.by_weight()?, (self.plan.attention.shares, "s[c][h * 2 + e]".to_owned())];
        let last = body.steps.len().saturating_sub(1);
        let value = self.by_scores.steps(
            builder,
            "column",
            self.index,
            &given,
            &softmax_gradient.output_steps,
            last,
        )?;
        builder.text.line(format!("t[c][h * 2 + e] = {};", self.exists(value, "0.0f")));
        builder.text.close();
        self.close_elements(&mut builder.text);
        Ok(())
    }

    /// Stores the rows of a gradient, or its columns where the model has the GEMM transposed.
    fn store(
        &self,
        builder: &mut KernelBuilder<'_>,
        gradient: &Gradient,
        sums: &str,
        width: usize,
    ) -> Result<(), Unsupported> {
        let (limit, index) = (self.limits().0, self.index);
        let columns = if gradient.side == 0 { width } else { limit };
        let store = Store::new(&gradient.product, gradient.output, columns);
        let value = format!("{sums}[c][h * 2 + e]");
        builder.text.unrolled("h", 2);
        builder.text.line("const int mine = first + warp * 16 + lane / 4 + h * 8;");
        builder.text.open(format!("if (mine < {limit})"));
        if gradient.side == 0 {
            builder.text.line(format!("const {index} row = batch * {limit} + mine;"));
            store.row(builder, "row", index);
            builder.text.unrolled("c", width.div_ceil(8));
            builder.text.line("const int pair = c * 8 + lane % 4 * 2;");
            store_pair(builder, &store, width, &value, index)?;
            builder.text.close();
        } else {
            builder.text.unrolled("c", width.div_ceil(8));
            builder.text.unrolled("e", 2);
            builder.text.line("const int across = c * 8 + lane % 4 * 2 + e;");
            builder.text.open(format!("if (across < {width})"));
            builder.text.line(format!("const {index} row = batch * {width} + across;"));
            store.row(builder, "row", index);
            store.element(builder, "mine", &value, index)?;
            (0..3).for_each(|_| builder.text.close());
        }
        builder.text.close();
        builder.text.close();
        Ok(())
    }
}
