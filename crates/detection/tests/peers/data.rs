//! Images and annotations of COCO, which are not part of the project.

use std::path::PathBuf;

const COCO: &str = "COCO_FOLDER";

/// The folder with `annotations`, `train2017` and `val2017`.
pub(crate) fn folder() -> Result<PathBuf, String> {
    std::env::var_os(COCO).map(PathBuf::from).ok_or(format!("{COCO} names no folder of COCO"))
}
