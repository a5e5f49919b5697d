//! Weights and constants: where their bytes are, and how they are laid out there.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use warpforge_tensor::{Blob, ElementType, Shape, Tensor};

use super::Container;
use crate::Error;
use crate::graph::element_type;
use crate::graph::schema::{Layout, SymInt, TensorMeta};

/// One of the two places that tensors are kept in.
pub(super) struct Place {
    folder: &'static str,
    config: &'static str,
}

pub(super) const WEIGHTS: Place = Place { folder: "data/weights/", config: "_weights_config.json" };
pub(super) const CONSTANTS: Place = Place { folder: "data/constants/", config: "_constants_config.json" };

#[derive(Deserialize)]
struct Config {
    config: HashMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    path_name: String,
    #[serde(default)]
    use_pickle: bool,
    tensor_meta: Option<TensorMeta>,
}

/// A tensor of the archive: a storage that several may share, and the strides by which it is read.
#[derive(Clone, Debug)]
pub(crate) struct Payload {
    /// The member that holds the bytes; equal for tensors that share a storage.
    pub(crate) entry: String,
    /// What the tensor is, or why it cannot be used.
    pub(crate) content: Result<Strided, String>,
}

/// Elements in a storage, by strides.
#[derive(Clone, Debug)]
pub(crate) struct Strided {
    storage: Blob,
    element: ElementType,
    dims: Vec<usize>,
    strides: Vec<usize>,
    offset: usize,
}

/// Reads the list of tensors in one place.
pub(super) fn read(
    container: &Container,
    model: &str,
    place: &Place,
) -> Result<BTreeMap<String, Payload>, Error> {
    let folder = place.folder;
    let config = format!("{folder}{model}{}", place.config);
    if container.member(&config).is_none() && container.member(&format!("{folder}{model}.pt")).is_some() {
        return Err(Error::Entry {
            entry: format!("{folder}{model}.pt"),
            what: "the weights are pickled, as torch before 2.9 wrote them; pickle is never read: save the model \
                   again with torch 2.11 or later"
                .to_owned(),
        });
    }
    let config: Config = container.json(&config)?;
    let payloads = config.config.into_iter().map(|(name, entry)| {
        let payload = Payload {
            entry: format!("{folder}{}", entry.path_name),
            content: content(container, folder, &entry, &name)?,
        };
        Ok((name, payload))
    });
    payloads.collect()
}

/// What one entry says. A pickled object is an error only for a model that uses it.
fn content(
    container: &Container,
    folder: &str,
    entry: &Entry,
    name: &str,
) -> Result<Result<Strided, String>, Error> {
    let wrong = |what: String| Error::Weight { name: name.to_owned(), what };
    if entry.use_pickle {
        return Ok(Err(
            "it is pickled (a tensor subclass or a custom object), and pickle is never read: export a quantized model with \
             `python -m warpforge.trace`, or after torchao's `unwrap_tensor_subclass(model)`"
                .to_owned()
        ));
    }
    let Some(meta) = &entry.tensor_meta else {
        return Ok(Err("the archive does not say what tensor it is".to_owned()));
    };
    let path = format!("{folder}{}", entry.path_name);
    let member = container
        .member(&path)
        .ok_or_else(|| wrong(format!("its bytes are missing: the archive has no entry `{path}`")))?;
    let storage = container.blob(member)?;
    let element = element_type(meta.dtype).map_err(|what| wrong(what.clone()))?;
    if meta.layout != Layout::Strided {
        return Ok(Err(format!("a {:?} tensor is not supported, only strided ones", meta.layout)));
    }
    let fixed = |size: &SymInt| match size {
        SymInt::Int(size) => usize::try_from(*size).map_err(|_| wrong(format!("a size or stride of {size}"))),
        SymInt::Expr(_) => Err(wrong("a size or stride that is not a number".to_owned())),
    };
    let dims: Vec<usize> = meta.sizes.iter().map(fixed).collect::<Result<_, _>>()?;
    let strides: Vec<usize> = meta.strides.iter().map(fixed).collect::<Result<_, _>>()?;
    let offset = fixed(&meta.storage_offset)?;
    let strided = Strided { storage, element, dims, strides, offset };
    strided.check().map_err(|what| wrong(format!("entry `{path}`: {what}")))?;
    Ok(Ok(strided))
}

impl Strided {
    pub(crate) fn element(&self) -> ElementType {
        self.element
    }

    pub(crate) fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Holds the farthest element against the storage's end.
    fn check(&self) -> Result<(), String> {
        if self.dims.len() != self.strides.len() {
            return Err(format!("{} sizes but {} strides", self.dims.len(), self.strides.len()));
        }
        Shape::new(self.dims.clone()).map_err(|error| error.to_string())?;
        let width = self.element.byte_width();
        if !self.storage.len().is_multiple_of(width) {
            return Err(format!(
                "{} bytes are no whole number of {} elements",
                self.storage.len(),
                self.element
            ));
        }
        if self.dims.contains(&0) {
            return Ok(());
        }
        let last =
            self.dims.iter().zip(&self.strides).try_fold(self.offset, |sum, (&dim, &stride)| {
                sum.checked_add((dim - 1).checked_mul(stride)?)
            });
        let needed = last.and_then(|last| last.checked_add(1)).ok_or("sizes and strides overflow")?;
        let held = self.storage.len() / width;
        if needed > held {
            return Err(format!(
                "sizes and strides reach {needed} elements of {}, the entry holds {held}",
                self.element
            ));
        }
        Ok(())
    }

    /// Whether the elements lie in row-major order without gaps.
    fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        self.dims.iter().zip(&self.strides).rev().all(|(&dim, &stride)| {
            let fits = dim == 1 || stride == expected;
            expected *= dim;
            fits
        })
    }

    /// The tensor: the file's own bytes where they lie in row-major order, otherwise a copy that does.
    pub(crate) fn tensor(&self) -> Result<Tensor, warpforge_tensor::Error> {
        let shape = Shape::new(self.dims.clone())?;
        let width = self.element.byte_width();
        let count = shape.num_elements();
        if count == 0 || self.is_contiguous() {
            let start = if count == 0 { 0 } else { self.offset * width };
            if let Some(bytes) = self.storage.slice(start..start + count * width) {
                return Tensor::from_blob(self.element, shape, bytes);
            }
        }
        let mut tensor = Tensor::zeros(self.element, shape.clone())?;
        let mut indices = shape.indices();
        for target in tensor.bytes_mut().chunks_exact_mut(width) {
            let Some(index) = indices.advance() else { break };
            let at: usize =
                self.offset + index.iter().zip(&self.strides).map(|(&i, &stride)| i * stride).sum::<usize>();
            if let Some(source) = self.storage.get(at * width..(at + 1) * width) {
                target.copy_from_slice(source);
            }
        }
        Ok(tensor)
    }
}
