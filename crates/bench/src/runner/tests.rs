//! The runner against an executor that plays a script instead of measuring.

use std::cell::{Cell, RefCell};

use super::*;
use crate::benchmark::{MetricKey, override_params};
use crate::record::{BenchmarkComponent, Verdict};
use crate::selection::{Request, select};

/// Answers every round by `answer`, which gets the number of rounds answered before.
struct Scripted<F: Fn(usize, &Round, &mut dyn FnMut(Event)) -> Result<(), BenchmarkError>> {
    answer: F,
    rounds: RefCell<Vec<Round>>,
}

impl<F: Fn(usize, &Round, &mut dyn FnMut(Event)) -> Result<(), BenchmarkError>> Executor for Scripted<F> {
    fn execute(&self, round: &Round, hooks: Hooks<'_>) -> Result<(), BenchmarkError> {
        let count = self.rounds.borrow().len();
        self.rounds.borrow_mut().push(round.clone());
        (self.answer)(count, round, hooks.on_event)
    }
}

/// The number of a GPU that no machine has.
const ABSENT_GPU: &str = "999";

#[derive(Default)]
struct Recorder {
    checkpoints: Vec<BenchmarkSuiteRun>,
}

impl Observer for Recorder {
    fn round_started(&mut self, _spec: &BenchmarkSpec, step: usize, steps: usize) {
        assert!(step >= 1 && step <= steps);
    }

    fn event(&mut self, _spec: &BenchmarkSpec, _event: &Event) {}

    fn checkpoint(&mut self, so_far: &BenchmarkSuiteRun) {
        self.checkpoints.push(so_far.clone());
    }
}

fn options(rounds: u32) -> RunOptions {
    RunOptions {
        rounds,
        duration_seconds: Some(3.0),
        burn_in_seconds: 0.0,
        system: None,
        monitor_interval: None,
    }
}

fn cpu_and_ram() -> Selection {
    select(&Request::default(), &[BenchmarkComponent::Cpu, BenchmarkComponent::Ram]).unwrap()
}

fn gflops(value: f64) -> Event {
    Event::Metric { key: MetricKey::more_is_better("gflops", "GFLOP/s"), values: vec![value] }
}

#[test]
fn rounds_are_interleaved_and_share_the_time() {
    let executor = Scripted {
        answer: |count, _: &Round, on_event: &mut dyn FnMut(Event)| {
            on_event(gflops(count as f64));
            Ok(())
        },
        rounds: RefCell::default(),
    };
    let mut recorder = Recorder::default();
    let run = run(&cpu_and_ram(), &options(3), &executor, &mut recorder, &|| false).unwrap();

    let names: Vec<_> = executor.rounds.borrow().iter().map(|round| round.id.name.clone()).collect();
    assert_eq!(names, ["cpu_flops", "mem_bandwidth"].repeat(3));
    assert!(executor.rounds.borrow().iter().all(|round| round.seconds == 1.0));
    let metric = &run.benchmarks[0].metrics[0];
    assert_eq!(metric.value, 2.0);
    assert_eq!(metric.statistics.as_ref().unwrap().rounds, [[0.0], [2.0], [4.0]]);
    assert_eq!(run.benchmarks[0].verdict, Some(Verdict::Pass));
    assert!(run.benchmarks[0].success);
    assert_eq!(recorder.checkpoints.len(), 6);
    assert_eq!(recorder.checkpoints[0].benchmarks[0].verdict, Some(Verdict::Inconclusive));
}

#[test]
fn a_failure_ends_that_benchmark_alone_and_keeps_what_it_measured() {
    let executor = Scripted {
        answer: |_, round: &Round, on_event: &mut dyn FnMut(Event)| {
            on_event(gflops(1.0));
            if round.id.name == "cpu_flops" {
                Err(BenchmarkError::Failed("broke".to_owned()))
            } else {
                Ok(())
            }
        },
        rounds: RefCell::default(),
    };
    let run = run(&cpu_and_ram(), &options(2), &executor, &mut Recorder::default(), &|| false).unwrap();
    assert_eq!(executor.rounds.borrow().len(), 3);
    let failed = &run.benchmarks[0];
    assert_eq!((failed.verdict, failed.success), (Some(Verdict::Fail), false));
    assert_eq!(failed.error_message.as_deref(), Some("broke"));
    assert_eq!(failed.metrics.len(), 1);
    assert_eq!(run.benchmarks[1].verdict, Some(Verdict::Pass));
}

