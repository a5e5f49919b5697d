use super::*;

fn key(class: Class, name: &str) -> Key {
    Key { step: String::new(), class, name: name.to_owned() }
}

fn rule(text: &str, class: Class, name: &str) -> Rule {
    Tolerances::parse(text, "t.toml").unwrap().rule(&key(class, name), ElementType::F32)
}

#[test]
fn the_defaults_are_the_projects_numbers() {
    for (class, rtol, atol) in [
        (Class::Weights, 1e-4, 1e-6),
        (Class::Activations, 1e-3, 1e-5),
        (Class::Gradients, 1e-3, 1e-5),
        (Class::Losses, 1e-4, 1e-6),
        (Class::Metrics, 5e-3, 0.0),
    ] {
        let rule = rule("", class, "x");
        assert_eq!(rule.limits, Limits { rtol, atol, scaled: 0.0, ulp: 0 });
        assert_eq!(rule.nan, Nan::Equal);
    }
    assert_eq!(rule("", Class::Outputs, "x").limits, Limits { scaled: 1e-5, ..Limits::EXACT });
    assert_eq!(rule("", Class::Outputs, "x").missing, OneSided::Fail);
    assert_eq!(rule("", Class::Activations, "x").missing, OneSided::Report);
}

#[test]
fn narrow_floats_get_room_for_their_own_steps_and_integers_none() {
    assert_eq!(default_limits(Class::Activations, ElementType::I64), Limits::EXACT);
    assert_eq!(default_limits(Class::Inputs, ElementType::BF16), Limits::EXACT);
    let narrow = default_limits(Class::Gradients, ElementType::BF16);
    assert_eq!(narrow, Limits { rtol: 0.015625, atol: 1e-5, scaled: 0.0078125, ulp: 0 });
    assert_eq!(default_limits(Class::Gradients, ElementType::F64), class_limits(Class::Gradients));
}

#[test]
fn later_tables_beat_earlier_ones_key_by_key() {
    let text = "nan = 'mismatch'\n[class.gradients]\nrtol = 0.01\nmissing = 'report'\n\
                [[tensor]]\nname = '*.bias'\natol = 0.5\nnan = 'equal'\n\
                [[tensor]]\nname = 'head.?.bias'\nclass = 'gradients'\nexact = true\n\
                [[tensor]]\nname = 'mask'\nignore = true\n";
    let bias = rule(text, Class::Gradients, "fc.bias");
    assert_eq!((bias.limits, bias.nan), (Limits::close(0.01, 0.5), Nan::Equal));
    assert_eq!((bias.missing, bias.origin.as_str()), (OneSided::Report, "t.toml: [[tensor]] 1, `*.bias`"));
    assert_eq!(rule(text, Class::Gradients, "head.1.bias").limits, Limits::EXACT);
    assert_eq!(rule(text, Class::Weights, "head.1.bias").limits, Limits::close(1e-4, 0.5));
    assert!(rule(text, Class::Outputs, "mask").ignore);
    let other = rule(text, Class::Gradients, "fc.weight");
    assert_eq!((other.limits, other.nan), (Limits::close(0.01, 1e-5), Nan::Mismatch));
}

#[test]
fn numbers_in_the_file_are_taken_as_they_are() {
    let tolerances = Tolerances::parse("[class.gradients]\nrtol = 0.01\n", "t.toml").unwrap();
    let narrow = tolerances.rule(&key(Class::Gradients, "w"), ElementType::BF16);
    assert_eq!(narrow.limits, Limits::close(0.01, 1e-5));
    let policy = Tolerances::parse("[class.gradients]\nmissing = 'report'\n", "t.toml").unwrap();
    let narrow = policy.rule(&key(Class::Gradients, "w"), ElementType::BF16);
    assert_eq!(narrow.limits, default_limits(Class::Gradients, ElementType::BF16));
}

#[test]
fn mistakes_are_named() {
    for (text, expected) in [
        ("[class.gradient]\nrtol = 1", "unknown variant `gradient`"),
        ("[class.gradients]\nrtoll = 1", "rtoll"),
        ("[[tensor]]\nname = 'x'\nrtoll = 1", "rtoll"),
        ("[[tensor]]\nrtol = 1", "has no `name`"),
        ("[class.losses]\nname = 'x'", "names belong in [[tensor]]"),
        ("[[tensor]]\nname = '[a'", "not a pattern"),
        ("[class.losses]\nrtol = -1.0", "rtol = -1 is no tolerance"),
        ("[class.losses]\natol = nan", "atol = NaN is no tolerance"),
        ("[class.losses]\nexact = true\nulp = 2", "stands alone"),
        ("nan = 'maybe'", "unknown variant `maybe`"),
        ("colour = 1", "colour"),
        ("x", "line 1"),
    ] {
        let error = Tolerances::parse(text, "t.toml").unwrap_err().to_string();
        assert!(error.starts_with("t.toml") && error.contains(expected), "{text}: {error}");
    }
}
