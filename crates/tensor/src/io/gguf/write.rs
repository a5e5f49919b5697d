//! Making files: what the reader's counterpart is to tests and to small tools.

use super::header::{ALIGNMENT, TEXT};
use super::{MAGIC, StoredType, Value, malformed};
use crate::Error;

/// A tensor of a file that is made.
#[derive(Debug, Clone)]
pub struct Written<'a> {
    /// Its name.
    pub name: &'a str,
    /// The sizes, the slowest dimension first.
    pub dims: &'a [usize],
    /// How the numbers are stored.
    pub stored: StoredType,
    /// The numbers, stored so.
    pub bytes: &'a [u8],
}

/// The bytes of a file of version 3.
///
/// # Errors
///
/// When a value is an array, or the bytes of a tensor are not as many as its sizes say.
pub fn encode(values: &[(&str, Value)], tensors: &[Written<'_>]) -> Result<Vec<u8>, Error> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(3u32.to_le_bytes());
    bytes.extend((tensors.len() as u64).to_le_bytes());
    bytes.extend((values.len() as u64).to_le_bytes());
    for (name, value) in values {
        text(&mut bytes, name);
        match value {
            Value::Unsigned(value) => coded(&mut bytes, 10, &value.to_le_bytes()),
            Value::Signed(value) => coded(&mut bytes, 11, &value.to_le_bytes()),
            Value::Float(value) => coded(&mut bytes, 12, &value.to_le_bytes()),
            Value::Bool(value) => coded(&mut bytes, 7, &[u8::from(*value)]),
            Value::Text(value) => {
                bytes.extend(TEXT.to_le_bytes());
                text(&mut bytes, value);
            }
            Value::Array(_) => return Err(malformed(format!("`{name}` is an array, which is not written"))),
        }
    }
    let mut offset = 0;
    for Written { name, dims, stored, bytes: data } in tensors {
        if stored.bytes(dims.iter().product()) != Some(data.len()) {
            return Err(malformed(format!("tensor `{name}`: {} bytes for {dims:?}", data.len())));
        }
        text(&mut bytes, name);
        bytes.extend((dims.len() as u32).to_le_bytes());
        dims.iter().rev().for_each(|&dim| bytes.extend((dim as u64).to_le_bytes()));
        bytes.extend(stored.code().to_le_bytes());
        bytes.extend((offset as u64).to_le_bytes());
        offset = (offset + data.len()).next_multiple_of(ALIGNMENT);
    }
    for Written { bytes: data, .. } in tensors {
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        bytes.extend(*data);
    }
    Ok(bytes)
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

fn coded(bytes: &mut Vec<u8>, kind: u32, value: &[u8]) {
    bytes.extend(kind.to_le_bytes());
    bytes.extend(value);
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let values = [
            ("general.architecture", Value::Text("llama".to_owned())),
            ("llama.block_count", Value::Unsigned(2)),
            ("llama.rope.freq_base", Value::Float(1e4)),
            ("least", Value::Signed(-1)),
            ("tied", Value::Bool(true)),
        ];
        let (wide, codes) = ([0u8; 24], [7u8; 68]);
        let tensors = [
            Written { name: "w", dims: &[2, 3], stored: StoredType::F32, bytes: &wide },
            Written { name: "q", dims: &[2, 32], stored: StoredType::Q8_0, bytes: &codes },
        ];
        let read = decode(&encode(&values, &tensors).unwrap().into()).unwrap();
        for (name, value) in &values {
            assert_eq!(read.value(name), Some(value), "{name}");
        }
        assert_eq!(read.tensors()["w"].dims, [2, 3]);
        assert_eq!(read.tensors()["q"].bytes[..], codes);
        let short = Written { name: "w", dims: &[2, 3], stored: StoredType::F32, bytes: &wide[..20] };
        assert!(encode(&[], &[short]).is_err());
    }
}
