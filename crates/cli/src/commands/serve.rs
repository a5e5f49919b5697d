//! `warpt serve`: the far end of the network benchmark.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use warpforge_probes::net::Server;

use crate::exit::{Exit, Failure, Outcome};

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address and port to listen on; 0.0.0.0:5210 lets every host in, port 0 takes any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5210")]
    listen: SocketAddr,
}

/// Runs the command.
pub(crate) fn run(args: &ServeArgs) -> Outcome {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .context("cannot listen to signals")
            .map_err(Failure::not_possible)?;
    }
    let server = Server::bind(args.listen).map_err(Failure::not_possible)?;
    crate::term::tell!("listening on {}; Ctrl-C ends", server.address());
    server
        .serve(&|| stop.load(Ordering::Relaxed), |served| crate::term::tell!("{served}"))
        .map_err(Failure::not_possible)?;
    Ok(Exit::Pass)
}
