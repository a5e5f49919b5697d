//! The list of programs: in which order, which of them, and which is selected.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use warpforge_inventory::live::ProcessUsage;

/// What programs are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Cpu,
    Memory,
    GpuMemory,
}

impl Order {
    /// What comes first: the larger, and of two alike the one with the lower number.
    fn compare(self, a: &ProcessUsage, b: &ProcessUsage) -> Ordering {
        let by_cpu = b.cpu_percent.total_cmp(&a.cpu_percent);
        let by_memory = b.memory_bytes.cmp(&a.memory_bytes);
        let by_gpu = b.gpu_memory_bytes.cmp(&a.gpu_memory_bytes);
        let order = match self {
            Self::Cpu => by_cpu.then(by_memory),
            Self::Memory => by_memory.then(by_cpu),
            Self::GpuMemory => by_gpu.then(by_cpu).then(by_memory),
        };
        order.then(a.pid.cmp(&b.pid))
    }
}

/// A line of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listed {
    /// The program's place among all.
    at: usize,
    /// How many of its ancestors stand above it.
    pub(super) depth: usize,
}

/// The programs, and how they are shown.
#[derive(Debug)]
pub(super) struct Programs {
    /// All, in order; none if they cannot be listed.
    all: Option<Vec<ProcessUsage>>,
    rows: Vec<Listed>,
    pub(super) order: Order,
    filter: String,
    tree: bool,
    /// Whether command lines are shown in place of names.
    pub(super) commands: bool,
    selected: Option<u32>,
    /// The first line shown.
    pub(super) scroll: usize,
    /// How many lines fit on the screen last drawn.
    page: usize,
}

impl Default for Programs {
    fn default() -> Self {
        Self {
            all: None,
            rows: Vec::new(),
            order: Order::Cpu,
            filter: String::new(),
            tree: false,
            commands: false,
            selected: None,
            scroll: 0,
            page: 1,
        }
    }
}

impl Programs {
    /// Takes a new list in.
    pub(super) fn take(&mut self, all: Vec<ProcessUsage>) {
        self.all = Some(all);
        self.arrange();
    }

    /// The lines shown, with their programs.
    pub(super) fn shown(&self) -> impl Iterator<Item = (Listed, &ProcessUsage)> {
        let all = self.all.as_deref().unwrap_or_default();
        self.rows.iter().skip(self.scroll).take(self.page).map(|row| (*row, &all[row.at]))
    }

    /// How many lines there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no programs are known at all.
    pub(super) fn is_unknown(&self) -> bool {
        self.all.as_ref().is_none_or(Vec::is_empty)
    }

    /// Whether any program has memory on a GPU.
    pub(super) fn has_gpu_memory(&self) -> bool {
        self.all.iter().flatten().any(|program| program.gpu_memory_bytes.is_some())
    }

    pub(super) fn filter(&self) -> &str {
        &self.filter
    }

    /// The program that the next signal is for.
    pub(super) fn selected(&self) -> Option<&ProcessUsage> {
        let pid = self.selected?;
        self.all.iter().flatten().find(|program| program.pid == pid)
    }

    pub(super) fn is_selected(&self, program: &ProcessUsage) -> bool {
        self.selected == Some(program.pid)
    }

    pub(super) fn order_by(&mut self, order: Order) {
        self.order = order;
        self.scroll = 0;
        self.arrange();
    }

    pub(super) fn toggle_tree(&mut self) {
        self.tree = !self.tree;
        self.arrange();
    }

    /// Shows only programs whose name, command line, user or number has this text.
    pub(super) fn filter_by(&mut self, filter: String) {
        self.filter = filter;
        self.scroll = 0;
        self.arrange();
    }

    /// Moves the selection by lines; the first move selects what is on top of the screen.
    pub(super) fn move_by(&mut self, lines: isize) {
        let last = self.rows.len().saturating_sub(1);
        let now = self.place();
        let place = match now {
            Some(place) => place.saturating_add_signed(lines),
            None if lines == isize::MAX => last,
            None => self.scroll,
        };
        let all = self.all.as_deref().unwrap_or_default();
        self.selected = self.rows.get(place.min(last)).map(|row| all[row.at].pid);
        self.follow();
    }

