//! Whether a tensor fits the type that an argument is declared with.

use warpforge_ir::{Dim, TensorType};
use warpforge_tensor::Tensor;

/// What is wrong with a tensor for an argument of this type: `has …, not …`. `None` when it fits.
#[must_use]
pub fn mismatch(ty: &TensorType, tensor: &Tensor) -> Option<String> {
    let fits = |(dim, &size): (&Dim, &usize)| dim.compatible(Dim::Static(size as u64));
    let element = ty.element().storage() == Some(tensor.element_type());
    let shape = ty.rank() == tensor.dims().len() && ty.dims().iter().zip(tensor.dims()).all(fits);
    if element && shape {
        return None;
    }
    let found: Vec<u64> = tensor.dims().iter().map(|&dim| dim as u64).collect();
    Some(format!("is {}, not {ty}", TensorType::fixed(&found, tensor.element_type())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpforge_ir::ElementType;

    #[test]
    fn type_rank_sizes_and_bounds_are_compared() {
        let tensor = Tensor::from_slice(&[2, 3], &[0.0f32; 6]).unwrap();
        let ty = |dims: &[Dim], element| TensorType::new(dims.to_vec(), element);
        let (two, three) = (Dim::Static(2), Dim::Static(3));
        assert_eq!(mismatch(&ty(&[two, three], ElementType::F32), &tensor), None);
        assert_eq!(mismatch(&ty(&[two, Dim::Dynamic], ElementType::F32), &tensor), None);
        assert_eq!(mismatch(&ty(&[two, Dim::Bounded(3)], ElementType::F32), &tensor), None);
        for wrong in [
            ty(&[two, two], ElementType::F32),
            ty(&[two, Dim::Bounded(2)], ElementType::F32),
            ty(&[two], ElementType::F32),
            ty(&[two, three], ElementType::F64),
        ] {
            let text = mismatch(&wrong, &tensor).unwrap();
            assert!(text.starts_with("is tensor<2x3xf32>, not tensor<"), "{text}");
        }
    }
}
