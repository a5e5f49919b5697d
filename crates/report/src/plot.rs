//! A line plot for the terminal, drawn in Braille dots.

use unicode_width::UnicodeWidthStr as _;

use crate::number::significant;

/// Dots in a character: two across, four down.
const ACROSS: usize = 2;
const DOWN: usize = 4;

/// Draws the values from left to right, evenly spaced, in so many columns and rows, labels included. A value that is
/// not finite leaves a gap.
#[must_use]
pub fn plot(points: &[f64], width: usize, height: usize) -> String {
    let finite = || points.iter().copied().filter(|value| value.is_finite());
    let (Some(low), Some(high)) = (finite().reduce(f64::min), finite().reduce(f64::max)) else {
        return "nothing to plot\n".to_owned();
    };
    let height = height.clamp(2, 200);
    let labels = [significant(high, 4), significant(low, 4)];
    let margin = labels.iter().map(|label| label.width()).max().unwrap_or(0);
    let columns = width.clamp(margin + 12, 1000) - margin - 2;
    let mut canvas = Canvas::new(columns, height);

    let across = |index: usize| match points.len() {
        1 => columns * ACROSS / 2,
        count => index * (columns * ACROSS - 1) / (count - 1),
    };
    let down = |value: f64| {
        // Halves, since the difference of two large values can overflow.
        let range = high / 2.0 - low / 2.0;
        let share = if range > 0.0 { (high / 2.0 - value / 2.0) / range } else { 0.5 };
        (share * (height * DOWN - 1) as f64).round() as usize
    };
    let mut previous = None;
    for (index, &value) in points.iter().enumerate() {
        let here = value.is_finite().then(|| (across(index), down(value)));
        if let Some(here) = here {
            canvas.line(previous.unwrap_or(here), here);
        }
        previous = here;
    }
    canvas.rows().enumerate().fold(String::new(), |text, (row, line)| {
        let label = match row {
            0 => &labels[0],
            row if row == height - 1 => &labels[1],
            _ => "",
        };
        format!("{text}{label:>margin$} ┤{line}\n")
    })
}

/// Dots in Braille characters.
pub(crate) struct Canvas {
    columns: usize,
    cells: Vec<u8>,
}

impl Canvas {
    pub(crate) fn new(columns: usize, rows: usize) -> Self {
        Self { columns, cells: vec![0; columns * rows] }
    }

    /// Dots across.
    pub(crate) fn dots(&self) -> usize {
        self.columns * ACROSS
    }

    /// Dots down.
    pub(crate) fn dot_rows(&self) -> usize {
        self.cells.len() / self.columns.max(1) * DOWN
    }

    pub(crate) fn dot(&mut self, x: usize, y: usize) {
        // The bits of U+2800 by column and row.
        const BITS: [[u8; DOWN]; ACROSS] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
        if let Some(cell) = self.cells.get_mut(y / DOWN * self.columns + x / ACROSS) {
            *cell |= BITS[x % ACROSS][y % DOWN];
        }
    }

    /// Dots from one place to another, as many as the longer side has.
    fn line(&mut self, from: (usize, usize), to: (usize, usize)) {
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
        let at = |a: usize, b: usize, step: usize| {
            let share = step as f64 / steps as f64;
            (a as f64 * (1.0 - share) + b as f64 * share).round() as usize
        };
        for step in 0..=steps {
            self.dot(at(from.0, to.0, step), at(from.1, to.1, step));
        }
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = String> + '_ {
        let character = |&bits: &u8| char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' ');
        self.cells.chunks(self.columns).map(move |row| row.iter().map(character).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<&str> {
        text.lines().collect()
    }

    #[test]
    fn a_rising_line_goes_from_the_lower_left_to_the_upper_right() {
        let text = plot(&[1.0, 2.0, 3.0], 20, 4);
        let rows = lines(&text);
        assert_eq!(rows.len(), 4);
        assert!(rows.iter().all(|row| row.width() == 20), "{text}");
        assert!(rows[0].starts_with("3.000 ┤⠀") && rows[3].starts_with("1.000 ┤"), "{text}");
        assert!(!rows[0].ends_with('⠀') && rows[3].ends_with('⠀'), "{text}");
        assert!(!rows[3].starts_with("1.000 ┤⠀"), "{text}");
    }

    #[test]
    fn gaps_stay_empty() {
        let text = plot(&[1.0, f64::NAN, 1.0], 40, 3);
        let middle = lines(&text)[1];
        assert_eq!(middle.chars().filter(|&c| ('⠁'..='⣿').contains(&c)).count(), 2, "{text}");
    }

    #[test]
    fn odd_data_is_drawn_too() {
        assert_eq!(plot(&[], 40, 5), "nothing to plot\n");
        assert_eq!(plot(&[f64::NAN], 40, 5), "nothing to plot\n");
        for points in [&[5.0][..], &[5.0, 5.0], &[f64::MIN, f64::MAX], &[0.0, -1e-300]] {
            for (width, height) in [(0, 0), (1, 1), (80, 10)] {
                let text = plot(points, width, height);
                assert!(text.chars().any(|c| ('⠁'..='⣿').contains(&c)), "{points:?}\n{text}");
            }
        }
    }
}
