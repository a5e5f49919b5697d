//! The text of the two kernels: the same but for which tiles are a block's own and which pass by.

use warpforge_fusion::cluster::{Epilogue, Gradient};

use super::{Plan, ROWS, Shape, WARPS};
use crate::draft::{Draft, Launch};
use crate::index::{int, sum};
use crate::kernel::{Kernel, Unsupported};
use crate::product::tile::{APART, Loaded, Tile};
use crate::product::{Cells, Store, store_pair};
use crate::text::Text;
use crate::types::rounded;

/// Threads of a block.
const THREADS: usize = WARPS * 32;

/// Minus infinity.
const NOTHING: &str = "wf_float(0xff800000u)";

/// The logarithm of e to the base 2.
const LOG2_E: &str = "1.44269504f";

/// The tensors that both kernels read.
#[derive(Clone, Copy)]
enum Which {
    Queries,
    Keys,
    /// The gradient of the result.
    Given,
    Values,
}

/// One of the kernels.
pub(super) struct Sweep<'p> {
    plan: &'p Plan<'p>,
    /// Whether a block has keys and values of its own, and queries pass by; otherwise it is the other way.
    by_keys: bool,
    index: &'static str,
    weights: Cells<'p>,
    by_scores: Cells<'p>,
}

impl<'p> Sweep<'p> {
    pub(super) fn new(plan: &'p Plan<'p>, by_keys: bool) -> Self {
        let cells = |epilogue: &'p Epilogue| Cells::new(&epilogue.body, epilogue.rows);
        let (weights, by_scores) = (cells(&plan.backward.weights), cells(&plan.backward.by_scores));
        let stored = plan.backward.gradients().map(|gradient| {
            let cells = gradient.product.epilogue.as_ref().map_or(0, |epilogue| cells(epilogue).reach());
            cells.max(plan.graph.node(gradient.output).len())
        });
        let read = [plan.scores.reach, plan.by_weights.reach, weights.reach(), by_scores.reach()];
        let far = read.into_iter().chain(stored).max().unwrap_or(0);
        Self { plan, by_keys, index: int(far), weights, by_scores }
    }

    /// How many rows there are of what a block has its own tiles of, and of what passes by.
    fn limits(&self) -> (usize, usize) {
        let (m, n) = (self.plan.scores.m, self.plan.scores.n);
        if self.by_keys { (n, m) } else { (m, n) }
    }

    pub(super) fn emit(&self) -> Result<Kernel, Unsupported> {
        let Plan { graph, options, backward, scores, by_weights, shape, .. } = self.plan;
        let mut draft = Draft::new(graph, options);
        draft.salt().begin(&mut draft.text);
        self.begin(&mut draft)?;
        if self.by_keys {
            draft.text.line(format!("float by_key[{}][4] = {{}};", shape.head / 8));
            draft.text.line(format!("float by_value[{}][4] = {{}};", shape.width / 8));
            self.pass(&mut draft, |draft| {
                self.both_products(draft);
                self.slopes(draft)?;
                self.accumulate(&mut draft.text, "by_value", "s", "aside", shape.width);
                self.accumulate(&mut draft.text, "by_key", "t", "passing", shape.head);
                Ok(())
            })?;
            self.store(&mut draft, &backward.by_keys, "by_key", scores.k)?;
            self.store(&mut draft, &backward.by_values, "by_value", by_weights.k)?;
        } else {
            self.rows(&mut draft)?;
            draft.text.line(format!("float by_query[{}][4] = {{}};", shape.head / 8));
            self.pass(&mut draft, |draft| {
                self.both_products(draft);
                self.slopes(draft)?;
                self.accumulate(&mut draft.text, "by_query", "t", "passing", shape.head);
                Ok(())
            })?;
            self.store(&mut draft, &backward.by_queries, "by_query", scores.k)?;
        }
        draft.salt().end(&mut draft.text);
        let mut launch = Launch::new(scores.batches() * self.limits().0.div_ceil(ROWS), THREADS);
        launch.shared = shape.shared();
        let (m, n, head, width) = (scores.m, scores.n, scores.k, by_weights.k);
        let of = if self.by_keys { "keys and values" } else { "queries" };
        let title = format!("attention backward {}x{m}x{n}, {head} to {width}: {of}", scores.batches());
        draft.finish("attention_backward", title, &launch, self.plan.cost(self.by_keys))
    }

