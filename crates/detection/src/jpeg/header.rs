//! The segments of a file before, between and after its scans.

use super::color::Color;
use super::error::JpegError;
use super::frame::{ComponentHeader, Frame, FrameHeader, ZIGZAG};
use super::huffman::Huffman;

type Result<T> = std::result::Result<T, JpegError>;

/// Tables and markers so far.
pub(super) struct Headers<'a> {
    bytes: &'a [u8],
    at: usize,
    pub(super) quantization: [Option<[u16; 64]>; 4],
    pub(super) dc: [Option<Huffman>; 4],
    pub(super) ac: [Option<Huffman>; 4],
    /// The number of MCUs between restart markers; 0 without.
    pub(super) restart_interval: usize,
    jfif: bool,
    /// The colour transform that Adobe's marker names.
    adobe: Option<u8>,
}

/// What a file goes on with.
pub(super) enum Next {
    Frame(FrameHeader),
    Scan(ScanHeader),
    End,
}

/// One component of a scan.
pub(super) struct ScanComponent {
    pub(super) id: u8,
    pub(super) dc_table: usize,
    pub(super) ac_table: usize,
}

/// The header of a scan.
pub(super) struct ScanHeader {
    pub(super) components: Vec<ScanComponent>,
    /// The first and last coefficient, in zigzag order.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The bit of the scan before this one and of this one, of progressive images.
    pub(super) high: u8,
    pub(super) low: u8,
}

impl<'a> Headers<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self> {
        if !bytes.starts_with(&[0xff, 0xd8, 0xff]) {
            return Err(JpegError::NotJpeg);
        }
        Ok(Self {
            bytes,
            at: 2,
            quantization: [None; 4],
            dc: Default::default(),
            ac: Default::default(),
            restart_interval: 0,
            jfif: false,
            adobe: None,
        })
    }

    /// The bytes that follow.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub(super) fn skip(&mut self, count: usize) {
        self.at += count;
    }

    /// Reads segments up to a frame, a scan or the end.
    pub(super) fn next(&mut self) -> Result<Next> {
        loop {
            let marker = self.marker()?;
            match marker {
                0xd9 => return Ok(Next::End),
                0x01 | 0xd0..=0xd7 => continue,
                0xd8 => return Err(JpegError::Invalid("a second start")),
                _ => {}
            }
            let segment = self.segment()?;
            match marker {
                0xc0..=0xc2 => return Ok(Next::Frame(frame(segment, marker == 0xc2)?)),
                0xc4 => self.huffman_tables(segment)?,
                0xc9..=0xcb | 0xcd..=0xcf => return Err(JpegError::Unsupported("arithmetic-coded images")),
                0xc3 | 0xc5..=0xc7 => {
                    return Err(JpegError::Unsupported("lossless and hierarchical images"));
                }
                0xda => return Ok(Next::Scan(scan(segment)?)),
                0xdb => self.quantization_tables(segment)?,
                0xdd => {
                    let &[high, low] = segment else { return Err(JpegError::Invalid("a restart interval")) };
                    self.restart_interval = usize::from(u16::from_be_bytes([high, low]));
                }
                0xe0 => self.jfif |= segment.starts_with(b"JFIF\0"),
                0xee if segment.starts_with(b"Adobe") => self.adobe = segment.get(11).copied(),
                _ => {}
            }
        }
    }

    /// The next marker; bytes before it are skipped.
    fn marker(&mut self) -> Result<u8> {
        loop {
            let rest = self.rest();
            let place = rest.iter().position(|&byte| byte == 0xff).ok_or(JpegError::Truncated)?;
            match rest.get(place + 1) {
                Some(0xff) => self.at += place + 1,
                Some(0) => self.at += place + 2,
                Some(&marker) => {
                    self.at += place + 2;
                    return Ok(marker);
                }
                None => return Err(JpegError::Truncated),
            }
        }
    }

    /// The content of a segment, whose length comes first.
    fn segment(&mut self) -> Result<&'a [u8]> {
        let rest = self.rest();
        let &[high, low, ..] = rest else { return Err(JpegError::Truncated) };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length < 2 {
            return Err(JpegError::Invalid("a segment without a length"));
        }
        self.at += length;
        rest.get(2..length).ok_or(JpegError::Truncated)
    }

    fn quantization_tables(&mut self, mut segment: &[u8]) -> Result<()> {
        const DAMAGED: JpegError = JpegError::Invalid("a quantization table");
        while let Some((&info, rest)) = segment.split_first() {
            let wide = info >> 4 != 0;
            let size = if wide { 128 } else { 64 };
            let (values, rest) = rest.split_at_checked(size).ok_or(DAMAGED)?;
            let table = self.quantization.get_mut(usize::from(info & 15)).ok_or(DAMAGED)?;
            let value = |index: usize| match wide {
                true => u16::from_be_bytes([values[2 * index], values[2 * index + 1]]),
                false => u16::from(values[index]),
            };
            let mut natural = [0; 64];
            for (index, place) in ZIGZAG.iter().enumerate() {
                natural[*place] = value(index);
            }
            *table = Some(natural);
            segment = rest;
        }
        Ok(())
    }

    fn huffman_tables(&mut self, mut segment: &[u8]) -> Result<()> {
        const DAMAGED: JpegError = JpegError::Invalid("a Huffman table");
        while let Some((&info, rest)) = segment.split_first() {
            let (counts, rest) = rest.split_first_chunk::<16>().ok_or(DAMAGED)?;
            let total = counts.iter().map(|&count| usize::from(count)).sum();
            let (symbols, rest) = rest.split_at_checked(total).ok_or(DAMAGED)?;
            let tables = if info >> 4 == 0 { &mut self.dc } else { &mut self.ac };
            *tables.get_mut(usize::from(info & 15)).ok_or(DAMAGED)? =
                Some(Huffman::new(counts, symbols).ok_or(DAMAGED)?);
            segment = rest;
        }
        Ok(())
    }

    /// The colours of the components, by libjpeg's rules.
    pub(super) fn color(&self, frame: &Frame) -> Result<Color> {
        let ids: Vec<u8> = frame.components.iter().map(|component| component.id).collect();
        Ok(match (ids.as_slice(), self.adobe) {
            ([_], _) => Color::Grey,
            ([_, _, _], _) if self.jfif => Color::YCbCr,
            ([_, _, _], Some(0)) => Color::Rgb,
            ([_, _, _], Some(_)) => Color::YCbCr,
            (b"RGB", None) => Color::Rgb,
            ([_, _, _], None) => Color::YCbCr,
            ([_, _, _, _], Some(2)) => Color::Ycck,
            ([_, _, _, _], _) => Color::Cmyk,
            _ => return Err(JpegError::Unsupported("images of two components")),
        })
    }
}

