//! `safetensors` files: named tensors.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write as _};
use std::path::Path;

use safetensors::tensor::{Dtype, Metadata, SafeTensorError, SafeTensors, TensorInfo, View};

use super::output::Output;
use super::{carrier, copy, io_error, map_file};
use crate::layout::{from_packed, to_packed};
use crate::{Blob, ElementType, Error, FloatType, Shape, Tensor};

const FORMAT: &str = "safetensors";

/// The pairs of file type and element type.
const TYPES: &[(Dtype, ElementType)] = &[
    (Dtype::BOOL, ElementType::Bool),
    (Dtype::U8, ElementType::U8),
    (Dtype::I8, ElementType::I8),
    (Dtype::U16, ElementType::U16),
    (Dtype::I16, ElementType::I16),
    (Dtype::U32, ElementType::U32),
    (Dtype::I32, ElementType::I32),
    (Dtype::U64, ElementType::U64),
    (Dtype::I64, ElementType::I64),
    (Dtype::F16, ElementType::F16),
    (Dtype::BF16, ElementType::BF16),
    (Dtype::F32, ElementType::F32),
    (Dtype::F64, ElementType::F64),
    (Dtype::C64, ElementType::C64),
    (Dtype::F4, ElementType::Float(FloatType::F4E2M1Fn)),
    (Dtype::F6_E2M3, ElementType::Float(FloatType::F6E2M3Fn)),
    (Dtype::F6_E3M2, ElementType::Float(FloatType::F6E3M2Fn)),
    (Dtype::F8_E4M3, ElementType::Float(FloatType::F8E4M3Fn)),
    (Dtype::F8_E5M2, ElementType::Float(FloatType::F8E5M2)),
    (Dtype::F8_E8M0, ElementType::Float(FloatType::F8E8M0Fnu)),
];

fn malformed(reason: impl Into<String>) -> Error {
    Error::Malformed { format: FORMAT, reason: reason.into() }
}

#[allow(clippy::needless_pass_by_value)] // The shape `map_err` asks for.
fn refused(error: SafeTensorError) -> Error {
    malformed(error.to_string())
}

fn dtype_of(element: ElementType) -> Result<Dtype, Error> {
    let pair = TYPES.iter().find(|(_, candidate)| *candidate == element);
    pair.map(|(dtype, _)| *dtype).ok_or(Error::UnsupportedElement { format: FORMAT, element })
}

/// A tensor as a file can hold it: in the type that [carries](carrier) it where the format has no code for its own.
///
/// # Errors
///
/// When there is no memory for it.
pub fn storable(tensor: &Tensor) -> Result<Tensor, Error> {
    match dtype_of(tensor.element_type()) {
        Ok(_) => Ok(tensor.clone()),
        Err(_) => carrier::to_carrier(tensor),
    }
}

/// Whether the file packs elements where a host tensor gives each a byte.
fn is_packed(element: ElementType) -> bool {
    element != ElementType::Bool && element.bits() < 8
}

/// Reads all tensors of a file's bytes, by name. They share those bytes, except that packed elements are spread out.
///
/// # Errors
///
/// When the header, a type or a size is not as the format asks for.
pub fn decode(bytes: &Blob) -> Result<BTreeMap<String, Tensor>, Error> {
    let (header, metadata) = SafeTensors::read_metadata(bytes).map_err(refused)?;
    let data = header + size_of::<u64>();
    let mut tensors = BTreeMap::new();
    for (name, info) in metadata.tensors() {
        let pair = TYPES.iter().find(|(dtype, _)| *dtype == info.dtype);
        let Some(&(_, element)) = pair else {
            return Err(malformed(format!("tensor `{name}` has the unknown type {:?}", info.dtype)));
        };
        let shape = Shape::new(info.shape.as_slice())?;
        let (start, end) = info.data_offsets;
        let part = bytes
            .slice(data + start..data + end)
            .ok_or_else(|| malformed(format!("the data of tensor `{name}` is outside the file")))?;
        let tensor = if is_packed(element) {
            from_packed(element, shape, &part)?
        } else {
            Tensor::from_blob(element, shape, part)?
        };
        tensors.insert(name, tensor);
    }
    Ok(tensors)
}

/// One tensor on its way to a file.
struct Entry<'a> {
    tensor: &'a Tensor,
    dtype: Dtype,
}

impl View for Entry<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        self.tensor.dims()
    }

    fn data(&self) -> Cow<'_, [u8]> {
        if is_packed(self.tensor.element_type()) {
            Cow::Owned(to_packed(self.tensor))
        } else {
            Cow::Borrowed(self.tensor.bytes())
        }
    }

    fn data_len(&self) -> usize {
        let element = self.tensor.element_type();
        if is_packed(element) {
            (self.tensor.len() * element.bits() as usize).div_ceil(8)
        } else {
            self.tensor.bytes().len()
        }
    }
}

