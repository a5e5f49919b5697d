//! One exchange between processes, in a form that the libraries have.

use warpforge_fusion::graph::{ReduceKind, reduce_kind};
use warpforge_interp::{Grid, ProcessId};
use warpforge_ir::{OpKind, OpRef};
use warpforge_tensor::{ElementType, FloatType, IntType};

use super::communicator::Reduction;
use super::world::Group;

/// What is exchanged. The elements of each operand lie side by side, and so do those of each result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All operands reduced, for all.
    Reduce(Reduction),
    /// All operands reduced; each process gets the part of its place.
    ReduceScatter(Reduction),
    /// All operands one after the other, for all.
    Gather,
    /// Part `i` of each operand goes to process `i`; what arrives lies in the order of the senders.
    Shuffle,
    /// The operand of one, for all.
    Broadcast {
        /// Its place.
        root: usize,
    },
    /// Operands go from some to others; who gets none has zeros.
    Permute {
        /// The places of those that get this process's operand.
        to: Vec<usize>,
        /// The place of the one whose operand this process gets.
        from: Option<usize>,
    },
    /// Zeros, for a process that takes no part.
    Zeros,
}

/// What a process does to an operand before an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// Nothing.
    Same,
    /// Parts for the members along a dimension are put one after the other.
    Split(usize),
}

/// What a process does to a result after an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// Nothing.
    Same,
    /// What came from the members is reduced.
    ReduceKind(ReduceKind),
    /// What came from the members is joined along a dimension.
    Join(usize),
}

/// An exchange, seen from one process.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) kind: Kind,
    /// Who takes part.
    pub(crate) group: Group,
    /// The process's own place in the group.
    pub(crate) place: usize,
    pub(super) before: Before,
    pub(super) after: After,
    /// The operation's name.
    pub(crate) name: String,
}

impl Exchange {
    /// The exchange of an operation.
    ///
    /// # Errors
    ///
    /// When the libraries and generated kernels have no such: why.
    pub(super) fn of(op: OpRef<'_>, grid: &Grid) -> Result<Self, String> {
        let kind = op.kind().ok_or("an operation that is not known")?;
        let short = kind.name().rsplit('.').next().unwrap_or_default();
        let failed = |reason: &str| format!("{short}: {reason}");
        if op.attr_bool("has_dynamic_root") == Some(true) {
            return Err(failed("its root is known only when it runs"));
        }
        if kind == OpKind::CollectivePermute {
            let pairs = grid.pairs(op).map_err(|error| failed(&error.to_string()))?;
            return Ok(permute(&pairs, grid.me, short));
        }
        let group = grid.group(op).map_err(|error| failed(&error.to_string()))?;
        let place = |group: &Group| group.iter().position(|member| *member == grid.me);
        let Some((place, group)) = group.and_then(|group| Some((place(&group)?, group))) else {
            return match kind {
                OpKind::CollectiveBroadcast => Ok(nothing(short)),
                _ => Err(failed("the process is in none of its groups")),
            };
        };
        let axis = |name: &str| {
            op.attr_i64(name).and_then(|axis| usize::try_from(axis).ok()).ok_or_else(|| failed(name))
        };
        let size = group.len();
        let (kind, before, after) = match kind {
            OpKind::AllGather => (Kind::Gather, Before::Same, After::Join(axis("all_gather_dim")?)),
            OpKind::CollectiveBroadcast => (Kind::Broadcast { root: 0 }, Before::Same, After::Same),
            OpKind::AllToAll => {
                if op.attr_i64("split_count").and_then(|count| usize::try_from(count).ok()) != Some(size) {
                    return Err(failed("its parts are not as many as the processes of its group"));
                }
                (
                    Kind::Shuffle,
                    Before::Split(axis("split_dimension")?),
                    After::Join(axis("concat_dimension")?),
                )
            }
            OpKind::CrossReplicaSum | OpKind::AllReduce => match reduction(op).map_err(failed)? {
                (_, Some(native)) => (Kind::Reduce(native), Before::Same, After::Same),
                (fold, None) => (Kind::Gather, Before::Same, After::ReduceKind(fold)),
            },
            OpKind::ReduceScatter => {
                let before = Before::Split(axis("scatter_dimension")?);
                match reduction(op).map_err(failed)? {
                    (_, Some(native)) => (Kind::ReduceScatter(native), before, After::Same),
                    (fold, None) => (Kind::Shuffle, before, After::ReduceKind(fold)),
                }
            }
            _ => return Err(failed("no library has it")),
        };
        let name = format!("{short} among {size}");
        Ok(Self { kind, group, place, before, after, name })
    }
}

