//! Blocks of progressive images: each scan adds coefficients, or a bit to those that have come.

use super::bits::Bits;
use super::error::JpegError;
use super::frame::ZIGZAG;
use super::header::ScanHeader;
use super::scan::Tables;
use super::sequential::direct;

type Result<T> = std::result::Result<T, JpegError>;

/// What one block leaves to the next.
#[derive(Default)]
pub(super) struct Progressive {
    /// How many more blocks have no further coefficients in this scan.
    ended: u32,
}

impl Progressive {
    pub(super) fn block(
        &mut self,
        bits: &mut Bits<'_>,
        header: &ScanHeader,
        tables: &Tables<'_>,
        prediction: &mut i32,
        block: &mut [i16; 64],
    ) -> Result<()> {
        match (header.start, header.high) {
            (0, 0) => block[0] = (direct(bits, tables.dc()?, prediction)? << header.low) as i16,
            (0, _) => block[0] |= i16::from(bits.bit()?) << header.low,
            (_, 0) => self.first(bits, header, tables, block)?,
            _ => self.refine(bits, header, tables, block)?,
        }
        Ok(())
    }

    /// The number of blocks that end here, of a symbol without a value.
    fn run_of_ends(bits: &mut Bits<'_>, size: u32) -> Result<u32> {
        Ok((1 << size) + bits.number(size)?.unsigned_abs())
    }

    /// The first bits of coefficients.
    fn first(
        &mut self,
        bits: &mut Bits<'_>,
        header: &ScanHeader,
        tables: &Tables<'_>,
        block: &mut [i16; 64],
    ) -> Result<()> {
        if self.ended > 0 {
            self.ended -= 1;
            return Ok(());
        }
        let table = tables.ac()?;
        let mut place = header.start;
        while place <= header.end {
            let symbol = bits.symbol(table)?;
            let (run, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
            if size > 0 {
                place += run;
                let value = bits.signed(size)? << header.low;
                let natural = ZIGZAG.get(place).ok_or(JpegError::Invalid("a block with too many values"))?;
                block[*natural] = value as i16;
                place += 1;
            } else if run == 15 {
                place += 16;
            } else {
                self.ended = Self::run_of_ends(bits, run as u32)? - 1;
                break;
            }
        }
        Ok(())
    }

    /// A further bit of coefficients, and those that become other than 0 with it.
    fn refine(
        &mut self,
        bits: &mut Bits<'_>,
        header: &ScanHeader,
        tables: &Tables<'_>,
        block: &mut [i16; 64],
    ) -> Result<()> {
        let table = tables.ac()?;
        let step = 1_i16 << header.low;
        let mut place = header.start;
        if self.ended == 0 {
            while place <= header.end {
                let symbol = bits.symbol(table)?;
                let (mut run, size) = (usize::from(symbol >> 4), symbol & 15);
                let mut value = 0;
                match size {
                    0 if run == 15 => {}
                    0 => {
                        self.ended = Self::run_of_ends(bits, run as u32)?;
                        break;
                    }
                    1 => value = if bits.bit()? { step } else { -step },
                    _ => return Err(JpegError::Invalid("a correction of more than one bit")),
                }
                // Skips `run` coefficients that are 0 so far; those between them that are not are refined.
                while place <= header.end {
                    let coefficient = &mut block[ZIGZAG[place]];
                    place += 1;
                    if *coefficient != 0 {
                        correct(bits, coefficient, step)?;
                    } else if run == 0 {
                        *coefficient = value;
                        break;
                    } else {
                        run -= 1;
                    }
                }
            }
        }
        if self.ended > 0 {
            for &natural in &ZIGZAG[place.min(64)..=header.end] {
                if block[natural] != 0 {
                    correct(bits, &mut block[natural], step)?;
                }
            }
            self.ended -= 1;
        }
        Ok(())
    }
}

/// Reads the bit of a coefficient that is not 0.
fn correct(bits: &mut Bits<'_>, coefficient: &mut i16, step: i16) -> Result<()> {
    if bits.bit()? && *coefficient & step == 0 {
        *coefficient = coefficient.wrapping_add(if *coefficient > 0 { step } else { -step });
    }
    Ok(())
}
