//! One product: described, its best algorithm measured, run.

use std::ffi::c_void;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use warpforge_tensor::{ElementType, FloatType};

use super::{Products, WORKSPACE, check};
use crate::driver::{Address, Handle, Stream};
use crate::error::{GpuError, Result};
use crate::tuning::least_time;

/// Algorithms that are measured.
const CANDIDATES: usize = 24;

/// The epilogues of both libraries.
const RELU: i32 = 2;
const BIAS: i32 = 4;
const PLAIN: i32 = 1;
const RELU_GRADIENT: i32 = 8 | 128;
const GELU: i32 = 32;
const GELU_GRADIENT: i32 = 64 | 128;
const SUMS_OF_A: i32 = 256;
const SUMS_OF_B: i32 = 512;

/// How a matrix of a product lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Matrix {
    /// Its elements.
    pub(crate) element: ElementType,
    /// Whether its columns lie side by side rather than its rows' elements.
    pub(crate) by_columns: bool,
    /// The distance between rows, or between columns where those lie side by side.
    pub(crate) stride: usize,
    /// The distance between the matrices of a batch.
    pub(crate) batch_stride: usize,
    /// Bytes that its address is a multiple of.
    pub(crate) alignment: u32,
}

/// What is done last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Activation {
    /// Nothing.
    None,
    /// Nothing below zero.
    Relu,
    /// GELU by the hyperbolic tangent.
    Gelu,
    /// The result times the slope of that GELU at another matrix of its type and sizes.
    GeluGradient,
    /// The result where the bits of another matrix of its sizes are set, nothing elsewhere; only cuBLASLt's.
    ReluGradient,
}

/// How sums are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sums {
    /// In f32, operands as they are.
    F32,
    /// In f32, operands of f32 rounded to tf32.
    Tf32,
    /// In f64.
    F64,
    /// In i32.
    I32,
}

/// A product of matrices, row by row in memory: out[m, n] = lhs[m, k] · rhs[k, n].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Product {
    pub(crate) batch: usize,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) lhs: Matrix,
    pub(crate) rhs: Matrix,
    /// The elements of the result, which is dense.
    pub(crate) out: ElementType,
    pub(crate) sums: Sums,
    /// Whether a number for each column is added.
    pub(crate) bias: Option<ElementType>,
    pub(crate) activation: Activation,
    /// Whether a matrix like the result is added.
    pub(crate) residual: bool,
    /// Whose sums over k are given too, in the result's type; there is no bias then.
    pub(crate) summed: Option<Side>,
}

/// One of the operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Where the matrices of a product are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Places {
    pub(crate) lhs: Address,
    pub(crate) rhs: Address,
    pub(crate) out: Address,
    /// The bias, or where sums of an operand go.
    pub(crate) bias: Address,
    pub(crate) residual: Address,
    /// The other matrix of an activation's gradient.
    pub(crate) beside: Address,
    pub(crate) workspace: Address,
}

/// A product ready to run.
pub(crate) struct Plan {
    library: Arc<Products>,
    sums: Sums,
    residual: bool,
    description: Described,
    algorithm: Vec<u8>,
    time: Duration,
    places: Places,
}

/// Descriptions that the library keeps: of the product and of A, B and the result.
struct Described {
    library: Arc<Products>,
    product: Handle,
    layouts: [Handle; 3],
}

// SAFETY: descriptions are not changed any more, and may be used from any thread.
unsafe impl Send for Described {}
// SAFETY: as above.
unsafe impl Sync for Described {}

impl Plan {
    /// Describes a product and measures which algorithm is the best for it; what is at the places is overwritten.
    ///
    /// # Errors
    ///
    /// When the library has none.
    pub(crate) fn new(
        library: &Arc<Products>,
        product: &Product,
        places: Places,
        stream: &Stream,
    ) -> Result<Self> {
        let description = Described::new(library, product, &places)?;
        let mut plan = Self {
            library: Arc::clone(library),
            sums: product.sums,
            residual: product.residual,
            description,
            algorithm: Vec::new(),
            time: Duration::ZERO,
            places,
        };
        let known = library.known.lock().unwrap_or_else(PoisonError::into_inner).get(product).cloned();
        (plan.algorithm, plan.time) = match known {
            Some(known) => known,
            None => {
                let best = plan.best(product, stream)?;
                library.known.lock().unwrap_or_else(PoisonError::into_inner).insert(*product, best.clone());
                best
            }
        };
        Ok(plan)
    }

    /// What the product took when its algorithm was measured.
    pub(crate) fn time(&self) -> Duration {
        self.time
    }

    /// Starts the product.
    pub(crate) fn run(&self, stream: &Stream) -> Result<()> {
        self.run_with(&self.algorithm, stream)
    }

