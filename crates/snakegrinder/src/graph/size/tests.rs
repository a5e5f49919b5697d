//! Sizes.

use super::*;

fn s(name: &str) -> Size {
    Size::symbol(name)
}

fn int(value: i64) -> Size {
    Size::Int(value)
}

#[test]
fn expressions_have_one_form() {
    let (a, b) = (s("s0"), s("s1"));
    let left = a.add(&b).mul(&a.add(&int(1)));
    let right = a.mul(&a).add(&a).add(&a.mul(&b)).add(&b);
    assert_eq!(left, right);
    assert_eq!(a.sub(&a), int(0));
    assert_eq!(a.mul(&int(0)), int(0));
    assert_eq!(a.as_symbol(), Some("s0"));
    assert_eq!(a.add(&int(1)).as_symbol(), None);
}

#[test]
fn quotients_that_come_out_even_are_divided() {
    let (a, b) = (s("s0"), s("s1"));
    let product = a.mul(&b).mul(&int(12));
    assert_eq!(product.floor_div(&b.mul(&int(4))), Some(a.mul(&int(3))));
    assert_eq!(product.modulo(&a), Some(int(0)));
    let uneven = a.floor_div(&int(2)).expect("not zero");
    assert_eq!(uneven.substitute(&|_| Some(7)), int(3));
    assert_eq!(a.floor_div(&int(0)), None);
}

#[test]
fn division_rounds_down_as_in_python() {
    assert_eq!(int(-7).floor_div(&int(2)), Some(int(-4)));
    assert_eq!(int(-7).modulo(&int(2)), Some(int(1)));
    assert_eq!(int(7).modulo(&int(-2)), Some(int(-1)));
    assert_eq!(int(i64::MIN).floor_div(&int(-1)), None);
}

#[test]
fn sympy_expressions_are_read() {
    let text = "Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(1))";
    assert_eq!(Size::parse(text), Ok(s("s77").mul(&int(2)).add(&int(1))));
    assert_eq!(
        Size::parse("FloorDiv(Symbol('s0'), Integer(2))"),
        Ok(s("s0").floor_div(&int(2)).expect("not zero"))
    );
    for bad in ["", "Add(", "Symbol('s0", "Integer(x)", "Integer(1) 2", "Mystery(Integer(1))", "Add()"] {
        assert!(Size::parse(bad).is_err(), "{bad}");
    }
    let deep = "Add(".repeat(10_000);
    assert!(Size::parse(&deep).is_err());
}

#[test]
fn bounds_follow_the_ranges() {
    let range = |_: &str| (2, 64);
    assert_eq!(s("s0").mul(&int(3)).sub(&int(1)).bounds(&range), (5, 191));
    assert_eq!(s("s0").floor_div(&int(4)).expect("not zero").bounds(&range), (0, 16));
    assert_eq!(int(5).bounds(&range), (5, 5));
}

#[test]
fn sizes_that_grow_without_end_are_seen() {
    let mut nested = s("s0");
    for _ in 0..100 {
        nested = nested.floor_div(&int(2)).expect("not zero");
    }
    assert!(!nested.is_tame());
    let mut power = s("s0").add(&int(1));
    for _ in 0..6 {
        power = power.mul(&power.clone());
    }
    assert!(!power.is_tame());
    assert!(s("s0").mul(&s("s1")).add(&int(7)).is_tame());
}

#[test]
fn expressions_cannot_grow_without_end() {
    let sums: Vec<String> = (0..40).map(|i| format!("Add(Symbol('a{i}'), Symbol('b{i}'))")).collect();
    let product = Size::parse(&format!("Mul({})", sums.join(", "))).expect("well formed");
    assert!(!product.is_tame());
    let symbols = vec!["Symbol('s0')"; 100_000].join(", ");
    assert!(!Size::parse(&format!("Mul({symbols})")).expect("well formed").is_tame());
    let different: Vec<String> = (0..100_000).map(|i| format!("Symbol('s{i}')")).collect();
    assert!(!Size::parse(&format!("Add({})", different.join(", "))).expect("well formed").is_tame());
    // Each level has the one below in many places, and graphs may go on to the next only while it is tame.
    let mut shared = s("s0");
    let mut levels = 0;
    while shared.is_tame() {
        levels += 1;
        shared = (0..20).fold(shared.clone(), |sum, i| sum.add(&shared.larger(&shared.add(&int(i + 1)))));
    }
    assert!(levels < 5, "{levels}");
}
