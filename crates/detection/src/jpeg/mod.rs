//! JPEG images, with the pixels of libjpeg-turbo.
//!
//! A detector sees what its images were decoded to. PIL and torchvision decode with libjpeg-turbo, whose inverse DCT,
//! chroma upsampling and colour conversion are integer arithmetic; this decoder has the same, so that both get the same pixels.
//! Decoders such as `zune-jpeg` and `jpeg-decoder` differ by up to 3 of 255.
//!
//! Baseline, extended sequential and progressive images with 8 bits are decoded: greyscale, RGB, YCbCr, CMYK and YCCK. What is
//! cut off or damaged is an error. The orientation in EXIF is not applied, as PIL's `convert` and torchvision's datasets do
//! not.

mod bits;
mod color;
mod error;
mod frame;
mod header;
mod huffman;
mod idct;
mod progressive;
mod scan;
mod sequential;
#[cfg(test)]
mod tests;
mod upsample;

pub use error::JpegError;

use crate::picture::Picture;
use frame::Frame;
use header::{Headers, Next};

/// The pixels of a JPEG file, as PIL's `Image.open(file).convert("RGB")` gives them.
///
/// # Errors
///
/// When the bytes are no JPEG, are cut off or damaged, or of a kind that is not decoded: arithmetic coding, lossless,
/// hierarchical, other than 8 bits, or more than 178,956,970 pixels, PIL's limit.
pub fn decode(bytes: &[u8]) -> Result<Picture, JpegError> {
    let mut headers = Headers::new(bytes)?;
    let mut frame: Option<Frame> = None;
    loop {
        match headers.next()? {
            Next::Frame(header) => {
                if frame.is_some() {
                    return Err(JpegError::Invalid("a second frame"));
                }
                frame = Some(Frame::new(header, bytes.len())?);
            }
            Next::Scan(header) => {
                let frame = frame.as_mut().ok_or(JpegError::Invalid("a scan before its frame"))?;
                let read = scan::decode(frame, &header, &headers)?;
                headers.skip(read);
                // What comes after the last scan of a sequential image changes nothing.
                if !frame.progressive && frame.is_complete() {
                    break;
                }
            }
            Next::End => break,
        }
    }
    let frame = frame.ok_or(JpegError::Truncated)?;
    if !frame.is_complete() {
        return Err(JpegError::Truncated);
    }
    let planes = frame.planes()?;
    Ok(color::picture(&planes, frame.width, frame.height, headers.color(&frame)?))
}
