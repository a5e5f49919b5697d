//! Colours, as libjpeg and PIL convert them.

use crate::picture::Picture;

/// What the components of an image are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Color {
    Grey,
    Rgb,
    YCbCr,
    Cmyk,
    Ycck,
}

/// The picture of planes, each of the picture's size.
pub(super) fn picture(planes: &[Vec<u8>], width: usize, height: usize, color: Color) -> Picture {
    let pixel = |index: usize| {
        let sample = |plane: usize| planes[plane][index];
        match color {
            Color::Grey => [sample(0); 3],
            Color::Rgb => [sample(0), sample(1), sample(2)],
            Color::YCbCr => rgb([sample(0), sample(1), sample(2)]),
            // Adobe stores inks inverted, and PIL takes every CMYK image for one of Adobe's.
            Color::Cmyk => from_inks([sample(0), sample(1), sample(2), sample(3)].map(|value| 255 - value)),
            // libjpeg makes CMYK of the colours' complements, which PIL inverts again.
            Color::Ycck => {
                let [cyan, magenta, yellow] = rgb([sample(0), sample(1), sample(2)]);
                from_inks([cyan, magenta, yellow, 255 - sample(3)])
            }
        }
    };
    let pixels = (0..width * height).flat_map(pixel).collect();
    Picture { width, height, pixels }
}

/// Red, green and blue of luminance and chrominance, in fixed point with 16 bits after the point.
fn rgb([y, cb, cr]: [u8; 3]) -> [u8; 3] {
    const HALF: i32 = 1 << 15;
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    let red = (91_881 * cr + HALF) >> 16; // 1.40200
    let green = (-22_554 * cb - 46_802 * cr + HALF) >> 16; // 0.34414, 0.71414
    let blue = (116_130 * cb + HALF) >> 16; // 1.77200
    [y + red, y + green, y + blue].map(|value| value.clamp(0, 255) as u8)
}

/// Red, green and blue of cyan, magenta, yellow and black.
fn from_inks([cyan, magenta, yellow, black]: [u8; 4]) -> [u8; 3] {
    let light = 255 - u32::from(black);
    [cyan, magenta, yellow].map(|ink| {
        let product = u32::from(ink) * light + 128;
        (light - (((product >> 8) + product) >> 8)) as u8
    })
}
