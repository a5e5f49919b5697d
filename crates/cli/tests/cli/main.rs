//! The program itself, driven from outside.

mod bad_input;
mod benchmark;
mod beside;
mod bytecode;
mod compare;
mod golden;
mod history;
mod ignored;
mod import;
mod interrupt;
mod kernels;
mod list;
mod model;
mod monitor;
mod outputs;
mod pipes;
mod plan;
mod run;
mod shell;
mod timing;
mod validate;
mod warpt;
