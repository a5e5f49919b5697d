//! A roofline for the terminal, drawn in Braille dots: both axes are logarithmic.

use crate::number::significant;
use crate::plot::Canvas;

/// Draws roofs (operations a second), slopes (bytes a second) and points (operations for each byte, operations a second) in so many
/// columns and rows, labels included. What is not positive and finite is left out.
#[must_use]
pub fn roofline(roofs: &[f64], slopes: &[f64], points: &[(f64, f64)], width: usize, height: usize) -> String {
    let good = |value: &f64| value.is_finite() && *value > 0.0;
    let roofs: Vec<f64> = roofs.iter().copied().filter(good).collect();
    let slopes: Vec<f64> = slopes.iter().copied().filter(good).collect();
    let points: Vec<(f64, f64)> = points.iter().copied().filter(|(x, y)| good(x) && good(y)).collect();
    let (Some(top), Some(steepest)) =
        (roofs.iter().copied().reduce(f64::max), slopes.iter().copied().reduce(f64::max))
    else {
        return "nothing to plot\n".to_owned();
    };
    let flattest = slopes.iter().copied().fold(steepest, f64::min);
    let (mut left, mut right) = (top / steepest / 4.0, top / flattest * 4.0);
    let mut bottom = roofs.iter().copied().fold(top, f64::min);
    let mut above = top;
    for &(x, y) in &points {
        (left, right) = (left.min(x), right.max(x));
        (bottom, above) = (bottom.min(y), above.max(y));
    }
    let (low, high) = ((bottom / 2.0).ln(), (above * 1.3).ln());
    let height = height.clamp(4, 100);
    let labels = [significant(above * 1.3, 3), significant(bottom / 2.0, 3)];
    let margin = labels.iter().map(String::len).max().unwrap_or(0);
    let columns = width.clamp(margin + 12, 400) - margin - 2;
    let mut canvas = Canvas::new(columns, height);
    let (dots, rows) = (canvas.dots(), canvas.dot_rows());
    let across = |x: f64| (x.ln() - left.ln()) / (right / left).ln() * (dots - 1) as f64;
    let down = |y: f64| (high - y.ln()) / (high - low) * (rows - 1) as f64;
    let mut dot = |x: f64, y: f64| {
        if x >= 0.0 && y >= 0.0 && x <= (dots - 1) as f64 && y <= (rows - 1) as f64 {
            canvas.dot(x.round() as usize, y.round() as usize);
        }
    };
    let reach = (right / left).ln();
    let intensity = |at: usize| (left.ln() + reach * at as f64 / (dots - 1).max(1) as f64).exp();
    for at in 0..dots {
        let x = intensity(at);
        for &slope in &slopes {
            if x * slope <= top {
                dot(at as f64, down(x * slope));
            }
        }
        // Roofs are dotted, so that they are told from slopes where many meet.
        for &roof in roofs.iter().filter(|&&roof| x * steepest >= roof && at % 2 == 0) {
            dot(at as f64, down(roof));
        }
    }
    for &(x, y) in &points {
        for (right, below) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)] {
            dot(across(x) + right, down(y) + below);
        }
    }
    let mut text = String::new();
    for (row, line) in canvas.rows().enumerate() {
        let label = match row {
            0 => &labels[0],
            row if row == height - 1 => &labels[1],
            _ => "",
        };
        text += &format!("{label:>margin$} ┤{line}\n");
    }
    let (from, to) = (significant(left, 2), significant(right, 2));
    let gap = columns.saturating_sub(from.len() + to.len()).max(1);
    text + &format!("{:margin$}  {from}{:gap$}{to}\n", "", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr as _;

    #[test]
    fn it_fits_the_width_and_has_dots() {
        for width in [0, 30, 80, 200] {
            let text = roofline(&[100.0, 50.0], &[400.0, 10.0], &[(0.1, 1.0), (60.0, 80.0)], width, 10);
            assert_eq!(text.lines().count(), 11);
            assert!(text.lines().all(|line| line.width() <= width.max(24)), "{width}\n{text}");
            assert!(text.chars().any(|c| ('⠁'..='⣿').contains(&c)), "{text}");
        }
    }

    #[test]
    fn odd_data_is_left_out() {
        assert_eq!(roofline(&[], &[1.0], &[], 80, 10), "nothing to plot\n");
        assert_eq!(roofline(&[f64::NAN], &[1.0], &[], 80, 10), "nothing to plot\n");
        let good = roofline(&[10.0], &[1.0], &[(1.0, 1.0)], 60, 8);
        let odd = roofline(&[10.0, -1.0], &[1.0, 0.0], &[(1.0, 1.0), (f64::INFINITY, 1.0)], 60, 8);
        assert_eq!(odd, good);
    }
}
