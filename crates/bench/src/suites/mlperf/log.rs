//! When the queries of a test were issued and answered, as the engine sees it.

use std::time::Instant;

/// A query.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// By the clock of LoadGen's process, in nanoseconds.
    issued: u64,
    /// By the engine's clock, in seconds: when it was read, its first token was there, and its last sample was answered.
    read: f64,
    first: Option<f64>,
    done: Option<f64>,
    /// Samples that are not answered yet, of all, and the first of them.
    left: usize,
    samples: usize,
    sample: usize,
    tokens: u32,
}

/// What happened in a test.
#[derive(Debug)]
pub(super) struct Log {
    began: Instant,
    queries: Vec<Seen>,
    /// The samples of each batch, and when it was answered.
    batches: Vec<(Vec<usize>, f64)>,
}

/// A query that was answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Answered {
    /// Seconds from the first query of the test to this one.
    pub(super) at: f64,
    /// Seconds from its issue to the answer to its last sample.
    pub(super) time: f64,
    /// Seconds to the first token, and of each token after it.
    pub(super) first: Option<f64>,
    pub(super) token: Option<f64>,
    /// Its first sample, and how many it has.
    pub(super) sample: usize,
    pub(super) samples: usize,
    pub(super) tokens: u32,
}

impl Log {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), queries: Vec::new(), batches: Vec::new() }
    }

    fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// A query has come; returns its number.
    pub(super) fn issued(&mut self, issued: u64, samples: &[usize]) -> usize {
        let (read, count) = (self.now(), samples.len());
        let sample = samples.first().copied().unwrap_or(0);
        let seen =
            Seen { issued, read, first: None, done: None, left: count, samples: count, sample, tokens: 0 };
        self.queries.push(seen);
        self.queries.len() - 1
    }

    /// The first token of a sample of a query is there.
    pub(super) fn first(&mut self, query: usize) {
        let now = self.now();
        self.queries[query].first.get_or_insert(now);
    }

    /// A sample of a query is answered.
    pub(super) fn done(&mut self, query: usize, tokens: u32) {
        let now = self.now();
        let seen = &mut self.queries[query];
        seen.tokens += tokens;
        seen.left = seen.left.saturating_sub(1);
        if seen.left == 0 {
            seen.done = Some(now);
        }
    }

    /// A batch is answered.
    pub(super) fn batch(&mut self, samples: Vec<usize>) {
        let now = self.now();
        self.batches.push((samples, now));
    }

    /// The samples of all batches, in order.
    pub(super) fn batches(&self) -> impl Iterator<Item = &[usize]> {
        self.batches.iter().map(|(samples, _)| samples.as_slice())
    }

    /// Seconds of each batch: from the answers to the one before, of the first from its query.
    pub(super) fn batch_seconds(&self) -> Vec<f64> {
        let Some(first) = self.queries.first() else { return Vec::new() };
        let before = std::iter::once(first.read).chain(self.batches.iter().map(|(_, done)| *done));
        self.batches.iter().zip(before).map(|((_, done), before)| done - before).collect()
    }

    /// Seconds from the first query to the answers of so many batches.
    pub(super) fn seconds(&self, batches: usize) -> Option<f64> {
        let (_, done) = self.batches.get(batches.checked_sub(1)?)?;
        Some(done - self.queries.first()?.read)
    }

    /// The queries that were answered, in the order of their issue. The two clocks are put together where a message took the
    /// least time from one process to the other, so that times are too short by that least time, some microseconds.
    pub(super) fn answered(&self) -> Vec<Answered> {
        let seconds = |issued: u64| issued as f64 * 1e-9;
        let apart = |seen: &Seen| seen.read - seconds(seen.issued);
        let offset = self.queries.iter().map(apart).fold(f64::INFINITY, f64::min);
        let issued = |seen: &Seen| seconds(seen.issued) + offset;
        let Some(start) = self.queries.first().map(issued) else { return Vec::new() };
        let answered = |seen: &Seen| {
            let done = seen.done?;
            let rest = f64::from(seen.tokens) / seen.samples as f64 - 1.0;
            Some(Answered {
                at: issued(seen) - start,
                time: done - issued(seen),
                first: seen.first.map(|first| first - issued(seen)),
                token: seen.first.filter(|_| rest >= 1.0).map(|first| (done - first) / rest),
                sample: seen.sample,
                samples: seen.samples,
                tokens: seen.tokens,
            })
        };
        self.queries.iter().filter_map(answered).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_put_together_where_a_message_was_fastest() {
        let mut log = Log::new();
        // Issued at 10 s and 10.5 s of another clock, read after 1 ms and 3 ms of ours.
        let seen = |issued: u64, read: f64, first: f64, done: f64| Seen {
            issued,
            read,
            first: Some(first),
            done: Some(done),
            left: 0,
            samples: 1,
            sample: 0,
            tokens: 5,
        };
        log.queries = vec![seen(10_000_000_000, 0.001, 0.101, 0.301), seen(10_500_000_000, 0.503, 0.6, 0.8)];
        let found = log.answered();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        close(found[0].time, 0.3);
        close(found[1].at, 0.5);
        close(found[1].time, 0.8 - 0.501);
        close(found[0].first.unwrap(), 0.1);
        close(found[0].token.unwrap(), 0.05);
    }

    #[test]
    fn a_query_is_answered_with_its_last_sample() {
        let mut log = Log::new();
        let query = log.issued(0, &[4, 7]);
        log.done(query, 0);
        assert!(log.answered().is_empty());
        log.done(query, 0);
        assert_eq!(log.answered().len(), 1);
        let found = log.answered()[0];
        assert_eq!((found.first, found.samples, found.sample), (None, 2, 4));
        log.batch(vec![4, 7]);
        assert_eq!(log.batches().collect::<Vec<_>>(), [[4, 7]]);
        assert!(log.seconds(1).is_some_and(|seconds| seconds >= 0.0));
        log.batch(vec![4]);
        let [first, second] = log.batch_seconds()[..] else { panic!("{:?}", log.batch_seconds()) };
        assert!(((first + second) - log.seconds(2).unwrap()).abs() < 1e-12 && first >= 0.0 && second >= 0.0);
        assert!(Log::new().batch_seconds().is_empty());
        assert_eq!((log.seconds(0), log.seconds(3)), (None, None));
    }
}