#[test]
fn stopping_keeps_what_was_measured_and_calls_it_inconclusive() {
    let stopped = Cell::new(false);
    let executor = Scripted {
        answer: |count, _: &Round, on_event: &mut dyn FnMut(Event)| {
            on_event(gflops(1.0));
            stopped.set(count == 1);
            if count == 1 { Err(BenchmarkError::Stopped) } else { Ok(()) }
        },
        rounds: RefCell::default(),
    };
    let run =
        run(&cpu_and_ram(), &options(2), &executor, &mut Recorder::default(), &|| stopped.get()).unwrap();
    assert_eq!(executor.rounds.borrow().len(), 2);
    for result in &run.benchmarks {
        assert_eq!(result.verdict, Some(Verdict::Inconclusive));
        assert_eq!(result.metrics.len(), 1);
    }
    assert_eq!(run.benchmarks[0].error_message.as_deref(), Some("stopped after 1 of 2 rounds"));
}

#[test]
fn what_cannot_run_here_is_skipped_with_its_reason() {
    let request = Request { benchmarks: vec!["gpu_flops".to_owned()], ..Request::default() };
    let mut selection = select(&request, &[]).unwrap();
    override_params(&mut selection.chosen[0].spec, "device", ABSENT_GPU).unwrap();
    let executor =
        Scripted { answer: |_, _: &Round, _: &mut dyn FnMut(Event)| Ok(()), rounds: RefCell::default() };
    let run = run(&selection, &options(2), &executor, &mut Recorder::default(), &|| false).unwrap();
    assert!(executor.rounds.borrow().is_empty());
    assert_eq!(run.benchmarks[0].verdict, Some(Verdict::Skipped));
    assert!(run.benchmarks[0].error_message.as_ref().is_some_and(|reason| !reason.is_empty()));
}

#[test]
fn a_child_answers_line_by_line_and_ends_with_its_error() {
    let round = Round {
        id: crate::record::BenchmarkId::new("micro", "no_such"),
        params: Default::default(),
        seconds: 0.1,
        burn_in_seconds: 0.0,
        beside: None,
    };
    let request = serde_json::to_string(&round).unwrap() + "\n";
    let mut output = Vec::new();
    answer_round(&mut request.as_bytes(), &mut output, &|| false).unwrap();
    let line: child::Line = serde_json::from_slice(&output).unwrap();
    assert!(matches!(line, child::Line::End { error: Some(BenchmarkError::BadInput(_)) }), "{line:?}");
    assert!(answer_round(&mut "not json\n".as_bytes(), &mut Vec::new(), &|| false).is_err());
}

#[test]
fn a_child_that_says_nothing_or_cannot_start_is_a_failure() {
    let round = Round {
        id: crate::record::BenchmarkId::new("micro", "cpu_flops"),
        params: Default::default(),
        seconds: 0.1,
        burn_in_seconds: 0.0,
        beside: None,
    };
    let failure = |program: &str| {
        let child = ChildProcess { program: program.into(), arguments: vec![] };
        child.execute(&round, Hooks { on_event: &mut |_| (), stop: &|| false }).unwrap_err()
    };
    let error = failure("/bin/false");
    assert!(matches!(error, BenchmarkError::Failed(_)), "{error}");
    let error = failure("/no/such/program");
    assert!(error.to_string().contains("cannot start /no/such/program"), "{error}");
    // It does not read, does not answer and dies of the signal, as one that was just started.
    let deaf = ChildProcess { program: "/bin/sleep".into(), arguments: vec!["1000".to_owned()] };
    let stopped = deaf.execute(&round, Hooks { on_event: &mut |_| (), stop: &|| true });
    assert_eq!(stopped, Err(BenchmarkError::Stopped));
}
