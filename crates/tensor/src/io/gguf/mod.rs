//! GGUF files, as llama.cpp reads and writes them: named values that describe a model, and named tensors in float types or
//! in blocks of quantized numbers. Versions 2 and 3, little-endian.

mod block;
mod header;
mod write;

use std::collections::BTreeMap;
use std::path::Path;

use half::{bf16, f16};

use super::map_file;
use crate::{Blob, ElementType, Error, Shape, Tensor};
pub use block::StoredType;
use header::Header;
pub use header::{Array, Value};
pub use write::{Written, encode};

/// What every file begins with.
pub const MAGIC: &[u8; 4] = b"GGUF";

fn malformed(reason: impl Into<String>) -> Error {
    Error::Malformed { format: "GGUF", reason: reason.into() }
}

/// A tensor as the file has it.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The sizes, the slowest dimension first. The file has them the other way round.
    pub dims: Vec<usize>,
    /// How the numbers are stored.
    pub stored: StoredType,
    bytes: Blob,
}

impl Stored {
    /// The numbers as f32.
    ///
    /// # Errors
    ///
    /// When there is no memory for them.
    pub fn to_f32(&self) -> Result<Tensor, Error> {
        Tensor::from_slice(&self.dims, &self.stored.decode(&self.bytes))
    }

    /// The numbers as f32, bf16 or f16, rounded where that is narrower; none for another type.
    ///
    /// # Errors
    ///
    /// When there is no memory for them.
    pub fn to_float(&self, element: ElementType) -> Option<Result<Tensor, Error>> {
        let values = || self.stored.decode(&self.bytes);
        Some(match element {
            ElementType::F32 => Tensor::from_slice(&self.dims, &values()),
            ElementType::BF16 => {
                let values: Vec<bf16> = values().into_iter().map(bf16::from_f32).collect();
                Tensor::from_slice(&self.dims, &values)
            }
            ElementType::F16 => {
                let values: Vec<f16> = values().into_iter().map(f16::from_f32).collect();
                Tensor::from_slice(&self.dims, &values)
            }
            _ => return None,
        })
    }
}

/// A file: what it says about the model, and its tensors. The file is mapped; what is not looked at is not read.
#[derive(Debug, Clone)]
pub struct Gguf {
    values: BTreeMap<String, Value>,
    tensors: BTreeMap<String, Stored>,
    bytes: Blob,
}

impl Gguf {
    /// A value by its name, such as `llama.block_count`.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// The elements of an array by its name, such as `tokenizer.ggml.tokens`; `None` where there is no such array.
    ///
    /// # Errors
    ///
    /// When the file has changed since it was read.
    pub fn elements(&self, name: &str) -> Result<Option<Vec<Value>>, Error> {
        match self.values.get(name) {
            Some(Value::Array(array)) => array.elements(&self.bytes).map(Some),
            _ => Ok(None),
        }
    }

    /// The tensors by name.
    #[must_use]
    pub fn tensors(&self) -> &BTreeMap<String, Stored> {
        &self.tensors
    }
}

/// Reads a file.
///
/// # Errors
///
/// When it cannot be read or is not a GGUF file of a known version with tensors of known types.
pub fn read(path: &Path) -> Result<Gguf, Error> {
    decode(&map_file(path)?)
}

