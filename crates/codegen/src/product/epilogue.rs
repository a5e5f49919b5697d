//! What is done to the elements of a product's result before they are stored.

use warpforge_fusion::cluster::{Body, BodyOp, Contraction};
use warpforge_fusion::{NodeId, View};
use warpforge_tensor::ElementType;

use crate::draft::Draft;
use crate::index::{Space, reach, sum};
use crate::kernel::Unsupported;
use crate::loops::views;
use crate::steps::{Written, expression, loaded, packed};
use crate::types::{computed, rounded, stored};

/// A loop over the elements of a product's result: rows `er…`, columns `ec…`.
pub(crate) struct Cells<'b> {
    body: &'b Body,
    rows: Space,
    columns: Space,
}

impl<'b> Cells<'b> {
    /// A body whose first dimensions, so many, are those of rows.
    pub(crate) fn new(body: &'b Body, rows: usize) -> Self {
        let views = views(body);
        let parts = [(0..rows).collect::<Vec<_>>(), (rows..body.dims.len()).collect()];
        let [rows, columns] = parts.map(|part| Space::new(&body.dims, &part, &views));
        Self { body, rows, columns }
    }

    /// The farthest place that it reaches.
    pub(crate) fn reach(&self) -> usize {
        reach(&views(self.body))
    }

    /// Lines that take a row's number apart.
    pub(crate) fn row(&self, draft: &mut Draft<'_>, row: &str, int: &str) {
        self.rows.split(&mut draft.text, row, "er", int);
    }

    fn place(&self, number: usize, view: &View) -> String {
        sum(&[view.offset.to_string(), self.rows.place(number, "er"), self.columns.place(number, "ec")])
    }

    /// Lines that compute these steps at a column; the loads that are given are the expressions beside their numbers.
    /// Gives the name of the wanted step.
    pub(crate) fn steps(
        &self,
        draft: &mut Draft<'_>,
        column: &str,
        int: &str,
        given: &[(usize, String)],
        needed: &[usize],
        wanted: usize,
    ) -> Result<String, Unsupported> {
        let body = self.body;
        self.columns.split(&mut draft.text, column, "ec", int);
        let mut loads = vec![String::new(); body.loads.len()];
        for &at in needed {
            if let BodyOp::Load(number) = body.steps[at].op {
                loads[number] = match given.iter().find(|(known, _)| *known == number) {
                    Some((_, expression)) => expression.clone(),
                    None => {
                        let pointer = draft.read(body.loads[number].value)?;
                        loaded(&pointer, &self.place(number, &body.loads[number].view))
                    }
                };
            }
        }
        let mut iotas = Vec::new();
        for step in &body.steps {
            if let BodyOp::Iota(view) = &step.op {
                iotas.push((view.clone(), self.place(body.loads.len() + 1 + iotas.len(), view)));
            }
        }
        let around = Written { loads, iotas };
        for &at in needed {
            let line = expression(body, at, &around)?;
            draft.text.line(format!("const {} s{at} = {line};", computed(body.steps[at].element)?));
        }
        Ok(format!("s{wanted}"))
    }
}

/// Stores elements of a product's result: `row` numbers the batch and the rows, `column` the columns.
pub(crate) struct Store<'p> {
    product: &'p Contraction,
    output: NodeId,
    columns: usize,
    cells: Option<Cells<'p>>,
}

impl<'p> Store<'p> {
    /// For a product with so many columns.
    pub(crate) fn new(product: &'p Contraction, output: NodeId, columns: usize) -> Self {
        let cells = product.epilogue.as_ref().map(|epilogue| Cells::new(&epilogue.body, epilogue.rows));
        Self { product, output, columns, cells }
    }

    /// The farthest place that a store or a load of the epilogue reaches.
    pub(crate) fn reach(&self, draft: &Draft<'_>) -> usize {
        let own = draft.graph.node(self.output).len();
        self.cells.as_ref().map_or(own, |cells| cells.reach().max(own))
    }

