//! The masks that dropout drew in a golden run: one file for each forward pass, or one for each rank that computed a part of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use warpforge::{Shape, Tensor};
use warpforge_tensor::io::safetensors;

use crate::Error;

/// Where the masks of a golden run are, and how those of several ranks are joined.
#[derive(Debug, Clone)]
pub(crate) struct Masks {
    folder: PathBuf,
    /// The dimension of each mask that is the batch's.
    axes: Vec<usize>,
    /// The ranks of the golden run.
    ranks: usize,
}

impl Masks {
    /// Those of the golden run in a folder.
    pub(crate) fn new(golden: &Path, axes: Vec<usize>, ranks: usize) -> Self {
        Self { folder: golden.join("masks"), axes, ranks }
    }

    /// The masks of one of so many equal parts of the batch of a forward pass, by the names of the graph's inputs.
    pub(crate) fn part(
        &self,
        run: u64,
        part: usize,
        parts: usize,
    ) -> Result<BTreeMap<String, Tensor>, Error> {
        let name = format!("run_{run:06}.safetensors");
        if self.ranks == 1 && parts == 1 {
            return read(&self.folder.join(name));
        }
        if parts == 0 || part >= parts || !self.ranks.is_multiple_of(parts) {
            let ranks = self.ranks;
            let reason = format!("{ranks} ranks drew the masks of a batch; they do not make {parts} parts");
            return Err(Error::golden(&self.folder, reason));
        }
        let each = self.ranks / parts;
        let files = (part * each..(part + 1) * each)
            .map(|rank| {
                let path = self.folder.join(format!("rank_{rank:06}")).join(&name);
                let tensors = read(&path)?;
                Ok((path, tensors))
            })
            .collect::<Result<Vec<_>, Error>>()?;
        (0..self.axes.len()).map(|at| self.joined(at, &files)).collect()
    }

    /// One mask of consecutive ranks, as that of their parts together.
    fn joined(
        &self,
        at: usize,
        files: &[(PathBuf, BTreeMap<String, Tensor>)],
    ) -> Result<(String, Tensor), Error> {
        let name = format!("masks_{at}");
        let parts = files
            .iter()
            .map(|(path, tensors)| {
                let missing = || Error::golden(path, format!("it has no `{name}`"));
                tensors.get(&name).ok_or_else(missing)
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let axis = self.axes.get(at).copied().unwrap_or(0);
        concatenated(&parts, axis)?.map(|joined| (name.clone(), joined)).ok_or_else(|| {
            let dims: Vec<&[usize]> = parts.iter().map(|part| part.dims()).collect();
            let reason = format!("`{name}` of the ranks cannot be joined along dimension {axis}: {dims:?}");
            Error::golden(&self.folder, reason)
        })
    }
}

/// The tensors of a file of the golden folder.
pub(crate) fn read(path: &Path) -> Result<BTreeMap<String, Tensor>, Error> {
    safetensors::read(path).map_err(|error| Error::golden(path, error.to_string()))
}

/// Tensors joined along a dimension; `None` where they differ in type or in another dimension.
fn concatenated(parts: &[&Tensor], axis: usize) -> Result<Option<Tensor>, Error> {
    let beside = |part: &Tensor| {
        let mut dims = part.dims().to_vec();
        let size = (axis < dims.len()).then(|| std::mem::take(&mut dims[axis]))?;
        Some((size, part.element_type(), dims))
    };
    let Some(kinds) = parts.iter().map(|part| beside(part)).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let Some((_, element, dims)) = kinds.first() else { return Ok(None) };
    if kinds.iter().any(|(_, other, others)| (other, others) != (element, dims)) {
        return Ok(None);
    }
    let mut dims = dims.clone();
    dims[axis] = kinds.iter().map(|(size, ..)| size).sum();
    let mut joined = Tensor::zeros(*element, Shape::new(dims)?)?;
    let steps: Vec<isize> = joined.shape().strides().into_iter().map(|step| step as isize).collect();
    let mut start = 0;
    for (part, (size, ..)) in parts.iter().zip(&kinds) {
        joined.set_strided(start, &steps, part)?;
        start += size * steps[axis].unsigned_abs();
    }
    Ok(Some(joined))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The golden folder of so many ranks, each with a mask of 2 × 1 and one of 1 × 2.
    fn recorded(ranks: u8) -> (tempfile::TempDir, Masks) {
        let home = tempfile::tempdir().unwrap();
        for rank in 0..ranks {
            let folder = home.path().join(format!("masks/rank_{rank:06}"));
            std::fs::create_dir_all(&folder).unwrap();
            let values = [10 * rank, 10 * rank + 1];
            let [column, row] = [[2, 1], [1, 2]].map(|dims| Tensor::from_slice(&dims, &values).unwrap());
            let tensors = [("masks_0", &column), ("masks_1", &row)];
            safetensors::write(&folder.join("run_000003.safetensors"), tensors).unwrap();
        }
        let masks = Masks::new(home.path(), vec![0, 1], usize::from(ranks));
        (home, masks)
    }

    fn values(masks: &BTreeMap<String, Tensor>, name: &str) -> (Vec<usize>, Vec<u8>) {
        (masks[name].dims().to_vec(), masks[name].as_slice::<u8>().unwrap().to_vec())
    }

    #[test]
    fn parts_of_several_ranks_are_joined_along_the_batch() {
        let (_home, masks) = recorded(4);
        let whole = masks.part(3, 0, 1).unwrap();
        assert_eq!(values(&whole, "masks_0"), (vec![8, 1], vec![0, 1, 10, 11, 20, 21, 30, 31]));
        assert_eq!(values(&whole, "masks_1"), (vec![1, 8], vec![0, 1, 10, 11, 20, 21, 30, 31]));
        let half = masks.part(3, 1, 2).unwrap();
        assert_eq!(values(&half, "masks_0"), (vec![4, 1], vec![20, 21, 30, 31]));
        let quarter = masks.part(3, 3, 4).unwrap();
        assert_eq!(values(&quarter, "masks_1"), (vec![1, 2], vec![30, 31]));
    }

    #[test]
    fn masks_that_do_not_fit_together_are_named() {
        let (home, masks) = recorded(2);
        let said = |masks: &Masks, run, part, parts| masks.part(run, part, parts).unwrap_err().to_string();
        assert!(
            said(&masks, 3, 0, 3).contains("2 ranks drew the masks of a batch; they do not make 3 parts")
        );
        assert!(said(&masks, 4, 0, 2).contains("run_000004"));
        let other = Masks::new(home.path(), vec![0, 2], 2);
        assert!(said(&other, 3, 0, 1).contains("`masks_1` of the ranks cannot be joined along dimension 2"));
        let more = Masks::new(home.path(), vec![0, 1, 0], 2);
        assert!(said(&more, 3, 0, 1).contains("it has no `masks_2`"));
    }
}