/// Reads the bytes of a file; the tensors share them.
///
/// # Errors
///
/// As [`read`].
pub fn decode(bytes: &Blob) -> Result<Gguf, Error> {
    let Header { values, tensors, data } = header::parse(bytes)?;
    let mut kept = BTreeMap::new();
    for entry in tensors {
        let header::Entry { name, dims, kind, offset } = entry;
        let stored = StoredType::of(kind)
            .ok_or_else(|| malformed(format!("tensor `{name}` is of type {kind}, which is not known")))?;
        let elements = Shape::new(dims.as_slice())?.num_elements();
        let fastest = dims.last().copied().unwrap_or(1);
        let size = stored.bytes(elements).filter(|_| fastest.is_multiple_of(stored.block()));
        let size = size.ok_or_else(|| {
            malformed(format!("tensor `{name}`: {dims:?} is not whole blocks of {}", stored.block()))
        })?;
        let start = usize::try_from(offset).ok().and_then(|offset| data.checked_add(offset));
        let part = start.and_then(|start| bytes.slice(start..start.checked_add(size)?));
        let part = part.ok_or_else(|| {
            malformed(format!("the data of tensor `{name}` is outside the file: it is cut short or damaged"))
        })?;
        if kept.insert(name.clone(), Stored { dims, stored, bytes: part }).is_some() {
            return Err(malformed(format!("there are two tensors `{name}`")));
        }
    }
    Ok(Gguf { values, tensors: kept, bytes: bytes.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one tensor.
    fn file(kind: u32, dims: &[u64], data: &[u8]) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        let text = |bytes: &mut Vec<u8>, text: &str| {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        };
        bytes.extend(3u32.to_le_bytes());
        bytes.extend(1u64.to_le_bytes());
        bytes.extend(3u64.to_le_bytes());
        text(&mut bytes, "llama.block_count");
        bytes.extend(4u32.to_le_bytes());
        bytes.extend(30u32.to_le_bytes());
        text(&mut bytes, "general.name");
        bytes.extend(8u32.to_le_bytes());
        text(&mut bytes, "small");
        // An array of two texts.
        text(&mut bytes, "tokens");
        bytes.extend(9u32.to_le_bytes());
        bytes.extend(8u32.to_le_bytes());
        bytes.extend(2u64.to_le_bytes());
        text(&mut bytes, "a");
        text(&mut bytes, "b");
        text(&mut bytes, "w");
        bytes.extend((dims.len() as u32).to_le_bytes());
        dims.iter().for_each(|dim| bytes.extend(dim.to_le_bytes()));
        bytes.extend(kind.to_le_bytes());
        bytes.extend(0u64.to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        bytes.extend(data);
        bytes
    }

    #[test]
    fn values_and_tensors_are_read() {
        let data: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let read = decode(&file(0, &[3, 2], &data).into()).unwrap();
        assert_eq!(read.value("llama.block_count"), Some(&Value::Unsigned(30)));
        assert_eq!(read.value("general.name"), Some(&Value::Text("small".to_owned())));
        assert!(matches!(read.value("tokens"), Some(Value::Array(array)) if array.count == 2));
        let tokens = ["a", "b"].map(|token| Value::Text(token.to_owned())).to_vec();
        assert_eq!(read.elements("tokens").unwrap(), Some(tokens));
        assert_eq!(read.elements("general.name").unwrap(), None);
        let tensor = &read.tensors()["w"];
        assert_eq!((tensor.dims.as_slice(), tensor.stored), (&[2, 3][..], StoredType::F32));
        assert_eq!(tensor.to_f32().unwrap().as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        for element in [ElementType::F32, ElementType::BF16, ElementType::F16] {
            let narrow = tensor.to_float(element).unwrap().unwrap();
            assert_eq!((narrow.element_type(), narrow.get(5).to_f64()), (element, 6.0));
        }
        assert!(tensor.to_float(ElementType::I8).is_none());
    }

    #[test]
    fn seeds_of_the_fuzz_target_are_read_or_refused() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/gguf");
        let types = read(&folder.join("types.gguf")).unwrap();
        assert_eq!(types.tensors().len(), 8);
        for (name, stored) in types.tensors() {
            let tensor = stored.to_f32().unwrap();
            assert_eq!((tensor.dims(), tensor.dims()[0]), (stored.dims.as_slice(), 2), "{name}");
        }
        let mean = |name: &str| -> f64 {
            let values = types.tensors()[name].to_f32().unwrap();
            values.iter().map(|value| value.to_f64().abs()).sum::<f64>() / 512.0
        };
        for name in ["w.Q4_0", "w.Q4_1", "w.Q8_0", "w.BF16"] {
            assert!((mean(name) - mean("w.F16")).abs() < 0.05, "{name}");
        }
        assert!(read(&folder.join("cut.gguf")).is_err());
    }

    #[test]
    fn damaged_files_are_refused_wherever_they_are_cut() {
        let whole = file(0, &[3, 2], &[0; 24]);
        for length in 0..whole.len() {
            assert!(decode(&whole[..length].to_vec().into()).is_err(), "{length}");
        }
        let refused = |bytes: Vec<u8>| decode(&bytes.into()).unwrap_err().to_string();
        assert!(refused(file(0, &[u64::MAX, 2], &[0; 24])).contains("addressed"));
        assert!(refused(file(99, &[3, 2], &[0; 24])).contains("type 99"));
        assert!(refused(file(8, &[3, 2], &[0; 64])).contains("whole blocks of 32"));
        let mut other = whole.clone();
        other[4] = 7;
        assert!(refused(other).contains("version 7"));
        // Counts that no file of this size can have do not make it allocate.
        let mut many = whole;
        many[8..16].fill(0xff);
        assert!(decode(&many.into()).is_err());
    }
}
