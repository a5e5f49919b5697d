//! Legalization: operations of CHLO replaced by StableHLO's own, for what knows only those, such as portable artifacts.
//!
//! Functions that StableHLO lacks become arithmetic. What a formula gives in binary64 is rounded once to the type of the
//! operand, so a result in `f32` is within a unit in the last place; only the error function, which is in most
//! transformers, is computed in `f32` where that is its type. The formulas are in the files named after the functions,
//! written with `expr::Expr`.
//!
//! ```
//! use warpforge_ir::build::{BuildError, Builder};
//! use warpforge_ir::legalize::legalize;
//! use warpforge_ir::{ElementType, Module, OpKind, Type, print::print};
//!
//! let mut module = Module::new();
//! let x = Type::tensor(&[2], ElementType::F32);
//! Builder::new(&mut module)
//!     .function("main", &[x], |b, v| Ok::<_, BuildError>(vec![b.unary(OpKind::ChloErf, v[0])?]))?;
//! let module = legalize(module).expect("the error function has a formula");
//! assert!(!print(&module).contains("chlo."));
//! # Ok::<(), BuildError>(())
//! ```

mod bessel;
mod bits;
mod broadcast;
mod cx;
mod elementary;
mod error_function;
mod exact;
mod expr;
mod gamma;

use std::collections::{BTreeMap, BTreeSet};

use crate::build::Builder;
use crate::module::{BlockId, Module, OpId, OpRef, ValueId};
use crate::table::OpKind;
use cx::{Cx, Refusal};
use expr::Expr;

/// Why a module cannot be legalized.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("StableHLO has nothing for {}", .0.join("; "))]
pub struct LegalizeError(pub Vec<String>);

/// How an operation is replaced.
#[derive(Clone, Copy)]
enum Rule {
    /// A function of a real number, computed in binary64 and rounded once.
    Wide(fn(&Expr) -> Expr),
    /// The same of two numbers.
    WideOfTwo(fn(&Expr, &Expr) -> Expr),
    /// In a way of its own.
    Own(fn(&mut Cx<'_, '_>) -> Result<Vec<ValueId>, Refusal>),
}

/// The operations that are replaced, each with its way. Those left out, `chlo.ragged_dot` and `chlo.scan`, are refused.
const RULES: &[(OpKind, Rule)] = &[
    (OpKind::ChloAcos, Rule::Wide(elementary::acos)),
    (OpKind::ChloAcosh, Rule::Wide(elementary::acosh)),
    (OpKind::ChloAsin, Rule::Wide(elementary::asin)),
    (OpKind::ChloAsinh, Rule::Wide(elementary::asinh)),
    (OpKind::ChloAtan, Rule::Wide(elementary::atan)),
    (OpKind::ChloAtanh, Rule::Wide(elementary::atanh)),
    (OpKind::ChloBesselI1e, Rule::Wide(bessel::i1e)),
    (OpKind::ChloBroadcastAdd, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastAnd, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastAtan2, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastCompare, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastComplex, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastDivide, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastMaximum, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastMinimum, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastMultiply, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastNextAfter, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastOr, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastPolygamma, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastPower, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastRemainder, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastSelect, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastShiftLeft, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastShiftRightArithmetic, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastShiftRightLogical, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastSubtract, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastXor, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloBroadcastZeta, Rule::Own(broadcast::broadcast)),
    (OpKind::ChloConj, Rule::Own(exact::conj)),
    (OpKind::ChloConstant, Rule::Own(exact::constant)),
    (OpKind::ChloConstantLike, Rule::Own(exact::constant_like)),
    (OpKind::ChloCosh, Rule::Own(elementary::cosh)),
    (OpKind::ChloDigamma, Rule::Wide(gamma::digamma)),
    (OpKind::ChloErf, Rule::Own(error_function::erf)),
    (OpKind::ChloErfInv, Rule::Wide(error_function::erf_inv)),
    (OpKind::ChloErfc, Rule::Wide(error_function::erfc)),
    (OpKind::ChloIsInf, Rule::Own(exact::is_inf)),
    (OpKind::ChloIsNegInf, Rule::Own(exact::is_neg_inf)),
    (OpKind::ChloIsPosInf, Rule::Own(exact::is_pos_inf)),
    (OpKind::ChloLgamma, Rule::Wide(gamma::lgamma)),
    (OpKind::ChloMulhi, Rule::Own(bits::mulhi)),
    (OpKind::ChloNextAfter, Rule::Own(bits::next_after)),
    (OpKind::ChloPolygamma, Rule::WideOfTwo(gamma::polygamma)),
    (OpKind::ChloSinh, Rule::Own(elementary::sinh)),
    (OpKind::ChloSquare, Rule::Own(exact::square)),
    (OpKind::ChloTan, Rule::Own(exact::tan)),
    (OpKind::ChloTopK, Rule::Own(exact::top_k)),
    (OpKind::ChloZeta, Rule::WideOfTwo(gamma::zeta)),
];

