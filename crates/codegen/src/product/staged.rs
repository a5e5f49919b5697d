//! Operands of products in f32 on their way into shared memory: summed elements line by line, several tiles at once.
//!
//! What lies there as it is wanted is copied without the threads. What is turned on its way, or of another type, goes
//! through their registers: it is read while a tile is multiplied and put down after it.

use warpforge_tensor::ElementType;

use super::taken;
use crate::draft::Draft;
use crate::index::sum;
use crate::kernel::Unsupported;
use crate::options::Products;
use crate::text::Text;
use crate::types::stored;

/// One operand as a kernel reads it: rows of the left, columns of the right, each with the elements that are summed.
pub(super) struct Operand {
    pub(super) element: ElementType,
    pub(super) pointer: String,
    /// Rows or columns.
    pub(super) size: usize,
    /// Whether four elements that are read together lie along the sums.
    pub(super) by_depth: bool,
    /// Whether they may be read at once.
    pub(super) vectors: bool,
    pub(super) place: Place,
}

/// Where the element `sum` of `row` is.
pub(super) enum Place {
    /// From a name on, so far between rows or columns, and between summed elements.
    Strides(&'static str, [isize; 2]),
    /// By lines that find it out, whether there is such an element where that is not known otherwise, and the place.
    Lines(Vec<String>, Option<String>, String),
}

/// The tiles of an operand.
pub(super) struct Staged<'o> {
    pub(super) operand: &'o Operand,
    /// Elements that are summed, of all tiles together.
    pub(super) k: usize,
    /// Rows or columns of a tile, and the name of the first.
    pub(super) side: usize,
    pub(super) first: &'static str,
    /// Summed elements of a tile, a multiple of eight.
    pub(super) depth: usize,
    /// The name of the shared memory.
    pub(super) tiles: &'static str,
    pub(super) threads: usize,
    /// The integer type of places.
    pub(super) index: &'static str,
}

/// Which element of a tile a thread brings in its turn `u`: its line, a summed element, and where in it.
struct Turn {
    /// What every turn has, and what `u` adds.
    line: [String; 2],
    along: [String; 2],
    turns: usize,
    /// Elements that are brought at once, 1 or 4.
    each: usize,
}

