//! Blocks of baseline and extended sequential images.

use super::bits::Bits;
use super::error::JpegError;
use super::frame::ZIGZAG;
use super::scan::Tables;

/// Reads a block. `prediction` is the DC coefficient of the component's last block.
pub(super) fn block(
    bits: &mut Bits<'_>,
    tables: &Tables<'_>,
    prediction: &mut i32,
    block: &mut [i16; 64],
) -> Result<(), JpegError> {
    let (dc, ac) = (tables.dc()?, tables.ac()?);
    block[0] = direct(bits, dc, prediction)? as i16;
    let mut place = 1;
    while place < 64 {
        let symbol = bits.symbol(ac)?;
        let (run, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
        match (run, size) {
            (15, 0) => place += 16,
            (_, 0) => break,
            _ => {
                place += run;
                let value = bits.signed(size)?;
                let natural = ZIGZAG.get(place).ok_or(JpegError::Invalid("a block with too many values"))?;
                block[*natural] = value as i16;
                place += 1;
            }
        }
    }
    Ok(())
}

/// Reads a DC coefficient, which is stored as its difference from the last.
pub(super) fn direct(
    bits: &mut Bits<'_>,
    table: &super::huffman::Huffman,
    prediction: &mut i32,
) -> Result<i32, JpegError> {
    let size = u32::from(bits.symbol(table)?);
    if size > 15 {
        return Err(JpegError::Invalid("a coefficient of too many bits"));
    }
    *prediction = prediction.wrapping_add(bits.signed(size)?);
    Ok(*prediction)
}
