//! Which columns stand side by side, and how wide each is.

use unicode_width::UnicodeWidthStr as _;

use super::GAP;
use crate::wrap::narrowest;

/// Numbers with their units and intervals stay on a line up to this width.
const WHOLE_NUMBER: usize = 18;

/// Words of text stay whole up to this width.
const WHOLE_WORD: usize = 20;

/// What is known of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    is_text: bool,
    /// The width that it would like.
    natural: usize,
    /// The width below which words would be broken.
    least: usize,
    /// The width below which numbers would be cut.
    tightest: usize,
}

/// A column where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) column: usize,
    pub(super) width: usize,
}

impl Column {
    pub(super) fn of_header(header: &str, is_text: bool) -> Self {
        let least = narrowest(header, WHOLE_WORD);
        Self { is_text, natural: header.width(), least, tightest: narrowest(header, 1) }
    }

    /// Makes room for a cell.
    pub(super) fn take(&mut self, cell: &str) {
        let width = cell.width();
        let least = match self.is_text {
            true => narrowest(cell, WHOLE_WORD),
            false if width <= WHOLE_NUMBER => width,
            false => narrowest(cell, WHOLE_NUMBER),
        };
        (self.natural, self.least) = (self.natural.max(width), self.least.max(least));
        self.tightest = self.tightest.max(narrowest(cell, 1));
    }
}

/// The tables that the columns are spread over: one where they fit, wrapped or not. Each begins with the columns that
/// say what a row is about.
pub(super) fn parts(columns: &[Column], screen: Option<usize>) -> Vec<Vec<Place>> {
    let all: Vec<usize> = (0..columns.len()).collect();
    let Some(screen) = screen else { return vec![places(columns, &all, usize::MAX)] };
    if least(columns, &all) <= screen {
        return vec![places(columns, &all, screen)];
    }
    let keys = keys(columns, screen);
    let columns = &with_room(columns, keys, screen);
    let split = |limit: usize| {
        let mut parts = vec![all[..keys].to_vec()];
        for &column in &all[keys..] {
            let part = parts.last_mut().expect("there is a part from the start");
            if part.len() > keys && least(columns, part) + GAP.len() + columns[column].least > limit {
                parts.push([&all[..keys], &[column]].concat());
            } else {
                part.push(column);
            }
        }
        parts
    };
    // As few parts as there can be, of widths that are alike.
    let fewest = split(screen).len();
    let limit = (1..=screen).find(|&limit| split(limit).len() == fewest).unwrap_or(screen);
    split(limit).iter().map(|part| places(columns, part, screen)).collect()
}

/// The columns that every part begins with: the text on the left, or its first where that takes half of the screen.
fn keys(columns: &[Column], screen: usize) -> usize {
    let text = columns.iter().take_while(|column| column.is_text).count().max(1);
    let all: Vec<usize> = (0..text).collect();
    if text < columns.len() && least(columns, &all) <= screen / 2 { text } else { 1 }
}

/// The columns, the first of them broken within words where another would have no room beside it.
fn with_room(columns: &[Column], keys: usize, screen: usize) -> Vec<Column> {
    let mut columns = columns.to_vec();
    let widest = columns[keys..].iter().map(|column| column.least).max().unwrap_or(0);
    if keys == 1 {
        let first = &mut columns[0];
        first.least = first.least.min(screen.saturating_sub(widest + GAP.len()).max(first.tightest));
    }
    columns
}

/// The least that some columns take side by side.
fn least(columns: &[Column], part: &[usize]) -> usize {
    part.iter().map(|&column| columns[column].least).sum::<usize>() + gaps(part)
}

fn gaps(part: &[usize]) -> usize {
    GAP.len() * part.len().saturating_sub(1)
}

/// Shares the room out: everybody has the least, and those who want little more have it first.
fn places(columns: &[Column], part: &[usize], screen: usize) -> Vec<Place> {
    let mut left = screen.saturating_sub(least(columns, part));
    let mut places: Vec<Place> =
        part.iter().map(|&column| Place { column, width: columns[column].least }).collect();
    let wanted = |place: &Place| columns[place.column].natural.saturating_sub(place.width);
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|&at| wanted(&places[at]));
    for (served, &at) in order.iter().enumerate() {
        let share = (left / (order.len() - served)).min(wanted(&places[at]));
        places[at].width += share;
        left -= share;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(is_text: bool, natural: usize, least: usize) -> Column {
        Column { is_text, natural, least, tightest: 1 }
    }

    fn widths(columns: &[Column], screen: usize) -> Vec<Vec<(usize, usize)>> {
        let parts = parts(columns, Some(screen));
        parts.iter().map(|part| part.iter().map(|place| (place.column, place.width)).collect()).collect()
    }

    #[test]
    fn who_wants_little_gets_it_and_the_rest_is_shared() {
        let columns = [column(true, 40, 10), column(false, 8, 6), column(true, 30, 10)];
        assert_eq!(widths(&columns, 200), [[(0, 40), (1, 8), (2, 30)]]);
        assert_eq!(widths(&columns, 52), [[(0, 20), (1, 8), (2, 20)]]);
        assert_eq!(widths(&columns, 30), [[(0, 10), (1, 6), (2, 10)]]);
    }

    #[test]
    fn no_column_is_left_alone_without_need() {
        let columns = [4; 6].map(|width| column(false, width, width));
        let parts = widths(&columns, 28);
        let columns: Vec<Vec<usize>> =
            parts.iter().map(|part| part.iter().map(|(column, _)| *column).collect()).collect();
        assert_eq!(columns, [vec![0, 1, 2, 3], vec![0, 4, 5]]);
    }

    #[test]
    fn what_does_not_fit_comes_again_with_the_first_columns() {
        let columns = [column(true, 5, 5), column(true, 4, 4), column(false, 9, 9), column(false, 9, 9)];
        let expected = [[(0, 5), (1, 4), (2, 9)], [(0, 5), (1, 4), (3, 9)]];
        assert_eq!(widths(&columns, 25), expected);
        let expected = [[(0, 5), (1, 4)], [(0, 5), (2, 9)], [(0, 5), (3, 9)]];
        assert_eq!(widths(&columns, 16), expected);
        let expected = [[(0, 5), (1, 4)], [(0, 1), (2, 9)], [(0, 1), (3, 9)]];
        assert_eq!(widths(&columns, 12), expected, "the first is broken, numbers are not");
    }
}
