//! Spaced seeds over a reduced alphabet: which targets share a word with the query.

use crate::parallel::map_indices;

/// The group of each residue code: amino acids that replace each other are one letter (Murphy, Wallqvist and Levy 2000, ten
/// letters). Ambiguous residues are in no group.
const GROUPS: [u8; 24] = {
    let mut groups = [NO_GROUP; 24];
    let letters = [b"LVIM" as &[u8], b"C", b"A", b"G", b"ST", b"P", b"FYW", b"EDNQ", b"KR", b"H"];
    let mut group = 0;
    while group < letters.len() {
        let mut index = 0;
        while index < letters[group].len() {
            let mut code = 0;
            while code < 20 {
                if super::ALPHABET[code] == letters[group][index] {
                    groups[code] = group as u8;
                }
                code += 1;
            }
            index += 1;
        }
        group += 1;
    }
    groups
};

/// Marks a residue of no group.
const NO_GROUP: u8 = 10;

/// Which positions of a window count, for each shape: six of them.
const SHAPES: [[usize; WEIGHT]; 4] =
    [[0, 1, 2, 3, 5, 6], [0, 1, 3, 6, 7, 9], [0, 2, 3, 7, 10, 11], [0, 1, 4, 8, 9, 12]];

/// Positions of a shape that count.
const WEIGHT: usize = 6;

/// Different words of a shape.
const WORDS: usize = 1_000_000;

/// The word of a shape at the begin of a window; `None` if the window is too short or has an ambiguous residue.
#[inline]
fn word(window: &[u8], shape: &[usize; WEIGHT]) -> Option<usize> {
    if window.len() <= shape[WEIGHT - 1] {
        return None;
    }
    let mut word = 0;
    for &offset in shape {
        let group = GROUPS[window[offset] as usize];
        if group == NO_GROUP {
            return None;
        }
        word = word * 10 + group as usize;
    }
    Some(word)
}

/// Every place of every word, for one shape.
#[derive(Debug)]
struct ShapeIndex {
    /// Where the places of each word begin; one more than there are words.
    begins: Vec<u32>,
    /// Positions among all residues.
    places: Vec<u32>,
}

/// The words of a database.
#[derive(Debug)]
pub(super) struct SeedIndex {
    shapes: Vec<ShapeIndex>,
    most_occurrences: usize,
}

impl SeedIndex {
    /// Indexes residues; `bounds` are the begins of the sequences and the end of the last.
    pub(super) fn new(residues: &[u8], bounds: &[usize], threads: usize) -> Self {
        let shapes = map_indices(SHAPES.len(), threads, |shape| {
            let shape = &SHAPES[shape];
            let each = |give: &mut dyn FnMut(usize, u32)| {
                for span in bounds.windows(2) {
                    let sequence = &residues[span[0]..span[1]];
                    for start in 0..sequence.len() {
                        if let Some(word) = word(&sequence[start..], shape) {
                            give(word, (span[0] + start) as u32);
                        }
                    }
                }
            };
            let mut begins = vec![0u32; WORDS + 1];
            each(&mut |word, _| begins[word + 1] += 1);
            for index in 0..WORDS {
                begins[index + 1] += begins[index];
            }
            let mut next = begins.clone();
            let mut places = vec![0; begins[WORDS] as usize];
            each(&mut |word, place| {
                places[next[word] as usize] = place;
                next[word] += 1;
            });
            ShapeIndex { begins, places }
        });
        // Words of low complexity occur far more often than others.
        let most_occurrences = (residues.len() / WORDS * 40).max(200);
        Self { shapes, most_occurrences }
    }

    /// Every shared word: position in the query and among all residues.
    pub(super) fn hits(&self, query: &[u8], mut give: impl FnMut(usize, usize)) {
        for (shape, index) in SHAPES.iter().zip(&self.shapes) {
            for start in 0..query.len() {
                let Some(word) = word(&query[start..], shape) else { continue };
                let places = &index.places[index.begins[word] as usize..index.begins[word + 1] as usize];
                if places.len() <= self.most_occurrences {
                    places.iter().for_each(|&place| give(start, place as usize));
                }
            }
        }
    }
}
