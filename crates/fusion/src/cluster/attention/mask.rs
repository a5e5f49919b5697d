//! Which keys a query sees: the masks of scores, by what they compute.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar};

use super::expression::{Form, ScoreLoop, Source};
use super::index_program::IndexProgram;
use super::row_values::{RowValues, Run};

/// A score that is so low hides its key: next to it the exponential of any other score of a model is zero. It is above what models
/// fill with, the least number of a type or -1e9, and below what they add for other reasons.
const HIDING_SCORE: f64 = -6e4;

/// Which keys each query sees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mask {
    /// The keys that it sees by their indices.
    pub visible: Visible,
    /// Whether values that are known at run time only hide more keys.
    pub data: Option<DataMask>,
    /// Whether something else is added to scores, such as position biases, or a mask that comes as numbers at run time.
    pub biased: bool,
    /// Whether hidden keys have the weight zero for every query. A query that sees no key weighs all of them alike
    /// where hidden scores are large negative numbers instead of minus infinity.
    pub hides: bool,
}

/// Keys by their indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visible {
    /// Every key.
    All,
    /// A query with index `q` sees the keys from `q + first` to `q + last`.
    Band {
        /// The first key, where the mask has one.
        first: Option<isize>,
        /// The last key, where the mask has one.
        last: Option<isize>,
    },
    /// Some keys.
    Some,
}

/// A mask that is known at run time only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataMask {
    /// It is the same for all queries of a batch: key padding.
    Keys,
    /// It differs between queries.
    Any,
}

impl Mask {
    /// Scores without a mask.
    pub const NONE: Self = Self { visible: Visible::All, data: None, biased: false, hides: true };

    /// The mask that changes of scores are where it is not known which rows are whose queries.
    pub(super) fn of_unknown_queries(changes: &[Change]) -> Self {
        let visible = match changes.iter().all(|change| matches!(change, Change::Scale(_))) {
            true => Visible::All,
            false => Visible::Some,
        };
        Self { visible, hides: visible == Visible::All, ..Self::NONE }
    }

    /// Whether every query sees every key, with scores that nothing is added to.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.visible == Visible::All && self.data.is_none() && !self.biased
    }

    /// Whether queries see the keys up to their own index, with scores that nothing is added to.
    #[must_use]
    pub fn is_causal(&self) -> bool {
        let causal = Visible::Band { first: None, last: Some(0) };
        self.visible == causal && self.data.is_none() && !self.biased && self.hides
    }

    /// The distances from a query to the first and to the last key that can have a weight, where the mask has such.
    #[must_use]
    pub fn weighted_keys(&self) -> [Option<isize>; 2] {
        match self.visible {
            Visible::Band { first, last } if self.hides => [first, last],
            _ => [None, None],
        }
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = match self.visible {
            Visible::All => Vec::new(),
            Visible::Band { first: None, last: Some(0) } => vec!["causal".to_owned()],
            Visible::Band { first: None, last: Some(last) } => vec![format!("causal ({last:+})")],
            Visible::Band { first, last } => {
                let bound = |bound: Option<isize>| bound.map_or(String::new(), |bound| bound.to_string());
                vec![format!("window ({}..{})", bound(first), bound(last))]
            }
            Visible::Some => vec!["masked".to_owned()],
        };
        words.extend(self.biased.then(|| "biased".to_owned()));
        words.extend(self.data.map(|data| match data {
            DataMask::Keys => "key-masked".to_owned(),
            DataMask::Any => "data-masked".to_owned(),
        }));
        f.write_str(&words.join(" "))
    }
}

/// Something that is done to scores.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// They are replaced by a number where the condition has this truth value.
    Replace {
        /// The condition.
        condition: Source,
        /// The truth value.
        when: bool,
        /// The number.
        fill: Source,
    },
    /// This is added.
    Add(Source),
    /// They are multiplied by a positive number.
    Scale(f64),
}

/// A change by row and column alone, as steps of a program. The effect on a score is what is added to it: minus infinity or a
/// large negative number for hidden keys, and NaN for scores that another number replaces.
enum KnownChange {
    Replace { condition: usize, when: bool, fill: usize },
    Add(usize),
    Scale(f64),
}

