//! Stages f32 GEMM operands in shared memory, several tiles deep.
//!
//! Operands in the layout of the tile are copied asynchronously. Operands that are transposed or converted go through
//! registers: loaded while a tile is multiplied and stored after it.

use warpforge_tensor::ElementType;

use super::rounding::rounded_operand;
use crate::builder::KernelBuilder;
use crate::index::sum;
use crate::kernel::Unsupported;
use crate::options::ComputePrecision;
use crate::text::Text;
use crate::types::storage_type;

/// An operand: rows of the left or columns of the right, each with its K elements.
pub(super) struct Operand {
    pub(super) element: ElementType,
    pub(super) pointer: String,
    /// M or N.
    pub(super) size: usize,
    /// Whether vector loads run along K.
    pub(super) by_depth: bool,
    /// Whether loads of four elements are aligned.
    pub(super) vectors: bool,
    pub(super) addressing: Addressing,
}

/// How the element index of `row` and `sum` is computed.
pub(super) enum Addressing {
    /// A base name, and the strides along M or N and along K.
    Strided(&'static str, [isize; 2]),
    /// Emitted lines, a bounds condition where one is needed, and the index expression.
    Computed(Vec<String>, Option<String>, String),
}

/// The tiles of an operand.
pub(super) struct Staged<'o> {
    pub(super) operand: &'o Operand,
    /// K.
    pub(super) k: usize,
    /// Tile size along M or N, and the name of the first index.
    pub(super) side: usize,
    pub(super) first: &'static str,
    /// Tile size along K, a multiple of eight.
    pub(super) depth: usize,
    /// The name of the shared memory.
    pub(super) tiles: &'static str,
    pub(super) threads: usize,
    /// The integer type of indices.
    pub(super) index: &'static str,
}

/// The elements of a tile that a thread copies; `u` is the iteration.
struct CopySlots {
    /// The part common to all iterations, and the part that depends on `u`.
    line: [String; 2],
    along: [String; 2],
    count: usize,
    /// Vector width, 1 or 4.
    each: usize,
}

