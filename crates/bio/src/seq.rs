//! Nucleotides as codes: A, C, G, T are 0, 1, 2, 3 in either case, U is T, and every other letter is [`OTHER`].

/// The code of a letter that is not one of the four bases: N and the IUPAC ambiguity letters. It matches nothing.
pub const OTHER: u8 = 4;

/// The code of each byte.
const CODES: [u8; 256] = {
    let mut codes = [OTHER; 256];
    let letters = *b"ACGT";
    let mut code = 0;
    while code < 4 {
        codes[letters[code] as usize] = code as u8;
        codes[letters[code].to_ascii_lowercase() as usize] = code as u8;
        code += 1;
    }
    codes[b'U' as usize] = 3;
    codes[b'u' as usize] = 3;
    codes
};

/// The code of a letter.
#[must_use]
#[inline]
pub fn code(letter: u8) -> u8 {
    CODES[letter as usize]
}

/// The codes of letters.
#[must_use]
pub fn encode(letters: &[u8]) -> Vec<u8> {
    letters.iter().map(|&letter| code(letter)).collect()
}

/// The letters of codes; [`OTHER`] is N.
#[must_use]
pub fn decode(codes: &[u8]) -> Vec<u8> {
    codes.iter().map(|&code| b"ACGTN"[code.min(OTHER) as usize]).collect()
}

/// Whether a letter is a nucleotide or an IUPAC ambiguity letter, in either case, or a gap.
#[must_use]
pub fn is_nucleotide(letter: u8) -> bool {
    b"ACGTUNRYSWKMBDHV-".contains(&letter.to_ascii_uppercase())
}

/// The code of the base that pairs with this one.
#[must_use]
#[inline]
pub fn complement(code: u8) -> u8 {
    if code < OTHER { 3 - code } else { OTHER }
}

/// The other strand, read in its own direction.
#[must_use]
pub fn reverse_complement(codes: &[u8]) -> Vec<u8> {
    codes.iter().rev().map(|&code| complement(code)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_either_case_and_ambiguity_letters_are_encoded() {
        assert_eq!(encode(b"ACGTacgtUuNnRY-"), [0, 1, 2, 3, 0, 1, 2, 3, 3, 3, 4, 4, 4, 4, 4]);
        assert_eq!(decode(&[0, 1, 2, 3, 4]), b"ACGTN");
        assert_eq!(decode(&reverse_complement(&encode(b"AACGTN"))), b"NACGTT");
        assert!(is_nucleotide(b'y') && !is_nucleotide(b'E') && !is_nucleotide(b'>'));
    }
}