impl KnownChange {
    /// The effect of this change after those before it, along a row.
    fn after(&self, before: RowValues, steps: &[RowValues], columns: usize) -> RowValues {
        match self {
            Self::Replace { condition, when, fill } => {
                let operands = vec![steps[*condition].clone(), steps[*fill].clone(), before];
                RowValues::map(operands, columns, |x| {
                    let fill = x[1].to_f64();
                    let replaced = Scalar::Float(if is_hidden(fill) { fill } else { f64::NAN });
                    if x[0].is_true() == *when { replaced } else { x[2] }
                })
            }
            Self::Add(added) => RowValues::map(vec![before, steps[*added].clone()], columns, |x| {
                Scalar::Float(x[0].to_f64() + x[1].to_f64())
            }),
            Self::Scale(by) => RowValues::map(vec![before], columns, |x| Scalar::Float(x[0].to_f64() * by)),
        }
    }
}

fn is_hidden(effect: f64) -> bool {
    effect <= HIDING_SCORE
}

/// The mask that changes of scores are, the first change first.
pub(super) fn mask(of: ScoreLoop<'_>, changes: &[Change]) -> Mask {
    let mut program = IndexProgram::default();
    let mut known: Vec<KnownChange> = Vec::new();
    let (mut data, mut biased) = (None, false);
    // Hidden keys of a query that sees none weigh nothing only where their scores are minus infinity.
    let mut finite = false;
    for change in changes {
        let (condition, when, fill) = match change {
            Change::Scale(by) => {
                known.push(KnownChange::Scale(*by));
                continue;
            }
            Change::Add(added) => {
                if let Some(added) = program.add(of, added) {
                    known.push(KnownChange::Add(added));
                    continue;
                }
                let Some(replaced) = as_replacement(of, added) else {
                    biased = true;
                    continue;
                };
                replaced
            }
            Change::Replace { condition, when, fill } => (condition.clone(), *when, fill.clone()),
        };
        for (condition, when) in conditions(of, &condition, when) {
            if let (Some(condition), Some(fill)) = (program.add(of, &condition), program.add(of, &fill)) {
                known.push(KnownChange::Replace { condition, when, fill });
                continue;
            }
            finite |= of.number(&fill) != Some(f64::NEG_INFINITY);
            let any = data == Some(DataMask::Any) || of.varies_by_row(&[&condition, &fill]);
            data = Some(if any { DataMask::Any } else { DataMask::Keys });
        }
    }
    let mut found = Mask { data, biased, ..Mask::NONE };
    if !known.iter().any(|change| !matches!(change, KnownChange::Scale(_))) {
        return found;
    }
    let [rows, columns] = of.dims();
    let mut seen: Vec<Range<usize>> = Vec::with_capacity(rows);
    for row in 0..rows {
        let none = RowValues::uniform(Scalar::Float(0.0), columns);
        let effects = program.row(of, row).map(|steps| {
            let effects = known.iter().fold(none, |before, change| change.after(before, &steps, columns));
            effects.into_runs(columns)
        });
        let Some((keys, effects)) = effects.and_then(|effects| Some((visible_keys(&effects)?, effects)))
        else {
            return Mask { visible: Visible::Some, hides: false, ..found };
        };
        for effect in effects.iter().map(|run| run.value.to_f64()) {
            found.biased |= !is_hidden(effect) && effect != 0.0;
            finite |= is_hidden(effect) && effect.is_finite();
        }
        seen.push(keys);
        if seen.len().is_power_of_two() {
            // The queries so far tell whether the mask has another form; the others need not be looked at then.
            let bounds = bounds(&seen, columns);
            if bounds != [None, None] && !are_bounds(bounds, &seen, columns) {
                return Mask { visible: Visible::Some, hides: false, ..found };
            }
        }
    }
    found.visible = visible(&seen, columns);
    found.hides = !finite || (data.is_none() && !biased && seen.iter().all(|keys| !keys.is_empty()));
    found
}

/// What is added as what replaces scores, where it is zero or hides a key by a condition.
fn as_replacement(of: ScoreLoop<'_>, added: &Source) -> Option<(Source, bool, Source)> {
    let mut form = of.form(added, &mut HashMap::new());
    while let Form::Function(Function::Convert, operands) = form {
        let source = operands.into_iter().find(|source| of.element(source).is_float())?;
        form = of.form(&source, &mut HashMap::new());
    }
    let Form::Function(Function::Select, operands) = form else { return None };
    let [condition, then, otherwise] = <[Source; 3]>::try_from(operands).ok()?;
    match (of.number(&then)?, of.number(&otherwise)?) {
        (0.0, fill) if is_hidden(fill) => Some((condition, false, otherwise)),
        (fill, 0.0) if is_hidden(fill) => Some((condition, true, then)),
        _ => None,
    }
}

