//! StableHLO text in the making: each line defines a value, whose name is given back. Values are f32 unless a method says otherwise.

/// The lines of a function.
#[derive(Debug, Default)]
pub(in crate::suites) struct Lines(Vec<String>);

/// The text of a tensor type.
pub(in crate::suites) fn ty(dims: &[usize], element: &str) -> String {
    let dims: String = dims.iter().map(|dim| format!("{dim}x")).collect();
    format!("tensor<{dims}{element}>")
}

/// The text of a tensor type of f32.
pub(in crate::suites) fn float(dims: &[usize]) -> String {
    ty(dims, "f32")
}

/// The variable of a parameter.
pub(in crate::suites) fn variable(name: &str) -> String {
    name.replace('.', "_")
}

impl Lines {
    /// All lines.
    pub(in crate::suites) fn text(&self) -> String {
        self.0.join("\n")
    }

    /// Adds a line that computes a value.
    pub(in crate::suites) fn value(&mut self, expression: &str) -> String {
        let name = format!("%v{}", self.0.len());
        self.0.push(format!("  {name} = {expression}"));
        name
    }

    pub(in crate::suites) fn number(&mut self, value: f64) -> String {
        let value = if value == f64::NEG_INFINITY { "0xFF800000".to_owned() } else { format!("{value:.9e}") };
        self.value(&format!("stablehlo.constant dense<{value}> : tensor<f32>"))
    }

    pub(in crate::suites) fn binary(&mut self, op: &str, left: &str, right: &str, dims: &[usize]) -> String {
        self.value(&format!("stablehlo.{op} {left}, {right} : {}", float(dims)))
    }

    pub(in crate::suites) fn unary(&mut self, op: &str, of: &str, dims: &[usize]) -> String {
        self.value(&format!("stablehlo.{op} {of} : {}", float(dims)))
    }

    pub(in crate::suites) fn reshape(&mut self, of: &str, from: &[usize], to: &[usize]) -> String {
        self.value(&format!("stablehlo.reshape {of} : ({}) -> {}", float(from), float(to)))
    }

    pub(in crate::suites) fn transpose(&mut self, of: &str, from: &[usize], order: &[usize]) -> String {
        let to: Vec<usize> = order.iter().map(|&at| from[at]).collect();
        let (from, to) = (float(from), float(&to));
        self.value(&format!("stablehlo.transpose {of}, dims = {order:?} : ({from}) -> {to}"))
    }

    /// The part from `first` to `end` of the last axis.
    pub(in crate::suites) fn columns(
        &mut self,
        of: &str,
        dims: &[usize],
        first: usize,
        end: usize,
    ) -> String {
        let Some((_, before)) = dims.split_last() else { return of.to_owned() };
        let ranges: Vec<String> =
            before.iter().map(|dim| format!("0:{dim}")).chain([format!("{first}:{end}")]).collect();
        let to = float(&[before, &[end - first]].concat());
        self.value(&format!("stablehlo.slice {of} [{}] : ({}) -> {to}", ranges.join(", "), float(dims)))
    }

    /// Repeats a value along the dimensions that `axes` leaves out.
    pub(in crate::suites) fn broadcast(
        &mut self,
        of: &str,
        from: &[usize],
        axes: &[usize],
        to: &[usize],
    ) -> String {
        let (from, to) = (float(from), float(to));
        self.value(&format!("stablehlo.broadcast_in_dim {of}, dims = {axes:?} : ({from}) -> {to}"))
    }

    /// A number for each element.
    pub(in crate::suites) fn filled(&mut self, value: f64, dims: &[usize]) -> String {
        let number = self.number(value);
        self.broadcast(&number, &[], &[], dims)
    }

    /// Reduces along one axis, which is left out.
    pub(in crate::suites) fn reduce(
        &mut self,
        op: &str,
        init: f64,
        of: &str,
        dims: &[usize],
        axis: usize,
    ) -> String {
        let init = self.number(init);
        let kept: Vec<usize> = (0..dims.len()).filter(|&at| at != axis).map(|at| dims[at]).collect();
        let (from, to) = (float(dims), float(&kept));
        self.value(&format!(
            "stablehlo.reduce({of} init: {init}) applies stablehlo.{op} across dimensions = [{axis}] : \
             ({from}, tensor<f32>) -> {to}"
        ))
    }

    /// Softmax along the last axis.
    pub(in crate::suites) fn softmax(&mut self, x: &str, dims: &[usize]) -> String {
        let last = dims.len().saturating_sub(1);
        let (rows, axes) = (&dims[..last], (0..last).collect::<Vec<usize>>());
        let most = self.reduce("maximum", f64::NEG_INFINITY, x, dims, last);
        let most = self.broadcast(&most, rows, &axes, dims);
        let less = self.binary("subtract", x, &most, dims);
        let powers = self.unary("exponential", &less, dims);
        let sum = self.reduce("add", 0.0, &powers, dims, last);
        let sum = self.broadcast(&sum, rows, &axes, dims);
        self.binary("divide", &powers, &sum, dims)
    }

    /// Rows of a table by their numbers, which are i64.
    pub(in crate::suites) fn rows(
        &mut self,
        table: &str,
        table_dims: &[usize; 2],
        element: &str,
        ids: &str,
        ids_dims: &[usize],
    ) -> String {
        let (width, rank) = (table_dims[1], ids_dims.len());
        self.value(&format!(
            "\"stablehlo.gather\"({table}, {ids}) <{{dimension_numbers = #stablehlo.gather<offset_dims = [{rank}], \
             collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = {rank}>, slice_sizes = array<i64: 1, \
             {width}>}}> : ({}, {}) -> {}",
            ty(table_dims, element),
            ty(ids_dims, "i64"),
            ty(&[ids_dims, &[width]].concat(), element)
        ))
    }
}
