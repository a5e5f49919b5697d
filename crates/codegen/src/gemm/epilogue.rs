//! Epilogues: elementwise operations on the result of a GEMM or convolution before it is stored.

use warpforge_fusion::cluster::{Body, BodyOp, Contraction};
use warpforge_fusion::{NodeId, View};
use warpforge_tensor::ElementType;

use crate::builder::KernelBuilder;
use crate::index::{IndexSpace, max_index, sum};
use crate::kernel::Unsupported;
use crate::loops::views;
use crate::steps::{Written, expression, load_expr, store_expr};
use crate::types::{compute_type, rounded, storage_type};

/// An epilogue loop over rows `er…` and columns `ec…`.
pub(crate) struct EpilogueLoop<'b> {
    body: &'b Body,
    rows: IndexSpace,
    columns: IndexSpace,
}

impl<'b> EpilogueLoop<'b> {
    /// A body whose first `rows` dimensions are row dimensions.
    pub(crate) fn new(body: &'b Body, rows: usize) -> Self {
        let views = views(body);
        let parts = [(0..rows).collect::<Vec<_>>(), (rows..body.dims.len()).collect()];
        let [rows, columns] = parts.map(|part| IndexSpace::new(&body.dims, &part, &views));
        Self { body, rows, columns }
    }

    /// The largest element index that it accesses.
    pub(crate) fn max_index(&self) -> usize {
        max_index(&views(self.body))
    }

    /// Emits the split of a row index into dimensions.
    pub(crate) fn row(&self, builder: &mut KernelBuilder<'_>, row: &str, int: &str) {
        self.rows.split(&mut builder.text, row, "er", int);
    }

    fn linear_index(&self, number: usize, view: &View) -> String {
        sum(&[
            view.offset.to_string(),
            self.rows.linear_index(number, "er"),
            self.columns.linear_index(number, "ec"),
        ])
    }

    /// Emits these steps for a column. `given` has expressions for loads that are already in registers. Returns the
    /// name of step `wanted`.
    pub(crate) fn steps(
        &self,
        builder: &mut KernelBuilder<'_>,
        column: &str,
        int: &str,
        given: &[(usize, String)],
        needed: &[usize],
        wanted: usize,
    ) -> Result<String, Unsupported> {
        let body = self.body;
        self.columns.split(&mut builder.text, column, "ec", int);
        let mut loads = vec![String::new(); body.loads.len()];
        for &at in needed {
            if let BodyOp::Load(number) = body.steps[at].op {
                loads[number] = match given.iter().find(|(known, _)| *known == number) {
                    Some((_, expression)) => expression.clone(),
                    None => {
                        let pointer = builder.read(body.loads[number].value)?;
                        load_expr(&pointer, &self.linear_index(number, &body.loads[number].view))
                    }
                };
            }
        }
        let mut iotas = Vec::new();
        for step in &body.steps {
            if let BodyOp::Iota(view) = &step.op {
                iotas.push((view.clone(), self.linear_index(body.loads.len() + 1 + iotas.len(), view)));
            }
        }
        let context = Written { loads, iotas };
        for &at in needed {
            let line = expression(body, at, &context)?;
            builder.text.line(format!("const {} s{at} = {line};", compute_type(body.steps[at].element)?));
        }
        Ok(format!("s{wanted}"))
    }
}

/// Stores elements of a GEMM result. `row` is the index over batch and rows.
pub(crate) struct Store<'p> {
    contraction: &'p Contraction,
    output: NodeId,
    columns: usize,
    body_loop: Option<EpilogueLoop<'p>>,
}

impl<'p> Store<'p> {
    /// Stores for a result with this number of columns.
    pub(crate) fn new(contraction: &'p Contraction, output: NodeId, columns: usize) -> Self {
        let body_loop =
            contraction.epilogue.as_ref().map(|epilogue| EpilogueLoop::new(&epilogue.body, epilogue.rows));
        Self { contraction, output, columns, body_loop }
    }

    /// The largest element index that the epilogue loads or stores.
    pub(crate) fn max_index(&self, builder: &KernelBuilder<'_>) -> usize {
        let own = builder.graph.node(self.output).len();
        self.body_loop.as_ref().map_or(own, |body_loop| body_loop.max_index().max(own))
    }

