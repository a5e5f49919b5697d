//! Observers of runs, and of the regions of host operations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use warpforge_fusion::graph::OpaqueOp;
use warpforge_interp::Value;
use warpforge_ir::{Func, Module, OpId, OpRef};
use warpforge_runtime::Observer;

/// The observer of a run, and the module of the operations.
pub(crate) struct RunObserver {
    module: Arc<Module>,
    observer: Arc<dyn Observer>,
    /// Where and why the observer stopped the run inside a host operation.
    stopped: Mutex<Option<(OpId, String)>>,
}

impl RunObserver {
    /// The observer of a run of a module.
    pub(crate) fn new(module: Arc<Module>, observer: Arc<dyn Observer>) -> Self {
        Self { module, observer, stopped: Mutex::default() }
    }

    /// An operation of the module.
    pub(crate) fn op(&self, op: OpId) -> OpRef<'_> {
        self.module.op(op)
    }

    /// An observer of the regions of an operation that the reference evaluates.
    pub(crate) fn inside(self: &Arc<Self>, op: &OpaqueOp) -> Arc<dyn Observer> {
        Arc::new(RegionObserver { originals: originals(&self.module, op), run: Arc::clone(self) })
    }

    /// The error of an observer that stopped the run inside a host operation.
    pub(crate) fn stop(&self) -> Option<warpforge_interp::Error> {
        let (op, reason) = self.stopped.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(warpforge_interp::Error::stopped(self.module.op(op), reason))
    }
}

/// Maps operations of a module slice to the originals.
struct RegionObserver {
    run: Arc<RunObserver>,
    originals: HashMap<OpId, OpId>,
}

impl Observer for RegionObserver {
    fn begins(&self, op: OpRef<'_>) {
        if let Some(&original) = self.originals.get(&op.id()) {
            self.run.observer.begins(self.run.module.op(original));
        }
    }

    fn results(&self, op: OpRef<'_>, results: &[Value]) -> std::result::Result<(), String> {
        let Some(&original) = self.originals.get(&op.id()) else { return Ok(()) };
        let told = self.run.observer.results(self.run.module.op(original), results);
        if let Err(reason) = &told {
            let stopped = Some((original, reason.clone()));
            *self.run.stopped.lock().unwrap_or_else(PoisonError::into_inner) = stopped;
        }
        told
    }
}

/// The originals of the operations in a slice's regions and called functions.
fn originals(module: &Module, op: &OpaqueOp) -> HashMap<OpId, OpId> {
    let copies = &op.slice.module;
    let body = copies.function(&op.function).and_then(Func::body);
    let own = body.into_iter().flat_map(|body| copies.ops_in(body)).zip(&op.slice.ops);
    let mut pending: Vec<(OpRef<'_>, OpRef<'_>)> = own.map(|(copy, &op)| (copy, module.op(op))).collect();
    let called = copies.functions().filter(|func| func.name() != op.function);
    pending.extend(called.filter_map(|func| Some((func.op(), module.function(func.name())?.op()))));
    let mut originals = HashMap::new();
    while let Some((copy, original)) = pending.pop() {
        for (inner, of) in inside(copy).zip(inside(original)) {
            originals.insert(inner.id(), of.id());
            pending.push((inner, of));
        }
    }
    originals
}

/// The operations directly in an operation's regions.
fn inside(op: OpRef<'_>) -> impl Iterator<Item = OpRef<'_>> {
    let module = op.module();
    let blocks = op.regions().iter().flat_map(move |&region| module.blocks(region));
    blocks.flat_map(move |&block| module.ops_in(block))
}
