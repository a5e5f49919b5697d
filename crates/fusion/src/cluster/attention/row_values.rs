//! What a function of row and column is along one row: affine in the column, or constant in runs of columns.

use std::cmp::Ordering;

use warpforge_ir::attr::ComparisonDirection;
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar};

/// Columns up to `end` with one value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Run {
    /// The first column after it.
    pub(super) end: usize,
    /// The value.
    pub(super) value: Scalar,
}

/// The values along a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RowValues {
    /// start + step · column, integers.
    Affine {
        /// The value of the first column.
        start: i128,
        /// The difference between columns.
        step: i128,
    },
    /// Runs that together have all columns, neighbours with different values.
    Runs(Vec<Run>),
}

impl RowValues {
    /// One value in all columns.
    pub(super) fn uniform(value: Scalar, columns: usize) -> Self {
        Self::Runs(vec![Run { end: columns, value }])
    }

    /// The values of all columns.
    pub(super) fn collect(values: impl IntoIterator<Item = Scalar>) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        for (at, value) in values.into_iter().enumerate() {
            push(&mut runs, at + 1, value);
        }
        Self::Runs(runs)
    }

    /// As runs.
    pub(super) fn into_runs(self, columns: usize) -> Vec<Run> {
        match self {
            Self::Runs(runs) => runs,
            Self::Affine { start, step: 0 } => vec![Run { end: columns, value: Scalar::Int(start) }],
            Self::Affine { start, step } => (0..columns)
                .map(|column| Run { end: column + 1, value: Scalar::Int(start + step * column as i128) })
                .collect(),
        }
    }

    /// The integers as start and step, where they are affine.
    fn line(&self) -> Option<(i128, i128)> {
        match self {
            Self::Affine { start, step } => Some((*start, *step)),
            Self::Runs(runs) => match runs.as_slice() {
                &[Run { value: Scalar::Int(value), .. }] => Some((value, 0)),
                _ => None,
            },
        }
    }

    /// A function of integers that keeps them affine, where its type holds all of them.
    pub(super) fn affine(
        function: Function,
        element: ElementType,
        operands: &[&Self],
        columns: usize,
    ) -> Option<Self> {
        let ElementType::Int(int) = element else { return None };
        let (start, step) = match (function, operands) {
            (Function::Add, [a, b]) => {
                let (a, b) = (a.line()?, b.line()?);
                (a.0.checked_add(b.0)?, a.1.checked_add(b.1)?)
            }
            (Function::Subtract, [a, b]) => {
                let (a, b) = (a.line()?, b.line()?);
                (a.0.checked_sub(b.0)?, a.1.checked_sub(b.1)?)
            }
            (Function::Convert, [a]) => a.line()?,
            _ => return None,
        };
        let last = start.checked_add(step.checked_mul(columns.saturating_sub(1) as i128)?)?;
        let holds = |value: i128| int.wrap(value) == value;
        (holds(start) && holds(last)).then_some(Self::Affine { start, step })
    }

    /// A comparison of integers that are affine.
    pub(super) fn compared(
        direction: ComparisonDirection,
        [a, b]: [&Self; 2],
        columns: usize,
    ) -> Option<Self> {
        let (a, b) = (a.line()?, b.line()?);
        let (start, step) = (a.0.checked_sub(b.0)?, a.1.checked_sub(b.1)?);
        let truth = |order: Ordering| {
            Scalar::Bool(match direction {
                ComparisonDirection::Eq => order.is_eq(),
                ComparisonDirection::Ne => order.is_ne(),
                ComparisonDirection::Lt => order.is_lt(),
                ComparisonDirection::Le => order.is_le(),
                ComparisonDirection::Gt => order.is_gt(),
                ComparisonDirection::Ge => order.is_ge(),
            })
        };
        if step == 0 {
            return Some(Self::uniform(truth(start.cmp(&0)), columns));
        }
        // The difference has the sign of the start up to the column where it is zero or has passed it.
        let (distance, pace) = (if step > 0 { -start } else { start }, step.abs());
        let bound = |column: i128| usize::try_from(column.max(0)).map_or(columns, |at| at.min(columns));
        let (reached, passed) = (bound(-(-distance).div_euclid(pace)), bound(distance.div_euclid(pace) + 1));
        let (before, after) =
            if step > 0 { (Ordering::Less, Ordering::Greater) } else { (Ordering::Greater, Ordering::Less) };
        let mut runs = Vec::new();
        for (end, order) in [(reached, before), (passed, Ordering::Equal), (columns, after)] {
            push(&mut runs, end, truth(order));
        }
        Some(Self::Runs(runs))
    }

    /// A function of the values of each column.
    pub(super) fn map(operands: Vec<Self>, columns: usize, function: impl Fn(&[Scalar]) -> Scalar) -> Self {
        let operands: Vec<Vec<Run>> = operands.into_iter().map(|row| row.into_runs(columns)).collect();
        let mut places = vec![0; operands.len()];
        let mut values: Vec<Scalar> = Vec::with_capacity(operands.len());
        let mut runs = Vec::new();
        let mut at = 0;
        while at < columns {
            values.clear();
            let mut end = columns;
            for (place, runs) in places.iter_mut().zip(&operands) {
                *place += usize::from(runs[*place].end <= at);
                values.push(runs[*place].value);
                end = end.min(runs[*place].end);
            }
            push(&mut runs, end, function(&values));
            at = end;
        }
        Self::Runs(runs)
    }
}

