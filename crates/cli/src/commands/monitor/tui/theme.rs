//! Colours, or their absence.

use ratatui::style::{Color, Modifier, Style};

/// How the parts of the screen look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Theme {
    colour: bool,
}

impl Theme {
    pub(super) fn new(colour: bool) -> Self {
        Self { colour }
    }

    fn coloured(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    /// Frames, and what is there but matters little.
    pub(super) fn faint(self) -> Style {
        if self.colour { Style::new().fg(Color::DarkGray) } else { Style::new().add_modifier(Modifier::DIM) }
    }

    pub(super) fn title(self) -> Style {
        self.coloured(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn inverse(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn alarm(self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// What comes in: reads and received bytes.
    pub(super) fn inward(self) -> Style {
        self.coloured(Color::Green)
    }

    /// What goes out: writes and sent bytes.
    pub(super) fn outward(self) -> Style {
        self.coloured(Color::Magenta)
    }

    /// The colour of a load, from calm to busy.
    pub(super) fn load(self, percent: f64) -> Style {
        self.coloured(match percent {
            percent if percent < 50.0 => Color::Green,
            percent if percent < 80.0 => Color::Yellow,
            _ => Color::Red,
        })
    }

    /// The colour of a temperature, on the scale of silicon.
    pub(super) fn heat(self, celsius: f64) -> Style {
        self.load((celsius - 30.0) * 100.0 / 65.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colour_there_is_none() {
        let theme = Theme::new(false);
        let styles =
            [theme.faint(), theme.title(), theme.alarm(), theme.inward(), theme.outward(), theme.load(99.0)];
        assert!(styles.iter().all(|style| style.fg.is_none() && style.bg.is_none()));
        assert_eq!(Theme::new(true).load(99.0).fg, Some(Color::Red));
    }
}