/// The conditions of which each alone makes a condition have a truth value.
fn conditions(of: ScoreLoop<'_>, condition: &Source, when: bool) -> Vec<(Source, bool)> {
    let mut found = Vec::new();
    let mut pending = vec![(condition.clone(), when)];
    while let Some((condition, when)) = pending.pop() {
        let is_truth = of.element(&condition) == ElementType::Bool;
        match of.form(&condition, &mut HashMap::new()) {
            Form::Function(Function::Not, operands) if is_truth => {
                pending.extend(operands.into_iter().map(|operand| (operand, !when)));
            }
            Form::Function(function, operands)
                if is_truth && function == if when { Function::Or } else { Function::And } =>
            {
                pending.extend(operands.into_iter().map(|operand| (operand, when)));
            }
            _ => found.push((condition, when)),
        }
    }
    found
}

/// The keys that are not hidden, where they are neighbours.
fn visible_keys(effects: &[Run]) -> Option<Range<usize>> {
    let mut keys = 0..0;
    let mut start = 0;
    for run in effects {
        if !is_hidden(run.value.to_f64()) {
            if !keys.is_empty() && keys.end != start {
                return None;
            }
            keys = if keys.is_empty() { start } else { keys.start }..run.end;
        }
        start = run.end;
    }
    Some(keys)
}

/// The keys that queries see, by what each of them sees.
fn visible(seen: &[Range<usize>], columns: usize) -> Visible {
    if seen.iter().all(|keys| *keys == (0..columns)) {
        return Visible::All;
    }
    let bounds = bounds(seen, columns);
    match bounds == [None, None] || !are_bounds(bounds, seen, columns) {
        true => Visible::Some,
        false => Visible::Band { first: bounds[0], last: bounds[1] },
    }
}

/// The distances from queries to the first and to the last key that they see, by the first query that tells.
fn bounds(seen: &[Range<usize>], columns: usize) -> [Option<isize>; 2] {
    let queries = || seen.iter().enumerate().filter(|(_, keys)| !keys.is_empty());
    let distance = |key: usize, query: usize| key as isize - query as isize;
    let first = queries().find(|(_, keys)| keys.start > 0);
    let last = queries().find(|(_, keys)| keys.end < columns);
    [
        first.map(|(query, keys)| distance(keys.start, query)),
        last.map(|(query, keys)| distance(keys.end - 1, query)),
    ]
}

/// Whether queries see the keys within bounds.
fn are_bounds([first, last]: [Option<isize>; 2], seen: &[Range<usize>], columns: usize) -> bool {
    let inside = |key: isize| usize::try_from(key).map_or(0, |key| key.min(columns));
    seen.iter().enumerate().all(|(query, keys)| {
        let start = first.map_or(0, |first| inside(query as isize + first));
        let end = last.map_or(columns, |last| inside(query as isize + last + 1));
        (keys.is_empty() && start >= end) || *keys == (start..end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What queries see that see the keys for which `sees` is true.
    fn of(rows: usize, columns: usize, sees: impl Fn(isize, isize) -> bool) -> Visible {
        let keys = |row: usize| {
            let effects = (0..columns).map(|column| {
                let hidden = !sees(row as isize, column as isize);
                Scalar::Float(if hidden { f64::NEG_INFINITY } else { 0.0 })
            });
            visible_keys(&RowValues::collect(effects).into_runs(columns))
        };
        let seen: Option<Vec<_>> = (0..rows).map(keys).collect();
        seen.map_or(Visible::Some, |seen| visible(&seen, columns))
    }

    #[test]
    fn masks_are_classified_by_the_keys_that_queries_see() {
        let band = |first: Option<isize>, last: Option<isize>| Visible::Band { first, last };
        assert_eq!(of(3, 4, |_, _| true), Visible::All);
        assert_eq!(of(3, 4, |row, column| column <= row), band(None, Some(0)));
        assert_eq!(of(3, 4, |row, column| column < row), band(None, Some(-1)));
        assert_eq!(of(3, 5, |row, column| column <= row + 2), band(None, Some(2)));
        assert_eq!(of(5, 3, |row, column| column >= row - 1), band(Some(-1), None));
        assert_eq!(of(9, 9, |row, column| column <= row && row - column < 3), band(Some(-2), Some(0)));
        assert_eq!(of(9, 9, |row, column| row / 3 >= column / 3), Visible::Some);
        assert_eq!(of(4, 4, |_, column| column != 1), Visible::Some);
        assert_eq!(of(4, 4, |row, _| row != 1), Visible::Some);
        assert_eq!(of(2, 2, |_, _| false), Visible::Some);
        // One query that sees all keys: its mask may be any.
        assert_eq!(of(1, 4, |_, column| column <= 3), Visible::All);
    }
}
