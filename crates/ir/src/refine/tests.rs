//! What is known of small integers.

use super::known::Known;
use crate::attr::DenseElements;
use crate::types::ElementType;

#[test]
fn only_small_tensors_of_integers_are_followed() {
    let shape = DenseElements::i64s(&[3], &[2, -1, 4]).unwrap();
    let known = Known::of(&shape).unwrap();
    assert_eq!((known.i64s(), known.sizes()), (Some(vec![2, -1, 4]), None));
    assert_eq!(known.constant().and_then(|value| value.as_elements().cloned()), Some(shape));
    let large = DenseElements::i64s(&[1 << 13], &[7; 1 << 13]).unwrap();
    assert_eq!(Known::of(&large), None);
}

#[test]
fn scalars_wrap_as_their_type_does() {
    assert_eq!(Known::scalar(ElementType::I8, 200).values(), [-56]);
    assert_eq!(Known::scalar(ElementType::Bool, 5).values(), [1]);
}