    /// Moves the selection by screens.
    pub(super) fn page_by(&mut self, pages: isize) {
        self.move_by(pages.saturating_mul(self.page.cast_signed()));
    }

    /// Selects nothing.
    pub(super) fn deselect(&mut self) {
        self.selected = None;
    }

    /// Learns how many lines the screen has room for, and leaves none of that room empty.
    pub(super) fn fit(&mut self, page: usize) {
        self.page = page.max(1);
        self.follow();
    }

    /// The selected line.
    fn place(&self) -> Option<usize> {
        let all = self.all.as_deref()?;
        self.rows.iter().position(|row| Some(all[row.at].pid) == self.selected)
    }

    /// Keeps the selected line on the screen.
    fn follow(&mut self) {
        if let Some(place) = self.place() {
            self.scroll = self.scroll.clamp((place + 1).saturating_sub(self.page), place);
        }
        self.scroll = self.scroll.min(self.rows.len().saturating_sub(self.page));
    }

    /// Sorts the programs and finds the lines.
    fn arrange(&mut self) {
        let order = self.order;
        let Some(all) = &mut self.all else { return };
        all.sort_by(|a, b| order.compare(a, b));
        let wanted = self.filter.to_lowercase();
        let fits = |program: &ProcessUsage| {
            let texts = [Some(&program.name), program.command.as_ref(), program.user.as_ref()];
            texts.into_iter().flatten().any(|text| text.to_lowercase().contains(&wanted))
                || program.pid.to_string() == wanted
        };
        let chosen: Vec<usize> = (0..all.len()).filter(|&at| fits(&all[at])).collect();
        self.rows = if self.tree {
            tree(all, &chosen)
        } else {
            chosen.into_iter().map(|at| Listed { at, depth: 0 }).collect()
        };
        if self.place().is_none() {
            self.selected = None;
        }
        self.follow();
    }
}

