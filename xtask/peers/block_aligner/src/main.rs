//! GCUPS of block-aligner's global alignment on the pairs of a FASTA file: FILE THREADS SMALLEST LARGEST, the last two being
//! the sizes of its blocks. Prints JSON: `gcups` of the whole matrices, as for every other peer, and the scores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use block_aligner::scan_block::{Block, PaddedBytes};
use block_aligner::scores::{Gaps, NucMatrix};

/// The smallest and the largest block.
type Blocks = std::ops::RangeInclusive<usize>;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, path, numbers @ ..] = &arguments[..] else { panic!("a file is needed") };
    let numbers: Vec<usize> = numbers.iter().map(|number| number.parse().expect("a number")).collect();
    let [threads, smallest, largest] = numbers[..] else { panic!("FILE THREADS SMALLEST LARGEST") };
    let blocks = smallest..=largest;
    let sequences = sequences(&std::fs::read_to_string(path).expect("a FASTA file"));
    let pairs: Vec<&[String]> = sequences.chunks_exact(2).collect();
    let cells: f64 = pairs.iter().map(|pair| pair[0].len() as f64 * pair[1].len() as f64).sum();
    align(&pairs[..pairs.len().min(100)], threads, &blocks);
    let began = Instant::now();
    let scores = align(&pairs, threads, &blocks);
    let gcups = cells / began.elapsed().as_secs_f64() / 1e9;
    println!("{{\"gcups\": {gcups}, \"scores\": {scores:?}}}");
}

/// The sequences of a FASTA file.
fn sequences(text: &str) -> Vec<String> {
    let mut sequences: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with('>') {
            sequences.push(String::new());
        } else if let Some(last) = sequences.last_mut() {
            last.push_str(line.trim());
        }
    }
    sequences
}

/// The global score of each pair with 2, -4 and gaps of 4 + 2n.
fn align(pairs: &[&[String]], threads: usize, blocks: &Blocks) -> Vec<i32> {
    let matrix = NucMatrix::new_simple(2, -4);
    // The cost of a gap's first base, and of each further one.
    let gaps = Gaps { open: -6, extend: -2 };
    let longest = pairs.iter().flat_map(|pair| pair.iter().map(String::len)).max().unwrap_or(0);
    let next = AtomicUsize::new(0);
    let mut scores: Vec<(usize, i32)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let largest = *blocks.end();
                    let mut block = Block::<false, false>::new(longest, longest, largest);
                    let mut query = PaddedBytes::new::<NucMatrix>(longest, largest);
                    let mut target = PaddedBytes::new::<NucMatrix>(longest, largest);
                    let mut found = Vec::new();
                    loop {
                        let from = next.fetch_add(16, Ordering::Relaxed);
                        let Some(rest) = pairs.get(from..) else { break found };
                        if rest.is_empty() {
                            break found;
                        }
                        for (index, pair) in rest.iter().take(16).enumerate() {
                            query.set_bytes::<NucMatrix>(pair[0].as_bytes(), largest);
                            target.set_bytes::<NucMatrix>(pair[1].as_bytes(), largest);
                            block.align(&query, &target, &matrix, gaps, blocks.clone(), 0);
                            found.push((from + index, block.res().score));
                        }
                    }
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
    });
    scores.sort_unstable();
    scores.into_iter().map(|(_, score)| score).collect()
}
