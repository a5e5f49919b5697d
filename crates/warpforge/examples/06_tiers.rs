//! A model on the engine and on the reference: compared, and the engine timed kernel by kernel.
//!
//!     cargo run --release -p warpforge --example 06_tiers -- MODEL [REPEAT] [PRECISION]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use warpforge::{CompileOptions, Model, RunOptions, Tensor, Tier, seeded};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("give the path of a model")?;
    let repeat: usize = args.next().map_or(Ok(0), |text| text.parse())?;
    let precision = args.next().map_or(Ok(Default::default()), |text| text.parse())?;
    let model = Model::load(&path)?;
    if repeat == 1 {
        println!("{}", model.plan(&CompileOptions::default())?.report());
    }
    let slots = model.inputs();
    let inputs: Vec<Tensor> =
        slots.iter().zip(0..).map(|(slot, stream)| seeded(slot.ty, 1, stream)).collect::<Result<_, _>>()?;
    let begun = Instant::now();
    let fast =
        model.compile(&CompileOptions { tier: Some(Tier::Production), precision, ..Default::default() })?;
    let executable = fast.prepare(&inputs)?;
    let memory = executable.peak_memory_bytes().unwrap_or(0) >> 20;
    println!("compiled in {:.0?}; {memory} MiB", begun.elapsed());
    let got = fast.run_in_order(&inputs, &RunOptions { profile: true, ..Default::default() })?;
    if repeat > 0 {
        let mut times: Vec<Duration> = (0..repeat)
            .map(|_| {
                let begun = Instant::now();
                fast.run_in_order(&inputs, &RunOptions::default()).map(|_| begun.elapsed())
            })
            .collect::<Result<_, _>>()?;
        times.sort_unstable();
        println!("median {:.3?}, min {:.3?}", times[times.len() / 2], times[0]);
        let profiled = fast.run_in_order(&inputs, &RunOptions { profile: true, ..Default::default() })?;
        let mut kernels: BTreeMap<&str, (usize, Duration)> = BTreeMap::new();
        for event in &profiled.profile().events {
            let entry = kernels.entry(&event.name).or_default();
            *entry = (entry.0 + 1, entry.1 + event.duration);
        }
        let mut kernels: Vec<_> = kernels.into_iter().collect();
        kernels.sort_by_key(|(_, (_, time))| std::cmp::Reverse(*time));
        for (name, (count, time)) in kernels.into_iter().take(25) {
            println!("{time:>10.1?} {count:>4} {name}");
        }
    }
    let slow = model.compile(&CompileOptions { tier: Some(Tier::Correctness), ..Default::default() })?;
    let expected = slow.run_in_order(&inputs, &RunOptions::default())?;
    for ((name, a), (_, b)) in got.iter().zip(expected.iter()) {
        let scale = b
            .iter()
            .map(|value| value.to_f64().abs())
            .filter(|value| value.is_finite())
            .fold(1e-30, f64::max);
        let worst = a.iter().zip(b.iter()).map(|(x, y)| (x.to_f64() - y.to_f64()).abs()).fold(0.0, f64::max);
        println!(
            "{name}: {:?} {}, off by {:.2e} of scale {scale:.3}",
            a.dims(),
            a.element_type(),
            worst / scale
        );
    }
    Ok(())
}
