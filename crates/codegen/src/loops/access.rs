//! How a loop reaches its loads: several neighbours at once, one for all, or one by one.

use warpforge_fusion::View;
use warpforge_fusion::cluster::{Body, BodyOp};
use warpforge_tensor::ElementType;

use crate::draft::Draft;
use crate::index::{Space, sum};
use crate::kernel::Unsupported;
use crate::steps::{Around, loaded};
use crate::types::{computed, stored};

/// Bytes that a thread loads at once.
const VECTOR_BYTES: usize = 16;

/// A way to the elements of a load.
#[derive(Debug, Clone)]
pub(super) enum Access {
    /// Read at once into a variable of this name.
    Vector(String),
    /// The same for all neighbours, in a variable of this name.
    Once(String),
    /// Element by element: the pointer, where it begins, the distance between neighbours.
    Each(String, String, isize),
}

/// The chunk of neighbours along the last dimension that a thread computes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk<'s> {
    /// The space of the last dimension.
    pub(super) space: &'s Space,
    /// The names of its indices.
    pub(super) prefix: &'static str,
    /// How many neighbours.
    pub(super) width: usize,
}

/// How many neighbours a thread takes at once, where the views given allow it: each is that of a load or of the output,
/// with the size of its elements.
pub(super) fn width(space: &Space, seen: &[(usize, &View, usize)], output: Option<usize>) -> usize {
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

/// Whether a load is read in chunks.
pub(super) fn in_vectors(chunk: Chunk<'_>, at: usize, view: &View) -> bool {
    let width = chunk.width as isize;
    chunk.width > 1
        && chunk.space.vectors(at, chunk.width)
        && view.offset % width == 0
        && view.strides.iter().all(|&stride| stride == 1 || stride % width == 0)
}

/// Writes the loads of a chunk and says how their elements are reached. `base` is where each load begins.
pub(super) fn read(
    draft: &mut Draft<'_>,
    body: &Body,
    load: usize,
    chunk: Chunk<'_>,
    base: &str,
) -> Result<Access, Unsupported> {
    let operand = &body.loads[load];
    let element = draft.graph.node(operand.value).element;
    let pointer = draft.read(operand.value)?;
    let place = sum(&[base.to_owned(), chunk.space.place(load, chunk.prefix)]);
    let inner = chunk.space.inner(load).unwrap_or(0);
    if chunk.width == 1 || inner == 0 {
        let name = format!("l{load}");
        draft.text.line(format!("const {} {name} = {};", computed(element)?, loaded(&pointer, &place)));
        return Ok(Access::Once(name));
    }
    if in_vectors(chunk, load, &operand.view) {
        let name = format!("q{load}");
        let vector = format!("wf_vec<{}, {}>", stored(element)?, chunk.width);
        draft.text.line(format!("const {vector} {name} = *(const {vector}*)({pointer} + {place});"));
        return Ok(Access::Vector(name));
    }
    Ok(Access::Each(pointer, place, inner))
}

/// What surrounds the steps of a chunk; `v` numbers its neighbours.
pub(super) struct InChunk<'a> {
    pub(super) chunk: Chunk<'a>,
    pub(super) accesses: &'a [Option<Access>],
    /// Where the indices of the body begin, by the order of the body's iotas.
    pub(super) iotas: &'a [(View, String)],
    pub(super) names: &'a dyn Fn(usize) -> String,
}

impl Around for InChunk<'_> {
    fn load(&self, at: usize) -> String {
        match &self.accesses[at] {
            Some(Access::Vector(name)) => format!("wf_get({name}.x[v])"),
            Some(Access::Once(name)) => name.clone(),
            Some(Access::Each(pointer, place, stride)) => {
                loaded(pointer, &sum(&[place.clone(), format!("v * {stride}")]))
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
        sum(&[self.iotas[at].1.clone(), self.chunk.space.place(number, self.chunk.prefix), step])
    }

    fn step(&self, at: usize) -> String {
        (self.names)(at)
    }
}

/// The iotas of a body, with where they begin.
pub(super) fn iotas(body: &Body, base: &dyn Fn(usize, &View) -> String) -> Vec<(View, String)> {
    let views = body.steps.iter().filter_map(|step| match &step.op {
        BodyOp::Iota(view) => Some(view.clone()),
        _ => None,
    });
    let first = body.loads.len() + 1;
    views.enumerate().map(|(at, view)| (view.clone(), base(first + at, &view))).collect()
}

/// A pointer to elements of a value that are written at once.
pub(super) fn vector_store(
    pointer: &str,
    element: ElementType,
    width: usize,
    place: &str,
    value: &str,
) -> Result<String, Unsupported> {
    Ok(format!("*(wf_vec<{}, {width}>*)({pointer} + {place}) = {value};", stored(element)?))
}
