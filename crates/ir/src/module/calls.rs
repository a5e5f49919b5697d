//! What the calls of a function add up to.

use std::collections::HashMap;

use super::{Func, Module};

/// The operations of a function and the functions that it calls, once for each call.
struct Calls<'m> {
    ops: u64,
    callees: Vec<&'m str>,
}

impl Module {
    /// How many operations a function has after all calls in it, and in what it calls, are inlined. `u64::MAX` stands for
    /// more, and for calls that recurse.
    ///
    /// The size can be exponential in that of the module: what inlines or evaluates calls must bound it first.
    pub fn inlined_op_count(&self, function: &str) -> u64 {
        let calls: HashMap<&str, Calls<'_>> =
            self.functions().map(|function| (function.name(), self.calls_of(function))).collect();
        let Some((&first, _)) = calls.get_key_value(function) else { return 0 };
        let mut counts: HashMap<&str, u64> = HashMap::new();
        // The path of calls, each function with the number of callees that are counted.
        let mut path = vec![(first, 0)];
        while let Some(&mut (name, ref mut counted)) = path.last_mut() {
            let own = calls.get(name);
            let callee = own.and_then(|own| own.callees.get(*counted)).copied();
            match callee {
                Some(callee) if counts.contains_key(callee) => *counted += 1,
                Some(callee) if path.iter().any(|(caller, _)| *caller == callee) => return u64::MAX,
                Some(callee) => path.push((callee, 0)),
                None => {
                    let callees = own.iter().flat_map(|own| &own.callees).map(|callee| counts[callee]);
                    let total = callees.fold(own.map_or(0, |own| own.ops), u64::saturating_add);
                    counts.insert(name, total);
                    path.pop();
                }
            }
        }
        counts.get(first).copied().unwrap_or(0)
    }

    fn calls_of<'m>(&'m self, function: Func<'m>) -> Calls<'m> {
        let mut calls = Calls { ops: 0, callees: Vec::new() };
        let mut pending = vec![function.op()];
        while let Some(op) = pending.pop() {
            calls.ops += 1;
            calls.callees.extend(op.callees());
            let blocks = op.regions().iter().flat_map(|&region| self.blocks(region));
            pending.extend(blocks.flat_map(|&block| self.ops_in(block)));
        }
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::{Attribute, Dict};
    use crate::table::OpKind;
    use crate::types::Type;
    use warpforge_diag::Span;

    /// A module of functions that call others by their numbers.
    fn module(calls: &[&[usize]]) -> Module {
        let mut module = Module::new();
        for (index, callees) in calls.iter().enumerate() {
            let region = module.create_region();
            let block = module.add_block(region);
            for callee in *callees {
                let attrs: Dict = [("callee", Attribute::symbol(format!("f{callee}")))].into_iter().collect();
                let call = module.create_op(OpKind::Call, vec![], vec![], attrs, Span::at(0));
                module.append_op(block, call);
            }
            let attrs: Dict = [
                ("sym_name", Attribute::string(format!("f{index}"))),
                ("function_type", Attribute::Type(Type::function(vec![], vec![]))),
            ]
            .into_iter()
            .collect();
            let func = module.create_op(OpKind::Func, vec![], vec![], attrs, Span::at(0));
            module.set_regions(func, vec![region]);
            module.append_op(module.body(), func);
        }
        module
    }

    #[test]
    fn calls_add_up() {
        let small = module(&[&[1, 1], &[2], &[]]);
        // Each function counts itself and its calls.
        assert_eq!(small.inlined_op_count("f2"), 1);
        assert_eq!(small.inlined_op_count("f1"), 3);
        assert_eq!(small.inlined_op_count("f0"), 9);
        assert_eq!(small.inlined_op_count("none"), 0);
        assert_eq!(module(&[&[1], &[0]]).inlined_op_count("f0"), u64::MAX);
    }

    #[test]
    fn functions_that_call_the_next_one_twice_double_the_count() {
        let calls: Vec<Vec<usize>> = (0..100).map(|index| vec![index + 1; 2]).chain([vec![]]).collect();
        let calls: Vec<&[usize]> = calls.iter().map(Vec::as_slice).collect();
        let doubled = module(&calls);
        assert_eq!(doubled.inlined_op_count("f90"), 4 * (1 << 10) - 3);
        assert_eq!(doubled.inlined_op_count("f0"), u64::MAX);
    }
}
