//! NumPy's `npy` files: one tensor each.

use std::path::Path;

use super::input::{self, Input};
use super::{io_error, output};
use crate::{ElementType, Error, Shape, Tensor};

const FORMAT: &str = "npy";
const MAGIC: &[u8] = b"\x93NUMPY";

/// The pairs of type code, without the byte order, and element type.
const TYPES: &[(&str, ElementType)] = &[
    ("b1", ElementType::Bool),
    ("i1", ElementType::I8),
    ("i2", ElementType::I16),
    ("i4", ElementType::I32),
    ("i8", ElementType::I64),
    ("u1", ElementType::U8),
    ("u2", ElementType::U16),
    ("u4", ElementType::U32),
    ("u8", ElementType::U64),
    ("f2", ElementType::F16),
    ("f4", ElementType::F32),
    ("f8", ElementType::F64),
    ("c8", ElementType::C64),
    ("c16", ElementType::C128),
];

fn malformed(reason: impl Into<String>) -> Error {
    Error::Malformed { format: FORMAT, reason: reason.into() }
}

/// What the header dictionary says.
struct Header {
    element: ElementType,
    big_endian: bool,
    column_major: bool,
    dims: Vec<usize>,
}

/// Reads the tensor in a file's bytes. Either byte order and either element order is understood.
///
/// # Errors
///
/// When the header or the size is not as the format asks for, or the type is none of ours.
pub fn decode(bytes: &[u8]) -> Result<Tensor, Error> {
    let (header, data) = split(bytes)?;
    let header = parse_header(header)?;
    let shape = Shape::new(header.dims.clone())?;
    let mut data = data.to_vec();
    if header.big_endian {
        let part = header.element.byte_width() / if header.element.is_complex() { 2 } else { 1 };
        data.chunks_mut(part).for_each(<[u8]>::reverse);
    }
    if !header.column_major {
        return Tensor::from_bytes(header.element, shape, &data);
    }
    let reversed: Vec<usize> = header.dims.iter().rev().copied().collect();
    let stored = Tensor::from_bytes(header.element, Shape::new(reversed)?, &data)?;
    let strides: Vec<usize> = stored.shape().strides().into_iter().rev().collect();
    stored.gathered(shape, |index| Some(index.iter().zip(&strides).map(|(at, stride)| at * stride).sum()))
}

/// Splits a file into its header text and its data.
fn split(bytes: &[u8]) -> Result<(&str, &[u8]), Error> {
    let short = || malformed("the file ends within its header");
    let rest =
        bytes.strip_prefix(MAGIC).ok_or_else(|| malformed("the file does not start with \\x93NUMPY"))?;
    let (version, rest) = rest.split_first_chunk::<2>().ok_or_else(short)?;
    let (length, rest) = match version[0] {
        1 => rest
            .split_first_chunk::<2>()
            .map(|(length, rest)| (usize::from(u16::from_le_bytes(*length)), rest)),
        2 | 3 => {
            rest.split_first_chunk::<4>().map(|(length, rest)| (u32::from_le_bytes(*length) as usize, rest))
        }
        other => return Err(malformed(format!("version {other} is not known"))),
    }
    .ok_or_else(short)?;
    let (header, data) = rest.split_at_checked(length).ok_or_else(short)?;
    let header = std::str::from_utf8(header).map_err(|_| malformed("the header is not text"))?;
    Ok((header, data))
}

/// What follows `'key':` in the header dictionary.
fn field<'a>(header: &'a str, key: &str) -> Result<&'a str, Error> {
    [format!("'{key}'"), format!("\"{key}\"")]
        .iter()
        .find_map(|quoted| header.split_once(quoted.as_str()))
        .and_then(|(_, rest)| rest.trim_start().strip_prefix(':'))
        .map(str::trim_start)
        .ok_or_else(|| malformed(format!("the header has no `{key}`")))
}

