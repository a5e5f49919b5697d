//! Benchmark specifications, suites, runs, history and comparison.
//!
//! A [`benchmark::Benchmark`] belongs to a [`suites::Suite`]; [`selection`] turns what the user asked for into a list
//! of them; [`runner`] executes each in rounds of fresh processes and writes one [`record::BenchmarkSuiteRun`], the
//! record that [`history`] keeps, [`compare`] and [`score`] judge, and of which [`fleet`] makes a baseline.

#![forbid(unsafe_code)]

pub mod benchmark;
pub mod compare;
mod energy;
pub mod external;
pub mod fleet;
pub mod history;
pub mod microbench;
mod python;
pub mod record;
pub mod runner;
pub mod score;
pub mod selection;
pub mod squad;
pub mod suites;
