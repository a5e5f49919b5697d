//! `warpt golden run` by several ranks over MPI, started by `mpirun`: Open MPI and MPICH, each where it is installed.

use std::process::{Command, Stdio};

use libtest_mimic::Trial;
use serde_json::json;

use crate::ranks::{after_steps, agree, arguments, ended, kill, ranks_of, shared_golden};
use crate::trial;
use crate::warpt::Warpt;

/// A launcher, and what the engine is called that it leads to.
const OPEN_MPI: (&str, &str) = ("mpirun.openmpi", "Open MPI");
const MPICH: (&str, &str) = ("mpirun.mpich", "MPICH");

/// Why there is nothing to test with.
fn missing((launcher, _): (&str, &str)) -> Option<String> {
    match Command::new(launcher).arg("--version").output() {
        Ok(_) => None,
        Err(error) => Some(format!("{launcher} cannot be started: {error}")),
    }
}

pub(crate) fn open_mpi() -> (Option<String>, Vec<Trial>) {
    let tests: [(&str, fn()); 2] = [
        ("ranks_of_open_mpi_train_the_same_weights", || same_weights(OPEN_MPI)),
        ("a_killed_rank_of_open_mpi_ends_all", || killed(OPEN_MPI)),
    ];
    (missing(OPEN_MPI), tests.into_iter().map(|(name, test)| trial(name, test)).collect())
}

pub(crate) fn mpich() -> (Option<String>, Vec<Trial>) {
    let tests: [(&str, fn()); 2] = [
        ("ranks_of_mpich_train_the_same_weights", || same_weights(MPICH)),
        ("a_killed_rank_of_mpich_ends_all", || killed(MPICH)),
    ];
    (missing(MPICH), tests.into_iter().map(|(name, test)| trial(name, test)).collect())
}

fn launch(warpt: &Warpt, launcher: &str, ranks: &str, arguments: &[&str]) -> Command {
    let program = warpt.command(arguments);
    let mut command = Command::new(launcher);
    command.args(["-n", ranks]).arg(program.get_program()).args(program.get_args());
    command.current_dir(warpt.path(""));
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    // Test machines have few cores, and their user may be root.
    for name in [
        "OMPI_ALLOW_RUN_AS_ROOT",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
        "OMPI_MCA_rmaps_base_oversubscribe",
        "PRTE_MCA_rmaps_default_mapping_policy_oversubscribe",
    ] {
        command.env(name, "1");
    }
    command
}

fn same_weights((launcher, engine): (&str, &str)) {
    let warpt = Warpt::new();
    shared_golden(&warpt);
    let alone = warpt.run(&arguments("1", &[]));
    assert_eq!(alone.code, 0, "{}", alone.stderr);
    for ranks in ["2", "4"] {
        let output = launch(&warpt, launcher, ranks, &arguments(ranks, &[])).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        agree(&warpt, "golden", ranks);
        agree(&warpt, "1", ranks);
        let count: u64 = ranks.parse().unwrap();
        assert_eq!(ranks_of(&warpt, ranks), json!({"count": count, "engine": engine}));
    }
}

/// The ranks that a launcher started: processes of the program whose arguments name the folder.
fn ranks_in(warpt: &Warpt) -> Vec<u32> {
    let home = warpt.path("").canonicalize().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let is_rank = |path: &std::path::PathBuf| {
        std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd == home)
            && std::fs::read_link(path.join("exe")).is_ok_and(|exe| exe.ends_with("warpt"))
    };
    processes.filter(is_rank).filter_map(|path| path.file_name()?.to_str()?.parse().ok()).collect()
}

fn killed((launcher, _): (&str, &str)) {
    let flags = ["--save-every", "3", "--tier", "correctness"];
    for attempt in 0..5 {
        let warpt = Warpt::new();
        shared_golden(&warpt);
        let out = format!("killed{attempt}");
        let mut command = launch(&warpt, launcher, "2", &arguments(&out, &flags));
        let mut launcher_process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        after_steps(&warpt, &out, 4, &mut launcher_process);
        if let Some(&last) = ranks_in(&warpt).last() {
            kill(last);
        }
        let output = ended(launcher_process);
        if output.status.success() {
            continue;
        }
        assert_eq!(ranks_in(&warpt), [0; 0], "no rank is left");
        // The last checkpoint is whole: the same command goes on from it.
        let output = launch(&warpt, launcher, "2", &arguments(&out, &flags)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("went on from step "), "{said}");
        agree(&warpt, "golden", &out);
        return;
    }
    panic!("no run was slow enough to be killed");
}
