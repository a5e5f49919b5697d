//! Where operations are: their function, their position in it, their line.

use std::collections::HashMap;

use warpforge_diag::Source;
use warpforge_ir::nodes::Location;
use warpforge_ir::{Func, OpId, OpRef};

/// Where an operation is.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// The function that it is in.
    pub function: String,
    /// Its position there, counted in the order of the text.
    pub op_index: usize,
    /// The line of the module's own text.
    pub line: Option<usize>,
    /// The node of the graph that it was lowered from.
    pub node: Option<String>,
    /// The line of the program that the graph was traced from, `file:line`.
    pub source: Option<String>,
}

/// The places of all operations of the functions met so far.
#[derive(Default)]
pub struct Places {
    known: HashMap<OpId, Place>,
    /// Offsets of the line ends of the source, once they are needed.
    line_ends: Option<Vec<usize>>,
}

impl Places {
    /// The place of an operation. A function is looked through once, when the first of its operations comes.
    pub fn of(&mut self, op: OpRef<'_>, source: Option<&Source>) -> &Place {
        if !self.known.contains_key(&op.id()) {
            self.index(outermost(op), source);
        }
        self.known.entry(op.id()).or_default()
    }

    fn index(&mut self, outer: OpRef<'_>, source: Option<&Source>) {
        let module = outer.module();
        let aliases: HashMap<&str, &str> = module
            .location_aliases()
            .iter()
            .map(|(name, text)| (name.strip_prefix('#').unwrap_or(name), text.as_str()))
            .collect();
        let function = Func::new(outer).map_or_else(String::new, |func| func.name().to_owned());
        let mut index = 0;
        let mut pending = vec![outer];
        while let Some(op) = pending.pop() {
            let text = module.location(op.id()).unwrap_or_default();
            let location = Location::parse(text, &|name| aliases.get(name).copied());
            let place = Place {
                function: function.clone(),
                op_index: index,
                line: self.line(op, source),
                node: location.name,
                source: location.source.map(|source| source.to_string()),
            };
            self.known.insert(op.id(), place);
            index += usize::from(op.id() != outer.id());
            for &region in op.regions().iter().rev() {
                for &block in module.blocks(region).iter().rev() {
                    pending.extend(module.ops_in(block).rev());
                }
            }
        }
    }

    fn line(&mut self, op: OpRef<'_>, source: Option<&Source>) -> Option<usize> {
        let source = source.filter(|source| !source.is_binary() && !op.span().is_none())?;
        let line_ends = self.line_ends.get_or_insert_with(|| {
            let bytes = source.text().bytes().enumerate();
            bytes.filter(|(_, byte)| *byte == b'\n').map(|(offset, _)| offset).collect()
        });
        let before = line_ends.partition_point(|end| *end < op.span().start as usize);
        Some(source.position(0).line + before)
    }
}

/// The function around an operation, or what is outermost.
fn outermost(op: OpRef<'_>) -> OpRef<'_> {
    let mut outer = op;
    while let Some(parent) = outer.parent_op() {
        outer = parent;
        if Func::new(outer).is_some() {
            break;
        }
    }
    outer
}
