//! Decimal floating-point numbers, many of them quickly.
//!
//! A number of few digits is a whole number times or divided by a power of ten that a binary64 holds exactly, so that one
//! rounding gives the nearest; the rest is left to the general reader.

/// Powers of ten that a binary64 holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];
/// Digits that a 64-bit number always has room for.
const MOST_DIGITS: usize = 19;
/// Whole numbers up to here are binary64 numbers.
const MOST_WHOLE: u64 = 1 << 53;

/// A decimal number with a point at the start of the text, as the nearest binary64, and where it ends.
pub(super) fn read(text: &[u8]) -> Option<(f64, usize)> {
    let negative = text.first() == Some(&b'-');
    let start = usize::from(negative);
    let (mut digits, point) = run(text, start, 0);
    if point == start || text.get(point) != Some(&b'.') {
        return None;
    }
    let mut end;
    (digits, end) = run(text, point + 1, digits);
    let mut power = (point + 1).wrapping_sub(end) as isize;
    let known = end - start - 1 <= MOST_DIGITS;
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let down = text.get(end + 1) == Some(&b'-');
        let first = end + 1 + usize::from(down || text.get(end + 1) == Some(&b'+'));
        let (exponent, last) = run(text, first, 0);
        // A longer exponent is none that a power in the table could come from.
        if last - first > 4 {
            return general(text);
        }
        if last > first {
            power += if down { -(exponent as isize) } else { exponent as isize };
            end = last;
        }
    }
    if !known || digits > MOST_WHOLE {
        return general(text);
    }
    let whole = digits as f64;
    let size = match POWERS.get(power.unsigned_abs()) {
        Some(scale) if power < 0 => whole / scale,
        Some(scale) => whole * scale,
        None => return general(text),
    };
    Some((if negative { -size } else { size }, end))
}

fn general(text: &[u8]) -> Option<(f64, usize)> {
    fast_float2::parse_partial(text).ok()
}

/// Appends the digits at a position to a number, eight at a time while there are so many, and tells where they end.
fn run(text: &[u8], mut at: usize, mut number: u64) -> (u64, usize) {
    while let Some(eight) = text.get(at..).and_then(<[u8]>::first_chunk).and_then(eight_digits) {
        number = number.wrapping_mul(100_000_000).wrapping_add(eight);
        at += 8;
    }
    while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    (number, at)
}

/// The value of eight digits, when all are digits: pairs, then pairs of pairs are put together in one register.
fn eight_digits(text: &[u8; 8]) -> Option<u64> {
    let bytes = u64::from_le_bytes(*text);
    let high = 0xF0F0_F0F0_F0F0_F0F0;
    // Digits have 3 in their upper half, and still have when 6 is added to the lower one.
    let all = bytes & high == 0x3030_3030_3030_3030
        && bytes.wrapping_add(0x0606_0606_0606_0606) & high == 0x3030_3030_3030_3030;
    if !all {
        return None;
    }
    let digits = bytes & !high;
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00FF_00FF_00FF_00FF;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_FFFF_0000_FFFF;
    Some(fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xFFFF_FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_nearest() {
        let mut seed = 0x9E37_79B9_7F4A_7C15u64;
        let mut next = |below: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % below
        };
        for _ in 0..200_000 {
            let digits = next(20) as usize;
            let fraction: String = (0..digits).map(|_| char::from(b'0' + next(10) as u8)).collect();
            let size = next(10) as u32 + 1;
            let whole = next(10u64.pow(size));
            let exponent = match next(4) {
                0 => String::new(),
                1 => format!("e+{}", next(30)),
                2 => format!("E{}", next(320)),
                _ => format!("e-{}", next(330)),
            };
            let text = format!("{}{whole}.{fraction}{exponent}", if next(2) == 0 { "-" } else { "" });
            let (found, end) = read(format!("{text}, 1.0").as_bytes()).unwrap();
            assert_eq!(
                (found.to_bits(), end),
                (text.parse::<f64>().unwrap().to_bits(), text.len()),
                "{text}"
            );
        }
    }

    #[test]
    fn numbers_end_where_they_end() {
        assert_eq!(read(b"1.]"), Some((1.0, 2)));
        assert_eq!(read(b"-0.0,"), Some((-0.0, 4)));
        assert!(read(b"-0.0").is_some_and(|(zero, _)| zero.is_sign_negative()));
        assert_eq!(read(b"1.5e]").map(|(_, end)| end), Some(3));
        assert_eq!(read(b"1.5e+x"), Some((1.5, 3)));
        assert_eq!(read(b"1.5e000001"), Some((15.0, 10)));
        assert_eq!(read(b"123456789012345678901234567890.5"), Some((1.234_567_890_123_456_8e29, 32)));
        assert_eq!(
            (read(b".5"), read(b"5"), read(b"-"), read(b""), read(b"x.5")),
            (None, None, None, None, None)
        );
    }

    #[test]
    fn eight_digits_are_eight_digits() {
        assert_eq!(eight_digits(b"12345678"), Some(12_345_678));
        assert_eq!(eight_digits(b"00000009"), Some(9));
        for place in 0..8 {
            for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
                let mut text = *b"55555555";
                text[place] = byte;
                assert_eq!(eight_digits(&text), None);
            }
        }
    }
}
