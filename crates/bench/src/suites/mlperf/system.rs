//! The system under test, as LoadGen and its own stand-in see it.

use crate::benchmark::BenchmarkError;

/// An answer to one sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// What the accuracy log keeps.
    pub(super) data: Vec<u8>,
    /// Tokens of a language model; 0 of others.
    pub(super) tokens: u32,
}

/// Takes the first tokens of the samples of a batch, in their order, while the others are still to come.
pub(super) type First<'a> = &'a mut dyn FnMut(&[Answer]) -> Result<(), BenchmarkError>;

/// A model with samples that it can answer.
pub(super) trait System {
    /// How many samples there are.
    fn samples(&self) -> usize;

    /// The most samples that are answered at once.
    fn batch(&self) -> usize;

    /// By what samples of one batch should be alike, such as their length.
    fn size(&self, _sample: usize) -> usize {
        0
    }

    /// Answers samples, at most as many as a batch has.
    ///
    /// # Errors
    /// What went wrong in the engine, or what `first` says.
    fn answer(&mut self, samples: &[usize], first: First<'_>) -> Result<Vec<Answer>, BenchmarkError>;

    /// Holds the answers to some samples to those of the reference.
    ///
    /// # Errors
    /// A wrong answer.
    fn judge(&mut self) -> Result<(), BenchmarkError>;

    /// Judges the answers to all samples, by their position: how many in a hundred are right.
    ///
    /// # Errors
    /// An answer that is wrong beyond what the measure of quality allows, or none at all.
    fn accuracy(&mut self, answers: &[Vec<u8>]) -> Result<f64, BenchmarkError>;
}

/// Answers at once, with nothing: what LoadGen and the way to it cost.
#[derive(Debug)]
pub(super) struct Null;

impl System for Null {
    fn samples(&self) -> usize {
        1
    }

    fn batch(&self) -> usize {
        usize::MAX
    }

    fn answer(&mut self, samples: &[usize], _first: First<'_>) -> Result<Vec<Answer>, BenchmarkError> {
        Ok(vec![Answer::default(); samples.len()])
    }

    fn judge(&mut self) -> Result<(), BenchmarkError> {
        Ok(())
    }

    fn accuracy(&mut self, _answers: &[Vec<u8>]) -> Result<f64, BenchmarkError> {
        Ok(100.0)
    }
}