fn entries<'a>(
    tensors: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
) -> Result<Vec<(&'a str, Entry<'a>)>, Error> {
    let entry = |(name, tensor): (&'a str, &'a Tensor)| {
        Ok((name, Entry { tensor, dtype: dtype_of(tensor.element_type())? }))
    };
    tensors.into_iter().map(entry).collect()
}

/// The bytes of a file that holds these tensors.
///
/// # Errors
///
/// When the format has no code for an element type.
pub fn encode<'a>(tensors: impl IntoIterator<Item = (&'a str, &'a Tensor)>) -> Result<Vec<u8>, Error> {
    safetensors::serialize(entries(tensors)?, None).map_err(refused)
}

/// What a file says about itself besides its tensors.
///
/// # Errors
///
/// When the file cannot be read or is not a `safetensors` file.
pub fn read_notes(path: &Path) -> Result<BTreeMap<String, String>, Error> {
    let bytes = map_file(path)?;
    let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(refused)?;
    Ok(metadata.metadata().iter().flatten().map(|(name, text)| (name.clone(), text.clone())).collect())
}

/// Reads all tensors of a file, by name. The file is mapped: what is not looked at is not read.
///
/// # Errors
///
/// When the file cannot be read or is not a `safetensors` file.
pub fn read(path: &Path) -> Result<BTreeMap<String, Tensor>, Error> {
    decode(&map_file(path)?)
}

/// Writes tensors to a file, one after the other. The file takes its name when it is whole, so tensors that were read
/// from a file of that name stay as they are.
///
/// # Errors
///
/// When the format has no code for an element type or the file cannot be written.
pub fn write<'a>(path: &Path, tensors: impl IntoIterator<Item = (&'a str, &'a Tensor)>) -> Result<(), Error> {
    write_with_notes(path, tensors, &BTreeMap::new())
}

/// As [`write()`], with texts by name that [`read_notes`] reads.
///
/// # Errors
///
/// As [`write()`].
pub fn write_with_notes<'a>(
    path: &Path,
    tensors: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
    notes: &BTreeMap<String, String>,
) -> Result<(), Error> {
    let mut out = Output::create(path).map_err(io_error(path))?;
    match write_noted(&mut out, path, tensors, notes) {
        Err(Error::Io { source, .. }) if out.nobody_reads(&source) => Ok(()),
        written => written.and_then(|()| out.finish().map_err(io_error(path))),
    }
}

/// Writes tensors to a file that is finished later; `path` is what errors call it.
///
/// # Errors
///
/// When the format has no code for an element type or the file cannot be written.
pub fn write_to<'a>(
    out: &mut Output,
    path: &Path,
    tensors: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
) -> Result<(), Error> {
    write_noted(out, path, tensors, &BTreeMap::new())
}

fn write_noted<'a>(
    out: &mut Output,
    path: &Path,
    tensors: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
    notes: &BTreeMap<String, String>,
) -> Result<(), Error> {
    let (header, entries) = header(entries(tensors)?, notes)?;
    write_parts(out, &header, &entries).map_err(io_error(path))
}

/// The description at the beginning of a file, and the tensors in the order of their data: those of the widest elements
/// first, so that each is aligned.
fn header<'a>(
    mut entries: Vec<(&'a str, Entry<'a>)>,
    notes: &BTreeMap<String, String>,
) -> Result<(Vec<u8>, Vec<Entry<'a>>), Error> {
    // Readers refuse larger ones.
    const MOST: usize = 100_000_000;
    entries.sort_by(|(left_name, left), (right_name, right)| {
        right.dtype.cmp(&left.dtype).then(left_name.cmp(right_name))
    });
    let mut offset = 0;
    let mut infos = Vec::with_capacity(entries.len());
    for (name, entry) in &entries {
        let end = offset + entry.data_len();
        let info =
            TensorInfo { dtype: entry.dtype, shape: entry.shape().to_vec(), data_offsets: (offset, end) };
        infos.push(((*name).to_owned(), info));
        offset = end;
    }
    let notes: HashMap<String, String> =
        notes.iter().map(|(name, text)| (name.clone(), text.clone())).collect();
    let metadata = Metadata::new((!notes.is_empty()).then_some(notes), infos).map_err(refused)?;
    let mut text = serde_json::to_vec(&metadata).map_err(|error| malformed(error.to_string()))?;
    text.resize(text.len().next_multiple_of(size_of::<u64>()), b' ');
    if text.len() > MOST {
        return Err(malformed(format!("a description of {} bytes is too long", text.len())));
    }
    Ok((text, entries.into_iter().map(|(_, entry)| entry).collect()))
}

