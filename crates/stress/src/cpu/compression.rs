//! Deflate and inflate on each core.

use std::io::{Read as _, Write as _};

use flate2::Compression as Level;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use sha2::{Digest as _, Sha256};

use crate::error::StressError;
use crate::load::{Iteration, Load, Work};
use crate::pattern::hex;
use crate::workers::Workers;

/// Text that each core compresses in one iteration.
const TEXT_BYTES: usize = 1 << 20;

/// Different words in it.
const WORDS: usize = 2048;

pub(super) struct Compression {
    workers: Workers,
    text: Vec<u8>,
    /// The digest of the compressed text as the first core of the first iteration had it.
    first: Option<String>,
}

/// What one core made of the text.
struct RoundTrip {
    compressed: String,
    /// Why it could not be inflated, or where it first differs from the text, with what is there.
    fault: Option<(String, String, String)>,
}

impl Compression {
    pub(super) fn new(workers: Workers) -> Self {
        Self { workers, text: text(), first: None }
    }
}

impl Load for Compression {
    fn iterate(&mut self, iteration: Iteration) -> Result<Work, StressError> {
        let text = &self.text;
        let trips = self.workers.each(|rank| round_trip(text, iteration.falsify && rank == 0));
        let mut work = Work::of((trips.len() * TEXT_BYTES) as f64 / 1e6);
        let first = self.first.get_or_insert_with(|| trips[0].compressed.clone());
        for (rank, trip) in trips.iter().enumerate() {
            let place = self.workers.place(rank);
            if let Some((at, expected, found)) = &trip.fault {
                work.mismatch("inflated text", format!("{place}, {at}"), expected, found);
            }
            if trip.compressed != *first {
                work.mismatch("SHA-256 of the deflated text", place, &*first, &trip.compressed);
            }
        }
        Ok(work)
    }
}

fn round_trip(text: &[u8], falsify: bool) -> RoundTrip {
    let mut encoder = ZlibEncoder::new(Vec::with_capacity(text.len() / 2), Level::default());
    // Writing to memory does not fail.
    let written = encoder.write_all(text).and_then(|()| encoder.finish());
    let compressed = written.unwrap_or_default();
    let digest = hex(&Sha256::digest(&compressed));
    let mut inflated = Vec::with_capacity(text.len());
    let outcome = ZlibDecoder::new(compressed.as_slice()).read_to_end(&mut inflated);
    if falsify && let Some(byte) = inflated.last_mut() {
        *byte ^= 1;
    }
    let fault =
        match outcome {
            Err(error) => Some(("deflated text".to_owned(), "a zlib stream".to_owned(), error.to_string())),
            Ok(_) if inflated.len() != text.len() => {
                Some(("length".to_owned(), text.len().to_string(), inflated.len().to_string()))
            }
            Ok(_) => text.iter().zip(&inflated).position(|(a, b)| a != b).map(|at| {
                (format!("byte {at}"), format!("{:02x}", text[at]), format!("{:02x}", inflated[at]))
            }),
        };
    RoundTrip { compressed: digest, fault }
}

/// Text of words from a seed, frequent ones more often than rare ones, as in languages.
fn text() -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(0x7e47);
    let words: Vec<String> =
        (0..WORDS).map(|_| (0..random.usize(2..10)).map(|_| random.lowercase()).collect()).collect();
    let mut text = Vec::with_capacity(TEXT_BYTES + 16);
    while text.len() < TEXT_BYTES {
        let rank = (WORDS as f64).powf(random.f64()) as usize - 1;
        text.extend(words[rank.min(WORDS - 1)].bytes());
        text.push(b' ');
    }
    text.truncate(TEXT_BYTES);
    text
}
