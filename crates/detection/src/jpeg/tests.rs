//! Small images of `tests/images`, which PIL wrote and decoded.

use std::path::PathBuf;

use super::*;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/images")
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(format!("{name}.jpg"))).unwrap()
}

/// The pixels that PIL found.
fn expected(name: &str) -> Picture {
    let bytes = std::fs::read(folder().join(format!("{name}.ppm"))).unwrap();
    let lines: Vec<&[u8]> = bytes.splitn(4, |&byte| byte == b'\n').collect();
    let sizes = std::str::from_utf8(lines[1]).unwrap().split(' ').map(|size| size.parse().unwrap());
    let sizes: Vec<usize> = sizes.collect();
    Picture { width: sizes[0], height: sizes[1], pixels: lines[3].to_vec() }
}

#[track_caller]
fn same(name: &str) {
    assert_eq!(decode(&file(name)).unwrap(), expected(name), "{name}");
}

#[test]
fn sequential_images_have_the_pixels_of_pil() {
    ["baseline-420", "baseline-422", "baseline-444", "restarts"].into_iter().for_each(same);
}

#[test]
fn progressive_images_have_the_pixels_of_pil() {
    same("progressive");
}

#[test]
fn grey_and_cmyk_images_become_the_colours_of_pil() {
    ["grey", "cmyk"].into_iter().for_each(same);
}

#[test]
fn images_of_few_pixels_are_not_filtered() {
    ["narrow", "pixel"].into_iter().for_each(same);
}

#[test]
fn the_orientation_of_exif_is_not_applied() {
    same("rotated");
    assert_eq!((expected("rotated").width, expected("rotated").height), (19, 21));
}

/// Images with all that a decoder branches on.
const DAMAGED: [&str; 4] = ["baseline-420", "progressive", "restarts", "cmyk"];

#[test]
fn an_image_that_is_cut_off_is_an_error() {
    for name in DAMAGED {
        let bytes = file(name);
        // The last two bytes mark the end; a sequential image is complete without them.
        for length in 0..bytes.len() - 3 {
            let error = decode(&bytes[..length]).expect_err("not all pixels are there");
            let known = matches!(error, JpegError::Truncated | JpegError::NotJpeg);
            assert!(known, "{name} of {length} bytes: {error}");
        }
    }
}

#[test]
fn damaged_images_do_not_panic() {
    for name in DAMAGED {
        let bytes = file(name);
        for place in 0..bytes.len() {
            for value in [0, 0xff, 0xd9, bytes[place] ^ 1, bytes[place] ^ 0x80] {
                let mut damaged = bytes.clone();
                damaged[place] = value;
                if let Ok(picture) = decode(&damaged) {
                    assert_eq!(picture.pixels.len(), picture.width * picture.height * 3);
                }
            }
        }
    }
}

#[test]
fn a_size_that_the_file_cannot_fill_is_refused_before_it_is_allocated() {
    let mut bytes = file("baseline-420");
    let frame = bytes.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    bytes[frame + 5..frame + 9].copy_from_slice(&[0x20, 0, 0x20, 0]);
    assert_eq!(decode(&bytes), Err(JpegError::Truncated));
    bytes[frame + 5..frame + 9].copy_from_slice(&[0xff; 4]);
    assert!(matches!(decode(&bytes), Err(JpegError::Unsupported(_))));
    bytes[frame + 5..frame + 9].copy_from_slice(&[0; 4]);
    assert!(matches!(decode(&bytes), Err(JpegError::Invalid(_))));
}

#[test]
fn other_kinds_are_named() {
    let with = |marker: u8, bits: u8| {
        let mut bytes = file("baseline-420");
        let frame = bytes.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
        (bytes[frame + 1], bytes[frame + 4]) = (marker, bits);
        decode(&bytes).unwrap_err().to_string()
    };
    assert_eq!(with(0xc0, 12), "images of other than 8 bits are not supported");
    assert_eq!(with(0xc9, 8), "arithmetic-coded images are not supported");
    assert_eq!(with(0xc3, 8), "lossless and hierarchical images are not supported");
    assert_eq!(decode(b"\x89PNG\r\n"), Err(JpegError::NotJpeg));
}