    fn run_with(&self, algorithm: &[u8], stream: &Stream) -> Result<()> {
        // Scalars are of the type of the sums.
        let (floats, doubles, integers) = ([1.0f32, 0.0], [1.0f64, 0.0], [1i32, 0]);
        let (alpha, none): (*const c_void, *const c_void) = match self.sums {
            Sums::F32 | Sums::Tf32 => ((&raw const floats[0]).cast(), (&raw const floats[1]).cast()),
            Sums::F64 => ((&raw const doubles[0]).cast(), (&raw const doubles[1]).cast()),
            Sums::I32 => ((&raw const integers[0]).cast(), (&raw const integers[1]).cast()),
        };
        let Places { lhs, rhs, out, residual, workspace, .. } = self.places;
        let (beta, added) = if self.residual { (alpha, residual) } else { (none, out) };
        let [a, b, d] = self.description.layouts;
        // The library counts by columns: the result transposed is the right operand transposed times the left one.
        // SAFETY: descriptions and places belong together; scalars are read before the call returns.
        let code = unsafe {
            (self.library.functions.multiply)(
                self.library.handle,
                self.description.product,
                alpha,
                rhs,
                a,
                lhs,
                b,
                beta,
                added,
                d,
                out,
                d,
                algorithm.as_ptr(),
                workspace,
                WORKSPACE,
                stream.handle(),
            )
        };
        check(code, "multiply")
    }

    /// The fastest of the algorithms that the library thinks well of.
    fn best(&self, product: &Product, stream: &Stream) -> Result<(Vec<u8>, Duration)> {
        let candidates = self.candidates(product)?;
        let mut best: Option<(Duration, &Vec<u8>)> = None;
        for candidate in &candidates {
            match least_time(&self.library.gpu, stream, || self.run_with(candidate, stream)) {
                Ok(time) if best.is_none_or(|(least, _)| time < least) => best = Some((time, candidate)),
                Ok(_) => {}
                Err(error @ (GpuError::Lost { .. } | GpuError::OutOfMemory { .. })) => return Err(error),
                Err(error) => tracing::debug!(%error, "an algorithm that does not run"),
            }
        }
        let best =
            best.ok_or_else(|| GpuError::Other("no algorithm of the library runs this product".to_owned()))?;
        Ok((best.1.clone(), best.0))
    }

    fn candidates(&self, product: &Product) -> Result<Vec<Vec<u8>>> {
        let library = &self.library;
        let (functions, numbers) = (&library.functions, &library.numbers);
        let mut preference = std::ptr::null_mut();
        // SAFETY: the address is that of a variable.
        check(unsafe { (functions.preference_create)(&raw mut preference) }, "create a preference")?;
        let set = |attribute: i32, value: *const c_void, bytes: usize| {
            // SAFETY: the preference lives, and the value has so many bytes.
            check(
                unsafe { (functions.preference_set)(preference, attribute, value, bytes) },
                "set a preference",
            )
        };
        let mut answers = vec![0u8; CANDIDATES * numbers.answer_bytes];
        let mut count = 0;
        let asked = (|| {
            let workspace = WORKSPACE as u64;
            set(numbers.most_workspace, (&raw const workspace).cast(), 8)?;
            if let Some(first) = numbers.alignments {
                for (attribute, alignment) in (first..).zip([product.rhs.alignment, product.lhs.alignment]) {
                    set(attribute, (&raw const alignment).cast(), 4)?;
                }
            }
            let [a, b, d] = self.description.layouts;
            let most = CANDIDATES as i32;
            // SAFETY: all descriptions live, and there is room for so many answers.
            let code = unsafe {
                let (answers, count) = (answers.as_mut_ptr(), &raw mut count);
                let product = self.description.product;
                (functions.heuristic)(library.handle, product, a, b, d, d, preference, most, answers, count)
            };
            check(code, "ask for algorithms")
        })();
        // SAFETY: nobody uses the preference any more.
        unsafe { (functions.preference_destroy)(preference) };
        asked?;
        let found = answers.chunks(numbers.answer_bytes).take(usize::try_from(count).unwrap_or(0));
        let usable = |answer: &&[u8]| {
            // The status stands behind the algorithm and the size of its workspace.
            let status = numbers.algorithm_bytes + 8;
            answer[status..status + 4] == [0; 4]
        };
        Ok(found.filter(usable).map(|answer| answer[..numbers.algorithm_bytes].to_vec()).collect())
    }
}

