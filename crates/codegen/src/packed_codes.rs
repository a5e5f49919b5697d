//! Codes of 4 bits as kernels read them.

use warpforge_fusion::NodeId;
use warpforge_fusion::cluster::{Cluster, Contraction, Kind};
use warpforge_fusion::precision::quantize::QuantizedWeights;
use warpforge_tensor::{ElementType, Tensor};

/// Codes of a word.
pub const CODES_OF_WORD: usize = 8;

/// What is added to a code, so that it is no less than zero.
pub const CODE_ZERO: i32 = 8;

/// Codes of 4 bits, eight in a word of 32 bits: code j of a word, plus [`CODE_ZERO`], in bits 4j to 4j + 3. None where they are no such
/// codes, or do not fill words.
#[must_use]
pub fn packed_codes(codes: &Tensor) -> Option<Tensor> {
    let words = codes.bytes().chunks_exact(CODES_OF_WORD);
    if codes.element_type() != ElementType::I4 || !words.remainder().is_empty() {
        return None;
    }
    let word = |codes: &[u8]| {
        let bits = |(at, &code): (usize, &u8)| u32::from((code & 0xf) ^ CODE_ZERO as u8) << (4 * at);
        codes.iter().enumerate().map(bits).fold(0, |word, bits| word | bits)
    };
    let words: Vec<u32> = words.map(word).collect();
    Tensor::from_slice(&[words.len()], &words).ok()
}

/// The codes of a product with weights in groups.
#[must_use]
pub fn grouped_codes(cluster: &Cluster) -> Option<NodeId> {
    match &cluster.kind {
        Kind::Dot(Contraction { weights: Some(QuantizedWeights { codes, groups: Some(_), .. }), .. }) => {
            Some(*codes)
        }
        _ => None,
    }
}

/// The same product with another value as its codes: what [`packed_codes`] gives of them.
#[must_use]
pub fn with_packed_codes(cluster: &Cluster, packed: NodeId) -> Cluster {
    let mut cluster = cluster.clone();
    if let Kind::Dot(Contraction { operands: [_, codes], weights: Some(weights), .. }) = &mut cluster.kind {
        (codes.value, weights.codes) = (packed, packed);
    }
    cluster
}

#[cfg(test)]
mod tests {
    use warpforge_tensor::Shape;

    use super::*;

    #[test]
    fn eight_codes_fill_a_word() {
        let codes = |count: usize| {
            let bytes: Vec<u8> = (0..count).map(|at| (at as u8).wrapping_sub(8) & 0xf).collect();
            Tensor::from_bytes(ElementType::I4, Shape::new([count]).unwrap(), &bytes).unwrap()
        };
        let packed = packed_codes(&codes(16)).unwrap();
        assert_eq!(packed.as_slice::<u32>().unwrap(), [0x7654_3210, 0xfedc_ba98]);
        assert!(packed_codes(&codes(12)).is_none());
        assert!(packed_codes(&Tensor::from_slice(&[8], &[0i8; 8]).unwrap()).is_none());
    }
}
