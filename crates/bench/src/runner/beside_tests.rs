//! Peers in turn with a benchmark, against an executor that plays a script.

use std::cell::RefCell;

use super::*;
use crate::benchmark::{MetricKey, Peer, RunContext};
use crate::record::{BenchmarkComponent, Params, PeerResult, Verdict};
use crate::selection::{Request, select};

/// A peer that can run here or not.
struct Stand(&'static str, bool);

impl Peer for Stand {
    fn name(&self) -> &'static str {
        self.0
    }

    fn description(&self) -> &'static str {
        "for tests"
    }

    fn prepare(&self, _params: &Params) -> Result<(), BenchmarkError> {
        if self.1 {
            Ok(())
        } else {
            Err(BenchmarkError::NotPossible("install the package `tool`".to_owned()))
        }
    }

    fn run(&self, _context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        unreachable!("the executor plays a script")
    }
}

static HERE: Stand = Stand("here", true);
static MISSING: Stand = Stand("missing", false);

/// Answers rounds of the benchmark with 2, those of a peer with 1 or with what `fail` says to so many of its rounds.
struct Script {
    fail: fn(usize) -> Option<BenchmarkError>,
    sides: RefCell<Vec<String>>,
}

impl Executor for Script {
    fn execute(&self, round: &Round, hooks: Hooks<'_>) -> Result<(), BenchmarkError> {
        let side = round.beside.clone().unwrap_or_else(|| "ours".to_owned());
        let earlier = self.sides.borrow().iter().filter(|earlier| **earlier == side).count();
        self.sides.borrow_mut().push(side);
        let value = if round.beside.is_some() { 1.0 } else { 2.0 };
        let key = MetricKey::more_is_better("gflops", "GFLOP/s");
        (hooks.on_event)(Event::Metric { key, values: vec![value, value] });
        if round.beside.is_none() {
            return Ok(());
        }
        (hooks.on_event)(Event::Version { version: "1.5".to_owned() });
        (self.fail)(earlier).map_or(Ok(()), Err)
    }
}

struct Unobserved;

impl Observer for Unobserved {
    fn round_started(&mut self, _spec: &BenchmarkSpec, step: usize, steps: usize) {
        assert!(step >= 1 && step <= steps, "{step} of {steps}");
    }
    fn event(&mut self, _spec: &BenchmarkSpec, _event: &Event) {}
    fn checkpoint(&mut self, _so_far: &BenchmarkSuiteRun) {}
}

/// The verdict of the benchmark, its peers, and whose rounds were run.
fn beside(
    peers: &[&'static dyn Peer],
    fail: fn(usize) -> Option<BenchmarkError>,
) -> (Option<Verdict>, Vec<PeerResult>, Vec<String>) {
    let mut selection = select(&Request::default(), &[BenchmarkComponent::Cpu]).unwrap();
    selection.chosen.truncate(1);
    selection.chosen[0].peers = peers.to_vec();
    let options = RunOptions {
        rounds: 3,
        duration_seconds: Some(3.0),
        burn_in_seconds: 0.0,
        system: None,
        monitor_interval: None,
    };
    let script = Script { fail, sides: RefCell::default() };
    let mut run = run(&selection, &options, &script, &mut Unobserved, &|| false).unwrap();
    let result = run.benchmarks.remove(0);
    (result.verdict, result.beside, script.sides.into_inner())
}

#[test]
fn rounds_alternate_and_the_record_has_the_ratio() {
    let (verdict, peers, sides) = beside(&[&HERE], |_| None);
    assert_eq!(sides, ["ours", "here", "here", "ours", "ours", "here"]);
    assert_eq!(verdict, Some(Verdict::Pass));
    let [peer] = &peers[..] else { panic!("{peers:?}") };
    assert_eq!((peer.verdict, peer.version.as_deref()), (Verdict::Pass, Some("1.5")));
    assert_eq!(peer.metrics[0].statistics.as_ref().unwrap().rounds, vec![vec![1.0, 1.0]; 3]);
    assert!((peer.ratios[0].ratio - 2.0).abs() < 1e-9, "{peer:?}");
    assert!(peer.ratios[0].ci_low.is_some());
}

#[test]
fn a_peer_that_fails_is_reported_and_nothing_is_lost() {
    let died = |earlier: usize| (earlier == 1).then(|| BenchmarkError::Failed("its process died".to_owned()));
    let (verdict, peers, sides) = beside(&[&HERE], died);
    assert_eq!(sides, ["ours", "here", "here", "ours", "ours"]);
    assert_eq!(verdict, Some(Verdict::Pass));
    assert_eq!(
        (peers[0].verdict, peers[0].error_message.as_deref()),
        (Verdict::Fail, Some("its process died"))
    );
    assert_eq!((peers[0].metrics.len(), peers[0].ratios.len()), (1, 1));
}

#[test]
fn a_missing_peer_is_skipped_with_its_package() {
    let (verdict, peers, sides) = beside(&[&MISSING, &HERE], |_| None);
    assert_eq!(sides.iter().filter(|side| *side == "missing").count(), 0);
    assert_eq!(
        (verdict, peers[0].verdict, peers[1].verdict),
        (Some(Verdict::Pass), Verdict::Skipped, Verdict::Pass)
    );
    assert_eq!(peers[0].error_message.as_deref(), Some("install the package `tool`"));
}

#[test]
fn a_name_that_no_chosen_benchmark_has_is_refused_with_those_that_exist() {
    let request = |name: &str| Request { benchmarks: vec![name.to_owned()], ..Request::default() };
    let mut linpack = select(&request("linpack_fp64_cpu"), &[]).unwrap();
    let error = linpack.add_peers(&["hpc".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("did you mean `hpcc`") && error.contains("mkl, openblas"), "{error}");
    linpack.add_peers(&["hpcc".to_owned(), "hpcc".to_owned(), "mkl".to_owned()]).unwrap();
    assert_eq!(linpack.chosen[0].peers.iter().map(|peer| peer.name()).collect::<Vec<_>>(), ["hpcc", "mkl"]);
    let mut none = select(&request("mem_latency"), &[]).unwrap();
    let error = none.add_peers(&["hpcc".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("beside mem_latency"), "{error}");
}

#[test]
fn names_of_peers_are_unique_within_a_benchmark() {
    for benchmark in crate::suites::SUITES.iter().flat_map(|suite| suite.benchmarks) {
        let mut names: Vec<_> = benchmark.peers().iter().map(|peer| peer.name()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{}", benchmark.spec().id);
        assert!(benchmark.peers().iter().all(|peer| !peer.description().is_empty()));
    }
}