    /// Lines that take a row's number apart; elements of that row are stored inside the same braces.
    pub(crate) fn row(&self, draft: &mut Draft<'_>, row: &str, int: &str) {
        match &self.cells {
            Some(cells) => cells.row(draft, row, int),
            None => draft.text.line(format!("const {int} er0 = {row};")),
        }
    }

    /// Lines that store an element: `value` is what the product gives, in the type it was computed in.
    pub(crate) fn element(
        &self,
        draft: &mut Draft<'_>,
        column: &str,
        value: &str,
        int: &str,
    ) -> Result<(), Unsupported> {
        let pointer = draft.write(self.output)?;
        let value = self.value(draft, column, value, int)?;
        let place = self.place(column);
        draft.text.line(format!("{pointer}[{place}] = {value};"));
        Ok(())
    }

    /// Whether so many neighbouring columns, from a multiple of that number on, lie side by side in the result.
    pub(crate) fn in_runs(&self, count: usize) -> bool {
        let wide = count as isize;
        let Some(cells) = &self.cells else { return self.columns.is_multiple_of(count) };
        let (body, at) = (cells.body, cells.body.loads.len());
        cells.columns.dims.last().is_some_and(|last| last.is_multiple_of(count))
            && cells.columns.vectors(at, count)
            && body.output.offset % wide == 0
            && cells.rows.strides[at].iter().all(|stride| stride % wide == 0)
    }

    /// Lines that store so many neighbouring elements at once; `value` is that of element `e`.
    pub(crate) fn run(
        &self,
        draft: &mut Draft<'_>,
        column: &str,
        count: usize,
        value: &str,
        int: &str,
    ) -> Result<(), Unsupported> {
        let pointer = draft.write(self.output)?;
        let vector = format!("wf_vec<{}, {count}>", stored(draft.graph.node(self.output).element)?);
        draft.text.line(format!("{vector} run;"));
        draft.text.unrolled("e", count);
        draft.text.line(format!("const {int} each = {column} + e;"));
        let value = self.value(draft, "each", value, int)?;
        draft.text.line(format!("run.x[e] = {value};"));
        draft.text.close();
        if let Some(cells) = &self.cells {
            cells.columns.split(&mut draft.text, column, "ec", int);
        }
        let place = self.place(column);
        draft.text.line(format!("*({vector}*)({pointer} + {place}) = run;"));
        Ok(())
    }

    /// Where the element at a column is stored.
    fn place(&self, column: &str) -> String {
        match &self.cells {
            Some(cells) => cells.place(cells.body.loads.len(), &cells.body.output),
            None => format!("er0 * {} + {column}", self.columns),
        }
    }

    /// Lines that compute what is stored at a column; gives it as it is stored.
    fn value(
        &self,
        draft: &mut Draft<'_>,
        column: &str,
        value: &str,
        int: &str,
    ) -> Result<String, Unsupported> {
        let node = draft.graph.node(self.product.node).element;
        let salt = draft.salt();
        let Some((epilogue, cells)) = self.product.epilogue.as_ref().zip(self.cells.as_ref()) else {
            salt.wrote(&mut draft.text, value, node.byte_width());
            return packed(node, value);
        };
        let body = &epilogue.body;
        let last = body.steps.len().checked_sub(1).ok_or_else(|| Unsupported::new("an empty epilogue"))?;
        let all: Vec<usize> = (0..body.steps.len()).collect();
        let tile = [(epilogue.tile, rounded(node, value.to_owned())?)];
        let last = cells.steps(draft, column, int, &tile, &all, last)?;
        let element = draft.graph.node(self.output).element;
        salt.wrote(&mut draft.text, &last, element.byte_width());
        packed(element, &last)
    }
}

/// The type in which a product of a type is summed.
pub(crate) fn sums(element: ElementType) -> Result<&'static str, Unsupported> {
    computed(element)
}
