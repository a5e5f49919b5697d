//! GEMM plans: descriptors, algorithm selection by measurement, execution.

use std::ffi::c_void;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use warpforge_tensor::{ElementType, FloatType};

use super::descriptor::{
    Activation, ComputeType, Gemm, GemmBuffers, OperandSide, RunGemm, ScaleMode, WORKSPACE,
};
use super::lt::{BlasLt, check};
use crate::driver::{Handle, Stream};
use crate::error::{GpuError, Result};
use crate::tuning::least_time;

/// Algorithms to measure.
const CANDIDATES: usize = 24;

/// Epilogue codes, equal for both libraries.
const RELU: i32 = 2;
const BIAS: i32 = 4;
const PLAIN: i32 = 1;
const RELU_GRADIENT: i32 = 8 | 128;
const GELU: i32 = 32;
const GELU_GRADIENT: i32 = 64 | 128;
const BIAS_GRADIENT_OF_A: i32 = 256;
const BIAS_GRADIENT_OF_B: i32 = 512;

/// The mode of scales with an element for each row or column.
static OUTER_VECTOR: i32 = 3;

/// A GEMM that is ready to run.
pub(crate) struct GemmPlan {
    library: Arc<BlasLt>,
    compute_type: ComputeType,
    residual: bool,
    description: GemmDescriptors,
    algorithm: Vec<u8>,
    time: Duration,
    buffers: GemmBuffers,
}

/// Library descriptors of the GEMM and of A, B and the result.
struct GemmDescriptors {
    library: Arc<BlasLt>,
    gemm: Handle,
    layouts: [Handle; 3],
}

// SAFETY: descriptions are not changed any more, and may be used from any thread.
unsafe impl Send for GemmDescriptors {}
// SAFETY: as above.
unsafe impl Sync for GemmDescriptors {}

impl GemmPlan {
    /// Creates the descriptors and measures the algorithms. The buffers are overwritten.
    ///
    /// # Errors
    ///
    /// When no algorithm supports it.
    pub(crate) fn new(
        library: &Arc<BlasLt>,
        gemm: &Gemm,
        buffers: GemmBuffers,
        stream: &Stream,
    ) -> Result<Self> {
        let description = GemmDescriptors::new(library, gemm, &buffers)?;
        let mut plan = Self {
            library: Arc::clone(library),
            compute_type: gemm.compute_type,
            residual: gemm.residual,
            description,
            algorithm: Vec::new(),
            time: Duration::ZERO,
            buffers,
        };
        let known = library.known.lock().unwrap_or_else(PoisonError::into_inner).get(gemm).cloned();
        (plan.algorithm, plan.time) = match known {
            Some(known) => known,
            None => {
                let best = plan.best(gemm, stream)?;
                library.known.lock().unwrap_or_else(PoisonError::into_inner).insert(*gemm, best.clone());
                best
            }
        };
        Ok(plan)
    }

    /// The measured time.
    pub(crate) fn time(&self) -> Duration {
        self.time
    }

    /// Launches the GEMM.
    pub(crate) fn run(&self, stream: &Stream) -> Result<()> {
        self.run_with(&self.algorithm, stream)
    }

