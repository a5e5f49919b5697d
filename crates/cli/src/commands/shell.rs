//! Shell completions and manual pages, generated from the argument definitions.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::Arguments;
use crate::exit::{Exit, Failure, Outcome};
use crate::{output, term};

/// Arguments of `warpt completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

/// Arguments of `warpt man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder to write the pages to; it is made if it does not exist
    folder: PathBuf,
}

/// What exit codes mean.
const EXIT_STATUS: [(&str, &str); 5] = [
    ("0", "everything passed"),
    ("1", "a check failed: a mismatch, a regression, a failed benchmark"),
    ("2", "bad usage or bad input"),
    ("3", "not possible here: no such device, library or permission, or a file that cannot be written"),
    ("4", "too little or too noisy to say"),
];

/// What the environment sets.
const ENVIRONMENT: [(&str, &str); 8] = [
    ("XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_CACHE_HOME", "where the files below are"),
    ("NO_COLOR", "no colours on a terminal"),
    ("COLUMNS", "the width that tables and text are fitted to, in place of the terminal's"),
    ("RUST_LOG", "what is logged to standard error, such as warn or warpforge_runtime=debug"),
    ("WARPFORGE_ISA", "the instructions that CPU kernels are held to: portable, avx2, avx512"),
    ("CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES", "the GPUs that are seen"),
    ("WARPT_DURATION, WARPT_ROUNDS, WARPT_BURNIN_SECONDS", "defaults of benchmark run"),
    ("GITHUB_STEP_SUMMARY", "the file that validate --summary adds to"),
];

/// The files that the program has.
const FILES: [(&str, &str); 3] = [
    (
        "$XDG_CONFIG_HOME/warpt/config.toml",
        "defaults of options, below the environment and flags: tables are named as commands, keys as long options, \
         such as rounds = 7 under [benchmark.run]; else ~/.config/warpt/config.toml",
    ),
    ("$XDG_DATA_HOME/warpt/history.sqlite", "the runs that were kept; else ~/.local/share/warpt"),
    ("$XDG_CACHE_HOME/warpt/kernels", "compiled GPU kernels; else ~/.cache/warpt"),
];

/// Examples, by the page that they are on.
const EXAMPLES: [(&str, &str, &str); 19] = [
    ("warpt", "warpt list", "What is this machine made of?"),
    ("warpt", "warpt run model.pt2 --seed 1 --repeat 20", "How fast is a model on it?"),
    ("warpt-list", "warpt list --json > machine.json", "The inventory for programs."),
    ("warpt-monitor", "warpt monitor --json", "A line of JSON a second."),
    (
        "warpt-stress",
        "warpt stress cpu ram --duration 600",
        "Ten minutes of each test of processors and memory.",
    ),
    (
        "warpt-stress",
        "warpt stress network --target node7:5210 --test point-to-point",
        "The link to a host that runs `warpt serve`.",
    ),
    ("warpt-power", "warpt power -- make -j8", "What a command uses from its start to its end."),
    (
        "warpt-carbon-run",
        "warpt carbon run --grid FRA --keep -- python train.py",
        "Energy and carbon of a command, kept.",
    ),
    ("warpt-benchmark-run", "warpt benchmark run --suite micro", "Every benchmark of a suite."),
    (
        "warpt-benchmark-run",
        "warpt benchmark run --benchmark cpu_flops --param dtypes=f32",
        "One benchmark, with a parameter.",
    ),
    (
        "warpt-benchmark-compare",
        "warpt benchmark compare latest~1 latest --fail-on-regression",
        "Fail where the last run is slower than the one before it.",
    ),
    ("warpt-benchmark-history", "warpt benchmark history trend cpu_flops gflops", "One metric over time."),
    ("warpt-check", "cat model.mlir | warpt check -", "Verify a model from a pipe."),
    (
        "warpt-opt",
        "warpt opt model.pt2 --emit bytecode -o model.mlir.bc",
        "A portable artifact, weights included.",
    ),
    (
        "warpt-import",
        "warpt import model.pt2 -o model.mlir --weights model.safetensors",
        "A model as text, its weights in a file of their own.",
    ),
    (
        "warpt-run",
        "warpt run model.pt2 --inputs in.safetensors --outputs out.safetensors",
        "Run on given inputs and keep the outputs.",
    ),
    (
        "warpt-run",
        "warpt run model.pt2 --seed 1 --warmup 3 --repeat 20",
        "Twenty timed runs after three others.",
    ),
    (
        "warpt-run",
        "warpt run model.pt2 --seed 1 --threads 1,2,4 --precision model,bf16 --format markdown",
        "A sweep: every combination is a row of one table.",
    ),
    (
        "warpt-validate",
        "warpt validate --golden model.golden --candidate candidate",
        "Judge a run by one of PyTorch; a mismatch is exit code 1.",
    ),
];

/// Writes the completions of one shell to standard output.
pub(crate) fn completions(args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "warpt", &mut script);
    term::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Pass)
}

/// Writes a page for the program and one for each command.
pub(crate) fn man(args: &ManArgs) -> Outcome {
    std::fs::create_dir_all(&args.folder)
        .with_context(|| format!("cannot write manual pages to {}", args.folder.display()))
        .map_err(Failure::not_possible)?;
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    pages(&command, &args.folder)?;
    Ok(Exit::Pass)
}

fn pages(command: &Command, folder: &Path) -> Result<(), Failure> {
    let man = Man::new(command.clone());
    let path = folder.join(man.get_filename());
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let mut page = Vec::new();
    let rendered = man.render(&mut page).and_then(|()| sections(name).to_writer(&mut page));
    output::written(&path, rendered)?;
    output::write(&path, &page)?;
    let subcommands = command.get_subcommands().filter(|command| !command.is_hide_set());
    subcommands.into_iter().try_for_each(|command| pages(command, folder))
}

/// The sections that the arguments do not tell.
fn sections(name: &str) -> Roff {
    let mut roff = Roff::default();
    for (title, entries) in
        [("EXIT STATUS", &EXIT_STATUS[..]), ("ENVIRONMENT", &ENVIRONMENT), ("FILES", &FILES)]
    {
        roff.control("SH", [title]);
        for (term, text) in entries {
            roff.control("TP", []).text([bold(*term)]).text([roman(*text)]);
        }
    }
    let examples = EXAMPLES.iter().filter(|(page, ..)| *page == name);
    for (at, (_, command, what)) in examples.enumerate() {
        if at == 0 {
            roff.control("SH", ["EXAMPLES"]);
        }
        roff.control("TP", []).text([bold(*command)]).text([roman(*what)]);
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An example that the program would refuse is none.
    #[test]
    fn examples_are_commands() {
        for (_, example, _) in EXAMPLES {
            let command = example.rsplit("| ").next().unwrap_or(example);
            let words = command.split_whitespace().take_while(|word| *word != ">");
            let parsed = Arguments::command().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn every_page_with_examples_exists() {
        let mut command = Arguments::command();
        command.build();
        let mut names = Vec::new();
        collect(&command, &mut names);
        for (page, ..) in EXAMPLES {
            assert!(names.iter().any(|name| name == page), "{page} is not among {names:?}");
        }
    }

    fn collect(command: &Command, names: &mut Vec<String>) {
        names.push(command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned());
        command.get_subcommands().for_each(|command| collect(command, names));
    }
}
