//! Descriptions: what is read, what is filled in, and what is refused where.

use std::path::Path;

use super::*;

const MINE: &str = r#"schema_version = 1
name = "mine"
[model]
architecture = "factory"
factory = "mine.py:make"
licence = "MIT"
[data]
format = "tensors"
factory = "mine.py:data"
licence = "CC0-1.0"
[training]
batch_size = 8
[optimizer]
name = "sgd"
lr = 0.1
[metrics.accuracy]
output = "logits"
labels = "labels"
"#;

fn parse(text: &str) -> Result<Description, String> {
    Description::parse(text, "mine.toml", Path::new("/folder")).map_err(|error| error.to_string())
}

#[test]
fn all_built_in_descriptions_are_read() {
    for name in names() {
        let description = Description::find(name).unwrap();
        assert_eq!(description.name(), name);
        assert!(!description.title().is_empty());
        for (preset, title) in description.presets() {
            assert!(!title.is_empty(), "{name} {preset}");
            let plan = description.plan(Some(preset), &Overrides::default()).unwrap();
            // Alpaca is the only one that needs to be asked for.
            let gated = (name, preset) == ("llama-qlora", "full");
            assert_eq!(plan.check_licences(&[]).is_err(), gated, "{name} {preset}");
        }
    }
}

#[test]
fn the_full_preset_is_the_configuration_of_the_published_benchmark() {
    let plan = Description::find("bert-squad").unwrap().plan(Some("full"), &Overrides::default()).unwrap();
    assert_eq!((plan.training.epochs, plan.training.batch_size, plan.data.max_length), (2, 8, 384));
    assert_eq!(plan.training.steps, None);
}

#[test]
fn what_is_left_out_is_filled_in_and_paths_begin_at_the_file() {
    let plan = parse(MINE).unwrap().plan(None, &Overrides::default()).unwrap();
    assert_eq!(plan.model.factory.as_deref(), Some("/folder/mine.py:make"));
    assert_eq!((plan.training.epochs, plan.optimizer.weight_decay, plan.record.every), (1, 0.0, 100));
    let overrides = Overrides { epochs: Some(3), seed: Some(9), batch_size: Some(2), ..Overrides::default() };
    let plan = parse(&MINE.replace("batch_size = 8", "batch_size = 8\nsteps = 5")).unwrap();
    let plan = plan.plan(None, &overrides).unwrap();
    assert_eq!((plan.training.epochs, plan.training.steps, plan.training.seed), (3, None, 9));
    assert_eq!(plan.training.batch_size, 2);
}

#[test]
fn a_preset_replaces_single_keys() {
    let text = format!("{MINE}[presets.big]\ntitle = \"big\"\noptimizer.lr = 0.2\n");
    let description = parse(&text).unwrap();
    let plan = description.plan(Some("big"), &Overrides::default()).unwrap();
    assert_eq!((plan.optimizer.lr, plan.optimizer.name), (0.2, OptimizerName::Sgd));
    let error = description.plan(Some("bigg"), &Overrides::default()).unwrap_err().to_string();
    assert!(error.contains("there is no preset `bigg`, did you mean `big`?"), "{error}");
    let error = description.plan(None, &Overrides::default()).unwrap_err().to_string();
    assert!(error.contains("choose a preset with --preset: big"), "{error}");
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (from, to, expected) in [
        ("lr = 0.1", "lrr = 0.1", "mine.toml:15:1: unknown field `lrr`"),
        ("lr = 0.1", "lrr = 0.1", "did you mean `lr`?"),
        ("\"sgd\"", "\"sgdd\"", "mine.toml:14:8: unknown variant `sgdd`"),
        ("lr = 0.1", "lr = \"fast\"", "mine.toml:15:6: "),
        ("lr = 0.1", "", "`optimizer.lr` is missing"),
        ("lr = 0.1", "lr = -1.0", "`optimizer.lr` must be above 0"),
        ("licence = \"MIT\"", "", "`model.licence` is missing"),
        ("schema_version = 1", "schema_version = 7", "newer than 1"),
        ("schema_version = 1", "", "`schema_version = 1` is missing"),
        ("factory = \"mine.py:data\"", "", "`data.train` is missing"),
        ("licence = \"MIT\"", "licence = \"MIT\"\ndropout = 1.5", "`model.dropout` 1.5 is no probability"),
        ("format = \"tensors\"", "format = \"squad\"", "data of the format squad need the architecture"),
        ("[metrics", "[tolerances.class.weights]\nrtol = -1.0\n[metrics", "is no tolerance"),
    ] {
        let error = parse(&MINE.replacen(from, to, 1)).map(|_| ()).unwrap_err();
        assert!(error.contains(expected), "{to}: {error}");
    }
    let error = Description::find("bert-sqad").unwrap_err().to_string();
    assert!(error.contains("did you mean `bert-squad`?"), "{error}");
    assert!(Description::find("./nowhere.toml").unwrap_err().to_string().starts_with("./nowhere.toml: "));
}

#[test]
fn data_may_be_named_by_the_command_line_alone() {
    let coco = MINE
        .replace("architecture = \"factory\"\nfactory = \"mine.py:make\"", "architecture = \"faster-rcnn\"")
        .replace("format = \"tensors\"\nfactory = \"mine.py:data\"", "format = \"coco\"")
        .replace(
            "[metrics.accuracy]\noutput = \"logits\"\nlabels = \"labels\"",
            "[record]\nactivations = \"none\"",
        );
    let description = parse(&coco).unwrap();
    let error = description.plan(None, &Overrides::default()).unwrap_err().to_string();
    assert!(error.contains("`data.train` is missing"), "{error}");
    let overrides = Overrides { data: Some("/coco".into()), ..Overrides::default() };
    let plan = description.plan(None, &overrides).unwrap();
    assert!(matches!(plan.data.train, Some(Source::Path(path)) if path == Path::new("/coco")));
}

#[test]
fn non_commercial_licences_need_to_be_accepted() {
    for (licence, restricted) in [
        ("CC BY-NC 4.0", true),
        ("CC-BY-NC-SA-3.0", true),
        ("Non-Commercial", true),
        ("research only", true),
        ("CC BY-SA 4.0", false),
        ("Apache-2.0", false),
        ("NCSA", false),
    ] {
        assert_eq!(is_non_commercial(licence), restricted, "{licence}");
    }
    let plan =
        parse(&MINE.replace("CC0-1.0", "CC BY-NC 4.0")).unwrap().plan(None, &Overrides::default()).unwrap();
    let error = plan.check_licences(&[]).unwrap_err().to_string();
    assert!(
        error.contains("the data, CC BY-NC 4.0") && error.contains("--accept-licence 'CC BY-NC 4.0'"),
        "{error}"
    );
    plan.check_licences(&["CC BY-NC 4.0".to_owned()]).unwrap();
}
