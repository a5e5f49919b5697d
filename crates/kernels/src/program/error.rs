//! Why a program cannot be made.

use warpforge_tensor::ElementType;

/// Why a program cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// A step or output names a value that no earlier step has.
    #[error("step {step} reads the value of step {register}, which is not before it")]
    Register {
        /// The step, or the number of steps for an output.
        step: usize,
        /// The register that it names.
        register: usize,
    },
    /// A step loads an input that there is not.
    #[error("step {step} loads input {input} of {count}")]
    Input {
        /// The step.
        step: usize,
        /// The input that it names.
        input: usize,
        /// How many there are.
        count: usize,
    },
    /// The types that a step is given do not go together.
    #[error("step {step} is given {left} and {right}, which should be one type")]
    Types {
        /// The step.
        step: usize,
        /// The first type.
        left: ElementType,
        /// The second type.
        right: ElementType,
    },
    /// There is no such operation on the type.
    #[error("step {step}: there is no {operation} on {element}")]
    Unsupported {
        /// The step.
        step: usize,
        /// The operation, by name.
        operation: String,
        /// The type.
        element: ElementType,
    },
    /// An access has another number of dimensions than the domain.
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
    /// Several positions of an output with different values are one element.
    #[error("output {output} writes different values to one element")]
    Overlap {
        /// The output.
        output: usize,
    },
    /// The domain or an access is too large for this machine's addresses.
    #[error("the domain or an access is too large to be addressed")]
    TooLarge,
    /// Elements of the tile are said to be of different widths.
    #[error("the tile is read or written as {left} and as {right}, which differ in width")]
    Tile {
        /// One type.
        left: ElementType,
        /// The other type.
        right: ElementType,
    },
    /// The steps before a fold over rows have a fold over columns.
    #[error("step {step} folds columns before rows are folded")]
    NestedFold {
        /// The step.
        step: usize,
    },
}
