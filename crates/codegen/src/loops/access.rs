//! How a loop accesses its loads: as vectors, broadcast, or element by element.

use warpforge_fusion::View;
use warpforge_fusion::cluster::{Body, BodyOp};
use warpforge_tensor::{ElementType, FloatType};

use crate::builder::KernelBuilder;
use crate::index::{IndexSpace, sum};
use crate::kernel::Unsupported;
use crate::steps::{StepContext, load_expr, store_expr};
use crate::types::{compute_type, storage_type};

/// Bytes per vector load.
const VECTOR_BYTES: usize = 16;

/// Access to the elements of a load.
#[derive(Debug, Clone)]
pub(super) enum Access {
    /// A vector load into a variable of this name.
    Vector(String),
    /// One element for the whole chunk, in a variable of this name.
    Broadcast(String),
    /// Element by element: pointer, base index and stride.
    Strided(String, String, isize),
}

/// The contiguous elements along the last dimension that a thread computes at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk<'s> {
    /// The space of the last dimension.
    pub(super) space: &'s IndexSpace,
    /// The names of its indices.
    pub(super) prefix: &'static str,
    /// Elements per chunk.
    pub(super) width: usize,
}

/// The vector width of a chunk. `seen` are the views of loads and output, with their index and element size.
pub(super) fn width(space: &IndexSpace, seen: &[(usize, &View, usize)], output: Option<usize>) -> usize {
    let Some(&last) = space.dims.last() else { return 1 };
    let fits = |at: usize, view: &View, outer: &dyn Fn(&View) -> bool, width: usize| {
        space.vectors(at, width) && view.offset % width as isize == 0 && outer(view)
    };
    let aligned = |view: &View, width: usize| {
        view.strides.iter().all(|&stride| stride == 1 || stride % width as isize == 0)
    };
    for width in [8, 4, 2] {
        let could =
            |&(at, view, _): &(usize, &View, usize)| fits(at, view, &|view| aligned(view, width), width);
        let vectors: Vec<_> = seen.iter().filter(|one| could(one)).collect();
        let Some(narrow) = vectors.iter().map(|(_, _, size)| *size).min() else { continue };
        let wide = vectors.iter().map(|(_, _, size)| *size).max().unwrap_or(1);
        let stores = output.is_none_or(|output| vectors.iter().any(|(at, ..)| *at == output));
        if last.is_multiple_of(width)
            && stores
            && width * narrow <= VECTOR_BYTES
            && width * wide <= 2 * VECTOR_BYTES
        {
            return width;
        }
    }
    1
}

/// Whether a load is vectorised.
pub(super) fn in_vectors(chunk: Chunk<'_>, at: usize, view: &View) -> bool {
    let width = chunk.width as isize;
    chunk.width > 1
        && chunk.space.vectors(at, chunk.width)
        && view.offset % width == 0
        && view.strides.iter().all(|&stride| stride == 1 || stride % width == 0)
}

/// Emits the load of a chunk and returns its access. `base` is the base index.
pub(super) fn read(
    builder: &mut KernelBuilder<'_>,
    body: &Body,
    load: usize,
    chunk: Chunk<'_>,
    base: &str,
) -> Result<Access, Unsupported> {
    let operand = &body.loads[load];
    let element = builder.graph.node(operand.value).element;
    let pointer = builder.read(operand.value)?;
    let place = sum(&[base.to_owned(), chunk.space.linear_index(load, chunk.prefix)]);
    let inner = chunk.space.inner(load).unwrap_or(0);
    if chunk.width == 1 || inner == 0 {
        let name = format!("l{load}");
        builder.text.line(format!(
            "const {} {name} = {};",
            compute_type(element)?,
            load_expr(&pointer, &place)
        ));
        return Ok(Access::Broadcast(name));
    }
    if in_vectors(chunk, load, &operand.view) {
        let name = format!("q{load}");
        let vector = format!("wf_vec<{}, {}>", storage_type(element)?, chunk.width);
        builder.text.line(format!("const {vector} {name} = *(const {vector}*)({pointer} + {place});"));
        return Ok(Access::Vector(name));
    }
    Ok(Access::Strided(pointer, place, inner))
}

/// Step context of a chunk; `v` is the element.
pub(super) struct ChunkContext<'a> {
    pub(super) chunk: Chunk<'a>,
    pub(super) accesses: &'a [Option<Access>],
    /// Base indices of the body's iotas, in order.
    pub(super) iotas: &'a [(View, String)],
    pub(super) names: &'a dyn Fn(usize) -> String,
}

impl StepContext for ChunkContext<'_> {
    fn load(&self, at: usize) -> String {
        match &self.accesses[at] {
            Some(Access::Vector(name)) => format!("wf_get({name}.x[v])"),
            Some(Access::Broadcast(name)) => name.clone(),
            Some(Access::Strided(pointer, place, stride)) => {
                load_expr(pointer, &sum(&[place.clone(), format!("v * {stride}")]))
            }
            None => format!("l{at}"),
        }
    }

    fn index(&self, view: &View) -> String {
        let known = self.iotas.iter().position(|(known, _)| known == view);
        let Some(at) = known else { return "0".to_owned() };
        // Iotas come after the loads and the output in the list of views.
        let number = self.chunk.space.strides.len() - self.iotas.len() + at;
        let inner = self.chunk.space.inner(number).unwrap_or(0);
        let step = if self.chunk.width == 1 || inner == 0 { "0".to_owned() } else { format!("v * {inner}") };
        sum(&[self.iotas[at].1.clone(), self.chunk.space.linear_index(number, self.chunk.prefix), step])
    }

    fn step(&self, at: usize) -> String {
        (self.names)(at)
    }
}

/// The iotas of a body with their base indices.
pub(super) fn iotas(body: &Body, base: &dyn Fn(usize, &View) -> String) -> Vec<(View, String)> {
    let views = body.steps.iter().filter_map(|step| match &step.op {
        BodyOp::Iota(view) => Some(view.clone()),
        _ => None,
    });
    let first = body.loads.len() + 1;
    views.enumerate().map(|(at, view)| (view.clone(), base(first + at, &view))).collect()
}

/// Whether a vector is converted as a whole: an instruction converts two elements to floats of 8 bits.
fn is_converted_whole(element: ElementType) -> bool {
    element == ElementType::Float(FloatType::F8E4M3Fn)
}

/// The type of the elements of a vector before it is stored.
pub(super) fn held_type(element: ElementType) -> Result<&'static str, Unsupported> {
    if is_converted_whole(element) { compute_type(element) } else { storage_type(element) }
}

/// A value as an element of a vector before it is stored.
pub(super) fn held_expr(element: ElementType, value: &str) -> Result<String, Unsupported> {
    if is_converted_whole(element) { Ok(value.to_owned()) } else { store_expr(element, value) }
}

/// A vector store.
pub(super) fn vector_store(
    pointer: &str,
    element: ElementType,
    width: usize,
    place: &str,
    value: &str,
) -> Result<String, Unsupported> {
    let stored = storage_type(element)?;
    let value =
        if is_converted_whole(element) { format!("wf_put_all<{stored}>({value})") } else { value.to_owned() };
    Ok(format!("*(wf_vec<{stored}, {width}>*)({pointer} + {place}) = {value};"))
}
