//! The search against exhaustive Smith–Waterman.

use super::*;
use crate::simulate::protein_families;

#[test]
fn the_matrix_is_symmetric_and_letters_have_codes() {
    for a in 0..24 {
        for b in 0..24 {
            assert_eq!(blosum62(a, b), blosum62(b, a));
        }
    }
    assert_eq!(blosum62(code(b'w').unwrap(), code(b'W').unwrap()), 11);
    assert_eq!((code(b'U'), code(b'-'), code(b'1')), (code(b'X'), None, None));
}

#[test]
fn the_search_finds_what_exhaustive_search_finds() {
    let set = protein_families(600, 25, 1);
    let database = Database::new(&set.database, 2);
    let settings = SearchSettings::default();
    let truth = exhaustive(&database, &set.queries, &settings, 2);
    let found = search(&database, &set.queries, &settings, 2);
    assert_eq!(found, search(&database, &set.queries, &settings, 1));
    let recall = recall(&truth, &found);
    assert!(recall > 0.97, "{recall}");
    assert!(truth.iter().map(Vec::len).sum::<usize>() > 100);
    // What is found has its true score.
    for (truth, found) in truth.iter().zip(&found) {
        for hit in found.iter().filter(|hit| truth.iter().any(|known| known.target == hit.target)) {
            assert!(truth.contains(hit));
        }
    }
}

#[test]
fn odd_queries_and_databases_are_no_trouble() {
    let empty = Database::new::<Vec<u8>>(&[], 1);
    assert!(empty.is_empty());
    let queries = vec![vec![], vec![22; 50], vec![0], vec![23; 3]];
    let settings = SearchSettings::default();
    assert!(search(&empty, &queries, &settings, 1).iter().all(Vec::is_empty));
    let small = Database::new(&[vec![], vec![1; 4], vec![22; 40]], 1);
    assert!(search(&small, &queries, &settings, 1).iter().all(Vec::is_empty));
    assert!(exhaustive(&small, &queries, &settings, 1).iter().all(Vec::is_empty));
}