fn nothing(short: &str) -> Exchange {
    let name = format!("{short} of others");
    let (before, after) = (Before::Same, After::Same);
    Exchange { kind: Kind::Zeros, group: Vec::new(), place: 0, before, after, name }
}

fn permute(pairs: &[(ProcessId, ProcessId)], me: ProcessId, short: &str) -> Exchange {
    let mut group: Group = pairs.iter().flat_map(|&(source, target)| [source, target]).collect();
    group.sort_unstable();
    group.dedup();
    let place = |who: ProcessId| group.iter().position(|&member| member == who);
    let Some(own) = place(me) else { return nothing(short) };
    let to =
        pairs.iter().filter(|(source, _)| *source == me).filter_map(|&(_, target)| place(target)).collect();
    let from = pairs.iter().find(|(_, target)| *target == me).and_then(|&(source, _)| place(source));
    let name = format!("{short} among {}", group.len());
    let (before, after) = (Before::Same, After::Same);
    Exchange { kind: Kind::Permute { to, from }, group, place: own, before, after, name }
}

/// What an operation folds with, and how the libraries have it, where they do.
fn reduction(op: OpRef<'_>) -> Result<(ReduceKind, Option<Reduction>), &'static str> {
    let plain = |ty: &warpforge_ir::Type| ty.as_tensor().and_then(|tensor| tensor.element().plain());
    let element = op.operand_type(0).and_then(plain).ok_or("its elements are not plain numbers")?;
    let same = |ty: &warpforge_ir::Type| plain(ty) == Some(element);
    if !op.operand_types().chain(op.result_types()).all(same) {
        return Err("it changes the type of its elements");
    }
    let fold = match op.kind() {
        Some(OpKind::CrossReplicaSum) => ReduceKind::Add,
        _ => {
            let block = op.region_block(0).ok_or("it has no computation")?;
            if !op.module().arguments(block).iter().all(|&argument| same(op.module().value_type(argument))) {
                return Err("it computes in another type than that of its elements");
            }
            reduce_kind(op).ok_or("its computation is no single fold")?
        }
    };
    Ok((fold, native(fold, element)))
}

/// The libraries' numbers for a fold.
fn native(fold: ReduceKind, element: ElementType) -> Option<Reduction> {
    const SUM: i32 = 0;
    const PRODUCT: i32 = 1;
    const MOST: i32 = 2;
    const LEAST: i32 = 3;
    const BYTE: i32 = 1;
    let element = match element {
        // Truth is a byte of 0 or 1.
        ElementType::Bool => {
            let operation = match fold {
                ReduceKind::And | ReduceKind::Multiply | ReduceKind::Min => LEAST,
                ReduceKind::Or | ReduceKind::Add | ReduceKind::Max => MOST,
            };
            return Some(Reduction { element: BYTE, operation });
        }
        ElementType::Int(IntType::I8) => 0,
        ElementType::Int(IntType::U8) => BYTE,
        ElementType::Int(IntType::I32) => 2,
        ElementType::Int(IntType::U32) => 3,
        ElementType::Int(IntType::I64) => 4,
        ElementType::Int(IntType::U64) => 5,
        // The libraries lose NaN when they compare, and our kernels do not.
        ElementType::Float(_) if matches!(fold, ReduceKind::Max | ReduceKind::Min) => return None,
        ElementType::Float(FloatType::F16) => 6,
        ElementType::Float(FloatType::F32) => 7,
        ElementType::Float(FloatType::F64) => 8,
        ElementType::Float(FloatType::Bf16) => 9,
        _ => return None,
    };
    let operation = match fold {
        ReduceKind::Add => SUM,
        ReduceKind::Multiply => PRODUCT,
        ReduceKind::Max => MOST,
        ReduceKind::Min => LEAST,
        ReduceKind::And | ReduceKind::Or => return None,
    };
    Some(Reduction { element, operation })
}
