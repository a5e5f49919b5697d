//! A scan: the coefficients of some components.

use super::bits::Bits;
use super::error::JpegError;
use super::frame::{Component, Frame};
use super::header::{Headers, ScanHeader};
use super::huffman::Huffman;
use super::progressive::Progressive;
use super::sequential;

type Result<T> = std::result::Result<T, JpegError>;

/// What decoding a block needs beside its bits.
pub(super) struct Tables<'a> {
    dc: Option<&'a Huffman>,
    ac: Option<&'a Huffman>,
}

impl<'a> Tables<'a> {
    pub(super) fn dc(&self) -> Result<&'a Huffman> {
        self.dc.ok_or(JpegError::Invalid("a scan without its Huffman table"))
    }

    pub(super) fn ac(&self) -> Result<&'a Huffman> {
        self.ac.ok_or(JpegError::Invalid("a scan without its Huffman table"))
    }
}

/// Decodes the scan that the bytes of the headers begin with; returns how many bytes it has.
pub(super) fn decode(frame: &mut Frame, header: &ScanHeader, headers: &Headers<'_>) -> Result<usize> {
    let mut parts = Vec::new();
    for part in &header.components {
        let place = frame.components.iter().position(|component| component.id == part.id);
        let place = place.ok_or(JpegError::Invalid("a scan of an unknown component"))?;
        if parts.iter().any(|&(other, _)| other == place) {
            return Err(JpegError::Invalid("a scan with a component twice"));
        }
        let component = &mut frame.components[place];
        if component.table.is_none() {
            component.table = headers.quantization.get(component.quantization).copied().flatten();
        }
        let dc = headers.dc.get(part.dc_table).and_then(Option::as_ref);
        let ac = headers.ac.get(part.ac_table).and_then(Option::as_ref);
        parts.push((place, Tables { dc, ac }));
    }
    check(frame, header, parts.len())?;
    let mut bits = Bits::new(headers.rest());
    let mut progressive = Progressive::default();
    let mut predictions = [0_i32; 4];
    let single = parts.len() == 1;
    let (columns, rows) = match parts[..] {
        [(place, _)] => (frame.components[place].columns, frame.components[place].rows),
        _ => frame.mcus,
    };
    let mut since_restart = 0;
    let mut restarts = 0_u8;
    for mcu in 0..columns * rows {
        if headers.restart_interval > 0 && since_restart == headers.restart_interval {
            bits.restart(restarts)?;
            (since_restart, restarts) = (0, (restarts + 1) % 8);
            (progressive, predictions) = (Progressive::default(), [0; 4]);
        }
        since_restart += 1;
        let (row, column) = (mcu / columns, mcu % columns);
        for (place, tables) in &parts {
            let component = &mut frame.components[*place];
            let (across, down) = if single { (1, 1) } else { (component.horizontal, component.vertical) };
            for index in 0..across * down {
                let at = (row * down + index / across) * component.stride + column * across + index % across;
                let block = &mut component.blocks[at];
                let prediction = &mut predictions[*place];
                if frame.progressive {
                    progressive.block(&mut bits, header, tables, prediction, block)?;
                } else {
                    sequential::block(&mut bits, tables, prediction, block)?;
                }
            }
        }
    }
    for &(place, _) in &parts {
        mark(&mut frame.components[place], header);
    }
    Ok(bits.position())
}

fn mark(component: &mut Component, header: &ScanHeader) {
    component.seen |= header.start == 0;
}

/// Refuses a scan whose header says what cannot be.
fn check(frame: &Frame, header: &ScanHeader, components: usize) -> Result<()> {
    let ScanHeader { start, end, high, low, .. } = *header;
    let in_range = if frame.progressive {
        // The first coefficient is in scans of its own; the others are in scans of one component.
        let band = if start == 0 { end == 0 } else { start <= end && end < 64 && components == 1 };
        band && low <= 13 && (high == 0 || high == low + 1)
    } else {
        true
    };
    if components == 0 || !in_range {
        return Err(JpegError::Invalid("a scan header"));
    }
    Ok(())
}