fn rule_of(kind: OpKind) -> Option<Rule> {
    RULES.iter().find(|(known, _)| *known == kind).map(|(_, rule)| *rule)
}

fn is_chlo(module: &Module, op: OpId) -> bool {
    module.op(op).name().starts_with("chlo.")
}

/// The module with every operation of CHLO replaced; the others stay as they are, in their order.
///
/// # Errors
///
/// All operations that cannot be replaced, each kind and element type once.
pub fn legalize(mut module: Module) -> Result<Module, LegalizeError> {
    let mut refused = BTreeSet::new();
    let mut replaced = BTreeMap::new();
    for block in blocks_with_chlo(&module) {
        rewrite(&mut module, block, &mut replaced, &mut refused);
    }
    module.replace_all_uses(&replaced);
    if refused.is_empty() { Ok(module) } else { Err(LegalizeError(refused.into_iter().collect())) }
}

/// The blocks that have operations of CHLO, outer ones before those inside them.
fn blocks_with_chlo(module: &Module) -> Vec<BlockId> {
    let mut found = Vec::new();
    let mut pending = vec![module.body()];
    while let Some(block) = pending.pop() {
        if module.block_ops(block).iter().any(|&op| is_chlo(module, op)) {
            found.push(block);
        }
        let regions = module.ops_in(block).flat_map(OpRef::regions);
        pending.extend(regions.flat_map(|&region| module.blocks(region)));
    }
    found
}

fn rewrite(
    module: &mut Module,
    block: BlockId,
    replaced: &mut BTreeMap<ValueId, ValueId>,
    refused: &mut BTreeSet<String>,
) {
    let ops = module.block_ops(block).to_vec();
    module.retain_ops(block, |_| false);
    for op in ops {
        if !is_chlo(module, op) {
            module.append_op(block, op);
            continue;
        }
        let (span, location) = (module.op(op).span(), module.location(op).map(Into::into));
        let operands = module.op(op).operands().to_vec();
        let operands = operands.iter().map(|value| *replaced.get(value).unwrap_or(value)).collect();
        let results: Vec<ValueId> = module.op(op).results().collect();
        let mut builder = Builder::at(module, block);
        builder.set_span(span);
        builder.set_location(location);
        let mut cx = Cx::new(&mut builder, op, operands);
        match cx.replacement() {
            Ok(values) => replaced.extend(results.into_iter().zip(values)),
            Err(why) => {
                refused.insert(why.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_of_chlo_has_a_rule_or_is_known_to_have_none() {
        let without = [OpKind::ChloAsinAcosKernel, OpKind::ChloRaggedDot, OpKind::ChloScan];
        for def in crate::table::all().iter().filter(|def| def.name().starts_with("chlo.")) {
            let has = rule_of(def.kind).is_some();
            assert_ne!(has, without.contains(&def.kind), "{}", def.name());
        }
    }

    #[test]
    fn what_has_no_formula_is_refused_by_name() {
        let mut module = Module::new();
        let ty = crate::Type::tensor(&[2], crate::ElementType::C64);
        let mut builder = Builder::new(&mut module);
        builder
            .function("main", &[ty], |b, v| {
                let angle = b.unary(OpKind::ChloAsin, v[0])?;
                Ok::<_, crate::build::BuildError>(vec![b.unary(OpKind::ChloAsin, angle)?])
            })
            .expect("it builds");
        let error = legalize(module).expect_err("a complex arc sine has no formula here");
        assert_eq!(error.to_string(), "StableHLO has nothing for chlo.asin of complex<f32>");
    }
}
