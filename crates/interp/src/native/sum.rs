//! Folding many numbers into one.

use super::matmul::RUN;
use super::number::Number;

/// A computation that takes numbers one after the other.
pub(crate) trait Accumulator<T>: Clone {
    /// Takes one more number.
    fn take(&mut self, value: T);

    /// The outcome so far.
    fn outcome(&self) -> T;

    /// Takes several numbers.
    #[inline(always)]
    fn take_all(&mut self, values: &[T])
    where
        T: Copy,
    {
        values.iter().for_each(|&value| self.take(value));
    }
}

/// What a function makes of the numbers.
#[derive(Clone)]
pub(crate) struct Plain<T, F> {
    pub(crate) value: T,
    pub(crate) function: F,
}

impl<T: Copy, F: Fn(T, T) -> T + Clone> Accumulator<T> for Plain<T, F> {
    #[inline(always)]
    fn take(&mut self, value: T) {
        self.value = (self.function)(self.value, value);
    }

    fn outcome(&self) -> T {
        self.value
    }
}

/// A sum of floats: rounded at each step for runs of [`RUN`] numbers, as the specification's addition would; the runs are
/// summed in binary64, so that long sums do not lose what short ones keep.
#[derive(Clone)]
pub(crate) struct Sum<T> {
    run: T,
    length: usize,
    total: Option<f64>,
}

impl<T: super::number::Real> Sum<T> {
    pub(crate) fn new(start: T) -> Self {
        Self { run: start, length: 0, total: None }
    }
}

impl<T: super::number::Real> Accumulator<T> for Sum<T> {
    #[inline(always)]
    fn take(&mut self, value: T) {
        if self.length == RUN {
            self.total = Some(self.total.unwrap_or(0.0) + self.run.to_f64());
            self.run = T::from_f64(0.0);
            self.length = 0;
        }
        self.run = Number::add(self.run, value);
        self.length += 1;
    }

    fn outcome(&self) -> T {
        self.total.map_or(self.run, |total| T::from_f64(total + self.run.to_f64()))
    }

    #[inline(always)]
    fn take_all(&mut self, mut values: &[T]) {
        while let Some((&first, _)) = values.split_first() {
            self.take(first);
            // The rest of the run, without looking for its end.
            let (now, later) = values[1..].split_at((RUN - self.length).min(values.len() - 1));
            self.run = now.iter().fold(self.run, |run, &value| Number::add(run, value));
            self.length += now.len();
            values = later;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_sums_are_rounded_at_each_step_and_long_ones_keep_up() {
        let mut sum = Sum::new(16_777_216.0f32);
        sum.take_all(&[1.0; 100]);
        assert_eq!(sum.outcome(), 16_777_216.0);
        let mut sum = Sum::new(0.0f32);
        let ones = vec![1.0; 20_000_000];
        sum.take_all(&ones);
        assert_eq!(sum.outcome(), 20_000_000.0);
        let mut one_by_one = Sum::new(0.0f32);
        let mut at_once = one_by_one.clone();
        let values: Vec<f32> = (0..1000).map(|at| (at as f32).sin()).collect();
        values.iter().for_each(|&value| one_by_one.take(value));
        values.chunks(77).for_each(|chunk| at_once.take_all(chunk));
        assert_eq!(one_by_one.outcome(), at_once.outcome());
    }
}
