//! `warpt serve`: the far end of the network benchmark.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, anyhow};
use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use warpforge_probes::net::Server;

use crate::exit::{Exit, Failure, Outcome};
use crate::place::Place;

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Name or address and port to listen on; 0.0.0.0:5210 lets every host in, port 0 takes any free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:5210")]
    listen: Place,
}

/// Runs the command.
pub(crate) fn run(args: &ServeArgs) -> Outcome {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .context("cannot listen to signals")
            .map_err(Failure::not_possible)?;
    }
    let server = bind(&args.listen)?;
    crate::term::tell!("listening on {}; Ctrl-C ends", server.address());
    server
        .serve(&|| stop.load(Ordering::Relaxed), |served| crate::term::tell!("{served}"))
        .map_err(Failure::not_possible)?;
    Ok(Exit::Pass)
}

/// Listens on the first address of the place that can be had.
fn bind(place: &Place) -> Result<Server, Failure> {
    let addresses = place.addresses().with_context(|| format!("cannot listen on {place}"));
    let mut refused = anyhow!("cannot listen on {place}: it has no address");
    for address in addresses.map_err(Failure::not_possible)? {
        match Server::bind(address) {
            Ok(server) => return Ok(server),
            Err(error) => refused = error.into(),
        }
    }
    Err(Failure::not_possible(refused))
}
