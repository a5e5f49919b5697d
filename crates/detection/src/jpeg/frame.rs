//! The image of a file: its components, their coefficients, and the samples that these give.

use super::error::JpegError;
use super::{idct, upsample};

type Result<T> = std::result::Result<T, JpegError>;

/// The places of a block's coefficients, in the order of the file.
pub(super) const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7,
    14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39,
    46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// The most pixels that PIL decodes.
const MOST_PIXELS: usize = 178_956_970;

/// A component as the frame's header has it.
pub(super) struct ComponentHeader {
    pub(super) id: u8,
    pub(super) horizontal: usize,
    pub(super) vertical: usize,
    pub(super) quantization: usize,
}

/// The header of a frame.
pub(super) struct FrameHeader {
    pub(super) progressive: bool,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) components: Vec<ComponentHeader>,
}

/// A component with its coefficients.
pub(super) struct Component {
    pub(super) id: u8,
    /// Its sampling factors.
    pub(super) horizontal: usize,
    pub(super) vertical: usize,
    /// The number of its quantization table.
    pub(super) quantization: usize,
    /// The table itself, since the component's first scan.
    pub(super) table: Option<[u16; 64]>,
    /// Its size in samples.
    width: usize,
    height: usize,
    /// Its blocks, without those that only fill the last MCUs.
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// The blocks of a row that are stored.
    pub(super) stride: usize,
    /// The coefficients of each block, in natural order.
    pub(super) blocks: Vec<[i16; 64]>,
    /// Whether the DC coefficients have come.
    pub(super) seen: bool,
}

/// An image while it is decoded.
pub(super) struct Frame {
    pub(super) progressive: bool,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) components: Vec<Component>,
    /// The MCUs of a row and their rows.
    pub(super) mcus: (usize, usize),
    /// The highest sampling factors.
    most: (usize, usize),
}

impl Frame {
    /// The frame of a header, in a file of so many bytes.
    pub(super) fn new(header: FrameHeader, bytes: usize) -> Result<Self> {
        let FrameHeader { progressive, width, height, components } = header;
        if width == 0 || height == 0 {
            return Err(JpegError::Invalid("an image without pixels"));
        }
        if width * height > MOST_PIXELS {
            return Err(JpegError::Unsupported("images of more than 178,956,970 pixels"));
        }
        if components.is_empty() || components.len() > 4 {
            return Err(JpegError::Invalid("the number of components"));
        }
        let ids: std::collections::HashSet<u8> = components.iter().map(|component| component.id).collect();
        if ids.len() != components.len() {
            return Err(JpegError::Invalid("a component that is there twice"));
        }
        if components.iter().any(|c| !(1..=4).contains(&c.horizontal) || !(1..=4).contains(&c.vertical)) {
            return Err(JpegError::Invalid("a sampling factor"));
        }
        let most = components.iter().fold((1, 1), |most: (usize, usize), component| {
            (most.0.max(component.horizontal), most.1.max(component.vertical))
        });
        let mcus = (width.div_ceil(8 * most.0), height.div_ceil(8 * most.1));
        let blocks: usize = components.iter().map(|c| mcus.0 * c.horizontal * mcus.1 * c.vertical).sum();
        // A block has at least one bit. This bounds what a header makes us allocate; those that fill the last MCUs are not
        // in every file.
        if blocks / 16 > bytes * 8 {
            return Err(JpegError::Truncated);
        }
        let component = |header: ComponentHeader| {
            let width = (width * header.horizontal).div_ceil(most.0);
            let height = (height * header.vertical).div_ceil(most.1);
            let (stride, rows) = (mcus.0 * header.horizontal, mcus.1 * header.vertical);
            Component {
                id: header.id,
                horizontal: header.horizontal,
                vertical: header.vertical,
                quantization: header.quantization,
                table: None,
                width,
                height,
                columns: width.div_ceil(8),
                rows: height.div_ceil(8),
                stride,
                blocks: vec![[0; 64]; stride * rows],
                seen: false,
            }
        };
        let components = components.into_iter().map(component).collect();
        Ok(Self { progressive, width, height, components, mcus, most })
    }

    /// Whether each component has had a scan.
    pub(super) fn is_complete(&self) -> bool {
        self.components.iter().all(|component| component.seen)
    }

    /// The samples of the components, each as large as the image.
    pub(super) fn planes(&self) -> Result<Vec<Vec<u8>>> {
        self.components.iter().map(|component| self.plane(component)).collect()
    }

    fn plane(&self, component: &Component) -> Result<Vec<u8>> {
        let table = component.table.ok_or(JpegError::Invalid("a component without a quantization table"))?;
        let Component { width, height, stride, .. } = *component;
        let mut samples = vec![0; width * height];
        for (row, blocks) in component.blocks.chunks_exact(stride).take(component.rows).enumerate() {
            for (column, block) in blocks.iter().take(component.columns).enumerate() {
                let values = idct::block(block, &table);
                let (top, left) = (row * 8, column * 8);
                let count = (width - left).min(8);
                for (line, values) in values.chunks_exact(8).take(height - top).enumerate() {
                    let start = (top + line) * width + left;
                    samples[start..start + count].copy_from_slice(&values[..count]);
                }
            }
        }
        let plane = upsample::Plane { samples, width, height };
        let factors = (component.horizontal, component.vertical);
        upsample::upsample(plane, factors, self.most, (self.width, self.height))
    }
}
