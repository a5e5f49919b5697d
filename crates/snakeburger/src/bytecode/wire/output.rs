//! Building the bytes of a file.

use super::Section;

/// Bytes under construction.
#[derive(Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A number in as few bytes as it takes: the zeros at the bottom of the first byte say how many follow it.
    pub(crate) fn varint(&mut self, value: u64) {
        let bits = 64 - value.leading_zeros();
        let more = bits.saturating_sub(1) / 7;
        if more >= 8 {
            self.bytes.push(0);
            self.bytes.extend_from_slice(&value.to_le_bytes());
            return;
        }
        let tagged = (value << 1 | 1) << more;
        self.bytes.extend_from_slice(&tagged.to_le_bytes()[..=more as usize]);
    }

    /// A number whose lowest bit is a flag.
    pub(crate) fn flagged(&mut self, value: u64, flag: bool) {
        self.varint(value << 1 | u64::from(flag));
    }

    /// A number whose lowest bit is its sign.
    pub(crate) fn signed(&mut self, value: i64) {
        self.varint((value << 1 ^ value >> 63) as u64);
    }

    /// A section: what it is, its length, its data.
    pub(crate) fn section(&mut self, section: Section, data: &[u8]) {
        self.section_header(section, data.len());
        self.bytes(data);
    }

    /// What comes before the data of a section.
    pub(crate) fn section_header(&mut self, section: Section, length: usize) {
        self.byte(section as u8);
        self.varint(length as u64);
        self.bytes.reserve(length);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cursor;
    use super::*;

    #[test]
    fn numbers_read_back() {
        let mut values = vec![0u64, 1, u64::MAX, i64::MAX as u64];
        values.extend((0..64).flat_map(|bit| [1u64 << bit, (1u64 << bit) - 1, (1u64 << bit) + 1]));
        for value in values {
            let mut out = Output::new();
            out.varint(value);
            out.signed(value as i64);
            out.signed((value as i64).wrapping_neg());
            let bytes = out.into_bytes();
            let mut cursor = Cursor::new(&bytes);
            assert_eq!(cursor.varint().unwrap(), value);
            assert_eq!(cursor.signed().unwrap(), value as i64);
            assert_eq!(cursor.signed().unwrap(), (value as i64).wrapping_neg());
            assert!(cursor.is_empty());
        }
    }

    #[test]
    fn small_numbers_are_short() {
        let length = |value: u64| {
            let mut out = Output::new();
            out.varint(value);
            out.into_bytes().len()
        };
        assert_eq!([length(0), length(127), length(128), length(1 << 14)], [1, 1, 2, 3]);
        assert_eq!([length((1 << 56) - 1), length(1 << 56)], [8, 9]);
    }
}
