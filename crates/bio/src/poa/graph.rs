//! The graph: a node for each base, an edge for each pair of bases that follow each other in a read.

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// A base of the graph.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) base: u8,
    /// Nodes before it, with the reads that go that way.
    pub(super) before: Vec<(u32, u32)>,
    /// Nodes behind it.
    behind: Vec<u32>,
    /// Other bases at the same place.
    aligned: Vec<u32>,
}

/// Reads aligned to each other.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: Vec<Node>,
    /// The nodes in an order in which every edge goes forward.
    order: Vec<u32>,
}

impl Graph {
    pub(super) fn node(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }

    pub(super) fn order(&self) -> &[u32] {
        &self.order
    }

    /// Whether a node is the last of every read through it.
    pub(super) fn is_end(&self, index: u32) -> bool {
        self.nodes[index as usize].behind.is_empty()
    }

    /// Adds a read: for each base the node that it is aligned to, or none.
    pub(super) fn add(&mut self, read: &[u8], path: &[u32]) {
        let mut last = NONE;
        for (&base, &place) in read.iter().zip(path) {
            let node = self.place(base, place);
            if last != NONE {
                self.connect(last, node);
            }
            last = node;
        }
        self.sort();
    }

    /// The node for a base at a place.
    fn place(&mut self, base: u8, place: u32) -> u32 {
        if place == NONE {
            return self.push(base);
        }
        if self.nodes[place as usize].base == base {
            return place;
        }
        let siblings = self.nodes[place as usize].aligned.clone();
        if let Some(&same) = siblings.iter().find(|&&sibling| self.nodes[sibling as usize].base == base) {
            return same;
        }
        let node = self.push(base);
        for other in siblings.into_iter().chain([place]) {
            self.nodes[other as usize].aligned.push(node);
            self.nodes[node as usize].aligned.push(other);
        }
        node
    }

    fn push(&mut self, base: u8) -> u32 {
        self.nodes.push(Node { base, before: Vec::new(), behind: Vec::new(), aligned: Vec::new() });
        self.nodes.len() as u32 - 1
    }

    fn connect(&mut self, from: u32, to: u32) {
        let before = &mut self.nodes[to as usize].before;
        match before.iter_mut().find(|edge| edge.0 == from) {
            Some(edge) => edge.1 += 1,
            None => {
                before.push((from, 1));
                self.nodes[from as usize].behind.push(to);
            }
        }
    }

    /// Orders the nodes: each behind all that are before it, and those at one place together (as far as edges allow).
    fn sort(&mut self) {
        let mut missing: Vec<u32> = self.nodes.iter().map(|node| node.before.len() as u32).collect();
        let mut ready: Vec<u32> =
            (0..self.nodes.len() as u32).rev().filter(|&node| missing[node as usize] == 0).collect();
        self.order.clear();
        while let Some(node) = ready.pop() {
            self.order.push(node);
            for &behind in &self.nodes[node as usize].behind {
                missing[behind as usize] -= 1;
                if missing[behind as usize] == 0 {
                    ready.push(behind);
                }
            }
        }
    }

    /// The bases along the path that most reads take, from a begin to an end.
    pub(super) fn heaviest_path(&self) -> Vec<u8> {
        let mut scores = vec![0i64; self.nodes.len()];
        let mut choice = vec![NONE; self.nodes.len()];
        for &index in &self.order {
            let node = self.node(index);
            let best = node.before.iter().max_by_key(|&&(before, weight)| (weight, scores[before as usize]));
            if let Some(&(before, weight)) = best {
                scores[index as usize] = scores[before as usize] + i64::from(weight);
                choice[index as usize] = before;
            }
        }
        let Some(&last) = self.order.iter().max_by_key(|&&node| scores[node as usize]) else {
            return Vec::new();
        };
        let mut bases = Vec::new();
        let mut here = last;
        while here != NONE {
            bases.push(self.node(here).base);
            here = choice[here as usize];
        }
        bases.reverse();
        bases
    }
}