impl Described {
    fn new(library: &Arc<Products>, product: &Product, places: &Places) -> Result<Self> {
        let null = std::ptr::null_mut();
        let mut made = Self { library: Arc::clone(library), product: null, layouts: [null; 3] };
        let (functions, numbers) = (&library.functions, &library.numbers);
        let (compute, scale) = match product.sums {
            Sums::F32 => (numbers.sum_f32, number(ElementType::F32)?),
            Sums::Tf32 => (numbers.sum_tf32, number(ElementType::F32)?),
            Sums::F64 => (numbers.sum_f64, number(ElementType::F64)?),
            Sums::I32 => (numbers.sum_i32, number(ElementType::I32)?),
        };
        // SAFETY: the address is that of a field.
        let code = unsafe { (functions.description_create)(&raw mut made.product, compute, scale) };
        check(code, "describe a product")?;
        let set = |attribute: i32, value: *const c_void, bytes: usize| {
            // SAFETY: the description lives, and the value has so many bytes.
            check(
                unsafe { (functions.description_set)(made.product, attribute, value, bytes) },
                "describe a product",
            )
        };
        let operation = |by_columns: bool| if by_columns { numbers.transposed } else { numbers.plain };
        let (a, b) = (operation(product.rhs.by_columns), operation(product.lhs.by_columns));
        set(numbers.transpose_a, (&raw const a).cast(), 4)?;
        set(numbers.transpose_b, (&raw const b).cast(), 4)?;
        let activation = match product.activation {
            Activation::None => 0,
            Activation::Relu => RELU,
            Activation::Gelu => GELU,
            Activation::GeluGradient => GELU_GRADIENT,
            Activation::ReluGradient => RELU_GRADIENT,
        };
        // The library's A is the right operand.
        let epilogue = match (product.summed, activation, product.bias) {
            (Some(Side::Left), ..) => SUMS_OF_B,
            (Some(Side::Right), ..) => SUMS_OF_A,
            (None, 0, None) => PLAIN,
            (None, activation, None) => activation,
            (None, activation, Some(_)) => activation | BIAS,
        };
        set(numbers.epilogue, (&raw const epilogue).cast(), 4)?;
        if let Some(element) = product.bias.or(product.summed.map(|_| product.out)) {
            let ty = number(element)?;
            set(numbers.bias_address, (&raw const places.bias).cast(), 8)?;
            set(numbers.bias_type, (&raw const ty).cast(), 4)?;
        }
        let Product { m, n, k, .. } = *product;
        if matches!(product.activation, Activation::GeluGradient | Activation::ReluGradient) {
            // In numbers, or in bits.
            let stride = n as i64;
            set(numbers.beside_address, (&raw const places.beside).cast(), 8)?;
            set(numbers.beside_stride, (&raw const stride).cast(), 8)?;
        }
        let sides = [(product.rhs, n, k), (product.lhs, k, m)];
        for (at, (matrix, rows, columns)) in sides.into_iter().enumerate() {
            let (rows, columns) = if matrix.by_columns { (columns, rows) } else { (rows, columns) };
            let batch = (product.batch, matrix.batch_stride);
            made.layouts[at] = layout(library, matrix.element, rows, columns, matrix.stride, batch)?;
        }
        made.layouts[2] = layout(library, product.out, n, m, n, (product.batch, m * n))?;
        Ok(made)
    }
}

fn layout(
    library: &Products,
    element: ElementType,
    rows: usize,
    columns: usize,
    stride: usize,
    (batch, batch_stride): (usize, usize),
) -> Result<Handle> {
    let functions = &library.functions;
    let mut layout = std::ptr::null_mut();
    let too_large = |_| GpuError::Other("a matrix is too large".to_owned());
    let stride = i64::try_from(stride).map_err(too_large)?;
    // SAFETY: the address is that of a variable.
    let code = unsafe {
        (functions.layout_create)(&raw mut layout, number(element)?, rows as u64, columns as u64, stride)
    };
    check(code, "describe a matrix")?;
    if batch > 1 {
        let count = i32::try_from(batch).map_err(too_large)?;
        let between = i64::try_from(batch_stride).map_err(too_large)?;
        let set = |attribute: i32, value: *const c_void, bytes: usize| {
            // SAFETY: the layout lives, and the value has so many bytes.
            check(unsafe { (functions.layout_set)(layout, attribute, value, bytes) }, "describe a matrix")
        };
        set(library.numbers.batch_count, (&raw const count).cast(), 4)?;
        set(library.numbers.batch_stride, (&raw const between).cast(), 8)?;
    }
    Ok(layout)
}

/// The number of a type of elements, the same at both vendors.
fn number(element: ElementType) -> Result<i32> {
    Ok(match element {
        ElementType::Float(FloatType::F32) => 0,
        ElementType::Float(FloatType::F64) => 1,
        ElementType::Float(FloatType::F16) => 2,
        ElementType::Float(FloatType::Bf16) => 14,
        ElementType::Float(FloatType::F8E4M3Fn) => 28,
        ElementType::Float(FloatType::F8E5M2) => 29,
        ElementType::I8 => 3,
        ElementType::I32 => 10,
        _ => return Err(GpuError::Other(format!("the library has no products of {element}"))),
    })
}

impl Drop for Described {
    fn drop(&mut self) {
        let functions = &self.library.functions;
        for layout in self.layouts.into_iter().filter(|layout| !layout.is_null()) {
            // SAFETY: nobody uses it any more.
            unsafe { (functions.layout_destroy)(layout) };
        }
        if !self.product.is_null() {
            // SAFETY: as above.
            unsafe { (functions.description_destroy)(self.product) };
        }
    }
}
