//! Long lists of plain numbers, which are most of a large file: read without the generality of the cursor.

use warpforge_ir::types::{ElementType, FloatType};

/// What [`read()`] took from the text.
pub(super) struct Run {
    /// Bytes of text, up to the end of the last number.
    pub(super) length: usize,
    /// Numbers.
    pub(super) count: usize,
}

/// Reads numbers with commas between them, at most `limit`, and appends their bytes. It stops before whatever is not a
/// plain decimal number of the type, be it another notation or a mistake.
pub(super) fn read(text: &[u8], storage: ElementType, limit: usize, bytes: &mut Vec<u8>) -> Run {
    match storage {
        ElementType::Float(FloatType::F32) => list(
            text,
            limit,
            |text| float(text).map(|(value, end)| ((value as f32).to_le_bytes(), end)),
            bytes,
        ),
        ElementType::Float(FloatType::F64) => {
            list(text, limit, |text| float(text).map(|(value, end)| (value.to_le_bytes(), end)), bytes)
        }
        ElementType::I8 => list(text, limit, int(i8::to_le_bytes), bytes),
        ElementType::I16 => list(text, limit, int(i16::to_le_bytes), bytes),
        ElementType::I32 => list(text, limit, int(i32::to_le_bytes), bytes),
        ElementType::I64 => list(text, limit, int(i64::to_le_bytes), bytes),
        ElementType::U8 => list(text, limit, int(u8::to_le_bytes), bytes),
        ElementType::U16 => list(text, limit, int(u16::to_le_bytes), bytes),
        ElementType::U32 => list(text, limit, int(u32::to_le_bytes), bytes),
        _ => Run { length: 0, count: 0 },
    }
}

/// Reads numbers by a function that gives the bytes of the first one and where it ends.
fn list<const N: usize>(
    text: &[u8],
    limit: usize,
    number: impl Fn(&[u8]) -> Option<([u8; N], usize)>,
    bytes: &mut Vec<u8>,
) -> Run {
    let mut run = Run { length: 0, count: 0 };
    let mut at = 0;
    while run.count < limit {
        at += blanks(&text[at..]);
        let Some((encoded, length)) = number(&text[at..]) else { break };
        at += length;
        let end = at + blanks(&text[at..]);
        if !matches!(text.get(end), Some(b',' | b']')) {
            break;
        }
        bytes.extend_from_slice(&encoded);
        run.length = at;
        run.count += 1;
        if text[end] == b']' {
            break;
        }
        at = end + 1;
    }
    run
}

fn blanks(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// A decimal number with a point as a binary64, which is then rounded to its type, as MLIR does.
fn float(text: &[u8]) -> Option<(f64, usize)> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if whole == 0 || digits.get(whole) != Some(&b'.') {
        return None;
    }
    fast_float2::parse_partial(text).ok()
}

/// A decimal integer of a type.
fn int<T: TryFrom<i64>, const N: usize>(
    encode: impl Fn(T) -> [u8; N],
) -> impl Fn(&[u8]) -> Option<([u8; N], usize)> {
    // More digits might not fit.
    const MOST_DIGITS: usize = 18;
    move |text| {
        let negative = text.first() == Some(&b'-');
        let start = usize::from(negative);
        let mut value = 0i64;
        let mut at = start;
        while let Some(digit) = text.get(at).filter(|byte| byte.is_ascii_digit()) {
            value = value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
            at += 1;
        }
        if at == start || at - start > MOST_DIGITS {
            return None;
        }
        Some((encode(T::try_from(if negative { -value } else { value }).ok()?), at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str, storage: ElementType, limit: usize) -> (Vec<u8>, usize, usize) {
        let mut bytes = Vec::new();
        let run = read(text.as_bytes(), storage, limit, &mut bytes);
        (bytes, run.length, run.count)
    }

    #[test]
    fn numbers_end_where_the_list_does() {
        let (bytes, length, count) = read_all("1.5, -2.0e0 ,\n 3.]", ElementType::F32, 9);
        assert_eq!((length, count), (17, 3));
        assert_eq!(bytes, [1.5f32, -2.0, 3.0].map(f32::to_le_bytes).concat());
    }

    #[test]
    fn what_is_no_plain_number_is_left() {
        assert_eq!(read_all("1., 0x7F800000]", ElementType::F32, 9).2, 1);
        assert_eq!(read_all("1.0.0]", ElementType::F32, 9).2, 0);
        assert_eq!(read_all("nan]", ElementType::F32, 9).2, 0);
        assert_eq!(read_all("1, 300]", ElementType::I8, 9), (vec![1], 1, 1));
        assert_eq!(read_all("1, 99999999999999999999]", ElementType::I64, 9).2, 1);
        assert_eq!(read_all("1, 2", ElementType::I64, 9).2, 1, "the text is cut off");
    }

    #[test]
    fn no_more_than_the_list_may_have() {
        assert_eq!(read_all("1, 2, 3]", ElementType::U8, 2), (vec![1, 2], 4, 2));
    }
}
