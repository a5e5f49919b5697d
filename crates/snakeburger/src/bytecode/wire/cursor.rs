//! A position in the bytes of a file and the small steps that all reading is made of.

use std::ops::Range;

use crate::bytecode::error::{Error, ErrorKind, Read};

/// A position in a part of a file. Positions are those in the whole file, as messages name them.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    file: &'a [u8],
    pos: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// Reads a whole file.
    pub(crate) fn new(file: &'a [u8]) -> Self {
        Self { file, pos: 0, end: file.len() }
    }

    /// Reads a part of a file. A range that is not inside is cut to what is.
    pub(crate) fn of(file: &'a [u8], range: Range<usize>) -> Self {
        let end = range.end.min(file.len());
        Self { file, pos: range.start.min(end), end }
    }

    pub(crate) fn pos(&self) -> usize {
        self.pos
    }

    pub(crate) fn remaining(&self) -> usize {
        self.end - self.pos
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pos >= self.end
    }

    /// An error at this position.
    pub(crate) fn error(&self, message: impl Into<String>) -> Error {
        Error::malformed(self.pos, message)
    }

    fn cut_off(&self) -> Error {
        Error::new(self.end, ErrorKind::CutOff)
    }

    pub(crate) fn byte(&mut self) -> Read<u8> {
        let byte = self.file.get(self.pos).copied().filter(|_| self.pos < self.end);
        let byte = byte.ok_or_else(|| self.cut_off())?;
        self.pos += 1;
        Ok(byte)
    }

    /// The next bytes, as a range of the file.
    pub(crate) fn take(&mut self, count: usize) -> Read<Range<usize>> {
        if count > self.remaining() {
            return Err(self.cut_off());
        }
        let start = self.pos;
        self.pos += count;
        Ok(start..self.pos)
    }

    /// The next bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Read<&'a [u8]> {
        let range = self.take(count)?;
        Ok(self.file.get(range).unwrap_or_default())
    }

    /// The bytes up to a zero, which is taken too.
    pub(crate) fn until_zero(&mut self) -> Read<&'a [u8]> {
        let rest = self.file.get(self.pos..self.end).unwrap_or_default();
        let length = rest.iter().position(|b| *b == 0).ok_or_else(|| self.cut_off())?;
        self.pos += length + 1;
        Ok(&rest[..length])
    }

    /// A number of one to nine bytes: the zeros at the bottom of the first byte say how many follow it.
    pub(crate) fn varint(&mut self) -> Read<u64> {
        let first = self.byte()?;
        let more = first.trailing_zeros() as usize;
        let mut bytes = [0u8; 8];
        if more == 8 {
            bytes.copy_from_slice(self.bytes(8)?);
            return Ok(u64::from_le_bytes(bytes));
        }
        bytes[0] = first;
        bytes[1..=more].copy_from_slice(self.bytes(more)?);
        Ok(u64::from_le_bytes(bytes) >> (more + 1))
    }

    /// A number whose lowest bit is a flag.
    pub(crate) fn flagged(&mut self) -> Read<(u64, bool)> {
        let both = self.varint()?;
        Ok((both >> 1, both & 1 != 0))
    }

    /// A number whose lowest bit is its sign.
    pub(crate) fn signed(&mut self) -> Read<i64> {
        let zigzag = self.varint()?;
        Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    /// How many things follow, each of which takes a byte or more.
    pub(crate) fn count(&mut self) -> Read<usize> {
        let start = self.pos;
        let count = self.varint()?;
        self.checked_count(count, start)
    }

    /// A number of things, each of which takes a byte or more of what follows.
    pub(crate) fn checked_count(&self, count: u64, start: usize) -> Read<usize> {
        let count = usize::try_from(count).ok().filter(|count| *count <= self.remaining());
        count.ok_or_else(|| Error::malformed(start, "more is announced here than the file has bytes for"))
    }

    /// How many bytes follow.
    pub(crate) fn size(&mut self) -> Read<usize> {
        usize::try_from(self.varint()?).map_err(|_| self.cut_off())
    }

    /// A list of numbers with signs.
    pub(crate) fn signed_list(&mut self) -> Read<Vec<i64>> {
        let count = self.count()?;
        (0..count).map(|_| self.signed()).collect()
    }

    /// Steps over the filling that brings what follows to a multiple of `alignment`.
    pub(crate) fn align(&mut self, alignment: u64) -> Read<()> {
        let alignment = usize::try_from(alignment).ok().filter(|a| a.is_power_of_two() && *a <= 1 << 20);
        let alignment = alignment.ok_or_else(|| self.error("an alignment must be a power of two"))?;
        while !self.pos.is_multiple_of(alignment) {
            if self.byte()? != super::ALIGNMENT_BYTE {
                return Err(Error::malformed(self.pos - 1, "expected filling before aligned data"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length() {
        let file = [0x03, 0x06, 0x01, 0x80, 1, 2, 3, 4, 5, 6, 7, 0, 1, 0, 0, 0, 0, 0, 0, 0x80];
        let mut cursor = Cursor::new(&file);
        assert_eq!(cursor.varint().unwrap(), 1);
        assert_eq!(cursor.varint().unwrap(), 0x41);
        assert_eq!(cursor.varint().unwrap(), 0x07_06_05_04_03_02_01);
        assert_eq!(cursor.varint().unwrap(), 0x8000_0000_0000_0001);
        assert!(cursor.is_empty());
        assert_eq!(cursor.varint().unwrap_err().kind(), &ErrorKind::CutOff);
        assert_eq!(Cursor::new(&[0x02]).varint().unwrap_err().offset(), 1);
    }

    #[test]
    fn signs_are_in_the_lowest_bit() {
        let signed = |byte: u8| Cursor::new(&[byte]).signed().unwrap();
        assert_eq!([signed(0x01), signed(0x03), signed(0x05), signed(0x07)], [0, -1, 1, -2]);
    }

    #[test]
    fn counts_are_held_against_what_is_there() {
        assert_eq!(Cursor::new(&[0x05, 0, 0]).count().unwrap(), 2);
        assert!(Cursor::new(&[0x07, 0, 0]).count().is_err());
    }
}
