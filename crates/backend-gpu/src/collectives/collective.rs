//! A collective operation in the form of the library.

use warpforge_fusion::graph::{ReduceKind, reduce_kind};
use warpforge_interp::{Grid, ProcessId};
use warpforge_ir::{OpKind, OpRef};
use warpforge_tensor::{ElementType, FloatType, IntType};

use super::communicator::Reduction;
use super::communicators::Group;

/// The kind of a collective. Operands and results are contiguous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CollectiveKind {
    /// All-reduce.
    AllReduce(Reduction),
    /// Reduce-scatter.
    ReduceScatter(Reduction),
    /// All-gather.
    AllGather,
    /// All-to-all: slice `i` of each operand goes to rank `i`; results are in rank order.
    AllToAll,
    /// Broadcast.
    Broadcast {
        /// The rank of the root.
        root: usize,
    },
    /// Point-to-point permutation; ranks without a source get zeros.
    Permute {
        /// Ranks that receive this process's operand.
        to: Vec<usize>,
        /// The rank that this process receives from.
        from: Option<usize>,
    },
    /// Zeros, for a process outside all groups.
    Zeros,
}

/// Layout change of an operand before a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PreLayout {
    /// None.
    Same,
    /// Slices along a dimension become the outermost dimension.
    Split(usize),
}

/// Operation on a result after a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PostOp {
    /// None.
    Same,
    /// Reduction over ranks.
    Reduce(ReduceKind),
    /// Concatenation of ranks along a dimension.
    Join(usize),
}

/// A collective, as seen from one process.
#[derive(Debug, Clone)]
pub(crate) struct Collective {
    pub(crate) kind: CollectiveKind,
    /// The participants.
    pub(crate) group: Group,
    /// The rank of this process.
    pub(crate) rank: usize,
    pub(super) before: PreLayout,
    pub(super) after: PostOp,
    /// The operation's name.
    pub(crate) name: String,
}

impl Collective {
    /// The collective of an operation.
    ///
    /// # Errors
    ///
    /// When neither the library nor generated kernels support it, with the reason.
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
        let rank = |group: &Group| group.iter().position(|member| *member == grid.me);
        let Some((rank, group)) = group.and_then(|group| Some((rank(&group)?, group))) else {
            return match kind {
                OpKind::CollectiveBroadcast => Ok(not_a_member(short)),
                _ => Err(failed("the process is in none of its groups")),
            };
        };
        let axis = |name: &str| {
            op.attr_i64(name).and_then(|axis| usize::try_from(axis).ok()).ok_or_else(|| failed(name))
        };
        let size = group.len();
        let (kind, before, after) = match kind {
            OpKind::AllGather => {
                (CollectiveKind::AllGather, PreLayout::Same, PostOp::Join(axis("all_gather_dim")?))
            }
            OpKind::CollectiveBroadcast => {
                (CollectiveKind::Broadcast { root: 0 }, PreLayout::Same, PostOp::Same)
            }
            OpKind::AllToAll => {
                if op.attr_i64("split_count").and_then(|count| usize::try_from(count).ok()) != Some(size) {
                    return Err(failed("its parts are not as many as the processes of its group"));
                }
                (
                    CollectiveKind::AllToAll,
                    PreLayout::Split(axis("split_dimension")?),
                    PostOp::Join(axis("concat_dimension")?),
                )
            }
            OpKind::CrossReplicaSum | OpKind::AllReduce => match reduction(op).map_err(failed)? {
                (_, Some(native)) => (CollectiveKind::AllReduce(native), PreLayout::Same, PostOp::Same),
                (kind, None) => (CollectiveKind::AllGather, PreLayout::Same, PostOp::Reduce(kind)),
            },
            OpKind::ReduceScatter => {
                let before = PreLayout::Split(axis("scatter_dimension")?);
                match reduction(op).map_err(failed)? {
                    (_, Some(native)) => (CollectiveKind::ReduceScatter(native), before, PostOp::Same),
                    (kind, None) => (CollectiveKind::AllToAll, before, PostOp::Reduce(kind)),
                }
            }
            _ => return Err(failed("no library has it")),
        };
        let name = format!("{short} among {size}");
        Ok(Self { kind, group, rank, before, after, name })
    }
}

