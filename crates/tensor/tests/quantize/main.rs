//! Quantizers against `bitsandbytes`, bit for bit. `record.py` made the cases.

use std::collections::BTreeMap;
use std::path::Path;

use warpforge_tensor::Tensor;
use warpforge_tensor::io::safetensors;
use warpforge_tensor::quantize::{DynamicMap, Nf4};

fn cases() -> BTreeMap<String, Tensor> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/quantize/cases.safetensors");
    safetensors::read(&path).unwrap()
}

fn floats<'c>(cases: &'c BTreeMap<String, Tensor>, name: &str) -> &'c [f32] {
    cases[name].as_slice().unwrap()
}

fn bytes<'c>(cases: &'c BTreeMap<String, Tensor>, name: &str) -> &'c [u8] {
    cases[name].as_slice().unwrap()
}

fn map(name: &str) -> DynamicMap {
    if name == "signed" { DynamicMap::signed() } else { DynamicMap::unsigned() }
}

#[test]
fn dynamic_maps_have_the_same_values() {
    let cases = cases();
    for name in ["signed", "unsigned"] {
        let expected = floats(&cases, &format!("map.{name}"));
        for (at, (found, expected)) in map(name).values().iter().zip(expected).enumerate() {
            assert_eq!(found.to_bits(), expected.to_bits(), "{name} {at}: {found:e} {expected:e}");
        }
        assert_eq!(map(name).values().len(), expected.len());
    }
}

#[test]
fn blocks_have_the_same_codes() {
    let cases = cases();
    for name in ["signed", "unsigned"] {
        let of = |part: &str| format!("block.{name}.{part}");
        let (codes, absmax) = map(name).quantize(floats(&cases, &of("values")));
        assert_eq!(codes, bytes(&cases, &of("codes")), "{name}");
        assert_eq!(absmax, floats(&cases, &of("absmax")), "{name}");
    }
}

#[test]
fn nf4_has_the_same_codes_scales_and_offset() {
    let cases = cases();
    for name in ["square", "wide", "zeros", "tails"] {
        let of = |part: &str| format!("nf4.{name}.{part}");
        let found = Nf4::quantize(floats(&cases, &of("weight")));
        assert_eq!(found.packed, bytes(&cases, &of("packed")), "{name}");
        assert_eq!([found.scale_offset], *floats(&cases, &of("scale_offset")), "{name}");
        assert_eq!(found.scale_codes, bytes(&cases, &of("scale_codes")), "{name}");
        assert_eq!(found.scale_absmax, floats(&cases, &of("scale_absmax")), "{name}");
        assert_eq!(found.dequantize(), floats(&cases, &of("dequantized")), "{name}");
    }
}
