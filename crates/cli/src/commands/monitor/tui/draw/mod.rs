//! The screen: where the panels are. Each panel has a file of its own.

mod cores;
mod cpu;
mod gpus;
mod header;
mod help;
mod memory;
mod processes;
mod question;
mod rates;
mod sensors;
#[cfg(test)]
mod tests;
mod widgets;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::widgets::Paragraph;
use warpforge_inventory::live::TimelineRecord;

use super::state::State;
use super::theme::Theme;

/// Below this nothing sensible can be shown.
const LEAST_WIDTH: u16 = 60;
const LEAST_HEIGHT: u16 = 18;

/// A narrower screen leaves the room of the sensors to the programs.
const WIDTH_WITH_SENSORS: u16 = 76;

/// The places of the panels.
struct Areas {
    header: Rect,
    cpu: Rect,
    memory: Rect,
    disk: Rect,
    network: Rect,
    gpus: Rect,
    sensors: Rect,
    processes: Rect,
    footer: Rect,
}

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame, state: &mut State, theme: &Theme) {
    let screen = frame.area();
    if screen.width < LEAST_WIDTH || screen.height < LEAST_HEIGHT {
        let text = format!(
            "This terminal is {} by {}; the dashboard needs {LEAST_WIDTH} by {LEAST_HEIGHT}. q leaves.",
            screen.width, screen.height
        );
        frame.render_widget(Paragraph::new(text).wrap(ratatui::widgets::Wrap { trim: true }), screen);
        return;
    }
    let gpu_count = state.record.as_ref().map_or(0, |record| record.gpu_usage.len());
    let core_count = state.record.as_ref().map_or(0, |record| record.cores.len());
    let areas = areas(screen, core_count, gpu_count);
    state.programs.fit(processes::visible(areas.processes));
    let unknown = TimelineRecord::default();
    let record = state.record.as_ref().unwrap_or(&unknown);
    header::draw(frame, areas.header, state, theme);
    cpu::draw(frame, areas.cpu, record, &state.history, theme);
    memory::draw(frame, areas.memory, record, &state.history, theme);
    rates::draw_disk(frame, areas.disk, record, &state.history, theme);
    rates::draw_network(frame, areas.network, record, &state.history, theme);
    if gpu_count > 0 {
        gpus::draw(frame, areas.gpus, record, &state.history, theme);
    }
    if !areas.sensors.is_empty() {
        sensors::draw(frame, areas.sensors, record, theme);
    }
    processes::draw(frame, areas.processes, state, theme);
    header::draw_keys(frame, areas.footer, state.note.as_deref(), theme);
    if state.help {
        help::draw(frame, screen, theme);
    }
    if let Some(question) = &state.question {
        question::draw(frame, screen, &question.text(), theme);
    }
}

/// A taller screen gives the graphs more rows; the programs get what is left.
fn areas(screen: Rect, cores: usize, gpus: usize) -> Areas {
    let height = screen.height;
    // One row more keeps 256 cores apart on the smallest screen.
    let cpu = (height / 4).clamp(6, 18) + u16::from(cores > 128);
    let middle = (height / 6).clamp(4, 9);
    let [first, cpu, middle, gpus, last] =
        [1, cpu, middle, gpus_height(height, gpus), 1].map(Constraint::Length);
    let [header, cpu, middle, gpus, bottom, footer] =
        Layout::vertical([first, cpu, middle, gpus, Constraint::Min(4), last]).areas(screen);
    let [memory, disk, network] = Layout::horizontal([Constraint::Fill(1); 3]).areas(middle);
    let sensors_width = match screen.width {
        ..WIDTH_WITH_SENSORS => 0,
        width => (width / 4).clamp(34, 48),
    };
    let [sensors, processes] =
        Layout::horizontal([Constraint::Length(sensors_width), Constraint::Fill(1)]).areas(bottom);
    Areas { header, cpu, memory, disk, network, gpus, sensors, processes, footer }
}

/// Two rows a GPU where there is room for its history, one where there is not, and never more than a third.
fn gpus_height(height: u16, gpus: usize) -> u16 {
    let gpus = u16::try_from(gpus).unwrap_or(u16::MAX);
    let (low, high) = (gpus.saturating_add(2), gpus.saturating_mul(2).saturating_add(2));
    match gpus {
        0 => 0,
        _ if high <= height / 5 => high,
        _ => low.min(height / 3),
    }
}
