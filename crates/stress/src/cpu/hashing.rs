//! SHA-256 on each core.

use sha2::{Digest as _, Sha256};

use crate::error::StressError;
use crate::load::{Iteration, Load, Work};
use crate::pattern::{Pattern, hex};
use crate::workers::Workers;

/// The standard's long message: a million times the letter a.
const MESSAGE_BYTES: usize = 1_000_000;

/// Its digest, from FIPS 180-4's examples.
const MESSAGE_DIGEST: &str = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

/// Random data beside it, more than the caches next to a core hold.
const RANDOM_BYTES: usize = 8 << 20;

/// Times that a core hashes the message in one iteration.
const MESSAGES: usize = 16;

pub(super) struct Hashing {
    workers: Workers,
    message: Vec<u8>,
    random: Vec<u8>,
    /// The digest of the random data as the first core of the first iteration had it.
    first: Option<String>,
}

impl Hashing {
    pub(super) fn new(workers: Workers) -> Self {
        let mut random = vec![0; RANDOM_BYTES];
        Pattern::new(0x4a54).fill(&mut random, 0);
        Self { workers, message: vec![b'a'; MESSAGE_BYTES], random, first: None }
    }
}

impl Load for Hashing {
    fn iterate(&mut self, iteration: Iteration) -> Result<Work, StressError> {
        let (message, random) = (&self.message, &self.random);
        let digests = self.workers.each(|rank| {
            let mut known: Vec<String> = (0..MESSAGES).map(|_| digest(message)).collect();
            if iteration.falsify && rank == 0 {
                known[MESSAGES - 1] = digest(&message[1..]);
            }
            (known, digest(random))
        });
        let bytes = digests.len() * (MESSAGES * MESSAGE_BYTES + RANDOM_BYTES);
        let mut work = Work::of(bytes as f64 / 1e6);
        let first = self.first.get_or_insert_with(|| digests[0].1.clone());
        for (rank, (known, found)) in digests.iter().enumerate() {
            for wrong in known.iter().filter(|digest| *digest != MESSAGE_DIGEST) {
                let place = self.workers.place(rank);
                work.mismatch("SHA-256 of a million letters a", place, MESSAGE_DIGEST, wrong);
            }
            if found != first {
                work.mismatch("SHA-256 of random data", self.workers.place(rank), &*first, found);
            }
        }
        Ok(work)
    }
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
