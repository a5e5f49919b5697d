//! The bits of a scan.

use super::error::JpegError;
use super::huffman::Huffman;

type Result<T> = std::result::Result<T, JpegError>;

/// Reads bits up to the next marker.
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    buffer: u64,
    count: u32,
    /// How many of the bits are there only to look ahead.
    beyond: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, buffer: 0, count: 0, beyond: 0 }
    }

    /// How many bytes were read, up to a marker if the scan is at its end.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Makes 16 or more bits available, with zeros beyond the end.
    fn fill(&mut self) {
        while self.count <= 48 {
            let byte = match (self.bytes.get(self.at), self.bytes.get(self.at + 1)) {
                (Some(0xff), Some(0)) => {
                    self.at += 2;
                    0xff
                }
                (Some(0xff), _) | (None, _) => {
                    self.beyond += 8;
                    0
                }
                (Some(&byte), _) => {
                    self.at += 1;
                    byte
                }
            };
            self.buffer = self.buffer << 8 | u64::from(byte);
            self.count += 8;
        }
    }

    fn peek(&mut self) -> u32 {
        if self.count < 16 {
            self.fill();
        }
        (self.buffer >> (self.count - 16)) as u32 & 0xffff
    }

    fn drop(&mut self, count: u32) -> Result<()> {
        self.count -= count;
        if self.count < self.beyond { Err(self.ended()) } else { Ok(()) }
    }

    /// Why there are no more bits.
    fn ended(&self) -> JpegError {
        match self.bytes.get(self.at + 1) {
            Some(_) => JpegError::Invalid("a scan that ends early"),
            None => JpegError::Truncated,
        }
    }

    /// The next symbol of a table.
    pub(super) fn symbol(&mut self, table: &Huffman) -> Result<u8> {
        let bits = self.peek();
        let (length, symbol) = match table.decode(bits) {
            Some(found) => found,
            None if self.count.saturating_sub(16) < self.beyond => return Err(self.ended()),
            None => return Err(JpegError::Invalid("a code that no table has")),
        };
        self.drop(length)?;
        Ok(symbol)
    }

    /// The next bits as a number; at most 16.
    pub(super) fn number(&mut self, count: u32) -> Result<i32> {
        if count == 0 {
            return Ok(0);
        }
        let bits = self.peek() >> (16 - count);
        self.drop(count)?;
        Ok(bits as i32)
    }

    /// The next bit.
    pub(super) fn bit(&mut self) -> Result<bool> {
        Ok(self.number(1)? == 1)
    }

    /// The next bits as a coefficient: those that begin with 0 are negative.
    pub(super) fn signed(&mut self, count: u32) -> Result<i32> {
        let value = self.number(count)?;
        Ok(if count > 0 && value < 1 << (count - 1) { value - (1 << count) + 1 } else { value })
    }

    /// Reads the restart marker of a number from 0 to 7 at the next byte.
    pub(super) fn restart(&mut self, number: u8) -> Result<()> {
        // Whole bytes that are left were not part of the interval.
        if self.count - self.beyond >= 8 {
            return Err(JpegError::Invalid("an interval that is too long"));
        }
        (self.buffer, self.count, self.beyond) = (0, 0, 0);
        match self.bytes.get(self.at..self.at + 2) {
            Some(&[0xff, marker]) if marker == 0xd0 + number => {
                self.at += 2;
                Ok(())
            }
            Some(_) => Err(JpegError::Invalid("a restart marker that is missing")),
            None => Err(JpegError::Truncated),
        }
    }
}
