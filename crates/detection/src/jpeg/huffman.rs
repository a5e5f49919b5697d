//! Huffman codes.

/// How many bits are looked up at once.
const LOOKUP: u32 = 9;

/// A table of codes.
pub(super) struct Huffman {
    /// Of the next bits of the stream: the code's length and symbol, or length 0 for longer codes.
    lookup: Vec<(u8, u8)>,
    /// Of each length: the first code that is longer, aligned to 16 bits.
    limits: [u32; 17],
    /// Of each length: what to add to a code for the place of its symbol.
    offsets: [i32; 17],
    symbols: Vec<u8>,
}

impl Huffman {
    /// The table of as many codes of 1 to 16 bits; none where there are too many.
    pub(super) fn new(counts: &[u8; 16], symbols: &[u8]) -> Option<Self> {
        let (mut code, mut place) = (0_u32, 0_usize);
        let mut table = Self {
            lookup: vec![(0, 0); 1 << LOOKUP],
            limits: [0; 17],
            offsets: [0; 17],
            symbols: symbols.to_vec(),
        };
        for length in 1..=16_u32 {
            let count = usize::from(counts[length as usize - 1]);
            table.offsets[length as usize] = place as i32 - code as i32;
            for _ in 0..count {
                if code >= 1 << length {
                    return None;
                }
                if length <= LOOKUP {
                    let first = (code << (LOOKUP - length)) as usize;
                    let entries = table.lookup.get_mut(first..first + (1 << (LOOKUP - length)))?;
                    entries.fill((length as u8, *symbols.get(place)?));
                }
                (code, place) = (code + 1, place + 1);
            }
            table.limits[length as usize] = code << (16 - length);
            code <<= 1;
        }
        Some(table)
    }

    /// The length and symbol of the code that these 16 bits begin with.
    pub(super) fn decode(&self, bits: u32) -> Option<(u32, u8)> {
        let (length, symbol) = self.lookup[(bits >> (16 - LOOKUP)) as usize];
        if length > 0 {
            return Some((u32::from(length), symbol));
        }
        let length = (LOOKUP + 1..=16).find(|&length| bits < self.limits[length as usize])?;
        let place = (bits >> (16 - length)) as i32 + self.offsets[length as usize];
        Some((length, *self.symbols.get(usize::try_from(place).ok()?)?))
    }
}
