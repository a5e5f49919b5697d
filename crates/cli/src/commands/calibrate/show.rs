//! `warpt calibrate show` and `plot`.

use std::path::{Path, PathBuf};

use clap::Args;
use warpforge::Device;
use warpforge_calibrate::roofline::{Roofline, picture};

use super::{machine, page, text};
use crate::exit::{Exit, Outcome};
use crate::{output, term, values};

/// Arguments of `show`.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The profile [default: this machine's]
    #[arg(value_name = "PROFILE.json")]
    profile: Option<PathBuf>,
    /// Whose profile, where none is named
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = values::devices())]
    device: Device,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// Arguments of `plot`.
#[derive(Debug, Args)]
pub(super) struct PlotArgs {
    /// The profile [default: this machine's]
    #[arg(value_name = "PROFILE.json")]
    profile: Option<PathBuf>,
    /// Whose profile, where none is named
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = values::devices())]
    device: Device,
    /// Write to this file: a page with tables where it ends in `.html`, else a picture; `-` is standard output
    #[arg(short, long, value_name = "FILE.svg|FILE.html", default_value = "-")]
    output: PathBuf,
}

/// Shows a profile.
pub(super) fn show(args: &ShowArgs) -> Outcome {
    let found = machine::named_or_default(args.profile.as_deref(), args.device)?;
    if args.json {
        term::print_json(&found.profile)?;
    } else {
        term::print(&text::profile(&found.profile, term::screen(false)))?;
    }
    Ok(Exit::Pass)
}

/// Draws a profile.
pub(super) fn plot(args: &PlotArgs) -> Outcome {
    let found = machine::named_or_default(args.profile.as_deref(), args.device)?;
    if is_page(&args.output) {
        output::write(&args.output, page::page(&found.profile).as_bytes())?;
        return Ok(Exit::Pass);
    }
    // A profile of one device is drawn whatever the device is called here.
    let devices = found.profile.devices();
    let asked = args.device.to_string();
    let device = if devices.contains(&asked) { asked } else { devices.into_iter().next().unwrap_or(asked) };
    output::write(&args.output, picture(&Roofline::new(&found.profile, &device)).as_bytes())?;
    Ok(Exit::Pass)
}

/// Whether a file is a page by its name.
fn is_page(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ["html", "htm"].iter().any(|known| ending.eq_ignore_ascii_case(known)))
}
