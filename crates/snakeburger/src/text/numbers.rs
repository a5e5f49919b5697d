//! Long lists of plain numbers, which are most of a large file: read without the generality of the cursor, and by
//! several threads when there is enough to read.

use std::num::NonZero;
use std::thread;

use warpforge_ir::types::{ElementType, FloatType};

use super::decimal;

/// How much text is read at a time by all threads together: results wait in memory for those before them.
const WINDOW: usize = 8 << 20;
/// The least text that is worth a thread.
const PIECE: usize = 1 << 18;

/// What [`read()`] took from the text.
#[derive(Clone, Copy, Default)]
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
            |text| decimal::read(text).map(|(value, end)| ((value as f32).to_le_bytes(), end)),
            bytes,
        ),
        ElementType::Float(FloatType::F64) => list(
            text,
            limit,
            |text| decimal::read(text).map(|(value, end)| (value.to_le_bytes(), end)),
            bytes,
        ),
        ElementType::I8 => list(text, limit, int(i8::to_le_bytes), bytes),
        ElementType::I16 => list(text, limit, int(i16::to_le_bytes), bytes),
        ElementType::I32 => list(text, limit, int(i32::to_le_bytes), bytes),
        ElementType::I64 => list(text, limit, int(i64::to_le_bytes), bytes),
        ElementType::U8 => list(text, limit, int(u8::to_le_bytes), bytes),
        ElementType::U16 => list(text, limit, int(u16::to_le_bytes), bytes),
        ElementType::U32 => list(text, limit, int(u32::to_le_bytes), bytes),
        _ => Run::default(),
    }
}

/// Reads numbers by a function that gives the bytes of the first one and where it ends.
fn list<const N: usize>(
    text: &[u8],
    limit: usize,
    number: impl Fn(&[u8]) -> Option<([u8; N], usize)> + Sync,
    bytes: &mut Vec<u8>,
) -> Run {
    let mut run = Run::default();
    // The list is a long one when no bracket ends it soon.
    if memchr::memchr(b']', &text[..text.len().min(2 * PIECE)]).is_none() {
        let end = memchr::memchr(b']', text).map_or(text.len(), |at| at + 1);
        run = long(&text[..end], limit, &number, bytes);
    }
    let rest = sequence(&text[run.length..], limit - run.count, run.count > 0, &number, bytes);
    Run { length: run.length + rest.length, count: run.count + rest.count }
}

/// Reads as much of a long list as there are whole windows of plain numbers, each cut into a piece for every thread.
fn long<const N: usize>(
    text: &[u8],
    limit: usize,
    number: &(impl Fn(&[u8]) -> Option<([u8; N], usize)> + Sync),
    bytes: &mut Vec<u8>,
) -> Run {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let mut run = Run::default();
    let mut start = 0;
    while threads > 1 && text.len() - start >= 2 * PIECE {
        let window = &text[start..text.len().min(start + WINDOW)];
        let pieces = cut(window, threads.min(window.len() / PIECE));
        // Without a comma there is no list.
        if pieces.is_empty() {
            return run;
        }
        let read_piece = |piece: &[u8]| {
            let mut bytes = Vec::with_capacity(piece.len() / 2);
            let run = sequence(piece, usize::MAX, false, number, &mut bytes);
            (run, bytes)
        };
        let results: Vec<(Run, Vec<u8>)> = thread::scope(|scope| {
            let handles: Vec<_> = pieces.iter().map(|piece| scope.spawn(move || read_piece(piece))).collect();
            // A thread that died has read nothing.
            handles.into_iter().map(|handle| handle.join().unwrap_or_default()).collect()
        });
        for (piece, (read, numbers)) in pieces.iter().zip(results) {
            let whole = piece[read.length..].iter().all(|byte| *byte == b',' || byte.is_ascii_whitespace());
            if !whole || read.count == 0 || run.count + read.count > limit {
                return run;
            }
            bytes.extend_from_slice(&numbers);
            run.length = start + read.length;
            run.count += read.count;
            start += piece.len();
        }
    }
    run
}

/// Cuts text after commas into pieces of about the same size. What follows the last comma is left out.
fn cut(text: &[u8], count: usize) -> Vec<&[u8]> {
    let end = memchr::memrchr(b',', text).map_or(0, |at| at + 1);
    let mut pieces = Vec::new();
    let mut start = 0;
    for index in 1..=count {
        let about = end / count * index;
        let next = match memchr::memchr(b',', &text[about..end]) {
            Some(at) if index < count => about + at + 1,
            _ => end,
        };
        if next > start {
            pieces.push(&text[start..next]);
            start = next;
        }
    }
    pieces
}

/// Reads numbers one after the other; `after` when the text starts behind a number.
fn sequence<const N: usize>(
    text: &[u8],
    limit: usize,
    after: bool,
    number: &impl Fn(&[u8]) -> Option<([u8; N], usize)>,
    bytes: &mut Vec<u8>,
) -> Run {
    let mut run = Run::default();
    let mut at = 0;
    if after {
        at = blanks(text, 0);
        if text.get(at) != Some(&b',') {
            return run;
        }
        at += 1;
    }
    while run.count < limit {
        at = blanks(text, at);
        let Some((encoded, length)) = number(&text[at..]) else { break };
        at += length;
        let end = blanks(text, at);
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

/// Where the blanks at a position end.
fn blanks(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
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
    fn long_lists_are_read_as_short_ones_are() {
        let count = 3 * PIECE / 4;
        let numbers: Vec<f32> = (0..count).map(|index| index as f32 / 64.0 - 1000.0).collect();
        let expected: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let listed = |separator: &str| {
            let list: Vec<String> = numbers.iter().map(|number| format!("{number:.6}")).collect();
            list.join(separator)
        };
        for separator in [",", ", ", " ,\n"] {
            let text = listed(separator);
            let (bytes, length, found) = read_all(&format!("{text} ]"), ElementType::F32, usize::MAX);
            assert_eq!((length, found), (text.len(), count));
            assert!(bytes == expected, "the numbers are others");
            let (bytes, length, found) = read_all(&format!("{text}, nan]"), ElementType::F32, usize::MAX);
            assert_eq!((length, found, bytes.len()), (text.len(), count, 4 * count));
            assert_eq!(read_all(&format!("{text}]"), ElementType::F32, count - 1).2, count - 1);
        }
        // Something else in the middle ends it there.
        let text = listed(", ");
        let (before, after) = text.split_at(text.find(" 1.000000").unwrap() + 1);
        let (bytes, _, found) =
            read_all(&format!("{before}0x7FC00000, {after}]"), ElementType::F32, usize::MAX);
        assert_eq!(found, numbers.iter().position(|number| *number == 1.0).unwrap());
        assert_eq!(bytes.len(), 4 * found);
    }

    #[test]
    fn no_more_than_the_list_may_have() {
        assert_eq!(read_all("1, 2, 3]", ElementType::U8, 2), (vec![1, 2], 4, 2));
    }
}