fn frame(segment: &[u8], progressive: bool) -> Result<FrameHeader> {
    let &[bits, h1, h0, w1, w0, count, ref components @ ..] = segment else {
        return Err(JpegError::Invalid("a frame header"));
    };
    if bits != 8 {
        return Err(JpegError::Unsupported("images of other than 8 bits"));
    }
    if components.len() != usize::from(count) * 3 {
        return Err(JpegError::Invalid("a frame header"));
    }
    let component = |bytes: &[u8]| ComponentHeader {
        id: bytes[0],
        horizontal: usize::from(bytes[1] >> 4),
        vertical: usize::from(bytes[1] & 15),
        quantization: usize::from(bytes[2]),
    };
    Ok(FrameHeader {
        progressive,
        width: usize::from(u16::from_be_bytes([w1, w0])),
        height: usize::from(u16::from_be_bytes([h1, h0])),
        components: components.chunks_exact(3).map(component).collect(),
    })
}

fn scan(segment: &[u8]) -> Result<ScanHeader> {
    const DAMAGED: JpegError = JpegError::Invalid("a scan header");
    let (&count, rest) = segment.split_first().ok_or(DAMAGED)?;
    let (components, rest) = rest.split_at_checked(usize::from(count) * 2).ok_or(DAMAGED)?;
    let &[start, end, bits] = rest else { return Err(DAMAGED) };
    let component = |bytes: &[u8]| ScanComponent {
        id: bytes[0],
        dc_table: usize::from(bytes[1] >> 4),
        ac_table: usize::from(bytes[1] & 15),
    };
    Ok(ScanHeader {
        components: components.chunks_exact(2).map(component).collect(),
        start: usize::from(start),
        end: usize::from(end),
        high: bits >> 4,
        low: bits & 15,
    })
}