    /// Emits the split of a row index; elements of the row are stored in the same scope.
    pub(crate) fn row(&self, builder: &mut KernelBuilder<'_>, row: &str, int: &str) {
        match &self.body_loop {
            Some(body_loop) => body_loop.row(builder, row, int),
            None => builder.text.line(format!("const {int} er0 = {row};")),
        }
    }

    /// Emits the store of an element; `value` is in the accumulator type.
    pub(crate) fn element(
        &self,
        builder: &mut KernelBuilder<'_>,
        column: &str,
        value: &str,
        int: &str,
    ) -> Result<(), Unsupported> {
        let pointer = builder.write(self.output)?;
        let value = self.value(builder, column, value, int)?;
        let place = self.linear_index(column);
        builder.text.line(format!("{pointer}[{place}] = {value};"));
        Ok(())
    }

    /// Whether aligned groups of `count` columns are contiguous in the result.
    pub(crate) fn stores_vectors(&self, count: usize) -> bool {
        let wide = count as isize;
        let Some(body_loop) = &self.body_loop else { return self.columns.is_multiple_of(count) };
        let (body, at) = (body_loop.body, body_loop.body.loads.len());
        body_loop.columns.dims.last().is_some_and(|last| last.is_multiple_of(count))
            && body_loop.columns.vectors(at, count)
            && body.output.offset % wide == 0
            && body_loop.rows.strides[at].iter().all(|stride| stride % wide == 0)
    }

    /// Emits a vector store of `count` columns; `value` is that of element `e`.
    pub(crate) fn vector(
        &self,
        builder: &mut KernelBuilder<'_>,
        column: &str,
        count: usize,
        value: &str,
        int: &str,
    ) -> Result<(), Unsupported> {
        let pointer = builder.write(self.output)?;
        let vector = format!("wf_vec<{}, {count}>", storage_type(builder.graph.node(self.output).element)?);
        builder.text.line(format!("{vector} run;"));
        builder.text.unrolled("e", count);
        builder.text.line(format!("const {int} each = {column} + e;"));
        let value = self.value(builder, "each", value, int)?;
        builder.text.line(format!("run.x[e] = {value};"));
        builder.text.close();
        if let Some(body_loop) = &self.body_loop {
            body_loop.columns.split(&mut builder.text, column, "ec", int);
        }
        let place = self.linear_index(column);
        builder.text.line(format!("*({vector}*)({pointer} + {place}) = run;"));
        Ok(())
    }

    /// The linear index of a column in the result.
    fn linear_index(&self, column: &str) -> String {
        match &self.body_loop {
            Some(body_loop) => body_loop.linear_index(body_loop.body.loads.len(), &body_loop.body.output),
            None => format!("er0 * {} + {column}", self.columns),
        }
    }

    /// Emits the epilogue for a column; returns the expression to store.
    fn value(
        &self,
        builder: &mut KernelBuilder<'_>,
        column: &str,
        value: &str,
        int: &str,
    ) -> Result<String, Unsupported> {
        let node = builder.graph.node(self.contraction.node).element;
        let salt = builder.salt();
        let Some((epilogue, body_loop)) = self.contraction.epilogue.as_ref().zip(self.body_loop.as_ref())
        else {
            salt.wrote(&mut builder.text, value, node.byte_width());
            return store_expr(node, value);
        };
        let body = &epilogue.body;
        let last = body.steps.len().checked_sub(1).ok_or_else(|| Unsupported::new("an empty epilogue"))?;
        let all: Vec<usize> = (0..body.steps.len()).collect();
        let tile = [(epilogue.tile, rounded(node, value.to_owned())?)];
        let last = body_loop.steps(builder, column, int, &tile, &all, last)?;
        let element = builder.graph.node(self.output).element;
        salt.wrote(&mut builder.text, &last, element.byte_width());
        store_expr(element, &last)
    }
}

/// The accumulator type of a contraction.
pub(crate) fn accumulator(element: ElementType) -> Result<&'static str, Unsupported> {
    compute_type(element)
}