fn parse_header(header: &str) -> Result<Header, Error> {
    let descr = field(header, "descr")?;
    let code = descr
        .strip_prefix(['\'', '"'])
        .and_then(|rest| rest.split_once(['\'', '"']))
        .map(|(code, _)| code)
        .ok_or_else(|| malformed("`descr` is not a simple type"))?;
    let name = code.trim_start_matches(['<', '>', '|', '=']);
    let element = TYPES
        .iter()
        .find(|(candidate, _)| *candidate == name)
        .map(|(_, element)| *element)
        .ok_or_else(|| malformed(format!("type `{code}` is not supported")))?;
    let column_major = match field(header, "fortran_order")? {
        value if value.starts_with("True") => true,
        value if value.starts_with("False") => false,
        _ => return Err(malformed("`fortran_order` is neither True nor False")),
    };
    let dims = field(header, "shape")?
        .strip_prefix('(')
        .and_then(|rest| rest.split_once(')'))
        .ok_or_else(|| malformed("`shape` is not a tuple"))?
        .0
        .split(',')
        .map(str::trim)
        .filter(|dim| !dim.is_empty())
        .map(|dim| dim.parse().map_err(|_| malformed(format!("`{dim}` is not a dimension size"))))
        .collect::<Result<_, _>>()?;
    Ok(Header { element, big_endian: code.starts_with('>'), column_major, dims })
}

/// The bytes of a file that holds this tensor.
///
/// # Errors
///
/// When the format has no code for the element type.
pub fn encode(tensor: &Tensor) -> Result<Vec<u8>, Error> {
    let element = tensor.element_type();
    let code = TYPES
        .iter()
        .find(|(_, candidate)| *candidate == element)
        .map(|(code, _)| *code)
        .ok_or(Error::UnsupportedElement { format: FORMAT, element })?;
    let order = if element.byte_width() == 1 { '|' } else { '<' };
    let dims: String = tensor.dims().iter().map(|dim| format!("{dim}, ")).collect();
    let dims = if tensor.dims().len() > 1 { dims.trim_end_matches(", ") } else { dims.trim_end() };
    let mut header = format!("{{'descr': '{order}{code}', 'fortran_order': False, 'shape': ({dims}), }}");
    // The data starts at a multiple of 64 bytes, and the header ends with a newline.
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    let length = u16::try_from(header.len()).map_err(|_| malformed("too many dimensions"))?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend(length.to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(tensor.bytes());
    Ok(bytes)
}

/// Reads the tensor of a file.
///
/// # Errors
///
/// When the file cannot be read or is not an `npy` file.
pub fn read(path: &Path) -> Result<Tensor, Error> {
    decode(&match input::open(path).map_err(io_error(path))? {
        Input::Stream(bytes) => bytes,
        Input::File => std::fs::read(path).map_err(io_error(path))?,
    })
}

/// Writes a tensor to a file.
///
/// # Errors
///
/// When the format has no code for the element type or the file cannot be written.
pub fn write(path: &Path, tensor: &Tensor) -> Result<(), Error> {
    output::write(path, &encode(tensor)?).map_err(io_error(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scalar;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn every_type_of_the_format_reads_back() {
        for (_, element) in TYPES {
            for dims in [vec![], vec![3], vec![2, 0], vec![2, 3]] {
                let shape = Shape::new(dims).expect("small");
                let tensor = Tensor::splat(*element, shape, Scalar::one(*element)).expect("small");
                let bytes = encode(&tensor).expect("a type of the format");
                assert!(decode(&bytes).expect("what was written").identical(&tensor), "{element}");
            }
        }
    }

    #[test]
    fn the_layout_is_numpys() {
        let bytes = encode(&Tensor::from_slice(&[2], &[1i16, 2]).expect("fits")).expect("supported");
        assert!(bytes[10..].starts_with(b"{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }"));
        assert_eq!((bytes.len() - 4) % 64, 0);
        assert_eq!(bytes[bytes.len() - 5], b'\n');
    }

    #[test]
    fn other_orders_are_understood() {
        let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }";
        let tensor = decode(&file(header, &[0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6])).expect("valid");
        assert_eq!(tensor.as_slice::<i16>().expect("i16"), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn damage_is_an_error() {
        let whole = encode(&Tensor::from_slice(&[2], &[1.0f32, 2.0]).expect("fits")).expect("supported");
        for cut in 0..whole.len() {
            assert!(decode(&whole[..cut]).is_err(), "cut at {cut}");
        }
        for header in [
            "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 9), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
            "{'descr': '<O8', 'fortran_order': False, 'shape': (1,), }",
            "{}",
        ] {
            assert!(decode(&file(header, &[0; 4])).is_err(), "{header}");
        }
    }
}