    /// What a block is about, and its own tiles.
    fn begin(&self, draft: &mut Draft<'_>) -> Result<(), Unsupported> {
        let Plan { scores, by_weights, ty, shape, ahead, .. } = self.plan;
        let Shape { passing, head, width } = *shape;
        let (own, other) = self.limits();
        let (tiles, steps) = (own.div_ceil(ROWS), other.div_ceil(passing));
        let text = &mut draft.text;
        text.line("WF_DYNAMIC_SHARED(room);");
        text.line(format!("{ty}* const own = ({ty}*)room;"));
        text.line(format!("{ty}* const beside = own + {};", ROWS * (head + APART)));
        text.line(format!("{ty}* const passing = beside + {};", ROWS * (width + APART)));
        text.line(format!("{ty}* const aside = passing + {};", 2 * passing * (head + APART)));
        if self.by_keys {
            text.line(format!("float* const known = (float*)(aside + {});", 2 * passing * (width + APART)));
        }
        text.line("const int warp = WF_THREAD / 32, lane = WF_THREAD % 32;");
        let first = match ahead {
            // The last queries see most: they begin first.
            Some(_) if !self.by_keys => format!("({} - WF_BLOCK % {tiles})", tiles - 1),
            _ => format!("WF_BLOCK % {tiles}"),
        };
        text.line(format!("const int first = {first} * {ROWS};"));
        let (from, to) = match ahead {
            Some(ahead) if self.by_keys => {
                text.line(format!("const int skipped = (first - ({ahead})) / {passing};"));
                let last = steps - 1;
                (format!("skipped < 0 ? 0 : skipped < {last} ? skipped : {last}"), steps.to_string())
            }
            Some(ahead) => {
                text.line(format!("const int seen = (first + {} + ({ahead})) / {passing} + 1;", ROWS - 1));
                ("0".to_owned(), format!("seen < 1 ? 1 : seen < {steps} ? seen : {steps}"))
            }
            None => ("0".to_owned(), steps.to_string()),
        };
        text.line(format!("const int from = {from}, to = {to};"));
        text.line(format!("const {} batch = WF_BLOCK / {tiles};", self.index));
        for (geometry, names, prefix) in [(scores, ["pq", "pk"], "x"), (by_weights, ["pg", "pv"], "y")] {
            geometry.batch.split(text, "batch", prefix, self.index);
            for (side, name) in names.into_iter().enumerate() {
                let offset = if side == 0 { geometry.lhs.offset } else { geometry.rhs.offset };
                let place = sum(&[offset.to_string(), geometry.batch.place(side, prefix)]);
                text.line(format!("const {} {name} = {place};", self.index));
            }
        }
        let mine = if self.by_keys { [Which::Keys, Which::Values] } else { [Which::Queries, Which::Given] };
        self.load(draft, mine[0], "own", "first", ROWS)?;
        self.load(draft, mine[1], "beside", "first", ROWS)
    }

    /// Lines that load a tile.
    fn load(
        &self,
        draft: &mut Draft<'_>,
        which: Which,
        to: &str,
        from: &str,
        count: usize,
    ) -> Result<(), Unsupported> {
        let Plan { scores, by_weights, ty, shape, .. } = self.plan;
        let (geometry, name, padded) = match which {
            Which::Queries => (scores, "pq", shape.head),
            Which::Keys => (scores, "pk", shape.head),
            Which::Given => (by_weights, "pg", shape.width),
            Which::Values => (by_weights, "pv", shape.width),
        };
        let turned = matches!(which, Which::Keys | Which::Values);
        let side = if turned { &geometry.rhs } else { &geometry.lhs };
        let (along, across) = if turned { (side.column, side.row) } else { (side.row, side.column) };
        let view = usize::from(turned);
        let tile = Tile { side, batch: &geometry.batch, view, along, across, size: geometry.k };
        let pointer = draft.read(side.value)?;
        let loaded = Loaded {
            pointer: &pointer,
            place: name,
            to,
            from,
            across_from: "0",
            padded,
            count,
            limit: if turned { scores.n } else { scores.m },
            threads: THREADS,
            ty,
        };
        tile.emit(draft, &loaded);
        Ok(())
    }

