//! Any model file with inputs from a seed: what it wants, and what it gives.
//!
//!     cargo run -p warpforge --example 02_run_a_file -- MODEL.pt2

use warpforge::{CompileOptions, Inputs, Model, seeded, summary::summarise};

fn main() -> warpforge::Result<()> {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: 02_run_a_file MODEL (StableHLO text or bytecode, or a .pt2 archive)");
        return Ok(());
    };
    let model = Model::load(path)?;
    let mut inputs = Inputs::new();
    for (stream, slot) in (0..).zip(model.inputs()) {
        println!("{}: {}", slot.name, slot.ty);
        inputs.insert(slot.name, seeded(slot.ty, 1, stream)?);
    }
    let outputs = model.compile(&CompileOptions::default())?.run(inputs)?;
    for (name, tensor) in outputs.iter() {
        let summary = summarise(tensor);
        println!("{name}: {:?} {}, mean {:?}", tensor.dims(), tensor.element_type(), summary.mean);
    }
    Ok(())
}
