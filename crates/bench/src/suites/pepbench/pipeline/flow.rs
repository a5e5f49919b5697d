//! The steps side by side: a thread that reads, threads that decode and tokenize, and one that packs, with short queues between
//! them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokenizers::Tokenizer;

use super::super::words::{WordEncoder, Words};
use super::stages::{Packer, Shape, Tokens, Totals, decode, read, tokenize};
use crate::benchmark::BenchmarkError;
use crate::suites::stages::StageTimes;

/// Files in a queue for each thread that takes from it.
const QUEUED: usize = 2;

/// A pipeline.
pub(super) struct Flow<'a> {
    pub(super) files: &'a [PathBuf],
    pub(super) tokenizer: &'a Tokenizer,
    pub(super) words: Option<&'a Words>,
    pub(super) shape: Shape,
    pub(super) threads: usize,
}

/// The part of a pass that each stage's threads waited for others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stalls {
    pub(super) percent: [f64; 3],
}

impl Stalls {
    /// Reading waits for a place in the queue, the others for something to do.
    pub(super) const STAGES: [&'static str; 3] = ["read", "tokenize", "pack"];
}

/// Time that a thread was at work and that it waited, by step.
#[derive(Debug, Clone, Copy, Default)]
struct Clock {
    work: [Duration; 2],
    waited: Duration,
}

impl Clock {
    fn work<T>(&mut self, step: usize, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = work();
        self.work[step] += began.elapsed();
        result
    }

    fn wait<T>(&mut self, wait: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = wait();
        self.waited += began.elapsed();
        result
    }
}

type Read = (usize, Result<Vec<u8>, BenchmarkError>);
type Ready = (usize, Result<Tokens, BenchmarkError>);

impl Flow<'_> {
    /// One step after the other, on one thread, each document tokenized as a whole.
    pub(super) fn in_turn(&self) -> Result<Totals, BenchmarkError> {
        let mut packer = Packer::new(self.shape);
        let mut encoder = WordEncoder::new(self.tokenizer, None);
        for path in self.files {
            packer.add(&tokenize(&mut encoder, &decode(path, read(path)?)?)?);
        }
        Ok(packer.finish())
    }

    /// All files, with the time that each step took on all of its threads together.
    pub(super) fn run(&self, times: &mut StageTimes) -> Result<(Totals, Stalls), BenchmarkError> {
        let began = Instant::now();
        let (to_workers, files) = sync_channel::<Read>(QUEUED * self.threads);
        let (to_packer, ready) = sync_channel::<Ready>(QUEUED * self.threads);
        let files = Arc::new(Mutex::new(files));
        let (totals, reading, working, packing) = std::thread::scope(|scope| {
            let reader = scope.spawn(|| self.read(to_workers));
            let workers: Vec<_> = (0..self.threads)
                .map(|_| {
                    let to_packer = to_packer.clone();
                    let files = Arc::clone(&files);
                    scope.spawn(move || self.work(&files, &to_packer))
                })
                .collect();
            // The queues are the threads' own: where those at one end are gone, those at the other end too.
            drop((to_packer, files));
            let mut packing = Clock::default();
            let totals = self.pack(ready, &mut packing);
            let died = |_| BenchmarkError::Failed("a thread of the pipeline died".to_owned());
            let mut working = Clock::default();
            for worker in workers {
                let clock = worker.join().map_err(died)?;
                working.waited += clock.waited;
                working.work.iter_mut().zip(clock.work).for_each(|(sum, work)| *sum += work);
            }
            let reading = reader.join().map_err(died)?;
            Ok::<_, BenchmarkError>((totals?, reading, working, packing))
        })?;
        let steps = [
            ("read", reading.work[0]),
            ("decode", working.work[0]),
            ("tokenize", working.work[1]),
            ("pack", packing.work[0]),
        ];
        times.extend(steps.map(|(name, time)| (name, time.as_secs_f64())));
        let took = began.elapsed().as_secs_f64();
        let percent = |waited: Duration, threads: usize| 100.0 * waited.as_secs_f64() / took / threads as f64;
        let percent =
            [percent(reading.waited, 1), percent(working.waited, self.threads), percent(packing.waited, 1)];
        Ok((totals, Stalls { percent }))
    }

    fn read(&self, to: SyncSender<Read>) -> Clock {
        let mut clock = Clock::default();
        for (at, path) in self.files.iter().enumerate() {
            let bytes = clock.work(0, || read(path));
            if clock.wait(|| to.send((at, bytes))).is_err() {
                break;
            }
        }
        // The workers are told that there is nothing more.
        drop(to);
        clock
    }

    fn work(&self, files: &Mutex<Receiver<Read>>, to: &SyncSender<Ready>) -> Clock {
        let mut clock = Clock::default();
        let mut encoder = WordEncoder::new(self.tokenizer, self.words);
        let next = || files.lock().unwrap_or_else(std::sync::PoisonError::into_inner).recv();
        while let Ok((at, bytes)) = clock.wait(next) {
            let documents = bytes.and_then(|bytes| clock.work(0, || decode(&self.files[at], bytes)));
            let tokens = documents.and_then(|documents| clock.work(1, || tokenize(&mut encoder, &documents)));
            if clock.wait(|| to.send((at, tokens))).is_err() {
                break;
            }
        }
        clock
    }

    /// Packs files in their order, whatever the order in which they come.
    fn pack(&self, ready: Receiver<Ready>, clock: &mut Clock) -> Result<Totals, BenchmarkError> {
        let mut packer = Packer::new(self.shape);
        let (mut early, mut next) = (BTreeMap::new(), 0);
        while let Ok((at, tokens)) = clock.wait(|| ready.recv()) {
            early.insert(at, tokens?);
            while let Some(tokens) = early.remove(&next) {
                clock.work(0, || packer.add(&tokens));
                next += 1;
            }
        }
        drop(ready);
        Ok(packer.finish())
    }
}
