//! A list of instructions with labels, encoded at the end.

use iced_x86::{Code, Encoder, IcedError, Instruction, MemoryOperand, Register};

use super::abi::LANES;

/// A code position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label(usize);

#[derive(Debug, Clone)]
enum Item {
    Instruction(Instruction),
    /// A jump with a 32-bit displacement, so that its length does not depend on the distance.
    Jump(Code, Label),
    Label(Label),
}

/// Which lanes of its result an instruction writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lanes {
    All,
    /// Merge masking.
    Merged(Register),
    /// Zero masking.
    Zeroed(Register),
}

/// A source of an instruction.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    Register(Register),
    Memory(MemoryOperand),
}

impl From<Register> for Source {
    fn from(register: Register) -> Self {
        Self::Register(register)
    }
}

/// Instructions in order, and those of cold paths, which are placed after all others.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    items: Vec<Item>,
    cold: Vec<Item>,
    labels: usize,
    /// Whether instructions are added to the cold section.
    cold_section: bool,
    constants: Vec<u32>,
    /// Indices of tables among the constants.
    tables: Vec<usize>,
}

type Result<T> = std::result::Result<T, IcedError>;

impl Assembler {
    fn push(&mut self, item: Item) {
        if self.cold_section { self.cold.push(item) } else { self.items.push(item) }
    }

    /// Adds an instruction.
    pub(super) fn add(&mut self, instruction: Instruction) {
        self.push(Item::Instruction(instruction));
    }

    /// Adds an instruction that writes some lanes.
    fn add_lanes(&mut self, mut instruction: Instruction, lanes: Lanes) {
        match lanes {
            Lanes::All => {}
            Lanes::Merged(mask) => instruction.set_op_mask(mask),
            Lanes::Zeroed(mask) => {
                instruction.set_op_mask(mask);
                instruction.set_zeroing_masking(true);
            }
        }
        self.add(instruction);
    }

    /// An instruction of one source.
    pub(super) fn one(
        &mut self,
        code: Code,
        to: Register,
        from: impl Into<Source>,
        lanes: Lanes,
    ) -> Result<()> {
        let instruction = match from.into() {
            Source::Register(from) => Instruction::with2(code, to, from)?,
            Source::Memory(from) => Instruction::with2(code, to, from)?,
        };
        self.add_lanes(instruction, lanes);
        Ok(())
    }

    /// An instruction with one source and an immediate.
    pub(super) fn one_with(
        &mut self,
        code: Code,
        to: Register,
        from: impl Into<Source>,
        by: u8,
    ) -> Result<()> {
        let instruction = match from.into() {
            Source::Register(from) => Instruction::with3(code, to, from, u32::from(by))?,
            Source::Memory(from) => Instruction::with3(code, to, from, u32::from(by))?,
        };
        self.add(instruction);
        Ok(())
    }

    /// An instruction of two sources.
    pub(super) fn two(
        &mut self,
        code: Code,
        to: Register,
        a: Register,
        b: impl Into<Source>,
        lanes: Lanes,
    ) -> Result<()> {
        let instruction = match b.into() {
            Source::Register(b) => Instruction::with3(code, to, a, b)?,
            Source::Memory(b) => Instruction::with3(code, to, a, b)?,
        };
        self.add_lanes(instruction, lanes);
        Ok(())
    }

    /// An instruction with two sources and an immediate.
    pub(super) fn two_with(
        &mut self,
        code: Code,
        to: Register,
        a: Register,
        b: impl Into<Source>,
        by: u8,
        lanes: Lanes,
    ) -> Result<()> {
        let instruction = match b.into() {
            Source::Register(b) => Instruction::with4(code, to, a, b, u32::from(by))?,
            Source::Memory(b) => Instruction::with4(code, to, a, b, u32::from(by))?,
        };
        self.add_lanes(instruction, lanes);
        Ok(())
    }

    /// An instruction that writes to memory.
    pub(super) fn store(
        &mut self,
        code: Code,
        to: MemoryOperand,
        from: Register,
        lanes: Lanes,
    ) -> Result<()> {
        self.add_lanes(Instruction::with2(code, to, from)?, lanes);
        Ok(())
    }

    /// A new unbound label.
    pub(super) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Binds a label to the current position.
    pub(super) fn bind(&mut self, label: Label) {
        self.push(Item::Label(label));
    }

    /// A jump; `code` has a 32-bit displacement.
    pub(super) fn jump(&mut self, code: Code, to: Label) {
        self.push(Item::Jump(code, to));
    }

    /// Adds the instructions of `f` to the cold section.
    pub(super) fn cold_section<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        self.cold_section = true;
        let result = f(self);
        self.cold_section = false;
        result
    }

    /// A constant in memory.
    pub(super) fn constant(&mut self, bits: u32, broadcast: bool) -> MemoryOperand {
        let known = self.constants.iter().position(|&known| known == bits);
        let at = known.unwrap_or_else(|| {
            self.constants.push(bits);
            self.constants.len() - 1
        });
        MemoryOperand::with_base_displ_bcst_seg(Register::RIP, (at * 4) as i64, broadcast, Register::None)
    }

    /// Constants for all lanes of a vector, in one cache line.
    pub(super) fn table(&mut self, table: &[u32; LANES]) -> MemoryOperand {
        let known = self.tables.iter().find(|&&at| self.constants[at..].starts_with(table));
        let at = known.copied().unwrap_or_else(|| {
            let at = self.constants.len().next_multiple_of(LANES);
            self.constants.resize(at, 0);
            self.constants.extend(table);
            self.tables.push(at);
            at
        });
        MemoryOperand::with_base_displ(Register::RIP, (at * 4) as i64)
    }

    /// The constants followed by the code, and the offset of the code.
    pub(super) fn finish(self) -> Result<(Vec<u8>, usize)> {
        let start = (self.constants.len() * 4).next_multiple_of(64);
        let mut places = vec![0; self.labels];
        // Once to locate the labels, and again to encode jumps to them.
        self.encode(start, &mut places)?;
        let code = self.encode(start, &mut places)?;
        let mut bytes: Vec<u8> = self.constants.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        bytes.resize(start, 0);
        bytes.extend(code);
        Ok((bytes, start))
    }

    /// Encodes with the given label positions, and updates them.
    fn encode(&self, start: usize, places: &mut [u64]) -> Result<Vec<u8>> {
        let mut encoder = Encoder::try_new(64)?;
        let mut at = start as u64;
        for item in self.items.iter().chain(&self.cold) {
            at += match item {
                Item::Instruction(instruction) => encoder.encode(instruction, at)? as u64,
                Item::Jump(code, label) => {
                    let jump = Instruction::with_branch(*code, places[label.0])?;
                    encoder.encode(&jump, at)? as u64
                }
                Item::Label(label) => {
                    places[label.0] = at;
                    0
                }
            };
        }
        Ok(encoder.take_buffer())
    }
}
