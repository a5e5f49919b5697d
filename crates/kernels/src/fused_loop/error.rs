//! Why a fused loop cannot be created.

use warpforge_tensor::ElementType;

/// Why a fused loop cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FusedLoopError {
    /// An instruction or output reads a register that is not defined before it.
    #[error("instruction {inst} reads register {register}, which is not defined before it")]
    Register {
        /// The instruction, or the number of instructions for an output.
        inst: usize,
        /// The register that it names.
        register: usize,
    },
    /// An instruction loads an input that does not exist.
    #[error("instruction {inst} loads input {input} of {count}")]
    Input {
        /// The step.
        inst: usize,
        /// The input that it names.
        input: usize,
        /// How many there are.
        count: usize,
    },
    /// Operand types do not match.
    #[error("instruction {inst} has operands of {left} and {right}, which should be one type")]
    Types {
        /// The step.
        inst: usize,
        /// The first type.
        left: ElementType,
        /// The second type.
        right: ElementType,
    },
    /// The operation does not support the element type.
    #[error("instruction {inst}: there is no {operation} on {element}")]
    Unsupported {
        /// The step.
        inst: usize,
        /// The operation, by name.
        operation: String,
        /// The type.
        element: ElementType,
    },
    /// An access has a different rank than the domain.
    #[error(
        "{what} has {rows} and {columns} strides; the domain has {of_rows} row and {of_columns} column dimensions"
    )]
    Rank {
        /// What has the access.
        what: String,
        /// Its strides for rows.
        rows: usize,
        /// Its strides for columns.
        columns: usize,
        /// Row dimensions of the domain.
        of_rows: usize,
        /// Column dimensions of the domain.
        of_columns: usize,
    },
    /// An output stores different values to one element.
    #[error("output {output} writes different values to one element")]
    Overlap {
        /// The output.
        output: usize,
    },
    /// The domain or an access is too large for this machine's addresses.
    #[error("the domain or an access is too large to be addressed")]
    TooLarge,
    /// The tile is accessed with different element sizes.
    #[error("the tile is read or written as {left} and as {right}, which differ in width")]
    Tile {
        /// One type.
        left: ElementType,
        /// The other type.
        right: ElementType,
    },
    /// A row reduction inside of a column reduction.
    #[error("instruction {inst} reduces columns inside a column reduction")]
    NestedReduction {
        /// The step.
        inst: usize,
    },
}