fn write_parts(to: &mut Output, header: &[u8], entries: &[Entry<'_>]) -> io::Result<()> {
    to.write_all(&(header.len() as u64).to_le_bytes())?;
    to.write_all(header)?;
    for entry in entries {
        match entry.data() {
            Cow::Owned(packed) => to.write_all(&packed)?,
            Cow::Borrowed(_) => copy::write(to, &entry.tensor.blob())?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scalar;

    #[test]
    fn every_type_of_the_format_reads_back() {
        for (_, element) in TYPES {
            let shape = Shape::new([2, 4]).expect("small");
            let values = (0..8).map(|i| {
                if element.is_complex() { Scalar::Complex(1.0, 2.0) } else { Scalar::Int(i % 2 + 1) }
            });
            let tensor = Tensor::from_scalars(*element, shape, values).expect("fits");
            let bytes = encode([("x", &tensor)]).expect("a type of the format");
            let back = decode(&Blob::from(bytes)).expect("what was written");
            assert!(back["x"].identical(&tensor), "{element}");
        }
    }

    #[test]
    fn files_round_trip() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.safetensors");
        let tensor = Tensor::from_slice(&[3], &[1.0f32, 2.0, 3.0]).expect("fits");
        write(&path, [("weights", &tensor)]).expect("writable");
        assert!(read(&path).expect("readable")["weights"].identical(&tensor));
        assert!(matches!(read(&folder.path().join("none")), Err(Error::Io { .. })));
    }

    #[test]
    fn a_file_has_the_bytes_that_are_encoded() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.safetensors");
        let large = Tensor::from_slice(&[300, 1000], &vec![1.5f32; 300_000]).expect("fits");
        let packed = Tensor::from_scalars(
            ElementType::Float(FloatType::F4E2M1Fn),
            Shape::new([4]).expect("small"),
            (0..4).map(Scalar::Int),
        )
        .expect("fits");
        let wide = Tensor::from_slice(&[1], &[2.0f64]).expect("fits");
        let tensors = [("b", &large), ("a", &packed), ("c", &wide)];
        write(&path, tensors).expect("writable");
        let encoded = encode(tensors).expect("types of the format");
        assert!(std::fs::read(&path).expect("readable") == encoded);
        // What is mapped from a file goes to another one as it is.
        let (mapped, copy) = (read(&path).expect("readable"), folder.path().join("b.safetensors"));
        write(&copy, mapped.iter().map(|(name, tensor)| (name.as_str(), tensor))).expect("writable");
        assert!(std::fs::read(&copy).expect("readable") == encoded);
    }

    #[test]
    fn a_file_can_be_written_over_while_its_tensors_are_in_use() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.safetensors");
        let first = Tensor::from_slice(&[2], &[1.0f32, 2.0]).expect("fits");
        write(&path, [("x", &first)]).expect("writable");
        let mapped = read(&path).expect("readable");
        write(&path, [("x", &Tensor::from_slice(&[1], &[7.0f32]).expect("fits"))]).expect("writable");
        assert!(mapped["x"].identical(&first));
        assert_eq!(read(&path).expect("readable")["x"].len(), 1);
    }

    #[test]
    fn packed_and_whole_tensors_stand_beside_each_other() {
        let packed = Tensor::from_scalars(
            ElementType::Float(FloatType::F4E2M1Fn),
            Shape::new([4]).expect("small"),
            (0..4).map(Scalar::Int),
        )
        .expect("fits");
        let whole = Tensor::from_slice(&[3], &[1.0f64, 2.0, 3.0]).expect("fits");
        let bytes = Blob::from(encode([("a", &packed), ("b", &whole)]).expect("types of the format"));
        let back = decode(&bytes).expect("what was written");
        assert!(back["a"].identical(&packed) && back["b"].identical(&whole));
        assert!(bytes.as_ptr_range().contains(&back["b"].bytes().as_ptr()), "nothing is copied");
    }

    #[test]
    fn damage_is_an_error() {
        let tensor = Tensor::from_slice(&[3], &[1.0f32, 2.0, 3.0]).expect("fits");
        let bytes = encode([("x", &tensor)]).expect("a type of the format");
        for cut in 0..bytes.len() {
            assert!(decode(&Blob::from(bytes[..cut].to_vec())).is_err(), "cut at {cut}");
        }
        let complex = Tensor::zeros(ElementType::C128, Shape::scalar()).expect("small");
        assert!(matches!(encode([("x", &complex)]), Err(Error::UnsupportedElement { .. })));
        let carried = storable(&complex).expect("small");
        assert!(encode([("x", &carried)]).is_ok());
    }

    #[test]
    fn notes_stand_beside_the_tensors() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.safetensors");
        let tensor = Tensor::from_slice(&[2], &[1.0f32, 2.0]).expect("small");
        let notes = BTreeMap::from([("steps".to_owned(), "7".to_owned())]);
        write_with_notes(&path, [("x", &tensor)], &notes).expect("written");
        assert_eq!(read_notes(&path).expect("read"), notes);
        assert!(read(&path).expect("read")["x"].identical(&tensor));
        write(&path, [("x", &tensor)]).expect("written");
        assert!(read_notes(&path).expect("read").is_empty());
    }
}
