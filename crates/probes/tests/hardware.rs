//! Tests that need something of the machine: instructions, direct I/O, io_uring, IPv6. Where it is missing they are
//! ignored, and a line on standard error says why.

use std::collections::HashSet;
use std::net::Ipv6Addr;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use warpforge_probes::cpu::known_peaks;
use warpforge_probes::disk::{
    DiskError, Engine, Observation, Operation, Pattern, ScratchFile, Workload, measure,
};
use warpforge_probes::memory::{Mapping, Pages};
use warpforge_probes::net::Server;

const FILE_BYTES: u64 = (3 << 20) + 8192;
const BLOCK_BYTES: usize = 4096;

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for known in known_peaks() {
        let name = format!("peak kernel {} {} computes what it says", known.dtype, known.isa);
        trials.push(match known.kernel {
            Some(kernel) => Trial::test(name, move || ensure(kernel.verify(), "a lane differs")),
            None => ignored(name, "the processor has no such instructions, or they are not permitted"),
        });
    }
    let no_direct_io = direct_io_error();
    for (name, test) in [
        ("the layout fills the file with blocks that differ", layout as fn() -> Outcome),
        ("writes change the file and reads do not", writes_and_reads),
        ("a file without its data fails and leaves nothing behind", nothing_remains),
    ] {
        trials.push(trial(name, no_direct_io.clone(), test));
    }
    let no_uring = no_direct_io.or_else(uring_error);
    trials.push(trial("io_uring moves blocks", no_uring, uring));
    trials.push(trial("tmpfs is not taken for a disk", tmpfs_error(), tmpfs));
    trials.push(trial("a server listens on IPv6", ipv6_error(), ipv6));
    libtest_mimic::run(&arguments, trials).exit();
}

type Outcome = Result<(), Failed>;

fn trial(name: &str, missing: Option<String>, test: fn() -> Outcome) -> Trial {
    match missing {
        None => Trial::test(name, test),
        Some(reason) => ignored(name, &reason),
    }
}

fn ignored(name: impl Into<String>, reason: &str) -> Trial {
    let name = name.into();
    eprintln!("ignored, {name}: {reason}");
    Trial::test(name, || Ok(())).with_ignored_flag(true)
}

fn ensure(holds: bool, otherwise: impl Into<String>) -> Outcome {
    if holds { Ok(()) } else { Err(otherwise.into().into()) }
}

fn folder() -> Result<tempfile::TempDir, Failed> {
    tempfile::tempdir().map_err(Failed::from)
}

fn is_empty(folder: &Path) -> Result<bool, Failed> {
    Ok(std::fs::read_dir(folder)?.next().is_none())
}

fn direct_io_error() -> Option<String> {
    let folder = tempfile::tempdir().ok()?;
    match ScratchFile::create(folder.path(), FILE_BYTES) {
        Err(error @ DiskError::NotDirect { .. }) => Some(error.to_string()),
        _ => None,
    }
}

/// The file's blocks in order.
fn contents(file: &ScratchFile) -> Result<Vec<Vec<u8>>, Failed> {
    let mut block = Mapping::new(BLOCK_BYTES, Pages::Default)?;
    (0..FILE_BYTES / BLOCK_BYTES as u64)
        .map(|at| {
            file.handle().read_exact_at(&mut block, at * BLOCK_BYTES as u64)?;
            Ok(block.to_vec())
        })
        .collect()
}

fn layout() -> Outcome {
    let folder = folder()?;
    let file = ScratchFile::create(folder.path(), FILE_BYTES)?;
    ensure(file.lay_out(&|| false)?, "the layout did not get to its end")?;
    let contents = contents(&file)?;
    let distinct: HashSet<_> = contents.iter().collect();
    ensure(distinct.len() == contents.len(), "two blocks are alike")?;
    for block in &contents {
        let zeros = block.iter().filter(|&&byte| byte == 0).count();
        ensure(zeros < 200, format!("{zeros} zeros in a block"))?;
    }
    ensure(file.cached_bytes()? == 0, "the page cache holds a part of the file")
}

fn observe(file: &ScratchFile, pattern: Pattern, operation: Operation) -> Result<Observation, DiskError> {
    let workload = Workload { pattern, operation, block_bytes: BLOCK_BYTES, queue_depth: 4 };
    measure(file, &workload, Duration::from_millis(20), &|| false)
}

fn writes_and_reads() -> Outcome {
    let folder = folder()?;
    let file = ScratchFile::create(folder.path(), FILE_BYTES)?;
    file.lay_out(&|| false)?;
    let before = contents(&file)?;
    for (operation, changes) in [(Operation::Read, false), (Operation::Write, true)] {
        for pattern in [Pattern::Sequential, Pattern::Random] {
            let seen = observe(&file, pattern, operation)?;
            ensure(!seen.rates.is_empty() && seen.rates.iter().all(|&rate| rate > 0.0), "no rates")?;
            ensure(seen.latencies.count() > 0, "no latencies")?;
            let changed = contents(&file)? != before;
            ensure(changed == changes, format!("{pattern} {operation}: changed is {changed}"))?;
        }
    }
    Ok(())
}

fn nothing_remains() -> Outcome {
    let folder = folder()?;
    let file = ScratchFile::create(folder.path(), FILE_BYTES)?;
    ensure(is_empty(folder.path())?, "the file has a name")?;
    ensure(!file.lay_out(&|| true)?, "a stopped layout is a whole one")?;
    // The file keeps its size in a stopped layout, so that reads would succeed; past its end they fail.
    file.handle().set_len(0)?;
    let outcome = observe(&file, Pattern::Random, Operation::Read);
    ensure(matches!(outcome, Err(DiskError::Transfer { .. })), format!("{outcome:?}"))?;
    drop(file);
    ensure(is_empty(folder.path())?, "something remains in the folder")
}

fn uring_error() -> Option<String> {
    let folder = tempfile::tempdir().ok()?;
    let file = ScratchFile::create(folder.path(), FILE_BYTES).ok()?;
    file.lay_out(&|| false).ok()?;
    observe(&file, Pattern::Sequential, Operation::Read).ok()?.fallback
}

fn uring() -> Outcome {
    let folder = folder()?;
    let file = ScratchFile::create(folder.path(), FILE_BYTES)?;
    file.lay_out(&|| false)?;
    let seen = observe(&file, Pattern::Sequential, Operation::Write)?;
    ensure(seen.engine == Engine::IoUring && seen.latencies.count() > 0, format!("{seen:?}"))
}

const SHARED_MEMORY: &str = "/dev/shm";
const TMPFS_MAGIC: u64 = 0x0102_1994;

fn tmpfs_error() -> Option<String> {
    let kind = rustix::fs::statfs(SHARED_MEMORY).map(|facts| facts.f_type as u64);
    (kind != Ok(TMPFS_MAGIC)).then(|| format!("{SHARED_MEMORY} is no tmpfs"))
}

fn tmpfs() -> Outcome {
    let folder = tempfile::tempdir_in(SHARED_MEMORY)?;
    let outcome = ScratchFile::create(folder.path(), 4096);
    let refused = matches!(outcome, Err(DiskError::NotDirect { .. } | DiskError::NoSpace { .. }));
    ensure(refused, format!("{outcome:?}"))?;
    ensure(is_empty(folder.path())?, "something remains in the folder")
}

fn ipv6_error() -> Option<String> {
    std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).err().map(|error| error.to_string())
}

fn ipv6() -> Outcome {
    let server = Server::bind((Ipv6Addr::LOCALHOST, 0).into())?;
    ensure(server.address().is_ipv6() && server.address().port() != 0, format!("{}", server.address()))
}