impl Staged<'_> {
    /// From one line of a tile to the next: lines that are written element by element begin in different banks.
    pub(super) fn line(&self) -> usize {
        if self.operand.by_depth { self.side + 4 } else { self.side }
    }

    /// Elements of a tile in shared memory.
    pub(super) fn size(&self) -> usize {
        self.depth * self.line()
    }

    /// Whether elements go through registers.
    fn through_registers(&self, products: Products) -> bool {
        let Operand { element, by_depth, vectors, .. } = *self.operand;
        (by_depth && vectors) || element != ElementType::F32 || products != Products::Model
    }

    fn turn(&self) -> Turn {
        let each = if self.operand.vectors { 4 } else { 1 };
        let times = |count: usize| if count == 1 { String::new() } else { format!(" * {count}") };
        let turns = self.side * self.depth / (each * self.threads);
        if self.operand.by_depth {
            // Of single elements eight of a row at a time: neighbours in memory go to different banks.
            let span = if each == 4 { self.depth } else { 8 };
            let run = span / each;
            let rows = self.threads / run;
            let passes = self.side / rows;
            Turn {
                line: [format!("WF_THREAD % {run}{}", times(each)), format!("u / {passes} * {span}")],
                along: [format!("WF_THREAD / {run}"), format!("u % {passes} * {rows}")],
                turns,
                each,
            }
        } else {
            let run = self.side / each;
            Turn {
                line: [format!("WF_THREAD / {run}"), format!("u * {}", self.threads / run)],
                along: [format!("WF_THREAD % {run}{}", times(each)), "0".to_owned()],
                turns,
                each,
            }
        }
    }

    /// What is read at once.
    fn read(&self) -> Result<String, Unsupported> {
        let ty = stored(self.operand.element)?;
        Ok(if self.operand.vectors { format!("wf_vec<{ty}, 4>") } else { ty.to_owned() })
    }

    /// Lines before all tiles: where a thread's first element lies, and registers.
    pub(super) fn begin(&self, draft: &mut Draft<'_>) -> Result<(), Unsupported> {
        let (turn, tiles) = (self.turn(), self.tiles);
        if self.through_registers(draft.options.products) {
            draft.text.line(format!("{} next_{tiles}[{}];", self.read()?, turn.turns));
        }
        if let Place::Strides(base, [row, sum]) = &self.operand.place {
            let (index, first, pointer) = (self.index, self.first, &self.operand.pointer);
            let place = format!(
                "{base} + ({index})({first} + {}) * {row} + ({index})({}) * {sum}",
                turn.along[0], turn.line[0]
            );
            let ty = stored(self.operand.element)?;
            draft.text.line(format!("const {ty}* const from_{tiles} = {pointer} + ({place});"));
        }
        Ok(())
    }

    /// Lines that read a thread's part of a tile into registers, where it goes through them.
    pub(super) fn fetch(&self, draft: &mut Draft<'_>, tile: &str) -> Result<(), Unsupported> {
        if !self.through_registers(draft.options.products) {
            return Ok(());
        }
        let (turn, tiles, ty) = (self.turn(), self.tiles, self.read()?);
        let text = &mut draft.text;
        text.unrolled("u", turn.turns);
        let (from, exists) = self.find(text, &turn, tile);
        let value = format!("*(const {ty}*)({from})");
        if exists {
            text.line(format!("next_{tiles}[u] = exists ? {value} : {ty}{{}};"));
        } else {
            text.line(format!("next_{tiles}[u] = {value};"));
        }
        text.close();
        Ok(())
    }

    /// Lines that put a thread's part of a tile down at a stage, where it went through registers.
    pub(super) fn keep(&self, draft: &mut Draft<'_>, stage: &str) {
        let products = draft.options.products;
        if !self.through_registers(products) {
            return;
        }
        let (turn, tiles, element) = (self.turn(), self.tiles, self.operand.element);
        let text = &mut draft.text;
        text.unrolled("u", turn.turns);
        self.own(text, &turn);
        let to = self.to(stage);
        let part = |text: &mut Text, to: &str, part: String| {
            text.line(format!("*({to}) = {};", taken(element, products, format!("wf_get({part})"))));
        };
        match (turn.each, self.operand.by_depth) {
            (1, _) => part(text, &to, format!("next_{tiles}[u]")),
            (_, by_depth) => {
                let next = if by_depth { self.line() } else { 1 };
                text.unrolled("e", 4);
                part(text, &format!("{to} + e * {next}"), format!("next_{tiles}[u].x[e]"));
                text.close();
            }
        }
        text.close();
    }

    /// Lines that copy a thread's part of a tile to a stage without waiting for it, where it goes through no registers.
    pub(super) fn copy(&self, draft: &mut Draft<'_>, stage: &str, tile: &str) {
        if self.through_registers(draft.options.products) {
            return;
        }
        let turn = self.turn();
        let text = &mut draft.text;
        text.unrolled("u", turn.turns);
        self.own(text, &turn);
        let (from, exists) = self.find(text, &turn, tile);
        let (to, bytes) = (self.to(stage), turn.each * 4);
        text.line(format!("wf_copy{bytes}({to}, {from}, {});", if exists { "exists" } else { "true" }));
        text.close();
    }

    /// The line of a thread's turn and its place there.
    fn own(&self, text: &mut Text, Turn { line, along, .. }: &Turn) {
        text.line(format!("const int line = {}, along = {};", sum(line), sum(along)));
    }

    fn to(&self, stage: &str) -> String {
        format!("{} + {stage} * {} + line * {} + along", self.tiles, self.size(), self.line())
    }

    /// Lines that find the element of a thread's turn in a tile; gives where it is, and whether `exists` says if it is
    /// one of the operand's.
    fn find(&self, text: &mut Text, turn: &Turn, tile: &str) -> (String, bool) {
        let (operand, depth, index) = (self.operand, self.depth, self.index);
        let exists = self.exists();
        if exists.is_some() || matches!(operand.place, Place::Lines(..)) {
            let (line, along) = (sum(&turn.line), sum(&turn.along));
            text.line(format!(
                "const int row = {} + {along}, sum = ({tile}) * {depth} + {line};",
                self.first
            ));
        }
        // What all turns share comes first, so that the rest is a constant distance.
        let (pointer, shared, own) = match &operand.place {
            Place::Strides(_, [row, sum]) => {
                let shared = format!("({index})({tile}) * {}", *sum * depth as isize);
                let own =
                    format!("({index})({}) * {sum} + ({index})({}) * {row}", turn.line[1], turn.along[1]);
                (format!("from_{}", self.tiles), shared, own)
            }
            Place::Lines(lines, _, place) => {
                lines.iter().for_each(|line| text.line(line));
                (operand.pointer.clone(), "0".to_owned(), place.clone())
            }
        };
        let Some(exists) = exists else { return (format!("{pointer} + {shared} + ({own})"), false) };
        text.line(format!("const bool exists = {exists};"));
        // Nothing is read where nothing is.
        (format!("{pointer} + (exists ? {shared} + ({own}) : 0)"), true)
    }

    /// When an element is one of the operand's; nothing where all are.
    fn exists(&self) -> Option<String> {
        let Operand { size, .. } = *self.operand;
        let mut all = Vec::new();
        if !size.is_multiple_of(self.side) {
            all.push(format!("row < {size}"));
        }
        // Sums of nothing have a tile too, of zeros.
        if self.k == 0 || !self.k.is_multiple_of(self.depth) {
            all.push(format!("sum < {}", self.k));
        }
        if let Place::Lines(_, exists, _) = &self.operand.place {
            all.extend(exists.clone());
        }
        (!all.is_empty()).then(|| all.join(" && "))
    }
}