fn not_a_member(short: &str) -> Collective {
    let name = format!("{short} of others");
    let (before, after) = (PreLayout::Same, PostOp::Same);
    Collective { kind: CollectiveKind::Zeros, group: Vec::new(), rank: 0, before, after, name }
}

fn permute(pairs: &[(ProcessId, ProcessId)], me: ProcessId, short: &str) -> Collective {
    let mut group: Group = pairs.iter().flat_map(|&(source, target)| [source, target]).collect();
    group.sort_unstable();
    group.dedup();
    let rank = |who: ProcessId| group.iter().position(|&member| member == who);
    let Some(own) = rank(me) else { return not_a_member(short) };
    let to =
        pairs.iter().filter(|(source, _)| *source == me).filter_map(|&(_, target)| rank(target)).collect();
    let from = pairs.iter().find(|(_, target)| *target == me).and_then(|&(source, _)| rank(source));
    let name = format!("{short} among {}", group.len());
    let (before, after) = (PreLayout::Same, PostOp::Same);
    Collective { kind: CollectiveKind::Permute { to, from }, group, rank: own, before, after, name }
}

/// The reduction of an operation, and its library form where there is one.
fn reduction(op: OpRef<'_>) -> Result<(ReduceKind, Option<Reduction>), &'static str> {
    let plain = |ty: &warpforge_ir::Type| ty.as_tensor().and_then(|tensor| tensor.element().plain());
    let element = op.operand_type(0).and_then(plain).ok_or("its elements are not plain numbers")?;
    let same = |ty: &warpforge_ir::Type| plain(ty) == Some(element);
    if !op.operand_types().chain(op.result_types()).all(same) {
        return Err("it changes the type of its elements");
    }
    let kind = match op.kind() {
        Some(OpKind::CrossReplicaSum) => ReduceKind::Add,
        _ => {
            let block = op.region_block(0).ok_or("it has no computation")?;
            if !op.module().arguments(block).iter().all(|&argument| same(op.module().value_type(argument))) {
                return Err("it computes in another type than that of its elements");
            }
            reduce_kind(op).ok_or("its computation is not a single reduction")?
        }
    };
    Ok((kind, native(kind, element)))
}

impl Reduction {
    /// A sum of elements of a type, where the library has it.
    pub(crate) fn sum(element: ElementType) -> Option<Self> {
        native(ReduceKind::Add, element)
    }
}

/// The library's constants for a reduction.
fn native(kind: ReduceKind, element: ElementType) -> Option<Reduction> {
    const SUM: i32 = 0;
    const PRODUCT: i32 = 1;
    const MOST: i32 = 2;
    const LEAST: i32 = 3;
    const BYTE: i32 = 1;
    let element = match element {
        // Booleans are bytes of 0 or 1.
        ElementType::Bool => {
            let operation = match kind {
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
        // The libraries drop NaN in comparisons; generated kernels do not.
        ElementType::Float(_) if matches!(kind, ReduceKind::Max | ReduceKind::Min) => return None,
        ElementType::Float(FloatType::F16) => 6,
        ElementType::Float(FloatType::F32) => 7,
        ElementType::Float(FloatType::F64) => 8,
        ElementType::Float(FloatType::Bf16) => 9,
        _ => return None,
    };
    let operation = match kind {
        ReduceKind::Add => SUM,
        ReduceKind::Multiply => PRODUCT,
        ReduceKind::Max => MOST,
        ReduceKind::Min => LEAST,
        ReduceKind::And | ReduceKind::Or => return None,
    };
    Some(Reduction { element, operation })
}
