//! JIT compiler of fused loops: values stay in registers from loads to stores.
//!
//! [`lower`] splits a fused loop into phases of operations; [`codegen`] and [`emit`] generate instructions for them.
//! The functions of [`crate::math`] are traced (see [`trace`]), so that compiled and interpreted loops are
//! bit-identical. Loops that cannot be compiled are interpreted.

mod abi;
mod assembler;
mod code_pages;
mod codegen;
mod emit;
mod error;
mod frame;
mod lower;
mod machine_code;
mod op;
mod phases;
mod registers;
mod run;
mod trace;
mod translate;

pub(super) use machine_code::MachineCode;