/// Adds columns up to `end`; none where they are there already.
fn push(runs: &mut Vec<Run>, end: usize, value: Scalar) {
    match runs.last_mut() {
        Some(last) if last.end >= end => {}
        Some(last) if last.value == value => last.end = end,
        None if end == 0 => {}
        _ => runs.push(Run { end, value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(row: RowValues, columns: usize) -> Vec<Scalar> {
        let mut all = Vec::new();
        for run in row.into_runs(columns) {
            all.resize(run.end, run.value);
        }
        all
    }

    #[test]
    fn comparisons_of_lines_are_those_of_their_values() {
        use ComparisonDirection::{Eq, Ge, Gt, Le, Lt, Ne};
        for (start, step) in
            [(-3, 1), (3, -1), (0, 1), (-7, 2), (7, -2), (9, 1), (-9, -1), (2, 0), (0, 0), (-6, 3)]
        {
            for direction in [Eq, Ge, Gt, Le, Lt, Ne] {
                let (line, zero) =
                    (RowValues::Affine { start, step }, RowValues::Affine { start: 0, step: 0 });
                let found = RowValues::compared(direction, [&line, &zero], 6).unwrap();
                let expected = (0..6).map(|column| {
                    let value = Scalar::Int(start + step * column);
                    Scalar::Bool(warpforge_interp::scalar::compare(direction, false, value, Scalar::Int(0)))
                });
                assert_eq!(each(found, 6), expected.collect::<Vec<_>>(), "{start} {step} {direction:?}");
            }
        }
    }

    #[test]
    fn functions_of_runs_are_those_of_their_values() {
        let row = |values: &[i128]| RowValues::collect(values.iter().map(|&value| Scalar::Int(value)));
        let sum = |x: &[Scalar]| Scalar::Int(x[0].to_i128() + x[1].to_i128());
        let line = RowValues::Affine { start: 5, step: -1 };
        let found = RowValues::map(vec![row(&[0, 0, 1, 2, 2]), line], 5, sum);
        assert_eq!(found, row(&[5, 4, 4, 4, 3]));
        let runs = RowValues::map(vec![row(&[0, 0, 1, 1, 1]), row(&[1, 1, 1, 1, 0])], 5, sum);
        assert_eq!(runs, row(&[1, 1, 2, 2, 1]));
    }

    #[test]
    fn lines_that_their_type_does_not_hold_are_not_affine() {
        let line = RowValues::Affine { start: 100, step: 1 };
        let converted = |columns| RowValues::affine(Function::Convert, ElementType::I8, &[&line], columns);
        assert!(converted(28).is_some() && converted(29).is_none());
    }
}