/// The chosen programs and those that started them, each below its parent.
fn tree(all: &[ProcessUsage], chosen: &[usize]) -> Vec<Listed> {
    let places: HashMap<u32, usize> = all.iter().enumerate().map(|(at, program)| (program.pid, at)).collect();
    let parent = |at: usize| all[at].parent.and_then(|pid| places.get(&pid).copied());
    let mut wanted = HashSet::new();
    for &at in chosen {
        let mut next = Some(at);
        while let Some(at) = next.filter(|at| wanted.insert(*at)) {
            next = parent(at);
        }
    }
    let mut children: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for at in (0..all.len()).filter(|at| wanted.contains(at)) {
        children.entry(parent(at)).or_default().push(at);
    }
    let mut rows = Vec::new();
    let mut waiting: Vec<Listed> = Vec::new();
    let push = |waiting: &mut Vec<Listed>, of: Option<usize>, depth: usize| {
        let own = children.get(&of).into_iter().flatten().rev();
        waiting.extend(own.map(|&at| Listed { at, depth }));
    };
    push(&mut waiting, None, 0);
    while let Some(row) = waiting.pop() {
        rows.push(row);
        push(&mut waiting, Some(row.at), row.depth + 1);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(pid: u32, cpu_percent: f64, memory_bytes: u64) -> ProcessUsage {
        ProcessUsage {
            pid,
            name: format!("p{pid}"),
            user: None,
            cpu_percent,
            memory_bytes,
            parent: None,
            command: None,
            gpu_memory_bytes: None,
        }
    }

    fn programs() -> Programs {
        let mut programs = Programs::default();
        programs.take(vec![
            program(1, 0.0, 30),
            program(2, 50.0, 10),
            program(3, 7.0, 20),
            program(4, 0.0, 30),
        ]);
        programs.fit(10);
        programs
    }

    fn pids(programs: &Programs) -> Vec<u32> {
        programs.shown().map(|(_, program)| program.pid).collect()
    }

    #[test]
    fn programs_are_sorted_as_asked_and_stay_so() {
        let mut programs = programs();
        assert_eq!(pids(&programs), [2, 3, 1, 4]);
        programs.order_by(Order::Memory);
        assert_eq!(pids(&programs), [1, 4, 3, 2]);
        programs.take(vec![program(7, 1.0, 5), program(8, 0.0, 9)]);
        assert_eq!(pids(&programs), [8, 7]);
        let gpu = ProcessUsage { gpu_memory_bytes: Some(5), ..program(9, 0.0, 0) };
        programs.take(vec![program(7, 1.0, 5), gpu]);
        assert!(programs.has_gpu_memory());
        programs.order_by(Order::GpuMemory);
        assert_eq!(pids(&programs), [9, 7]);
    }

    #[test]
    fn a_filter_looks_at_names_commands_users_and_numbers() {
        let mut programs = Programs::default();
        programs.fit(10);
        programs.take(vec![
            ProcessUsage { name: "Python".to_owned(), ..program(10, 4.0, 0) },
            ProcessUsage { command: Some("/bin/sh train.py".to_owned()), ..program(11, 3.0, 0) },
            ProcessUsage { user: Some("pyotr".to_owned()), ..program(12, 2.0, 0) },
            program(13, 1.0, 0),
        ]);
        for (filter, expected) in
            [("py", vec![10, 11, 12]), ("train", vec![11]), ("13", vec![13]), ("nothing", vec![])]
        {
            programs.filter_by(filter.to_owned());
            assert_eq!(pids(&programs), expected, "{filter}");
        }
        assert!(!programs.is_unknown(), "none fits, and yet there are some");
    }

    #[test]
    fn a_tree_has_children_below_their_parents() {
        let of = |parent, pid, cpu| ProcessUsage { parent: Some(parent), ..program(pid, cpu, 0) };
        let mut programs = Programs::default();
        programs.fit(10);
        // 5 and 6 are each other's parents, which a list that is not taken at one moment may say.
        programs.take(vec![
            program(1, 0.0, 0),
            of(1, 2, 1.0),
            of(1, 3, 9.0),
            of(3, 4, 0.0),
            of(6, 5, 0.0),
            of(5, 6, 0.0),
        ]);
        programs.toggle_tree();
        let rows = |programs: &Programs| {
            programs.shown().map(|(row, program)| (program.pid, row.depth)).collect::<Vec<_>>()
        };
        assert_eq!(rows(&programs), [(1, 0), (3, 1), (4, 2), (2, 1)]);
        programs.filter_by("p4".to_owned());
        assert_eq!(rows(&programs), [(1, 0), (3, 1), (4, 2)], "those that started it stay");
    }

    #[test]
    fn the_selection_moves_scrolls_and_follows_its_program() {
        let mut programs = programs();
        programs.fit(2);
        assert!(programs.selected().is_none());
        programs.move_by(1);
        assert_eq!(programs.selected().map(|program| program.pid), Some(2), "the first on the screen");
        programs.move_by(1);
        programs.move_by(1);
        assert_eq!((programs.selected().map(|program| program.pid), programs.scroll), (Some(1), 1));
        programs.page_by(100);
        assert_eq!((programs.selected().map(|program| program.pid), programs.scroll), (Some(4), 2));
        programs.move_by(isize::MIN);
        assert_eq!((programs.selected().map(|program| program.pid), programs.scroll), (Some(2), 0));
        programs.order_by(Order::Memory);
        assert_eq!((programs.selected().map(|program| program.pid), programs.scroll), (Some(2), 2));
        programs.take(vec![program(9, 1.0, 1)]);
        assert!(programs.selected().is_none(), "it has ended");
        programs.move_by(isize::MAX);
        assert_eq!(programs.selected().map(|program| program.pid), Some(9));
    }
}