    fn run_with(&self, algorithm: &[u8], stream: &Stream) -> Result<()> {
        // Scalars have the compute type.
        let (floats, doubles, integers) = ([1.0f32, 0.0], [1.0f64, 0.0], [1i32, 0]);
        let (alpha, none): (*const c_void, *const c_void) = match self.compute_type {
            ComputeType::F32 | ComputeType::Tf32 => {
                ((&raw const floats[0]).cast(), (&raw const floats[1]).cast())
            }
            ComputeType::F64 => ((&raw const doubles[0]).cast(), (&raw const doubles[1]).cast()),
            ComputeType::I32 => ((&raw const integers[0]).cast(), (&raw const integers[1]).cast()),
        };
        let GemmBuffers { lhs, rhs, out, residual, workspace, .. } = self.buffers;
        let (beta, added) = if self.residual { (alpha, residual) } else { (none, out) };
        let [a, b, d] = self.description.layouts;
        // The library is column-major: the transposed result is rhs times lhs.
        // SAFETY: descriptors and buffers match; scalars are read before the call returns.
        let code = unsafe {
            (self.library.functions.multiply)(
                self.library.handle,
                self.description.gemm,
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

    /// The fastest of the library's heuristic candidates.
    fn best(&self, gemm: &Gemm, stream: &Stream) -> Result<(Vec<u8>, Duration)> {
        let candidates = self.candidates(gemm)?;
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
            best.ok_or_else(|| GpuError::Other("no algorithm of the library runs this gemm".to_owned()))?;
        Ok((best.1.clone(), best.0))
    }

    fn candidates(&self, gemm: &Gemm) -> Result<Vec<Vec<u8>>> {
        let library = &self.library;
        let (functions, constants) = (&library.functions, &library.constants);
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
        let mut answers = vec![0u8; CANDIDATES * constants.answer_bytes];
        let mut count = 0;
        let asked = (|| {
            let workspace = WORKSPACE as u64;
            set(constants.most_workspace, (&raw const workspace).cast(), 8)?;
            if let Some(blas_lt) = constants.alignments {
                for (attribute, alignment) in (blas_lt..).zip([gemm.rhs.alignment, gemm.lhs.alignment]) {
                    set(attribute, (&raw const alignment).cast(), 4)?;
                }
            }
            let [a, b, d] = self.description.layouts;
            let most = CANDIDATES as i32;
            // SAFETY: all descriptions live, and there is room for so many answers.
            let code = unsafe {
                let (answers, count) = (answers.as_mut_ptr(), &raw mut count);
                let gemm = self.description.gemm;
                (functions.heuristic)(library.handle, gemm, a, b, d, d, preference, most, answers, count)
            };
            check(code, "ask for algorithms")
        })();
        // SAFETY: nobody uses the preference any more.
        unsafe { (functions.preference_destroy)(preference) };
        asked?;
        let found = answers.chunks(constants.answer_bytes).take(usize::try_from(count).unwrap_or(0));
        let usable = |answer: &&[u8]| {
            // The status follows the algorithm and the workspace size.
            let status = constants.algorithm_bytes + 8;
            answer[status..status + 4] == [0; 4]
        };
        Ok(found.filter(usable).map(|answer| answer[..constants.algorithm_bytes].to_vec()).collect())
    }
}

impl RunGemm for GemmPlan {
    fn run(&self, stream: &Stream) -> Result<()> {
        GemmPlan::run(self, stream)
    }
}

impl GemmDescriptors {
    fn new(library: &Arc<BlasLt>, gemm: &Gemm, buffers: &GemmBuffers) -> Result<Self> {
        let null = std::ptr::null_mut();
        let mut made = Self { library: Arc::clone(library), gemm: null, layouts: [null; 3] };
        let (functions, constants) = (&library.functions, &library.constants);
        let (compute, scale) = match gemm.compute_type {
            ComputeType::F32 => (constants.compute_f32, data_type(ElementType::F32)?),
            ComputeType::Tf32 => (constants.compute_tf32, data_type(ElementType::F32)?),
            ComputeType::F64 => (constants.compute_f64, data_type(ElementType::F64)?),
            ComputeType::I32 => (constants.compute_i32, data_type(ElementType::I32)?),
        };
        // SAFETY: the address is that of a field.
        let code = unsafe { (functions.description_create)(&raw mut made.gemm, compute, scale) };
        check(code, "describe a gemm")?;
        let set = |attribute: i32, value: *const c_void, bytes: usize| {
            // SAFETY: the description lives, and the value has so many bytes.
            check(
                unsafe { (functions.description_set)(made.gemm, attribute, value, bytes) },
                "describe a gemm",
            )
        };
        let operation = |by_columns: bool| if by_columns { constants.transposed } else { constants.plain };
        let (a, b) = (operation(gemm.rhs.by_columns), operation(gemm.lhs.by_columns));
        set(constants.transpose_a, (&raw const a).cast(), 4)?;
        set(constants.transpose_b, (&raw const b).cast(), 4)?;
        let activation = match gemm.activation {
            Activation::None => 0,
            Activation::Relu => RELU,
            Activation::Gelu => GELU,
            Activation::GeluGradient => GELU_GRADIENT,
            Activation::ReluGradient => RELU_GRADIENT,
        };
        // The library's A is our right operand.
        let epilogue = match (gemm.bias_gradient, activation, gemm.bias) {
            (Some(OperandSide::Left), ..) => BIAS_GRADIENT_OF_B,
            (Some(OperandSide::Right), ..) => BIAS_GRADIENT_OF_A,
            (None, 0, None) => PLAIN,
            (None, activation, None) => activation,
            (None, activation, Some(_)) => activation | BIAS,
        };
        set(constants.epilogue, (&raw const epilogue).cast(), 4)?;
        if let Some(element) = gemm.bias.or(gemm.bias_gradient.map(|_| gemm.out)) {
            let ty = data_type(element)?;
            set(constants.bias_address, (&raw const buffers.bias).cast(), 8)?;
            set(constants.bias_type, (&raw const ty).cast(), 4)?;
        }
        if let Some(mode) = gemm.scales {
            // The library's A is our right operand.
            set(constants.scale_a, (&raw const buffers.scales[1]).cast(), 8)?;
            set(constants.scale_b, (&raw const buffers.scales[0]).cast(), 8)?;
            if mode == ScaleMode::Row {
                let modes = constants.scale_modes;
                let modes =
                    modes.ok_or_else(|| GpuError::Other("the BLAS library scales no rows".to_owned()))?;
                for attribute in modes {
                    set(attribute, (&raw const OUTER_VECTOR).cast(), 4)?;
                }
            }
        }
        if let Some(attribute) = constants.fast_accumulation.filter(|_| gemm.fast_accumulation) {
            let fast = 1i8;
            set(attribute, (&raw const fast).cast(), 1)?;
        }
        let Gemm { m, n, k, .. } = *gemm;
        if matches!(gemm.activation, Activation::GeluGradient | Activation::ReluGradient) {
            // In elements, or in bits.
            let stride = n as i64;
            set(constants.aux_address, (&raw const buffers.aux).cast(), 8)?;
            set(constants.aux_stride, (&raw const stride).cast(), 8)?;
        }
        let sides = [(gemm.rhs, n, k), (gemm.lhs, k, m)];
        for (at, (matrix, rows, columns)) in sides.into_iter().enumerate() {
            let (rows, columns) = if matrix.by_columns { (columns, rows) } else { (rows, columns) };
            let batch = (gemm.batch, matrix.batch_stride);
            made.layouts[at] = layout(library, matrix.element, rows, columns, matrix.stride, batch)?;
        }
        made.layouts[2] = layout(library, gemm.out, n, m, n, (gemm.batch, m * n))?;
        Ok(made)
    }
}

fn layout(
    library: &BlasLt,
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
        (functions.layout_create)(&raw mut layout, data_type(element)?, rows as u64, columns as u64, stride)
    };
    check(code, "describe a matrix")?;
    if batch > 1 {
        let count = i32::try_from(batch).map_err(too_large)?;
        let between = i64::try_from(batch_stride).map_err(too_large)?;
        let set = |attribute: i32, value: *const c_void, bytes: usize| {
            // SAFETY: the layout lives, and the value has so many bytes.
            check(unsafe { (functions.layout_set)(layout, attribute, value, bytes) }, "describe a matrix")
        };
        set(library.constants.batch_count, (&raw const count).cast(), 4)?;
        set(library.constants.batch_stride, (&raw const between).cast(), 8)?;
    }
    Ok(layout)
}

/// The data-type code of an element type, equal for both vendors.
fn data_type(element: ElementType) -> Result<i32> {
    Ok(match element {
        ElementType::Float(FloatType::F32) => 0,
        ElementType::Float(FloatType::F64) => 1,
        ElementType::Float(FloatType::F16) => 2,
        ElementType::Float(FloatType::Bf16) => 14,
        ElementType::Float(FloatType::F8E4M3Fn) => 28,
        ElementType::Float(FloatType::F8E5M2) => 29,
        ElementType::I8 => 3,
        ElementType::I32 => 10,
        _ => return Err(GpuError::Other(format!("the BLAS library has no GEMM of {element}"))),
    })
}

impl Drop for GemmDescriptors {
    fn drop(&mut self) {
        let functions = &self.library.functions;
        for layout in self.layouts.into_iter().filter(|layout| !layout.is_null()) {
            // SAFETY: nobody uses it any more.
            unsafe { (functions.layout_destroy)(layout) };
        }
        if !self.gemm.is_null() {
            // SAFETY: as above.
            unsafe { (functions.description_destroy)(self.gemm) };
        }
    }
}
