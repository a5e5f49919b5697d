//! Numbers beside those of the field's own programs: `pycocotools`, PIL and torchvision. `WARPT_PYTHON` names a Python that has them, `COCO_FOLDER` a
//! folder with images and annotations in COCO's layout. Tests without what they need are ignored, and a line on standard
//! error says why.

mod data;
mod images;
mod metrics;
mod python;
mod selection;

use libtest_mimic::{Arguments, Trial};

type Outcome = Result<(), libtest_mimic::Failed>;

fn main() {
    let arguments = Arguments::from_args();
    let coco = data::folder().err();
    let trials = vec![
        trial("metrics of random cases", &["pycocotools"], None, metrics::random_cases),
        trial("metrics of COCO's annotations", &["pycocotools"], coco.clone(), metrics::real_annotations),
        trial("images of COCO", &["PIL", "torchvision"], coco, images::of_coco),
        trial("random images", &["PIL", "torchvision"], None, images::random),
        trial("proposals, matches and detections", &["torchvision"], None, selection::cases),
    ];
    libtest_mimic::run(&arguments, trials).exit();
}

/// A test that needs modules and perhaps more; ignored, with the reason, where something is missing.
fn trial(name: &str, modules: &[&str], missing: Option<String>, test: fn() -> Outcome) -> Trial {
    match missing.or_else(|| python::missing(modules)) {
        None => Trial::test(name, test),
        Some(reason) => {
            eprintln!("ignored, {name}: {reason}");
            Trial::test(name, || Ok(())).with_ignored_flag(true)
        }
    }
}
