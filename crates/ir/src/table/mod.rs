//! The op table: every operation, declared once.
//!
//! An operation is one `Entry` in the family file under `ops/`: its operands, results, attributes and regions in the
//! small notations of `signature`, its text form in the notation of [`mod@format`], its traits,
//! documentation and rule. Parser, printer, verifier, builder and the coverage page all read the table.

mod classes;
mod def;
mod entry;
pub mod format;
mod kinds;
mod normalise;
mod signature;

pub use classes::TypeClass;
pub use def::{Arity, AttrDef, AttrKind, Family, OpDef, Presence, RegionDef, Trait, ValueSpec};
pub use kinds::OpKind;
pub use normalise::normalise_all;

pub(crate) use entry::{Entry, op};

use std::sync::LazyLock;

static TABLE: LazyLock<Vec<OpDef>> = LazyLock::new(|| {
    let mut found: Vec<Option<OpDef>> = OpKind::ALL.iter().map(|_| None).collect();
    for (family, entries) in crate::ops::FAMILIES {
        for entry in *entries {
            found[entry.kind as usize] = Some(entry.define(*family));
        }
    }
    // A missing entry is caught by the test below; the fallback only keeps the table total.
    let missing = |kind: OpKind| op(kind).define(Family::Control);
    found.into_iter().zip(OpKind::ALL).map(|(def, &kind)| def.unwrap_or_else(|| missing(kind))).collect()
});

impl OpKind {
    /// The entry of this operation in the table.
    pub fn def(self) -> &'static OpDef {
        // `Unregistered` has no entry and callers only reach this with a known kind; the module stands in for it.
        TABLE.get(self as usize).unwrap_or(&TABLE[0])
    }
}

/// The whole table, in the order of [`OpKind::ALL`].
pub fn all() -> &'static [OpDef] {
    &TABLE
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_operation_is_declared_once() {
        let mut seen = HashSet::new();
        for (_, entries) in crate::ops::FAMILIES {
            for entry in *entries {
                assert!(seen.insert(entry.kind), "{} is declared twice", entry.kind.name());
            }
        }
        for kind in OpKind::ALL {
            assert!(seen.contains(kind), "{} is not declared", kind.name());
        }
        let names: HashSet<&str> = OpKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), OpKind::ALL.len());
    }

    #[test]
    fn every_operation_is_documented() {
        for def in all() {
            assert!(def.doc.len() > 4 && def.doc.ends_with('.'), "{}: {:?}", def.name(), def.doc);
        }
    }

    #[test]
    fn the_operations_of_the_specification_have_a_section() {
        let sections: HashSet<&str> = all().iter().filter_map(OpDef::section).collect();
        for def in all().iter().filter(|def| def.kind.dialect() == "stablehlo") {
            let known = def.section().is_some() || def.is_deprecated() || def.is(Trait::Unspecified);
            assert!(known, "{} has no section", def.name());
        }
        // `return` is the one more: the specification describes it with the regions that it ends.
        assert_eq!(sections.len(), 108, "operations with a section of their own");
    }

    #[test]
    fn names_of_an_operation_are_unique() {
        for def in all() {
            let mut seen = HashSet::new();
            let values = def.operands.iter().map(|v| v.name).chain(def.attrs.iter().map(|a| a.name));
            for name in values {
                assert!(seen.insert(name), "{}: {name}", def.name());
            }
        }
    }

    #[test]
    fn only_one_group_of_operands_varies_unless_something_tells_them_apart() {
        for def in all() {
            let varying = def.operands.iter().filter(|v| v.arity != Arity::One).count();
            let told = def.is(Trait::EqualGroups) || def.is(Trait::SegmentSizes);
            assert!(varying <= 1 || told, "{}", def.name());
        }
    }

    #[test]
    fn formats_name_what_the_operation_has() {
        for def in all() {
            if let Err(problem) = def.syntax() {
                panic!("{}: {problem}", def.name());
            }
        }
    }
}
