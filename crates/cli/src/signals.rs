//! Signals that end the program while it writes files, or the work it does.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use warpforge_tensor::io::remove_unfinished;

use crate::exit::{Exit, Failure};

/// Removes unfinished files when a signal ends the program, which then ends as it would have anyhow.
pub(crate) fn clean_up() -> Result<(), Failure> {
    let ignored = ignored();
    let handled = [SIGINT, SIGTERM].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
    let mut signals = Signals::new(handled).map_err(Failure::not_possible)?;
    let wait = move || {
        for signal in signals.forever() {
            remove_unfinished();
            let _ = emulate_default_handler(signal);
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)
        .map(drop)
        .map_err(Failure::not_possible)
}

/// A flag that Ctrl-C and SIGTERM raise; the second Ctrl-C ends the program at once.
pub(crate) fn stop_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(
            signal,
            Exit::Inconclusive as i32,
            Arc::clone(&stop),
        )
        .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
        .map_err(Failure::not_possible)?;
    }
    Ok(stop)
}

/// The signals that whoever started the program has it ignore, as a shell does for jobs in the background: a bit each.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
