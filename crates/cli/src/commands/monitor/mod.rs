//! `warpt monitor`: what the machine is doing, live.

mod feed;
mod format;
mod lines;
mod metrics;
mod schedule;
mod tui;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use clap::Args;

use crate::exit::{Failure, Outcome};
use crate::place::Place;
use feed::Feed;
use schedule::Schedule;

/// The dashboard shows its first values after this long, however long its interval is.
const FIRST_LOOK: Duration = Duration::from_millis(300);

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct MonitorArgs {
    /// Seconds between samples, at least 0.05
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,

    /// Stop after this many seconds; without it, Ctrl-C (or `q`) stops
    #[arg(long, value_name = "SECONDS", value_parser = duration)]
    duration: Option<Duration>,

    /// Print a line a sample instead of the dashboard
    #[arg(long)]
    no_tui: bool,

    /// Print each sample as one JSON object a line
    #[arg(long)]
    json: bool,

    /// Also answer http://HOST:PORT/metrics, in the text format of Prometheus or, where the client accepts it, of
    /// OpenMetrics
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<Place>,
}

/// Runs the command.
pub(crate) fn run(args: &MonitorArgs) -> Outcome {
    let endpoint =
        args.listen.as_ref().map(metrics::Endpoint::bind).transpose().map_err(Failure::not_possible)?;
    if args.json || args.no_tui || !can_show_dashboard() {
        if let Some(endpoint) = &endpoint {
            crate::term::tell!("warpt: metrics at {}", endpoint.url());
        }
        let schedule = Schedule::new(args.interval, args.interval, args.duration);
        let feed = Feed::start(schedule, None, endpoint.as_ref()).map_err(Failure::not_possible)?;
        lines::run(&feed, args.json)
    } else {
        tui::run(args.interval, args.duration, endpoint.as_ref())
    }
}

fn can_show_dashboard() -> bool {
    let terminal = std::env::var_os("TERM");
    io::stdout().is_terminal() && terminal.is_some_and(|name| !name.is_empty() && name != "dumb")
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    if interval < Duration::from_millis(50) {
        return Err("samples closer than 0.05 seconds would measure the monitor itself".to_owned());
    }
    Ok(interval)
}

fn duration(text: &str) -> Result<Duration, String> {
    let seconds: f64 =
        text.parse().map_err(|_| "expected a number of seconds, such as 0.5 or 60".to_owned())?;
    if seconds.is_nan() || seconds <= 0.0 {
        return Err("expected more than zero seconds".to_owned());
    }
    // A year is as good as for ever, and leaves room for sums of times.
    if seconds > 31_536_000.0 {
        return Err("expected no more than a year".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_checked() {
        assert_eq!(interval("0.05"), Ok(Duration::from_millis(50)));
        assert_eq!(interval("2"), Ok(Duration::from_secs(2)));
        for bad in ["0.049", "0", "-1", "nan", "inf", "1e300", "1s", ""] {
            assert!(interval(bad).is_err(), "{bad}");
        }
    }
}
