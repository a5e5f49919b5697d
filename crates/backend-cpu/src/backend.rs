//! The backend: what the engine can do, and how it compiles.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use warpforge_fusion::cluster::clusters;
use warpforge_fusion::graph::import;
use warpforge_fusion::simplify::simplify;
use warpforge_kernels::pool::Pool;
use warpforge_runtime::{
    Backend, Capabilities, Device, ErrorKind, Executable, Precision, Program, Reference, ReferenceFallback,
    Result, Target, Tier,
};

use crate::executable::Compiled;
use crate::kernel::Products;
use crate::narrow::narrow;

/// Its name in records.
pub(crate) const NAME: &str = "cpu";

/// The variable that says how many threads to use where nobody else does.
const THREADS: &str = "WARPFORGE_NUM_THREADS";

/// Most threads that a pool has.
const MOST_THREADS: usize = 512;

/// The CPU engine.
#[derive(Default)]
pub struct Cpu {
    /// The pool made last: programs with as many threads share it.
    pool: Mutex<Weak<Pool>>,
}

impl Cpu {
    fn pool(&self, threads: Option<NonZeroUsize>) -> Result<Arc<Pool>> {
        let threads = match threads {
            Some(threads) => threads,
            None => match std::env::var(THREADS) {
                Ok(text) => text.parse().map_err(|_| {
                    ErrorKind::Threads(format!("{THREADS} is `{text}`, not a number above 0"))
                })?,
                Err(_) => std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            },
        };
        if threads.get() > MOST_THREADS {
            let reason = format!("{threads} threads are more than the {MOST_THREADS} that a run may use");
            return Err(ErrorKind::Threads(reason).into());
        }
        let mut known = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = known.upgrade().filter(|pool| pool.threads() == threads.get()) {
            return Ok(pool);
        }
        let pool = Pool::new(threads).map_err(|error| ErrorKind::Failed {
            backend: NAME,
            reason: format!("cannot start {threads} threads: {error}"),
        })?;
        let pool = Arc::new(pool);
        *known = Arc::downgrade(&pool);
        Ok(pool)
    }
}

impl Backend for Cpu {
    fn name(&self) -> &'static str {
        NAME
    }

    fn devices(&self) -> Vec<Device> {
        vec![Device::Cpu]
    }

    fn capabilities(&self, _: Device) -> Capabilities {
        let precisions = vec!["bf16".to_owned()];
        let tiers = vec![Tier::Production, Tier::Observable];
        Capabilities { tiers, precisions, observes_values: false }
    }

    fn compile(&self, program: &Program, target: &Target) -> Result<Box<dyn Executable>> {
        let pool = self.pool(target.threads)?;
        let entry = program.entry();
        let func = program.module().function(entry).ok_or_else(|| ErrorKind::Entry {
            entry: entry.to_owned(),
            reason: "there is no such function".to_owned(),
        })?;
        let products = match &target.precision {
            Precision::Named(name) if name == "bf16" => Products::Bf16,
            _ => Products::Model,
        };
        let observe = target.tier == Tier::Observable;
        let compiled = import(func, &|at| program.weights().get(at).cloned())
            .map_err(|error| error.to_string())
            .and_then(|graph| {
                let mut graph = simplify(&graph);
                let mut clusters = clusters(&graph);
                if products == Products::Bf16 {
                    narrow(&mut graph, &mut clusters);
                }
                Compiled::new(program, graph, clusters, pool, products, observe)
                    .map_err(|error| error.to_string())
            });
        match (compiled, products) {
            (Ok(compiled), _) => {
                if !compiled.fallbacks().is_empty() {
                    // What the reference cannot evaluate either is named now, not in the middle of a run.
                    Reference.compile(program, target)?;
                }
                Ok(Box::new(compiled))
            }
            (Err(reason), Products::Model) => Ok(Box::new(ReferenceFallback::new(program, target, reason)?)),
            (Err(reason), _) => {
                Err(ErrorKind::Unsupported { backend: NAME, operations: vec![reason] }.into())
            }
        }
    }
}