impl Staged<'_> {
    /// Elements per tile line. Lines that are written element by element are padded against bank conflicts.
    pub(super) fn line(&self) -> usize {
        if self.operand.by_depth { self.side + 4 } else { self.side }
    }

    /// Elements of a tile in shared memory.
    pub(super) fn size(&self) -> usize {
        self.depth * self.line()
    }

    /// Whether elements are staged through registers.
    fn through_registers(&self, compute_precision: ComputePrecision) -> bool {
        let Operand { element, by_depth, vectors, .. } = *self.operand;
        (by_depth && vectors) || element != ElementType::F32 || compute_precision != ComputePrecision::Model
    }

    fn slots(&self) -> CopySlots {
        let each = if self.operand.vectors { 4 } else { 1 };
        let times = |count: usize| if count == 1 { String::new() } else { format!(" * {count}") };
        let count = self.side * self.depth / (each * self.threads);
        if self.operand.by_depth {
            // Eight elements of a row at a time, so that neighbours go to different banks.
            let span = if each == 4 { self.depth } else { 8 };
            let run = span / each;
            let rows = self.threads / run;
            let passes = self.side / rows;
            CopySlots {
                line: [format!("WF_THREAD % {run}{}", times(each)), format!("u / {passes} * {span}")],
                along: [format!("WF_THREAD / {run}"), format!("u % {passes} * {rows}")],
                count,
                each,
            }
        } else {
            let run = self.side / each;
            CopySlots {
                line: [format!("WF_THREAD / {run}"), format!("u * {}", self.threads / run)],
                along: [format!("WF_THREAD % {run}{}", times(each)), "0".to_owned()],
                count,
                each,
            }
        }
    }

    /// The type of one load.
    fn read(&self) -> Result<String, Unsupported> {
        let ty = storage_type(self.operand.element)?;
        Ok(if self.operand.vectors { format!("wf_vec<{ty}, 4>") } else { ty.to_owned() })
    }

    /// Emits the thread's base pointer and staging registers.
    pub(super) fn begin(&self, builder: &mut KernelBuilder<'_>) -> Result<(), Unsupported> {
        let (slots, tiles) = (self.slots(), self.tiles);
        if self.through_registers(builder.options.compute_precision) {
            builder.text.line(format!("{} next_{tiles}[{}];", self.read()?, slots.count));
        }
        if let Addressing::Strided(base, [row, sum]) = &self.operand.addressing {
            let (index, first, pointer) = (self.index, self.first, &self.operand.pointer);
            let place = format!(
                "{base} + ({index})({first} + {}) * {row} + ({index})({}) * {sum}",
                slots.along[0], slots.line[0]
            );
            let ty = storage_type(self.operand.element)?;
            builder.text.line(format!("const {ty}* const from_{tiles} = {pointer} + ({place});"));
        }
        Ok(())
    }

    /// Emits the loads of a tile into registers, for operands staged through them.
    pub(super) fn fetch(&self, builder: &mut KernelBuilder<'_>, tile: &str) -> Result<(), Unsupported> {
        if !self.through_registers(builder.options.compute_precision) {
            return Ok(());
        }
        let (slots, tiles, ty) = (self.slots(), self.tiles, self.read()?);
        let text = &mut builder.text;
        text.unrolled("u", slots.count);
        let (from, exists) = self.find(text, &slots, tile);
        let value = format!("*(const {ty}*)({from})");
        if exists {
            text.line(format!("next_{tiles}[u] = exists ? {value} : {ty}{{}};"));
        } else {
            text.line(format!("next_{tiles}[u] = {value};"));
        }
        text.close();
        Ok(())
    }

    /// Emits the stores of a tile from registers to a stage.
    pub(super) fn store(&self, builder: &mut KernelBuilder<'_>, stage: &str) {
        let compute_precision = builder.options.compute_precision;
        if !self.through_registers(compute_precision) {
            return;
        }
        let (slots, tiles, element) = (self.slots(), self.tiles, self.operand.element);
        let text = &mut builder.text;
        text.unrolled("u", slots.count);
        self.own(text, &slots);
        let to = self.to(stage);
        let part = |text: &mut Text, to: &str, part: String| {
            text.line(format!(
                "*({to}) = {};",
                rounded_operand(element, compute_precision, format!("wf_get({part})"))
            ));
        };
        match (slots.each, self.operand.by_depth) {
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

    /// Emits the asynchronous copies of a tile to a stage, for operands that bypass registers.
    pub(super) fn copy(&self, builder: &mut KernelBuilder<'_>, stage: &str, tile: &str) {
        if self.through_registers(builder.options.compute_precision) {
            return;
        }
        let slots = self.slots();
        let text = &mut builder.text;
        text.unrolled("u", slots.count);
        self.own(text, &slots);
        let (from, exists) = self.find(text, &slots, tile);
        let (to, bytes) = (self.to(stage), slots.each * 4);
        text.line(format!("wf_copy{bytes}({to}, {from}, {});", if exists { "exists" } else { "true" }));
        text.close();
    }

    /// Emits the tile coordinates of an iteration.
    fn own(&self, text: &mut Text, CopySlots { line, along, .. }: &CopySlots) {
        text.line(format!("const int line = {}, along = {};", sum(line), sum(along)));
    }

    fn to(&self, stage: &str) -> String {
        format!("{} + {stage} * {} + line * {} + along", self.tiles, self.size(), self.line())
    }

    /// Emits the address of an iteration's element. Returns the pointer expression and whether `exists` is a bounds
    /// condition.
    fn find(&self, text: &mut Text, slots: &CopySlots, tile: &str) -> (String, bool) {
        let (operand, depth, index) = (self.operand, self.depth, self.index);
        let exists = self.exists();
        if exists.is_some() || matches!(operand.addressing, Addressing::Computed(..)) {
            let (line, along) = (sum(&slots.line), sum(&slots.along));
            text.line(format!(
                "const int row = {} + {along}, sum = ({tile}) * {depth} + {line};",
                self.first
            ));
        }
        // The part common to all iterations comes first, so that the rest is a constant offset.
        let (pointer, shared, own) = match &operand.addressing {
            Addressing::Strided(_, [row, sum]) => {
                let shared = format!("({index})({tile}) * {}", *sum * depth as isize);
                let own =
                    format!("({index})({}) * {sum} + ({index})({}) * {row}", slots.line[1], slots.along[1]);
                (format!("from_{}", self.tiles), shared, own)
            }
            Addressing::Computed(lines, _, place) => {
                lines.iter().for_each(|line| text.line(line));
                (operand.pointer.clone(), "0".to_owned(), place.clone())
            }
        };
        let Some(exists) = exists else { return (format!("{pointer} + {shared} + ({own})"), false) };
        text.line(format!("const bool exists = {exists};"));
        // Out-of-range loads read the first element.
        (format!("{pointer} + (exists ? {shared} + ({own}) : 0)"), true)
    }

    /// The bounds condition; none where all elements are in range.
    fn exists(&self) -> Option<String> {
        let Operand { size, .. } = *self.operand;
        let mut all = Vec::new();
        if !size.is_multiple_of(self.side) {
            all.push(format!("row < {size}"));
        }
        // A GEMM with K = 0 has one tile of zeros.
        if self.k == 0 || !self.k.is_multiple_of(self.depth) {
            all.push(format!("sum < {}", self.k));
        }
        if let Addressing::Computed(_, exists, _) = &self.operand.addressing {
            all.extend(exists.clone());
        }
        (!all.is_empty()).then(|| all.join(" && "))
    }
}
