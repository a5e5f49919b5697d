//! The nodes of the graph that a function was lowered from.
//!
//! Every operation carries the name of its node as its location, so the node's place in the program, its value and the
//! line of its source survive in the module.

mod location;

use std::collections::{BTreeSet, HashMap};

pub use location::{Location, SourceLine};

use crate::module::{Func, Module, OpId, ValueId};

/// One node of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// The line of the source that it came from.
    pub source: Option<SourceLine>,
    /// Its operations in order; never empty.
    pub ops: Vec<OpId>,
    /// Its value: the results of its last operation.
    pub values: Vec<ValueId>,
}

impl Node {
    /// The names of its values: its own, or `name.0`, `name.1`, … where it has several.
    pub fn named_values(&self) -> impl Iterator<Item = (String, ValueId)> + '_ {
        let alone = self.values.len() == 1;
        let name = move |at| if alone { self.name.clone() } else { format!("{}.{at}", self.name) };
        self.values.iter().enumerate().map(move |(at, &value)| (name(at), value))
    }
}

/// The nodes of a function in the order in which their values are complete.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    list: Vec<Node>,
    by_name: HashMap<String, usize>,
    by_op: HashMap<OpId, usize>,
}

impl Module {
    /// What the location of an operation says; nothing where none was kept.
    #[must_use]
    pub fn parsed_location(&self, op: OpId) -> Location {
        let aliases: HashMap<&str, &str> =
            self.location_aliases().iter().map(|(name, text)| (alias_name(name), text.as_str())).collect();
        self.location(op).map(|text| parse(text, &aliases)).unwrap_or_default()
    }
}

impl Nodes {
    /// The nodes that the operations in the body of a function name; operations inside regions belong to the one
    /// around them.
    #[must_use]
    pub fn of(func: Func<'_>) -> Self {
        let module = func.op().module();
        let aliases: HashMap<&str, &str> =
            module.location_aliases().iter().map(|(name, text)| (alias_name(name), text.as_str())).collect();
        let mut found: Vec<Node> = Vec::new();
        let mut at: HashMap<String, usize> = HashMap::new();
        let mut last: Vec<usize> = Vec::new();
        let ops = func.body().map(|body| module.ops_in(body)).into_iter().flatten();
        for (position, op) in ops.enumerate() {
            let Some(text) = module.location(op.id()) else { continue };
            let Location { name: Some(name), source } = parse(text, &aliases) else { continue };
            let values: Vec<ValueId> = op.results().collect();
            if values.is_empty() {
                continue;
            }
            match at.get(&name) {
                Some(&index) => {
                    let node = &mut found[index];
                    node.ops.push(op.id());
                    node.values = values;
                    node.source = node.source.take().or(source);
                    last[index] = position;
                }
                None => {
                    at.insert(name.clone(), found.len());
                    found.push(Node { name, source, ops: vec![op.id()], values });
                    last.push(position);
                }
            }
        }
        let mut ordered: Vec<(usize, Node)> = last.into_iter().zip(found).collect();
        ordered.sort_by_key(|(position, _)| *position);
        let list: Vec<Node> = ordered.into_iter().map(|(_, node)| node).collect();
        let by_name = list.iter().enumerate().map(|(index, node)| (node.name.clone(), index)).collect();
        let by_op =
            list.iter().enumerate().flat_map(|(index, node)| node.ops.iter().map(move |&op| (op, index)));
        Self { by_op: by_op.collect(), by_name, list }
    }

    /// The nodes in order.
    #[must_use]
    pub fn list(&self) -> &[Node] {
        &self.list
    }

    /// The node of a name, with its position in the order.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<(usize, &Node)> {
        self.by_name.get(name).map(|&index| (index, &self.list[index]))
    }

    /// The node that an operation belongs to, with its position in the order.
    #[must_use]
    pub fn containing(&self, op: OpId) -> Option<(usize, &Node)> {
        self.by_op.get(&op).map(|&index| (index, &self.list[index]))
    }
}

impl Nodes {
    /// The nodes that operations belong to, each once, in order.
    #[must_use]
    pub fn among(&self, ops: &[OpId]) -> Vec<&Node> {
        let found: BTreeSet<usize> = ops.iter().filter_map(|op| self.by_op.get(op).copied()).collect();
        found.into_iter().map(|at| &self.list[at]).collect()
    }
}

/// Aliases are kept with or without their `#`.
fn alias_name(name: &str) -> &str {
    name.strip_prefix('#').unwrap_or(name)
}

fn parse<'a>(text: &'a str, aliases: &HashMap<&str, &'a str>) -> Location {
    Location::parse(text, &|name| aliases.get(name).copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::{Attribute, Dict};
    use crate::{ElementType, OpKind, TensorType, Type};
    use warpforge_diag::Span;

    fn function(locations: &[Option<&str>]) -> Module {
        let mut module = Module::new();
        let name: Dict = [("sym_name", Attribute::Str("main".into()))].into_iter().collect();
        let func = module.create_op(OpKind::Func, vec![], vec![], name, Span::NONE);
        module.append_op(module.body(), func);
        let region = module.add_region(func);
        let block = module.add_block(region);
        let ty: Type = TensorType::fixed(&[2], ElementType::F32).into();
        let mut value = module.add_argument(block, ty.clone());
        for location in locations {
            let op = module.create_op(OpKind::Abs, vec![value], vec![ty.clone()], Dict::new(), Span::NONE);
            module.append_op(block, op);
            location.iter().for_each(|text| module.set_location(op, *text));
            value = module.op(op).result(0).unwrap();
        }
        module
    }

    #[test]
    fn a_node_is_all_operations_of_its_name_and_its_value_the_last_ones() {
        let module = function(&[
            Some("loc(\"late\")"),
            Some("loc(\"norm\"(#loc1))"),
            None,
            Some("loc(\"norm\"(\"m.py\":9:0))"),
            Some("loc(\"late\")"),
        ]);
        let nodes = Nodes::of(module.function("main").unwrap());
        let names: Vec<&str> = nodes.list().iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["norm", "late"]);
        let (position, norm) = nodes.named("norm").unwrap();
        assert_eq!((position, norm.ops.len(), norm.source.as_ref().map(|s| s.line)), (0, 2, Some(9)));
        assert_eq!(norm.values, module.op(norm.ops[1]).results().collect::<Vec<_>>());
        assert_eq!(nodes.containing(norm.ops[0]).map(|(at, _)| at), Some(0));
        assert!(nodes.named("other").is_none());
    }
}