    /// Lines that load the tiles of a step that pass by, and what is known of their rows.
    fn load_passing(&self, draft: &mut Draft<'_>, step: &str) -> Result<(), Unsupported> {
        let Shape { passing, head, width } = self.plan.shape;
        let others = if self.by_keys { [Which::Queries, Which::Given] } else { [Which::Keys, Which::Values] };
        let from = format!("{step} * {passing}");
        let to =
            |name: &str, padded: usize| format!("({name} + {step} % 2 * {})", passing * (padded + APART));
        self.load(draft, others[0], &to("passing", head), &from, passing)?;
        self.load(draft, others[1], &to("aside", width), &from, passing)?;
        if self.by_keys {
            let (m, pointers) = (self.plan.scores.m, self.of_rows(draft));
            let text = &mut draft.text;
            text.open(format!("for (int at = WF_THREAD; at < {passing}; at += {THREADS})"));
            text.line(format!("const int row = {from} + at;"));
            text.line(format!("float* const to_known = known + {step} % 2 * {} + at;", 2 * passing));
            // Queries that are not there have no weights.
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
        draft.text.line("wf_copies_end();");
        Ok(())
    }

    /// Where the two numbers of each row lie between the kernels.
    fn of_rows(&self, draft: &mut Draft<'_>) -> [String; 2] {
        [0, 1].map(|number| draft.scratch(number, "float", self.by_keys))
    }

    /// A pass over all tiles, two of them in memory at once.
    fn pass(
        &self,
        draft: &mut Draft<'_>,
        inside: impl FnOnce(&mut Draft<'_>) -> Result<(), Unsupported>,
    ) -> Result<(), Unsupported> {
        self.load_passing(draft, "from")?;
        draft.text.open("for (int j = from; j < to; ++j)");
        draft.text.line("wf_copies_wait<0>();");
        draft.text.line("wf_sync();");
        draft.text.open("if (j + 1 < to)");
        self.load_passing(draft, "(j + 1)")?;
        draft.text.close();
        inside(draft)?;
        draft.text.close();
        Ok(())
    }

    /// The scores of a tile in `s`, the gradients by its weights in `t`; a block's own rows are theirs.
    fn both_products(&self, draft: &mut Draft<'_>) {
        let Shape { head, width, .. } = self.plan.shape;
        self.product(&mut draft.text, "s", ["own", "passing"], head);
        self.product(&mut draft.text, "t", ["beside", "aside"], width);
    }

    fn product(&self, text: &mut Text, sums: &str, [own, tile]: [&str; 2], padded: usize) {
        let (passing, ty) = (self.plan.shape.passing, self.plan.ty);
        let line = padded + APART;
        text.line(format!("float {sums}[{}][4] = {{}};", passing / 8));
        text.unrolled("d", padded / 16);
        text.line("unsigned a[4];");
        text.line(format!(
            "wf_load_matrices<false>(a, {own} + (warp * 16 + lane % 16) * {line} + d * 16 + lane / 16 * 8);"
        ));
        text.unrolled("c", passing / 16);
        text.line("unsigned b[4];");
        text.line(format!(
            "wf_load_matrices<false>(b, {tile} + j % 2 * {} + (c * 16 + lane / 16 * 8 + lane % 8) * {line} + d * 16 + lane / 8 % 2 * 8);",
            passing * line
        ));
        text.line(format!("wf_mma({sums}[2 * c], a, b[0], b[1], ({ty}*)0);"));
        text.line(format!("wf_mma({sums}[2 * c + 1], a, b[2], b[3], ({ty}*)0);"));
        text.close();
        text.close();
    }

    /// Adds to a gradient: elements by rows of a tile that passes by.
    fn accumulate(&self, text: &mut Text, gradient: &str, by: &str, tile: &str, padded: usize) {
        let (passing, ty) = (self.plan.shape.passing, self.plan.ty);
        let line = padded + APART;
        text.unrolled("k", passing / 16);
        text.line("unsigned a[4];");
        text.unrolled("x", 4);
        text.line(format!(
            "a[x] = wf_pair({by}[2 * k + x / 2][x % 2 * 2], {by}[2 * k + x / 2][x % 2 * 2 + 1], ({ty}*)0);"
        ));
        text.close();
        text.unrolled("c", padded / 16);
        text.line("unsigned b[4];");
        text.line(format!(
            "wf_load_matrices<true>(b, {tile} + j % 2 * {} + (k * 16 + lane % 16) * {line} + c * 16 + lane / 16 * 8);",
            passing * line
        ));
        text.line(format!("wf_mma({gradient}[2 * c], a, b[0], b[1], ({ty}*)0);"));
        text.line(format!("wf_mma({gradient}[2 * c + 1], a, b[2], b[3], ({ty}*)0);"));
        text.close();
        text.close();
    }

    /// Opens loops over the elements of a tile that a thread has: `h` and `c` and `e`, with their place among all scores.
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

    /// Whether every tile that passes by is whole.
    fn whole(&self) -> bool {
        self.limits().1.is_multiple_of(self.plan.shape.passing)
    }

    /// A value where there is such a row, another one where there is none.
    fn exists(&self, value: String, otherwise: &str) -> String {
        if self.whole() { value } else { format!("other < {} ? {value} : {otherwise}", self.limits().1) }
    }

    /// Lines that leave in `s` what the softmax is taken of.
    fn score(&self, draft: &mut Draft<'_>) -> Result<(), Unsupported> {
        let (softmax, weights) = (&self.plan.softmax, &self.plan.backward.weights);
        let element = self.plan.graph.node(self.plan.backward.scores.node).element;
        draft.text.open("");
        self.weights.row(draft, "row", self.index);
        let tile = [(weights.tile, rounded(element, "s[c][h * 2 + e]".to_owned())?)];
        let value =
            self.weights.steps(draft, "column", self.index, &tile, &softmax.needed, softmax.scores)?;
        draft.text.line(format!("s[c][h * 2 + e] = {};", self.exists(value, NOTHING)));
        draft.text.close();
        Ok(())
    }

    /// The gradient by the weights as the model rounds it.
    fn by_weight(&self) -> Result<(usize, String), Unsupported> {
        let element = self.plan.graph.node(self.plan.backward.by_weights.node).element;
        Ok((self.plan.backward.by_scores.tile, rounded(element, "t[c][h * 2 + e]".to_owned())?))
    }

    /// What the second pass and the other kernel need of each row: `top`, the logarithm of the sum of its exponentials,
    /// and `share`, the sum of its weights times what they are multiplied by there.
    fn rows(&self, draft: &mut Draft<'_>) -> Result<(), Unsupported> {
        let slope = &self.plan.slope;
        draft
            .text
            .line(format!("float top[2] = {{{NOTHING}, {NOTHING}}}, total[2] = {{}}, share[2] = {{}};"));
        self.pass(draft, |draft| {
            self.both_products(draft);
            self.open_elements(&mut draft.text);
            self.score(draft)?;
            draft.text.open("");
            self.by_scores.row(draft, "row", self.index);
            let tile = [self.by_weight()?];
            let steps = &slope.of_factor;
            let factor = self.by_scores.steps(draft, "column", self.index, &tile, steps, slope.factor)?;
            draft.text.line(format!("t[c][h * 2 + e] = {factor};"));
            draft.text.close();
            self.close_elements(&mut draft.text);
            self.online(&mut draft.text);
            Ok(())
        })?;
        let (m, pointers) = (self.plan.scores.m, self.of_rows(draft));
        let text = &mut draft.text;
        text.unrolled("h", 2);
        text.unrolled("x", 2);
        text.line("total[h] += wf_shuffle(total[h], 1 << x);");
        text.line("share[h] += wf_shuffle(share[h], 1 << x);");
        text.close();
        // A row without a key has no weights, or such as are no numbers.
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
        // The tiles of the last step are read until here.
        text.line("wf_sync();");
        Ok(())
    }

    /// The sums so far, corrected for what a tile brings.
    fn online(&self, text: &mut Text) {
        let passing = self.plan.shape.passing;
        text.unrolled("h", 2);
        text.line("float now = top[h];");
        text.unrolled("c", passing / 8);
        text.line("now = fmaxf(now, fmaxf(s[c][h * 2], s[c][h * 2 + 1]));");
        text.close();
        text.line("now = fmaxf(now, wf_shuffle(now, 1));");
        text.line("now = fmaxf(now, wf_shuffle(now, 2));");
        text.line(format!("const float base = now == {NOTHING} ? 0.0f : now * {LOG2_E};"));
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

    /// Lines that leave the weights in `s` and the gradients by the scores in `t`.
    fn slopes(&self, draft: &mut Draft<'_>) -> Result<(), Unsupported> {
        let (slope, body) = (&self.plan.slope, &self.plan.backward.by_scores.body);
        let passing = self.plan.shape.passing;
        self.open_elements(&mut draft.text);
        self.score(draft)?;
        let (top, share) = if self.by_keys {
            let at = format!("known[j % 2 * {} + c * 8 + lane % 4 * 2 + e", 2 * passing);
            (format!("{at}]"), format!("{at} + {passing}]"))
        } else {
            ("top[h]".to_owned(), "share[h]".to_owned())
        };
        draft.text.line(format!("s[c][h * 2 + e] = wf_exp2(s[c][h * 2 + e] * {LOG2_E} - {top});"));
        draft.text.open("");
        self.by_scores.row(draft, "row", self.index);
        draft.text.line(format!("const float s{} = {share};", slope.sum));
        let given = [self.by_weight()?, (self.plan.backward.shares, "s[c][h * 2 + e]".to_owned())];
        let last = body.steps.len().saturating_sub(1);
        let value = self.by_scores.steps(draft, "column", self.index, &given, &slope.of_last, last)?;
        draft.text.line(format!("t[c][h * 2 + e] = {};", self.exists(value, "0.0f")));
        draft.text.close();
        self.close_elements(&mut draft.text);
        Ok(())
    }

    /// The rows of a gradient are stored; where the model has its product the other way round, they are columns.
    fn store(
        &self,
        draft: &mut Draft<'_>,
        gradient: &Gradient,
        sums: &str,
        width: usize,
    ) -> Result<(), Unsupported> {
        let (limit, index) = (self.limits().0, self.index);
        let columns = if gradient.side == 0 { width } else { limit };
        let store = Store::new(&gradient.product, gradient.output, columns);
        let value = format!("{sums}[c][h * 2 + e]");
        draft.text.unrolled("h", 2);
        draft.text.line("const int mine = first + warp * 16 + lane / 4 + h * 8;");
        draft.text.open(format!("if (mine < {limit})"));
        if gradient.side == 0 {
            draft.text.line(format!("const {index} row = batch * {limit} + mine;"));
            store.row(draft, "row", index);
            draft.text.unrolled("c", width.div_ceil(8));
            draft.text.line("const int pair = c * 8 + lane % 4 * 2;");
            store_pair(draft, &store, width, &value, index)?;
            draft.text.close();
        } else {
            draft.text.unrolled("c", width.div_ceil(8));
            draft.text.unrolled("e", 2);
            draft.text.line("const int across = c * 8 + lane % 4 * 2 + e;");
            draft.text.open(format!("if (across < {width})"));
            draft.text.line(format!("const {index} row = batch * {width} + across;"));
            store.row(draft, "row", index);
            store.element(draft, "mine", &value, index)?;
            (0..3).for_each(|_| draft.text.close());
        }
        draft.text.close();
        draft.text.close();
        Ok(())
    }
}
